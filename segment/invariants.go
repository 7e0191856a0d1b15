package segment

import "fmt"

// check panics if one of the truths the rest relies on does not hold; it is cheap and called after each step.
//
//  1. start, durable <= written <= end; the end is the active segment's.
//  2. There is a segment, and its bytes: written <= size.
//  3. Only the last segment takes appends.
//  4. Indexes rise: the newest entry points into the segment.
//  5. Who waits for the write waits for something unwritten or for the end of this turn.
func (l *Log) check() {
	if l.closed || l.reverting || l.failed != nil {
		return
	}
	if len(l.segs) == 0 {
		panic("segment: a log without a segment")
	}
	s := l.active()
	switch {
	case l.durable > l.written || l.written > l.end || l.start > l.written || l.start < 0:
		l.broken(1, "start %d, durable %d, written %d, end %d", l.start, l.durable, l.written, l.end)
	case l.end != s.next || s.base > l.end:
		l.broken(1, "end %d, active segment from %d to %d", l.end, s.base, s.next)
	case s.written > s.size || s.size > maxRelative:
		l.broken(2, "written %d of %d bytes", s.written, s.size)
	case s.closed:
		l.broken(3, "the last segment, %d, is closed", s.base)
	}
	if n := offsetIndex(s.index.mem).len(); n > 0 {
		r, p := offsetIndex(s.index.mem).at(n - 1)
		if int64(p) >= s.size || s.base+Offset(r) >= s.next {
			l.broken(4, "entry %d at %d in %d bytes up to %d", r, p, s.size, s.next)
		}
		if n > 1 {
			r2, p2 := offsetIndex(s.index.mem).at(n - 2)
			if r2 >= r || p2 >= p {
				l.broken(4, "entry %d at %d after %d at %d", r, p, r2, p2)
			}
		}
	}
	if a := l.waiters.head; a != nil && a.Last >= l.end {
		l.broken(5, "an append up to %d waits in a log up to %d", a.Last, l.end)
	}
}

func (l *Log) broken(truth int, format string, args ...any) {
	panic(fmt.Sprintf("segment: truth %d of %s is broken: %s", truth, l.dir, fmt.Sprintf(format, args...)))
}
