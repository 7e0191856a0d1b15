package simring

import (
	"io"
	"net/netip"
	"syscall"
	"time"

	"kring/ring"
)

// endpoint is one end of a connection: what it sends and has not been carried yet, and what has come and was not read.
type endpoint struct {
	w             *World
	p             *process // nil: a client of the test
	name          string
	client        *Client
	conn          *conn
	peer          *endpoint
	local, remote netip.AddrPort

	out         []*sending
	pumping     bool
	finAfter    bool // finish when out is empty
	finished    bool // nothing more is carried
	lastArrival time.Duration

	in     []byte
	flying int // bytes on their way here
	window int
	eof    bool
	broken error // a reset that has come
	gone   bool  // this end is closed
	lost   bool  // the link is: both ends will see a reset, nothing else
}

// sending is one Send: its parts, and how far it has got.
type sending struct {
	parts []ring.Part
	part  int
	from  int64
	op    *ring.Op
	l     *loop
	sums  []uint32
	bytes int64
}

// pump has the next piece of the stream leave soon.
func (e *endpoint) pump() {
	if e.pumping || e.finished || len(e.out) == 0 && !e.finAfter {
		return
	}
	if len(e.out) > 0 && e.room() <= 0 {
		return
	}
	e.pumping = true
	e.w.at(e.w.now+e.w.delay(20*time.Microsecond), func() {
		e.pumping = false
		if e.finished {
			return
		}
		e.carry()
		e.pump()
	})
}

func (e *endpoint) room() int { return e.peer.window - e.peer.flying - len(e.peer.in) }

// carry takes one piece, cut where the seed likes, and sends it on its way.
func (e *endpoint) carry() {
	w := e.w
	if len(e.out) == 0 {
		if e.finAfter {
			e.close(nil)
		}
		return
	}
	if e.lose() {
		return
	}
	limit := e.room()
	if w.world.IntN(3) == 0 {
		limit = min(limit, 1+w.world.IntN(64))
	}
	var piece []byte
	var pins []*pin
	for limit > len(piece) && len(e.out) > 0 {
		s := e.out[0]
		if s.part == len(s.parts) {
			e.out = e.out[1:]
			s.finish(nil)
			continue
		}
		b, p, err := s.take(limit - len(piece))
		if err != nil {
			e.close(err)
			return
		}
		piece = append(piece, b...)
		if p != nil {
			pins = append(pins, p)
		}
	}
	for len(e.out) > 0 && e.out[0].part == len(e.out[0].parts) {
		s := e.out[0]
		e.out = e.out[1:]
		s.finish(nil)
	}
	e.fly(piece, pins)
}

// lose resets the connection where a fault wants it.
func (e *endpoint) lose() bool {
	for _, p := range []*process{e.p, e.peer.p} {
		if p != nil && p.m.Faults.Drop > 0 && e.w.faults.Float64() < p.m.Faults.Drop {
			e.w.note(e.name, "LOST", "", 0, 0, nil, nil)
			e.breakBoth()
			return true
		}
	}
	return false
}

// fly delivers a piece at the other end.
func (e *endpoint) fly(piece []byte, pins []*pin) {
	if len(piece) == 0 {
		return
	}
	to := e.peer
	to.flying += len(piece)
	e.w.at(e.later(), func() {
		for _, p := range pins {
			p.drop()
		}
		to.flying -= len(piece)
		if to.gone || to.broken != nil {
			return
		}
		who := to.name
		if to.p != nil {
			who = to.p.m.name
		}
		e.w.note(who, "recv", e.name, 0, int64(len(piece)), piece, nil)
		to.in = append(to.in, piece...)
		to.arrived()
	})
}

// arrived tells the reader that something is to be read: bytes, the end, or a reset.
func (e *endpoint) arrived() {
	switch {
	case e.client != nil:
		e.client.read()
	case e.conn != nil:
		e.conn.readable()
	}
}

// close ends this side: what was carried still arrives, then the other side sees the end, or a reset where bytes were left unread.
func (e *endpoint) close(err error) {
	if e.gone {
		return
	}
	e.gone, e.finished = true, true
	unread := len(e.in) > 0 || e.flying > 0
	e.in = nil
	lost := e.out
	e.out = nil
	for _, s := range lost {
		s.finish(errOr(err, ring.ErrClosed))
	}
	e.tell(unread)
	if e.conn != nil {
		e.conn.ended(err)
	}
	if e.client != nil {
		e.client.end(errOr(err, io.EOF))
	}
}

// tell lets the other side know of the end.
func (e *endpoint) tell(reset bool) {
	to := e.peer
	if to.gone || e.lost {
		return
	}
	e.w.at(e.later(), func() {
		if to.gone || to.lost {
			return
		}
		if reset {
			to.reset()
			return
		}
		to.eof = true
		to.arrived()
	})
}

// reset arrives: what was not read is lost.
func (e *endpoint) reset() {
	e.broken = syscall.ECONNRESET
	e.in = nil
	e.arrived()
}

// breakBoth loses the connection on both sides, with all that was on its way.
func (e *endpoint) breakBoth() {
	for _, x := range []*endpoint{e, e.peer} {
		x.finished, x.lost = true, true
		if !x.gone {
			x.w.at(x.w.now+x.w.delay(x.w.o.NetDelay), func() {
				if !x.gone {
					x.reset()
				}
			})
		}
	}
}

// vanish is the end of the process that owned this side: nobody here is told, the peer sees a reset or the end.
func (e *endpoint) vanish() {
	if e.gone {
		return
	}
	e.gone, e.finished = true, true
	for _, s := range e.out {
		s.unpin()
	}
	e.out, e.in = nil, nil
	e.p.forget(e)
	e.tell(e.w.faults.IntN(2) == 0)
}

func errOr(err, otherwise error) error {
	if err == nil {
		return otherwise
	}
	return err
}
