package simring

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"kring/ring"
)

// listener is a bound port and the connections nobody has accepted yet.
type listener struct {
	p       *process
	addr    netip.AddrPort
	loop    *loop
	accept  func(ring.Socket, netip.AddrPort)
	backlog []*endpoint
	closed  bool
}

func (l *loop) Listen(addr string) (ring.Listener, error) {
	l.on("Listen")
	fail := func(err error) (ring.Listener, error) {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: &net.AddrError{Err: err.Error(), Addr: addr}}
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return fail(err)
	}
	n, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return fail(err)
	}
	m, port := l.p.m, uint16(n)
	ip, ok := m.resolve(host)
	if !ok {
		return fail(syscall.EADDRNOTAVAIL)
	}
	for port == 0 || n == 0 && m.listenerAt(netip.AddrPortFrom(ip, port)) != nil {
		m.port++
		port = m.port
	}
	at := netip.AddrPortFrom(ip, port)
	if m.listenerAt(at) != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: net.TCPAddrFromAddrPort(at), Err: syscall.EADDRINUSE}
	}
	ln := &listener{p: l.p, addr: at}
	l.w.listeners = append(l.w.listeners, ln)
	l.w.note(l.by, "listen", at.String(), 0, 0, nil, nil)
	return ln, nil
}

// resolve knows the machine's own names; all interfaces are 0.0.0.0.
func (m *Machine) resolve(host string) (netip.Addr, bool) {
	switch host {
	case "", "0.0.0.0", "::":
		return netip.IPv4Unspecified(), true
	case "localhost", "127.0.0.1", "::1", m.name:
		return m.ip, true
	}
	ip, err := netip.ParseAddr(host)
	return ip, err == nil && ip == m.ip
}

// listenerAt finds who serves an address; the unspecified address meets every one.
func (m *Machine) listenerAt(at netip.AddrPort) *listener {
	for _, ln := range m.w.listeners {
		same := ln.addr.Addr() == at.Addr() || ln.addr.Addr().IsUnspecified() || at.Addr().IsUnspecified()
		if ln.p.m == m && ln.addr.Port() == at.Port() && same {
			return ln
		}
	}
	return nil
}

func (l *loop) Accept(rl ring.Listener, fn func(ring.Socket, netip.AddrPort)) {
	l.on("Accept")
	ln := rl.(*listener)
	ln.loop, ln.accept = l, fn
	waiting := ln.backlog
	ln.backlog = nil
	for _, e := range waiting {
		ln.offer(e)
	}
}

func (ln *listener) Addr() netip.AddrPort { return ln.addr }

func (ln *listener) Close() {
	if ln.closed {
		return
	}
	w := ln.p.m.w
	for i, other := range w.listeners {
		if other == ln {
			w.listeners = append(w.listeners[:i:i], w.listeners[i+1:]...)
			break
		}
	}
	ln.shut()
}

func (ln *listener) shut() {
	ln.closed = true
	for _, e := range ln.backlog {
		e.vanish()
	}
	ln.backlog = nil
}

// offer gives a new connection to whoever accepts.
func (ln *listener) offer(e *endpoint) {
	if ln.accept == nil {
		ln.backlog = append(ln.backlog, e)
		return
	}
	ln.loop.ready(func() {
		if ln.closed {
			e.vanish()
			return
		}
		s := ring.Socket(e.w.id())
		ln.p.sockets[s] = e
		ln.accept(s, e.remote)
	})
}

// resolve finds the machine that serves "host:port", by name or address.
func (w *World) resolve(addr string) (*Machine, netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	for _, m := range w.machines {
		if m.name == host || m.ip.String() == host {
			return m, netip.AddrPortFrom(m.ip, uint16(port)), nil
		}
	}
	return nil, netip.AddrPort{}, fmt.Errorf("simring: no machine is called %q", host)
}

// connect makes a connection from client to whoever serves at, after the usual delay; refused tells the client.
func (w *World) connect(c *Client, m *Machine, at netip.AddrPort) {
	w.at(w.now+w.delay(w.o.NetDelay), func() {
		ln := m.listenerAt(at)
		if c.closed {
			return
		}
		if ln == nil || m.proc == nil {
			c.end(syscall.ECONNREFUSED)
			return
		}
		near, far := &endpoint{w: w, name: c.name}, &endpoint{w: w, p: ln.p, name: c.name}
		near.peer, far.peer = far, near
		near.client = c
		near.local, near.remote = c.local, at
		far.local, far.remote = at, c.local
		windows := []int{1 << 10, 16 << 10, 64 << 10, 1 << 20}
		near.window, far.window = windows[w.world.IntN(4)], windows[w.world.IntN(4)]
		ln.p.conns = append(ln.p.conns, far)
		c.e = near
		w.note(c.name, "connect", at.String(), 0, 0, nil, nil)
		c.established()
		ln.offer(far)
	})
}

// later is when something sent now arrives: after all that was sent before on the same stream.
func (e *endpoint) later() time.Duration {
	e.lastArrival = max(e.lastArrival, e.w.now+e.w.delay(e.w.o.NetDelay))
	return e.lastArrival
}
