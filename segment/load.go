package segment

import (
	"errors"
	"fmt"
	"io/fs"

	"kring/ring"
)

// Index files of closed segments are read when a reader needs them, and dropped when the segment's file is closed.

const indexFileMax = 1 << 30

// loadIndex brings the offset index of s into memory as far as relative needs it.
func (l *Log) loadIndex(t *ring.Task, s *segment, relative int32) error {
	if s.index.whole() {
		return nil
	}
	if len(s.index.mem) > 0 {
		if r, _ := offsetIndex(s.index.mem).at(0); r <= relative {
			return nil
		}
	}
	b, err := s.readIndex(t, indexSuffix, &s.index)
	if err == nil {
		err = offsetIndex(b).check(s.size)
	}
	if err == nil {
		err = offsetIndex(b).within(int64(s.next - s.base))
	}
	if err != nil {
		return l.reindex(t, s, err)
	}
	if !s.index.whole() {
		s.index.fill(b)
	}
	return nil
}

// loadTimes brings the whole time index of s into memory.
func (l *Log) loadTimes(t *ring.Task, s *segment) error {
	if s.times.whole() {
		return nil
	}
	b, err := s.readIndex(t, timeSuffix, &s.times)
	if err == nil {
		err = timeIndex(b).check()
	}
	if err == nil {
		err = timeIndex(b).within(int64(s.next - s.base))
	}
	if err != nil {
		return l.reindex(t, s, err)
	}
	if !s.times.whole() {
		s.times.fill(b)
	}
	return nil
}

// readIndex reads the entries that are on file only.
func (s *segment) readIndex(t *ring.Task, suffix string, x *indexFile) ([]byte, error) {
	b, err := t.ReadFile(s.path(suffix), indexFileMax)
	if err != nil {
		return nil, err
	}
	n := x.first * x.width
	if len(b) < n {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", ErrMalformed, len(b), n)
	}
	return b[:n], nil
}

// reindex rebuilds the indexes of a closed segment from its batches, since its files are missing or wrong.
func (l *Log) reindex(t *ring.Task, s *segment, why error) error {
	if s.gone || !unreadable(why) && !errors.Is(why, fs.ErrNotExist) {
		return why // the files of one that is gone may be another's by now
	}
	if err := s.open(t); err != nil {
		return err
	}
	l.warn("rebuilding the indexes of a segment", "segment", s.base, "cause", why)
	s.pin()
	defer s.unpin()
	sc := newScan(t, s.file, 0, s.written, scanLarge)
	defer sc.release()
	b := indexBuilder{s: s, interval: l.conf.IndexIntervalBytes}
	b.begin()
	for {
		h, err := sc.peek()
		if l.noted(s, err) != nil && !errors.Is(err, ErrMalformed) {
			return err
		}
		if h == nil { // the end, or damage: what stands before can be found all the same
			break
		}
		b.add(h, sc.pos)
		sc.skip(h)
	}
	b.finish()
	if sc.pos == s.written { // no file tells of damage as if there were none
		s.mending = rebuilt
		l.mendSoon()
	}
	return nil
}

// indexBuilder makes a segment's indexes from its batches, as Kafka's recovery does.
type indexBuilder struct {
	s        *segment
	interval int64
	last     int64 // position of the batch the last entry points to
	index    offsetIndex
	times    timeIndex
	maxMs    int64
	maxLast  Offset
	firstMs  int64
	next     Offset
}

func (b *indexBuilder) begin() {
	b.maxMs, b.maxLast, b.firstMs, b.next = noTimestamp, b.s.base, noTimestamp, b.s.base
}

func (b *indexBuilder) add(h header, position int64) {
	if position == 0 {
		b.firstMs = h.maxTime()
	}
	if ms := h.maxTime(); ms > b.maxMs {
		b.maxMs, b.maxLast = ms, h.last()
	}
	if position-b.last > b.interval {
		b.index = b.index.add(b.s.relative(h.last()), int32(position))
		b.times = b.times.add(b.maxMs, b.s.relative(b.maxLast))
		b.last = position
	}
	b.next = h.last() + 1
}

// finish hands the indexes to the segment; their files are stale from now on.
func (b *indexBuilder) finish() {
	s := b.s
	b.times = b.times.add(b.maxMs, s.relative(b.maxLast))
	s.index.set(b.index)
	s.times.set(b.times)
	s.maxMs, s.maxLast, s.maxKnown, s.firstMs = b.maxMs, b.maxLast, true, b.firstMs
	s.lastMs, _ = b.times.last()
	s.sinceIdx = 0
}
