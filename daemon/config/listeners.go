package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// parseListeners reads NAME://host:port,... as Kafka's EndPoint does; names become upper case.
func parseListeners(key, value string, protocols map[string]string) ([]Listener, error) {
	var all []Listener
	for entry := range strings.SplitSeq(value, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		bad := func(why string) ([]Listener, error) { return nil, &Malformed{key, value, why} }
		name, address, ok := strings.Cut(entry, "://")
		colon := strings.LastIndexByte(address, ':')
		if !ok || name == "" || colon < 0 {
			return bad("allowed: NAME://host:port, separated by commas")
		}
		host := address[:colon]
		if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			host = host[1 : len(host)-1]
		}
		if strings.Trim(host, hostChars) != "" {
			return bad(fmt.Sprintf("%q is not a host name or an address", host))
		}
		port, err := strconv.ParseUint(address[colon+1:], 10, 16)
		if err != nil {
			return bad("allowed as a port: from 0 to 65535")
		}
		l := Listener{Name: strings.ToUpper(name), Host: host, Port: int32(port)}
		if l.Protocol = protocols[l.Name]; l.Protocol == "" {
			return bad("listener.security.protocol.map has no protocol for " + l.Name)
		}
		if slices.ContainsFunc(all, func(o Listener) bool { return o.Name == l.Name }) {
			return bad("each listener needs a name of its own: " + l.Name)
		}
		all = append(all, l)
	}
	return all, nil
}

const hostChars = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._%:"

func (b *builder) listeners() {
	c := b.c
	protocols := b.protocols()
	value := b.get("listeners").s
	c.Listeners = b.parseListeners("listeners", value, protocols)
	if b.err == nil && len(c.Listeners) == 0 {
		b.bad("listeners", value, "allowed: at least one listener")
	}
	c.Advertised = slices.Clone(c.Listeners)
	key := "listeners"
	if v := b.get("advertised.listeners").s; v != "" {
		key, value = "advertised.listeners", v
		c.Advertised = b.parseListeners(key, v, protocols)
	}
	if b.err != nil {
		return
	}
	b.ports(b.get("listeners").s)
	for _, a := range c.Advertised {
		if a.Host == "0.0.0.0" {
			b.bad(key, value, "clients cannot reach 0.0.0.0: set advertised.listeners to an address they can, or leave the host out")
		}
		if !slices.ContainsFunc(c.Listeners, func(l Listener) bool { return l.Name == a.Name }) {
			b.bad(key, value, "no listener is called "+a.Name)
		}
	}
	for _, l := range c.Listeners {
		if l.Protocol != "PLAINTEXT" && b.err == nil {
			b.err = &Unsupported{"listeners", b.get("listeners").s,
				"the listener speaks " + l.Protocol + ", which is not built yet, and PLAINTEXT instead would open the broker to everybody"}
		}
	}
	b.interBroker()
}

func (b *builder) parseListeners(key, value string, protocols map[string]string) []Listener {
	if b.err != nil {
		return nil
	}
	all, err := parseListeners(key, value, protocols)
	b.err = err
	return all
}

// ports refuses two listeners on one port, unless one is an IPv4 and the other an IPv6 address, as Kafka does.
func (b *builder) ports(value string) {
	all := b.c.Listeners
	for i, l := range all {
		for _, o := range all[:i] {
			if l.Port != o.Port || l.Port == 0 {
				continue
			}
			x, errX := netip.ParseAddr(l.Host)
			y, errY := netip.ParseAddr(o.Host)
			if errX != nil || errY != nil || x.Is4() == y.Is4() {
				b.bad("listeners", value, "each listener needs a port of its own")
			}
		}
	}
}

func (b *builder) protocols() map[string]string {
	const key = "listener.security.protocol.map"
	value := b.get(key).s
	m := map[string]string{}
	for entry := range strings.SplitSeq(value, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		i := strings.LastIndexByte(entry, ':')
		if i <= 0 {
			b.bad(key, value, "allowed: NAME:PROTOCOL, separated by commas")
			return m
		}
		name, protocol := strings.ToUpper(strings.TrimSpace(entry[:i])), strings.TrimSpace(entry[i+1:])
		if !slices.Contains([]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, protocol) {
			b.bad(key, value, "allowed as a protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")
		}
		if _, twice := m[name]; twice {
			b.bad(key, value, "each listener name may stand once: "+name)
		}
		m[name] = protocol
	}
	return m
}

// interBroker finds the listener of the brokers: by name, else the first that speaks security.inter.broker.protocol.
func (b *builder) interBroker() {
	const byName, byProtocol = "inter.broker.listener.name", "security.inter.broker.protocol"
	name, protocol := strings.ToUpper(b.get(byName).s), b.get(byProtocol).s
	if name == "" {
		if protocol != "PLAINTEXT" && b.err == nil {
			b.err = &Unsupported{byProtocol, protocol, "only PLAINTEXT is built yet"}
		}
		for _, a := range b.c.Advertised {
			if a.Protocol == protocol && (b.c.InterBroker == "" || a.Name == protocol) {
				b.c.InterBroker = a.Name
			}
		}
		return
	}
	if _, set := b.static[byProtocol]; set {
		b.bad(byName, name, "only one of it and "+byProtocol+" may be set")
	}
	if !slices.ContainsFunc(b.c.Advertised, func(a Listener) bool { return a.Name == name }) {
		b.bad(byName, name, "no advertised listener is called so")
	}
	b.c.InterBroker = name
}
