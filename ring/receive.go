package ring

import (
	"slices"

	"golang.org/x/sys/unix"
)

const (
	directMin = 16 << 10 // a frame that lacks so much is received straight into its own buffer
	peekSize  = 4 << 10  // what is received of the next frame on a connection with large ones
	smallRun  = 8        // so many small receives in a row make it an ordinary connection again

	favourEvery = 2 * Tick
	favourShare = 4 // favours go round while no more than a fourth of the limit is lent beyond it
)

// armReceive sees to it that a receive is under way, if there shall be one.
func (c *conn) armReceive() {
	if c.recv != 0 || c.paused || c.closing || c.closeAfter || c.eof || c.isStarved {
		return
	}
	l := c.l
	missing := c.asm.Missing()
	if missing >= directMin || c.large && missing > peekSize {
		if !l.mayLend() {
			c.starve()
			return
		}
		c.large, c.small = true, 0
		c.armDirect()
		return
	}
	if l.pieces.given == 0 {
		c.starve()
		return
	}
	i, s := l.newSlot()
	s.kind, s.conn = kindReceive, c
	c.recv, c.stopped, c.multi = i, false, !c.large
	e := l.r.next()
	e.op, e.fd, e.flags, e.user = opRecv, int32(c.fd), sqeBufferSelect, l.user(i)
	if c.multi {
		e.ioprio = recvMultishot
	} else {
		e.len = peekSize
	}
}

// armDirect receives the rest of a frame where it belongs, in one completion if it fits in the memory that is justified.
func (c *conn) armDirect() {
	l := c.l
	space, b := c.asm.Space()
	b.Retain()
	c.direct = b
	i, s := l.newSlot()
	s.kind, s.conn = kindDirect, c
	c.recv, c.stopped, c.multi = i, false, false
	e := l.r.next()
	e.op, e.fd, e.addr, e.len, e.opflags, e.user = opRecv, int32(c.fd), addr(space), uint32(len(space)), unix.MSG_WAITALL, l.user(i)
	l.stats.DirectReceives++
}

// starve waits for memory; the peer sees a full window.
func (c *conn) starve() {
	c.isStarved = true
	c.l.starved = append(c.l.starved, c)
}

// feedStarved lets those go on that waited for memory. Beyond the limit one still may every favourEvery, so that frames half
// received become whole and give their memory back. Far beyond it the same one is favoured until its frame is whole: frames
// whose peers never finish them must not fill memory one favour after another.
func (l *loop) feedStarved() {
	if len(l.starved) == 0 {
		return
	}
	l.refill()
	n := len(l.starved)
	if !l.mayLend() {
		if l.favour.set || !l.favourable() {
			return
		}
		l.wheel.After(favourEvery, &l.favour)
		n = 1
		l.favoured = true
		if l.pieces.given == 0 {
			l.refillOne()
		}
	}
	list := l.starved
	l.starved = append(l.spare[:0], list[n:]...)
	for _, c := range list[:n] {
		c.isStarved = false
		c.armReceive()
	}
	l.spare, l.favoured = list[:0], false
}

// favourable puts the one to favour in front; false if it is receiving.
func (l *loop) favourable() bool {
	if l.InUse() < l.maxMemory+l.maxMemory/favourShare {
		l.favourite = nil
		return true
	}
	if f := l.favourite; f != nil && !f.closing && !f.paused && !f.eof && f.asm.Missing() > 0 {
		at := slices.Index(l.starved, f)
		if at < 0 {
			return false
		}
		l.starved = slices.Insert(slices.Delete(l.starved, at, at+1), 0, f)
	}
	l.favourite = l.starved[0]
	return true
}

// received is a completion of a receive into a piece.
func (c *conn) received(i uint32, q cqe) {
	l := c.l
	if q.flags&cqeMore == 0 {
		l.drop(i)
		c.recv = 0
	}
	if q.flags&cqeBuffer != 0 {
		id := uint16(q.flags >> cqeBufferShift)
		if q.res > 0 && !c.closing {
			l.stats.ReceivedBytes += uint64(q.res)
			c.asm.Feed(c.r, l.pieces.bufs[id], 0, int(q.res))
			if c.large {
				c.small++
				c.large = c.small < smallRun
			}
			if c.asm.Missing() >= directMin && c.multi {
				c.large, c.small = true, 0
				c.stopReceiving()
			}
			c.armReceive()
		}
		l.recycle(id)
	}
	if q.res <= 0 {
		c.receiveEnded(errnoOf(q.res))
	}
	if c.closing {
		c.makeDirty()
	} else {
		c.armReceive()
	}
}

// receiveEnded is the end of a receive that brought nothing.
func (c *conn) receiveEnded(e unix.Errno) {
	switch e {
	case 0:
		c.ended()
	case unix.ENOBUFS:
		c.l.stats.NoBuffers++
		c.l.pieces.drained()
		if !c.closing {
			c.starve()
		}
	case unix.ECANCELED, unix.EINTR, unix.EAGAIN:
	default:
		c.fail(e)
	}
}

// ended is the peer's end of the stream: what is queued still leaves, for the peer may have closed its half alone.
func (c *conn) ended() {
	c.eof = true
	if c.out.head != nil {
		c.closeAfter = true
	} else {
		c.fail(nil)
	}
}

// receivedDirect is a completion of a receive into a frame's own buffer.
func (c *conn) receivedDirect(i uint32, q cqe) {
	c.l.drop(i)
	c.recv = 0
	b := c.direct
	c.direct = nil
	if q.res > 0 && !c.closing {
		c.l.stats.ReceivedBytes += uint64(q.res)
		c.asm.Got(c.r, int(q.res))
	}
	b.Release()
	if q.res <= 0 {
		c.receiveEnded(errnoOf(q.res))
	}
	if c.closing {
		c.makeDirty()
	} else {
		c.armReceive()
	}
}

// stopReceiving ends the receive under way; what it brought until then is kept.
func (c *conn) stopReceiving() {
	if c.recv != 0 && !c.stopped {
		c.stopped = true
		c.l.cancel(c.recv)
	}
}

// Pause stops receiving.
func (c *conn) Pause() {
	if c.paused || c.closing {
		return
	}
	c.paused = true
	c.asm.Hold(true)
	c.stopReceiving()
}

// Resume goes on, within this turn but not inside the call.
func (c *conn) Resume() {
	if !c.paused || c.closing {
		return
	}
	c.paused = false
	if !c.againQueued {
		c.againQueued = true
		c.l.ready.push(&c.again)
	}
}

// goOn delivers what was held and receives again.
func (c *conn) goOn() {
	c.againQueued = false
	if c.paused || c.closing {
		return
	}
	c.asm.Hold(false)
	c.asm.Deliver(c.r)
	if c.recv != 0 && c.multi && c.asm.Missing() >= directMin {
		c.large = true
		c.stopReceiving()
	}
	c.armReceive()
	if c.closing {
		c.makeDirty()
	}
}
