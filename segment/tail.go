package segment

import (
	"errors"

	"kring/ring"
)

// The size of a finished segment's file is taken for the end of its batches. A size that was set ahead may have come back after a
// loss of power, or another broker may have left it: then zeros follow, which must neither be served nor cleaned.

// knowEnd makes sure, once for each finished segment that was found at the start, that its last batch ends where its file does. If zeros
// follow it the segment ends before them; the file stays as it is. Other bytes are damage, which shows when it is read.
func (l *Log) knowEnd(t *ring.Task, s *segment) error {
	if s.endKnown || !s.synced {
		return nil
	}
	if err := l.loadIndex(t, s, 0); err != nil {
		return err
	}
	if err := s.open(t); err != nil {
		return err
	}
	s.pin()
	defer s.unpin()
	at := int64(0)
	if x := offsetIndex(s.index.mem); x.len() > 0 {
		_, position := x.at(x.len() - 1)
		at = int64(position)
	}
	sc := newScan(t, s.file, at, s.size, scanSmall)
	defer sc.release()
	for {
		h, err := sc.peek()
		if h != nil {
			s.tailMs = max(s.tailMs, h.maxTime())
			sc.skip(h)
			continue
		}
		if errors.Is(err, ErrMalformed) {
			err = nil
			if zero, e := sc.zeros(); e != nil {
				err = e
			} else if zero && !s.gone {
				l.warn("zeros behind the last batch of a segment are not its own", "segment", s.base, "zeros", s.size-sc.pos)
				s.size, s.written = sc.pos, sc.pos
			}
		}
		s.endKnown = s.endKnown || err == nil
		return err
	}
}

// zeros says whether nothing but zeros follows.
func (sc *scan) zeros() (bool, error) {
	for at := sc.pos; at < sc.end; {
		b, err := sc.bytes(at, int64(sc.size))
		if err != nil || len(b) == 0 {
			return false, err
		}
		for _, c := range b {
			if c != 0 {
				return false, nil
			}
		}
		at += int64(len(b))
	}
	return true, nil
}
