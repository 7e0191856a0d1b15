package segment

import (
	"kring/ring"
)

const (
	roomFirst = 1 << 20
	roomMost  = 64 << 20
)

// preallocation is how far a segment file's blocks are reserved beyond its data. The reservation does not show in the file's
// size, so a crash leaves nothing to clean up; what is left over is released when the segment is closed.
type preallocation struct {
	end    int64 // blocks are reserved up to here
	step   int64
	busy   bool
	off    bool // the disk is full or the file system cannot
	preset bool // preallocate=true: the file's size is segment.bytes
	op     ring.Op
}

// reserve asks for more blocks in time, off the way of the append.
func (s *segment) reserve(c *Config) {
	r := &s.room
	if r.busy || r.off || r.preset || s.file == nil || s.size == 0 || c.Preallocate {
		return
	}
	if r.step == 0 {
		r.step = roomFirst
		r.end = s.written
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
