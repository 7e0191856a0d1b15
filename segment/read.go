package segment

import (
	"errors"
	"log/slog"

	"kring/ring"
)

// Read finds the batches from offset from on, below upTo, at most maxBytes (the first batch is given whole all the same if
// firstWhole). It returns true if r holds the answer now; else r.Done is called later. Batches that reach over upTo are
// not given. Readers at the tail are answered from memory, others need the index and a look at the file.
func (l *Log) Read(from, upTo Offset, maxBytes int, firstWhole bool, r *Range) bool {
	r.File, r.From, r.Len, r.Base, r.More, r.Err, r.seg = nil, 0, 0, from, false, nil, nil
	switch {
	case l.failed != nil:
		r.Err = l.failed
		return true
	case l.closed:
		r.Err = ErrClosed
		return true
	case from < l.start || from > l.end:
		r.Err = ErrOutOfRange
		return true
	}
	upTo = min(upTo, l.written)
	if from >= upTo {
		return true
	}
	if i, ok := l.recent.reach(from); ok && i < l.recent.n {
		b := l.recent.at(i)
		s := l.segs[l.floor(b.base)]
		if end, ok := l.boundary(s, upTo); ok && s.file != nil {
			l.give(r, s, b, end, i, maxBytes, firstWhole)
			r.More = r.More || s.next < upTo
			return true
		}
	}
	return l.files.look(look{l, l.segs[l.floor(from)], from, upTo, maxBytes, firstWhole, r})
}

// boundary is the position in s where offsets at or above upTo begin, if that is known without a look at the file.
func (l *Log) boundary(s *segment, upTo Offset) (int64, bool) {
	if upTo >= l.written || upTo >= s.next {
		return s.written, true
	}
	i, ok := l.recent.reach(upTo)
	if !ok || i == l.recent.n {
		return 0, false
	}
	b := l.recent.at(i)
	if b.base < s.base || b.base >= s.next {
		return s.written, b.base >= s.next
	}
	return int64(b.position), true
}

// give fills r with what lies in s from the recent batch b, number i, up to the position end.
func (l *Log) give(r *Range, s *segment, b recentBatch, end int64, i, maxBytes int, firstWhole bool) {
	from, size := int64(b.position), int64(b.size)
	if end < from+size {
		return // the first batch reaches over the bound
	}
	if end-from > int64(maxBytes) {
		r.More = true
		switch {
		case size <= int64(maxBytes):
			end = l.recent.fit(i, from+int64(maxBytes), s.next)
		case firstWhole:
			end = from + size
		default:
			return
		}
	}
	l.fill(r, s, b.base, from, end-from)
}

func (l *Log) fill(r *Range, s *segment, base Offset, from, n int64) {
	s.pin()
	l.files.touch(s)
	r.seg, r.File, r.Base, r.From, r.Len = s, s.file, base, from, n
}

// Unpin lets the range's file go; it may be called on an empty range.
func (r *Range) Unpin() {
	if s := r.seg; s != nil {
		r.seg, r.File = nil, nil
		s.unpin()
	}
}

// readSlow answers a read that memory cannot: s holds from, if its offsets have no gap there.
func (l *Log) readSlow(t *ring.Task, s *segment, from, upTo Offset, maxBytes int, firstWhole bool, r *Range) error {
	s.pin()
	defer func() { s.unpin() }()
	move := func(to *segment) {
		to.pin()
		s.unpin()
		s = to
	}
	for {
		first, size, pos, err := l.seek(t, s, from)
		end, ok := l.boundary(s, upTo)
		if !ok && err == nil && size > 0 && !s.gone {
			_, _, end, err = l.seek(t, s, upTo)
		}
		switch {
		case l.Failed() != nil:
			return l.Failed()
		case s.gone: // deleted, or replaced by a cleaned one: what was found may be the other's
			if from < l.start {
				return ErrOutOfRange
			}
			move(l.segs[l.floor(from)])
			continue
		case err != nil:
			return l.readError(l.noted(s, err))
		case size == 0: // a gap up to the next segment
			next := l.behind(s)
			if next == nil || next.base >= upTo {
				return nil
			}
			move(next)
			continue
		}
		if end < pos+size {
			return nil
		}
		if r.More = s.next < upTo; end-pos > int64(maxBytes) {
			r.More = true
			if size > int64(maxBytes) && !firstWhole {
				return nil
			}
			end = pos + max(size, int64(maxBytes))
		}
		if s.file == nil {
			continue // closed while we waited
		}
		l.fill(r, s, first, pos, end-pos)
		return nil
	}
}

func (l *Log) readError(err error) error {
	if l.failed != nil {
		return l.failed
	}
	if l.closed {
		return ErrClosed
	}
	return err
}

// noted is err; that a segment is not what was written is told once.
func (l *Log) noted(s *segment, err error) error {
	if errors.Is(err, ErrMalformed) && !s.damaged {
		s.damaged = true
		l.logAt(slog.LevelError, "a segment is damaged; some of it cannot be read", "file", s.path(logSuffix), "cause", err)
	}
	return err
}

// behind is the segment after s, nil if there is none.
func (l *Log) behind(s *segment) *segment {
	for _, x := range l.segs[l.floor(s.base):] {
		if x.base > s.base {
			return x
		}
	}
	return nil
}

// seek finds the first batch in s whose last offset is at or above o: its first offset, size and position. Size 0 and the
// end of what is written: there is none.
func (l *Log) seek(t *ring.Task, s *segment, o Offset) (first Offset, size, position int64, err error) {
	if err := l.loadIndex(t, s, s.relative(o)); err != nil {
		return 0, 0, 0, err
	}
	at := offsetIndex(s.index.mem).find(int64(o - s.base))
	if err := s.open(t); err != nil {
		return 0, 0, 0, err
	}
	s.pin()
	defer s.unpin()
	if err := l.knowEnd(t, s); err != nil {
		return 0, 0, 0, err
	}
	sc := newScan(t, s.file, at, s.written, scanSmall)
	defer sc.release()
	h, err := sc.locate(o)
	if err != nil || h == nil {
		return 0, 0, sc.end, err
	}
	return h.base(), h.size(), sc.pos, nil
}
