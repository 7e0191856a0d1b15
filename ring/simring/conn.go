package simring

import (
	"net/netip"

	"kring/ring"
)

// conn is a connection of a loop.
type conn struct {
	l      *loop
	e      *endpoint
	r      ring.Receiver
	held   ring.Assembler
	paused bool
	woken  bool // a look at the stream is at hand
	closed bool
}

func (l *loop) Attach(s ring.Socket, r ring.Receiver) ring.Conn {
	l.on("Attach")
	e := l.p.sockets[s]
	if e == nil {
		if l.p.dead {
			return &conn{l: l, e: &endpoint{w: l.w, gone: true, finished: true}, closed: true}
		}
		panic("simring: a socket was attached that is not there, or twice")
	}
	delete(l.p.sockets, s)
	c := &conn{l: l, e: e, r: r, held: ring.Assembler{Alloc: l.Alloc}}
	e.conn = c
	if len(e.in) > 0 || e.eof || e.broken != nil {
		c.readable()
	}
	if e.gone {
		c.ended(nil)
	}
	return c
}

func (c *conn) Peer() netip.AddrPort  { return c.e.remote }
func (c *conn) Local() netip.AddrPort { return c.e.local }

func (c *conn) Send(parts []ring.Part, op *ring.Op) {
	c.l.on("Send")
	if c.l.p.dead {
		return
	}
	c.l.hold(op)
	if c.e.gone || c.e.finAfter {
		op.Err = ring.ErrClosed
		c.l.done(op)
		return
	}
	s := newSending(c.l, parts, op)
	c.l.w.note(c.l.by, "send", c.e.name, 0, s.bytes, nil, nil)
	c.e.out = append(c.e.out, s)
	c.e.pump()
}

func (c *conn) Pause() {
	c.l.on("Pause")
	c.paused = true
	c.held.Hold(true)
}

func (c *conn) Resume() {
	c.l.on("Resume")
	c.paused = false
	c.held.Hold(false)
	c.readable()
}

func (c *conn) Close() {
	c.l.on("Close")
	if !c.l.p.dead {
		c.e.close(nil)
	}
}

func (c *conn) CloseAfterSend() {
	c.l.on("CloseAfterSend")
	if !c.l.p.dead && !c.e.gone {
		c.e.finAfter = true
		c.e.pump()
	}
}

// readable has the loop look at the stream in a coming turn.
func (c *conn) readable() {
	if c.woken || c.closed {
		return
	}
	c.woken = true
	c.l.ready(func() {
		c.woken = false
		c.look()
	})
}

// look reads some or all of what has come and gives it to the receiver.
func (c *conn) look() {
	e := c.e
	if c.paused || c.closed || e.gone {
		return
	}
	c.held.Deliver(c.r)
	if c.paused || c.closed {
		return
	}
	if n := len(e.in); n > 0 {
		if c.l.w.world.IntN(4) == 0 {
			n = 1 + c.l.w.world.IntN(n)
		}
		piece := e.in[:n]
		e.in = append([]byte(nil), e.in[n:]...)
		e.peer.pump()
		c.feed(piece)
	}
	switch {
	case e.gone || c.paused:
	case len(e.in) > 0:
		c.readable()
	case e.broken != nil:
		e.close(e.broken)
	case e.eof:
		e.close(nil)
	}
}

// feed gives bytes to the assembler, now and then straight into the place it has for what must come.
func (c *conn) feed(b []byte) {
	for len(b) > 0 {
		if c.held.Held() > 0 && c.held.Missing() > 0 && c.l.w.world.IntN(2) == 0 {
			space, mem := c.held.Space()
			mem.Retain()
			n := copy(space, b)
			c.held.Got(c.r, n)
			mem.Release()
			b = b[n:]
			continue
		}
		mem := c.l.Alloc(len(b))
		copy(mem.B, b)
		c.held.Feed(c.r, mem, 0, len(b))
		mem.Release()
		return
	}
}

// ended is the end of the connection: the sends have been answered before.
func (c *conn) ended(err error) {
	if c.closed {
		return
	}
	c.closed = true
	c.held.Hold(true)
	c.l.ready(func() {
		c.held.Drop()
		c.l.w.note(c.l.by, "closed", c.e.name, 0, 0, nil, err)
		c.l.p.forget(c.e)
		c.r.Closed(err)
	})
}

// forget takes a closed connection off the process's list.
func (p *process) forget(e *endpoint) {
	for i, other := range p.conns {
		if other == e {
			p.conns = append(p.conns[:i:i], p.conns[i+1:]...)
			return
		}
	}
}
