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
	buf    *ring.Buf // what was given and not consumed lies in buf.B[start:end]
	start  int
	end    int
	need   int
	inside bool
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
	c := &conn{l: l, e: e, r: r}
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
}

func (c *conn) Resume() {
	c.l.on("Resume")
	c.paused = false
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
	if n := len(e.in); n > 0 {
		if c.l.w.world.IntN(4) == 0 {
			n = 1 + c.l.w.world.IntN(n)
		}
		c.take(e.in[:n])
		e.in = append([]byte(nil), e.in[n:]...)
		e.peer.pump()
	}
	c.give()
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

// take appends bytes to those not consumed; memory is lent as they come.
func (c *conn) take(b []byte) {
	if c.buf == nil || c.end+len(b) > len(c.buf.B) {
		left := 0
		if c.buf != nil {
			left = c.end - c.start
		}
		more := c.l.Alloc(max(left+len(b), min(c.need, left+len(b)+(64<<10))))
		if c.buf != nil {
			copy(more.B, c.buf.B[c.start:c.end])
			c.buf.Release()
		}
		c.buf, c.start, c.end = more, 0, left
	}
	c.end += copy(c.buf.B[c.end:], b)
}

// give calls the receiver while it consumes and has what it needs.
func (c *conn) give() {
	for !c.paused && !c.closed && !c.e.gone && c.buf != nil && c.end > c.start && c.end-c.start >= c.need {
		given := c.end - c.start
		consumed, need := c.r.Received(c.buf.B[c.start:c.end:c.end], c.buf)
		if consumed < 0 || consumed > given || need < 0 {
			panic("simring: a receiver consumed more than it was given")
		}
		if c.buf == nil {
			return
		}
		c.start, c.need = c.start+consumed, need
		if c.start == c.end {
			c.buf.Release()
			c.buf, c.start, c.end = nil, 0, 0
			return
		}
		if left := c.end - c.start; need == 0 && !c.paused || consumed == 0 && need <= left {
			c.need = left + 1 // any more
			return
		}
	}
}

// ended is the end of the connection: the sends have been answered before.
func (c *conn) ended(err error) {
	if c.closed {
		return
	}
	c.closed = true
	c.l.ready(func() {
		if c.buf != nil {
			c.buf.Release()
			c.buf = nil
		}
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
