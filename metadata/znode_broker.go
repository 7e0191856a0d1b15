package metadata

import (
	"fmt"
	"strconv"
	"strings"
)

// Registration is /brokers/ids/<id>.
type Registration struct {
	Version   int // written: 5, or 4 for IBPs below 2.7
	Endpoints []Endpoint
	Rack      string // "" if unset
	JMXPort   int32  // -1 if unset
	Timestamp int64  // Unix ms
	Features  []BrokerFeature
}

// BrokerFeature is a range of versions of a feature that a broker supports.
type BrokerFeature struct {
	Name     string
	Min, Max int16
}

// Encode gives the node's data, version 5 or 4.
func (n Registration) Encode() []byte {
	b := []byte{'{'}
	if n.Version >= 5 {
		b = append(b, `"features":{`...)
		for i, x := range n.Features {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, x.Name)
			b = fmt.Appendf(b, `:{"min_version":%d,"max_version":%d}`, x.Min, x.Max)
		}
		b = append(b, `},`...)
	}
	b = append(b, `"listener_security_protocol_map":{`...)
	for i, e := range n.Endpoints {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, e.Listener)
		b = append(b, ':')
		b = appendString(b, e.Protocol)
	}
	b = append(b, `},"endpoints":[`...)
	for i, e := range n.Endpoints {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, e.Listener+"://"+JoinHostPort(e.Host, e.Port))
	}
	b = append(b, ']')
	if n.Rack != "" {
		b = appendString(append(b, `,"rack":`...), n.Rack)
	}
	host, port := n.plaintext()
	b = fmt.Appendf(b, `,"jmx_port":%d,"port":%d,"host":`, n.JMXPort, port)
	if port < 0 {
		b = append(b, "null"...)
	} else {
		b = appendString(b, host)
	}
	return fmt.Appendf(b, `,"version":%d,"timestamp":"%d"}`, n.Version, n.Timestamp)
}

// plaintext is what clients of before listeners are told.
func (n Registration) plaintext() (string, int32) {
	for _, e := range n.Endpoints {
		if e.Protocol == "PLAINTEXT" {
			return e.Host, e.Port
		}
	}
	return "", -1
}

// DecodeRegistration reads /brokers/ids/<id>, versions 1 to 5 and later ones that hold what version 5 does.
func DecodeRegistration(data []byte) (n Registration, err error) {
	err = decode("broker registration", data, func(f *fields) {
		n.Version = f.version(1, 1<<31-1)
		n.JMXPort = -1
		if f.has("jmx_port") {
			n.JMXPort = f.int32("jmx_port")
		}
		if f.has("timestamp") {
			n.Timestamp = f.int64("timestamp")
		}
		if f.has("rack") {
			n.Rack = f.str("rack")
		}
		if n.Version == 1 {
			n.Endpoints = []Endpoint{{"PLAINTEXT", "PLAINTEXT", f.str("host"), int32(f.number("port", 0, 65535))}}
			return
		}
		protocols := fields{}
		if f.has("listener_security_protocol_map") {
			protocols.o = f.object("listener_security_protocol_map")
		}
		for _, text := range f.strings("endpoints") {
			e, ok := parseEndpoint(text)
			if !ok {
				f.fail("endpoints", "a list of NAME://host:port", text)
				return
			}
			if protocols.has(e.Listener) {
				e.Protocol = protocols.str(e.Listener)
			}
			n.Endpoints = append(n.Endpoints, e)
		}
		if f.err == nil {
			f.err = protocols.err
		}
		if n.Version >= 5 && f.has("features") {
			n.readFeatures(f)
		}
	})
	return n, err
}

func (n *Registration) readFeatures(f *fields) {
	for _, m := range f.object("features") {
		o, ok := m.value.(object)
		if !ok {
			f.fail(m.key, "an object", m.value)
			return
		}
		x := fields{o: o}
		feature := BrokerFeature{m.key, int16(x.number("min_version", 0, 1<<15-1)), int16(x.number("max_version", 0, 1<<15-1))}
		if x.err != nil && f.err == nil {
			f.err = fmt.Errorf("feature %q: %w", m.key, x.err)
		}
		n.Features = append(n.Features, feature)
	}
}

// JoinHostPort puts an IPv6 address into brackets.
func JoinHostPort(host string, port int32) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(port))
}

// parseEndpoint reads NAME://host:port; host may be empty or an IPv6 address, in brackets or not.
func parseEndpoint(s string) (Endpoint, bool) {
	listener, rest, ok := strings.Cut(s, "://")
	i := strings.LastIndexByte(rest, ':')
	if !ok || listener == "" || i < 0 {
		return Endpoint{}, false
	}
	host := rest[:i]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	port, err := strconv.ParseUint(rest[i+1:], 10, 16)
	if err != nil || strings.ContainsAny(host, "[]/") {
		return Endpoint{}, false
	}
	return Endpoint{listener, listener, host, int32(port)}, true
}
