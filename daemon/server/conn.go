package server

import (
	"net/netip"
	"time"

	"kring/ring"
	"kring/wire"
)

// chunk is a row of whole frames in one buffer, not yet taken.
type chunk struct {
	b    *ring.Buf
	data []byte
}

// Conn is one connection.
type Conn struct {
	// Listener is the name of the listener the connection came through.
	Listener string
	// State is the owner's of per-connection facts (daemon/api).
	State any

	s    *Server
	conn ring.Conn
	peer netip.AddrPort

	head, tail *Request // whose answers the ring has not been given, oldest first
	count      int      // requests under way, those being sent included
	unsent     int64    // bytes of their answers that lie in memory
	backlog    []chunk
	draining   bool

	ending  bool // nothing is taken any more; closes when head is empty
	closed  bool // the ring has let go
	paused  bool
	waits   bool // in Server.waiting
	reason  Reason
	active  time.Duration // last sign of life
	half    time.Duration // since when a frame is incomplete; 0: none is
	idle    ring.Timer
	next    *Conn // in Server's list
	prev    *Conn
	leaving leave
}

// Peer is the client's address.
func (c *Conn) Peer() netip.AddrPort { return c.peer }

// Server is the server that holds the connection.
func (c *Conn) Server() *Server { return c.s }

// Received implements ring.Receiver.
func (c *Conn) Received(data []byte, b *ring.Buf) (consumed, need int) {
	s := c.s
	c.active = s.loop.Now()
	if c.ending || c.closed {
		return len(data), 0
	}
	s.counters.BytesIn += uint64(len(data))
	whole, need, bad := s.cut(data)
	if whole > 0 {
		b.Retain()
		s.held += int64(whole)
		c.backlog = append(c.backlog, chunk{b, data[:whole]})
	}
	if len(data) > whole && bad == 0 {
		if c.half == 0 || whole > 0 {
			c.half = c.active
		}
		s.relieve()
	} else {
		c.half = 0
	}
	c.drain()
	if bad != 0 {
		c.finish(bad)
	}
	return whole, need
}

// drain takes frames as long as the connection may have more requests under way.
func (c *Conn) drain() {
	if c.draining {
		return
	}
	c.draining = true
	for len(c.backlog) > 0 && !c.full() && !c.ending && !c.closed {
		k := &c.backlog[0]
		frame, rest := cutFrame(k.data)
		b := k.b
		if k.data = rest; len(rest) == 0 {
			c.backlog = append(c.backlog[:0], c.backlog[1:]...)
		} else {
			b.Retain()
		}
		c.request(frame, b)
	}
	c.draining = false
	c.flow()
}

// full says that the connection has as much under way as it may: a small request can have a large answer, and a peer that
// does not read must not fill memory with them.
func (c *Conn) full() bool { return c.count >= c.s.o.Pipeline || c.unsent > c.s.o.UnsentBytes }

// request begins one request; it takes over one reference of b, and frame's bytes are charged already.
func (c *Conn) request(frame []byte, b *ring.Buf) {
	s := c.s
	r := s.take(c)
	r.Buf, r.charged = b, int64(len(frame)+wire.SizeLength)
	if c.tail == nil {
		c.head = r
	} else {
		c.tail.next = r
	}
	c.tail = r
	c.count++
	if reason := r.parse(frame); reason != 0 {
		r.Close(reason)
		return
	}
	s.counters.Requests++
	r.api, r.began = s.api(r.Key), s.loop.Now()
	r.api.Requests++
	r.api.RequestBytes += uint64(r.charged)
	s.dispatch(r)
}

// flow stops and starts receiving.
func (c *Conn) flow() {
	if c.closed {
		return
	}
	if c.s.held > c.s.o.QueuedBytes && !c.waits {
		c.waits = true
		c.s.waiting = append(c.s.waiting, c)
		c.s.counters.Pauses++
	}
	want := c.ending || c.waits || len(c.backlog) > 0 || c.full()
	if want == c.paused {
		return
	}
	c.paused = want
	if want {
		c.conn.Pause()
	} else {
		c.active = c.s.loop.Now()
		c.conn.Resume()
	}
}

// ready is told that r has left its handler.
func (c *Conn) ready(r *Request) {
	if c.closed {
		c.unlink(r)
		c.s.recycle(r)
		return
	}
	for c.head != nil && c.head.stage != handling {
		c.pop()
	}
	if c.head == nil && c.ending {
		c.conn.CloseAfterSend()
	}
	c.drain()
}

// pop gives the oldest answer to the ring.
func (c *Conn) pop() {
	r := c.head
	if c.head = r.next; c.head == nil {
		c.tail = nil
	}
	r.next = nil
	if r.stage == answered {
		c.s.counters.Answers++
		c.conn.Send(r.parts, &r.op)
		return
	}
	c.count--
	c.s.recycle(r)
}

// unlink takes r out of the order, wherever it stands.
func (c *Conn) unlink(r *Request) {
	var before *Request
	for p := c.head; p != r; p = p.next {
		before = p
	}
	if before == nil {
		c.head = r.next
	} else {
		before.next = r.next
	}
	if c.tail == r {
		c.tail = before
	}
	r.next = nil
	c.count--
}

// finish takes nothing more and closes when what is under way has been answered.
func (c *Conn) finish(reason Reason) {
	if c.ending || c.closed {
		return
	}
	c.ending, c.reason = true, reason
	c.forget()
	if c.head == nil {
		c.conn.CloseAfterSend()
	}
	c.flow()
}

// abort closes at once.
func (c *Conn) abort(reason Reason) {
	if c.reason == 0 {
		c.reason = reason
	}
	c.ending = true
	c.forget()
	c.conn.Close()
}

// forget drops the frames not yet taken.
func (c *Conn) forget() {
	for _, k := range c.backlog {
		c.s.held -= int64(len(k.data))
		k.b.Release()
	}
	clear(c.backlog)
	c.backlog = c.backlog[:0]
}

// Closed implements ring.Receiver.
func (c *Conn) Closed(err error) {
	s := c.s
	if c.reason == 0 {
		if c.reason = ByPeer; err != nil {
			c.reason = Broken
		}
	}
	c.closed = true
	c.forget()
	s.loop.Cancel(&c.idle)
	s.drop(c)
	for r := c.head; r != nil; {
		next := r.next // a handler that answers inside Gone unlinks r
		if r.stage == handling {
			if gone := r.Gone; gone != nil {
				r.Gone = nil
				gone(r)
			}
		} else {
			c.unlink(r)
			s.recycle(r)
		}
		r = next
	}
}

// tick closes the connection if it has been silent for too long.
func (c *Conn) tick() {
	if c.closed {
		return
	}
	now := c.s.loop.Now()
	if c.head != nil && c.head.stage == handling {
		c.active = now // the silence is ours
	}
	left := c.active + c.s.o.IdleMax - now
	if left <= 0 {
		c.abort(Idle)
		return
	}
	c.s.loop.After(left, &c.idle)
}
