package segment

import (
	"kring/ring"
)

const (
	roomFirst = 1 << 20
	roomMost  = 64 << 20
	// roomSmall is what is reserved at a time for a log whose segments end early.
	roomSmall = 128 << 10
	// zeroStep is how many zeros are written at a time: a sync that comes behind writes them out, too, and waits for the journal.
	zeroStep = 512 << 10
)

// zeros is what a log that syncs each append is filled with ahead of its data.
var zeros [256 << 10]byte

// preallocation is how far a segment file's blocks are reserved beyond its data. The reservation does not show in the file's
// size, so a crash leaves nothing to clean up; what is left over is released when the segment is closed.
type preallocation struct {
	end    int64 // blocks are reserved up to here
	step   int64
	busy   bool
	off    bool // the disk is full or the file system cannot
	preset bool // preallocate=true: the file's size is segment.bytes
	op     ring.Op

	zeroing bool // zeros are being written at from and behind: no data may be written there
	from    int64
}

// reserve asks for more blocks in time, off the way of the append.
func (s *segment) reserve(c *Config) {
	r := &s.room
	if r.busy || r.off || r.preset || s.file == nil || s.size == 0 || c.Preallocate {
		return
	}
	if c.FlushMessages == 1 {
		s.fillAhead(c)
		return
	}
	if r.step == 0 {
		r.step = roomFirst
		r.end = s.written
	}
	if c.RollDirtyBytes > 0 {
		r.step = min(r.step, roomSmall)
	}
	if s.size <= r.end-r.step/4 && r.end > 0 {
		return
	}
	from := max(r.end, s.written)
	n := min(r.step, max(c.SegmentBytes-from, 0))
	if n == 0 {
		return
	}
	r.busy = true
	r.op.Done = func(op *ring.Op) { s.reserved(op, from, n) }
	s.file.Allocate(from, n, &r.op)
}

func (s *segment) reserved(op *ring.Op, from, n int64) {
	r := &s.room
	r.busy = false
	switch {
	case op.Err == nil:
		r.end = from + n
		r.step = min(r.step*2, roomMost)
	case ring.NoSpace(op.Err) && r.step > roomFirst/16:
		r.step /= 4 // less, when more is needed again
	default:
		r.off = true
	}
	s.log.afterReserve()
}

// fillAhead writes zeros behind the data of a log that syncs each append: a sync that changes neither the size nor an extent
// of the file takes two thirds of the time of one that does. The size shows the zeros until the segment is closed; recovery
// ends at the first of them.
func (s *segment) fillAhead(c *Config) {
	r := &s.room
	if s.size <= r.end-zeroStep/4 {
		return
	}
	from := max(r.end, s.size)
	n := min(zeroStep, c.SegmentBytes-from)
	if n <= 0 {
		return
	}
	r.busy, r.zeroing, r.from = true, true, from
	bufs := s.log.files.vector()
	for left := n; left > 0; left -= int64(len(zeros)) {
		bufs = append(bufs, zeros[:min(left, int64(len(zeros)))])
	}
	r.op.Done = func(op *ring.Op) {
		s.log.files.giveBack(bufs)
		r.busy, r.zeroing, r.end = false, false, from+n
		if ring.NoSpace(op.Err) {
			r.off = true
		} else if op.Err != nil {
			s.log.fail("a write", op.Err)
		}
		s.log.afterReserve()
	}
	s.file.Write(bufs, from, &r.op)
}

// holdsBack says whether a write up to position to would meet zeros that are being written.
func (s *segment) holdsBack(to int64) bool { return s.room.zeroing && to > s.room.from }

// trim takes a preset size and reserved blocks off the file again.
func (s *segment) trim(t *ring.Task) error {
	if !s.room.preset && s.room.end <= s.size {
		return nil
	}
	if err := t.Truncate(s.file, s.size); err != nil {
		return err
	}
	s.room.preset, s.room.end = false, s.size
	return nil
}
