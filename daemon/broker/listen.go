package broker

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"

	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/ring"
)

// listener is a bound address.
type listener struct {
	config.Listener
	bound ring.Listener
}

// bind binds all listeners, so that a port in use is told before anything is touched.
func (b *Broker) bind() error {
	for _, l := range b.static.Listeners {
		bound, err := b.loop.Listen(net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))))
		if err != nil {
			return fmt.Errorf("listener %s://%s: %w", l.Name, net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))), err)
		}
		b.listeners = append(b.listeners, &listener{l, bound})
	}
	b.gate = server.NewGate(b.loop, 0, 0, nil)
	b.limit(b.static)
	return nil
}

// limit puts the limits of connections in force.
func (b *Broker) limit(c *config.Config) {
	exceptions := make(map[netip.Addr]int, len(c.ConnectionsByIP))
	for addr, most := range c.ConnectionsByIP {
		exceptions[addr.Unmap()] = int(most)
	}
	_, conns := b.share()
	b.gate.Limit(min(unlimited(c.MaxConnections), conns), unlimited(c.MaxConnectionsPerIP), exceptions)
}

// unlimited reads a limit whose absence is said by the largest number.
func unlimited(n int32) int {
	if n == math.MaxInt32 {
		return math.MaxInt
	}
	return int(n)
}

// unbind closes the listeners; connections stay.
func (b *Broker) unbind() {
	for _, l := range b.listeners {
		l.bound.Close()
	}
	b.listeners = nil
}

// accept begins to take connections and hands them to the loops in turn.
func (b *Broker) accept() {
	for _, l := range b.listeners {
		b.loop.Accept(l.bound, func(s ring.Socket, peer netip.AddrPort) { b.welcome(l, s, peer) })
		b.log.Info("listening", "listener", l.Name, "address", l.bound.Addr())
	}
}

func (b *Broker) welcome(l *listener, s ring.Socket, peer netip.AddrPort) {
	if b.stopping || !b.gate.Admit(peer.Addr().Unmap()) {
		server.Turn(b.loop, s)
		return
	}
	sh := b.shards[b.turn%len(b.shards)]
	b.turn++
	sh.ctx.On(b.shards[0].ctx, func() { sh.server.Attach(s, peer, l.Name, b.gate) })
}

// endpoints is where clients and brokers are told to find our listeners. A port of 0 is the one we were given.
func (b *Broker) endpoints() []metadata.Endpoint {
	var out []metadata.Endpoint
	for _, a := range b.static.Advertised {
		e := metadata.Endpoint{Listener: a.Name, Protocol: a.Protocol, Host: a.Host, Port: a.Port}
		for _, l := range b.listeners {
			if l.Name != a.Name {
				continue
			}
			if e.Port == 0 {
				e.Port = int32(l.bound.Addr().Port())
			}
			if e.Host == "" {
				e.Host = l.bound.Addr().Addr().String()
			}
		}
		out = append(out, e)
	}
	return out
}
