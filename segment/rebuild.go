package segment

import (
	"errors"
	"fmt"

	"kring/ring"
)

// recovery reads segments from their beginning, to find out what a stop has left.
type recovery struct {
	log      *Log
	t        *ring.Task
	options  *Options
	found    *found
	progress *Progress
	// trusted segments, those before this number, are whole as far as the last stop or the recovery point says: what is wrong in
	// them is damage and not a torn write.
	trusted int
}

// one reads segment number i, rebuilds its indexes and the state that follows from its batches, and ends it behind the last batch that
// is whole: a torn write is cut off, damage is kept. What lies behind a segment that was cut is no part of the log any more.
func (r *recovery) one(i int) error {
	l := r.log
	s := l.segs[i]
	s.pin()
	defer s.unpin()
	damage, end, err := r.read(i)
	if err != nil {
		return err
	}
	if i < r.trusted {
		return r.keep(i, damage, end)
	}
	cut := end < s.size
	if cut {
		// In front of another segment it is no torn end of the log: whole batches may stand behind.
		keep := s.next < r.options.RecoveryPoint || i+1 < len(l.segs) && s.next != l.segs[i+1].base
		if err := r.cutBehind(s, end, damage, keep); err != nil {
			return err
		}
	}
	last := i+1 == len(l.segs)
	switch {
	case last:
	case !cut && l.gaps(s), cut && s.next == l.segs[i+1].base:
		// Only what lay behind its records was cut: the zeros of a preset size, as a crash just after a roll leaves them.
		s.next = l.segs[i+1].base
	case !cut && s.next != l.segs[i+1].base:
		// A repair leaves this, or a cleaning that was abandoned; and a power cut, behind which nothing need stand.
		l.warn("a segment lacks its end", "segment", s.base, "from", s.next, "to", l.segs[i+1].base-1)
		followed, err := r.followed(i)
		if err != nil {
			return err
		}
		if cut = !followed; followed {
			s.next = l.segs[i+1].base
		}
	}
	l.prods.end = s.next
	s.snapshot = encodeSnapshot(&l.prods)
	if cut && !last && s.next != l.segs[i+1].base {
		l.warn("segments behind a damaged one are no part of the log any more", "segment", s.base, "segments", len(l.segs)-i-1, "from", s.next)
		for _, x := range l.segs[i+1:] {
			if x.size > 0 {
				if err := l.setFileAside(r.t, x.base); err != nil {
					return err
				}
			}
		}
		s.closed = false
		return l.removeFrom(r.t, i+1)
	}
	return nil
}

// followed says whether records stand behind segment number i, or stood there for sure.
func (r *recovery) followed(i int) (bool, error) {
	for _, x := range r.log.segs[i+1:] {
		if x.base <= r.options.RecoveryPoint {
			return true, nil
		}
		if x.size == 0 {
			continue
		}
		if ok, err := r.beginsWhole(x); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// beginsWhole says whether the first batch of a segment is whole.
func (r *recovery) beginsWhole(s *segment) (bool, error) {
	f, err := r.t.Open(s.path(logSuffix), 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	sc := newScan(r.t, f, 0, s.size, scanLarge)
	defer sc.release()
	h, err := sc.peek()
	if err == nil && h != nil {
		err = sc.verify(h)
	}
	if err != nil && !errors.Is(err, ErrMalformed) {
		return false, err
	}
	return err == nil && h != nil && h.base() >= s.base, nil
}

// bound is what the offsets of segment number i lie below, and what that is.
func (r *recovery) bound(i int) (Offset, string) {
	if i+1 < len(r.log.segs) {
		return r.log.segs[i+1].base, "into the segment at"
	}
	if stop := r.stopEnd(); i < r.trusted && stop >= 0 {
		return stop, "beyond the log's end at the last stop,"
	}
	return 1<<63 - 1, ""
}

// read goes through segment number i, up to the first batch that is not whole or its end, and says where that is.
func (r *recovery) read(i int) (damage *bad, end int64, err error) {
	l, t := r.log, r.t
	s := l.segs[i]
	s.synced = false
	if err := s.open(t); err != nil {
		return nil, 0, err
	}
	s.txns, s.txnDirty = nil, len(s.txns) > 0 || s.txnDirty
	if l.suspect {
		if err := s.writeAnew(t); err != nil {
			return nil, 0, err
		}
	}
	sc := newScan(t, s.file, 0, s.size, scanLarge)
	defer sc.release()
	w := sweep{check: i >= r.trusted, progress: r.progress}
	defer w.release()
	b := indexBuilder{s: s, interval: l.conf.IndexIntervalBytes}
	b.begin()
	bound, what := r.bound(i)
	for damage == nil {
		h, err := w.next(sc)
		whole := []byte(h)
		if h == nil && err == nil {
			if h, err = sc.peek(); h == nil && err == nil {
				break
			}
			if err == nil && w.check {
				err = sc.verify(h)
			}
			if err == nil {
				whole, err = sc.control(h)
			}
		}
		switch {
		case errors.As(err, &damage):
		case err != nil:
			return nil, 0, err
		case h.base() < b.next:
			damage = &bad{sc.pos, fmt.Sprintf("offset %d after %d", h.base(), b.next-1)}
		case h.last()-s.base > maxRelative:
			damage = &bad{sc.pos, fmt.Sprintf("offset %d is too far from %d", h.last(), s.base)}
		case h.last() >= bound:
			damage = &bad{sc.pos, fmt.Sprintf("offset %d reaches %s %d", h.last(), what, bound)}
		default:
			b.add(h, sc.pos)
			l.recoverBatch(s, h, whole)
			sc.skip(h)
		}
	}
	b.finish()
	s.next = b.next
	return damage, sc.pos, nil
}
