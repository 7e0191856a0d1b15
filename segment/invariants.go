package segment

import "fmt"

// check panics if one of the truths the rest relies on does not hold. It looks at the first five, cheaply, after each step;
// checkAll looks at all of them.
//
//  1. start, durable <= written <= end; the end is the active segment's.
//  2. There is a segment, and its bytes: written <= size.
//  3. Only the last segment takes appends.
//  4. Indexes rise: the newest entry points into the segment.
//  5. Who waits for the write waits for something the log has.
//  6. Segments rise and do not overlap; every one but the last is closed, and none behind an unfinished one is finished.
//  7. Bytes go to one segment at a time, in order: what lies behind the one written to has nothing on file.
//  8. The recent batches follow one another up to the end of the log, at the positions they say.
//  9. Pins are not negative, and a deleted segment is not part of the log.
//  10. A cleaned segment holds whole batches, and takes the place of neighbours that are finished and unchanged.
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

// checkAll looks at every truth, whatever it costs.
func (l *Log) checkAll() {
	l.check()
	if l.closed || l.reverting || l.failed != nil {
		return
	}
	unfinished, behind := false, false
	for i, s := range l.segs {
		last := i == len(l.segs)-1
		switch {
		case s.closed == last, unfinished && s.synced:
			l.broken(6, "segment %d: closed %v, finished %v", s.base, s.closed, s.synced)
		case !last && (s.next > l.segs[i+1].base || s.base >= l.segs[i+1].base):
			l.broken(6, "segment %d to %d before %d", s.base, s.next, l.segs[i+1].base)
		case behind && s.written > 0:
			l.broken(7, "segment %d has %d bytes on file, and %d is written to", s.base, s.written, l.target.base)
		case s.pins < 0 || s.gone:
			l.broken(9, "segment %d: %d pins, deleted %v", s.base, s.pins, s.gone)
		}
		unfinished = unfinished || !s.synced
		behind = behind || s == l.target
	}
	if !behind {
		l.broken(7, "the segment written to, %d, is not part of the log", l.target.base)
	}
	l.checkRecent()
}

func (l *Log) checkRecent() {
	next := l.end
	for i := l.recent.n - 1; i >= 0; i-- {
		b := l.recent.at(i)
		s := l.segs[l.floor(b.base)]
		if b.last() >= next || int64(b.position)+int64(b.size) > s.size || b.position < 0 {
			l.broken(8, "batch %d to %d at %d, before %d, in %d bytes", b.base, b.last(), b.position, next, s.size)
		}
		if i == l.recent.n-1 && b.last() != l.end-1 {
			l.broken(8, "the newest batch ends at %d, the log at %d", b.last(), l.end)
		}
		next = b.base
	}
}
