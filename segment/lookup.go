package segment

import (
	"fmt"

	"kring/ring"
	"kring/wire/batch"
)

// OffsetForTime finds the first record whose timestamp is ms or later; Offset -1 if there is none.
func (l *Log) OffsetForTime(t *ring.Task, ms int64) (TimeOffset, error) {
	none := TimeOffset{Timestamp: noTimestamp, Offset: -1, LeaderEpoch: noEpoch}
	for s := l.segs[0]; s != nil; {
		found := none
		err := l.knowMax(t, s)
		if err == nil && s.maxMs >= ms && !s.gone && s.next > l.start {
			found, err = l.timeIn(t, s, ms)
		}
		if s.gone { // deleted or cleaned while we looked
			s = l.segs[l.floor(s.base)]
			continue
		}
		if err != nil || found.Offset >= 0 {
			return found, l.readError(err)
		}
		s = l.behind(s)
	}
	return none, l.Failed()
}

// MaxTimestamp finds the first record that has the largest timestamp of the log; Offset -1 if the log is empty.
func (l *Log) MaxTimestamp(t *ring.Task) (TimeOffset, error) {
	none := TimeOffset{Timestamp: noTimestamp, Offset: -1, LeaderEpoch: noEpoch}
	for {
		best, err := l.newest(t)
		if err != nil || best.maxMs < 0 {
			return none, l.readError(err)
		}
		o, err := l.newestIn(t, best)
		if best.gone && l.Failed() == nil {
			continue // deleted or cleaned while we looked
		}
		return o, l.readError(err)
	}
}

// newest is the first segment with the largest timestamp.
func (l *Log) newest(t *ring.Task) (*segment, error) {
	best := l.segs[0]
	for s := best; s != nil; {
		err := l.knowMax(t, s)
		if s.gone || best.gone {
			best = l.segs[0]
			s = best
			continue
		}
		if err != nil {
			return best, err
		}
		if s.maxMs > best.maxMs {
			best = s
		}
		s = l.behind(s)
	}
	return best, l.Failed()
}

// newestIn finds the first record of s that has its largest timestamp.
func (l *Log) newestIn(t *ring.Task, s *segment) (TimeOffset, error) {
	none := TimeOffset{Timestamp: noTimestamp, Offset: -1, LeaderEpoch: noEpoch}
	ms, last := s.maxMs, s.maxLast
	s.pin()
	defer s.unpin()
	sc, h, err := l.scanFrom(t, s, last)
	if err != nil {
		return none, err
	}
	defer sc.release()
	if h == nil {
		return none, nil
	}
	return l.firstAtTime(t, sc, h, ms, 0)
}

// timeIn finds the first record at or after ms in s, which has one unless it lies below the log start.
func (l *Log) timeIn(t *ring.Task, s *segment, ms int64) (TimeOffset, error) {
	none := TimeOffset{Timestamp: noTimestamp, Offset: -1, LeaderEpoch: noEpoch}
	s.pin()
	defer s.unpin()
	if err := l.loadTimes(t, s); err != nil {
		return none, err
	}
	from := max(s.base+Offset(timeIndex(s.times.mem).find(ms)), l.start)
	sc, h, err := l.scanFrom(t, s, from)
	if err != nil {
		return none, err
	}
	defer sc.release()
	for ; h != nil; h, err = sc.peek() {
		if h.maxTime() >= ms {
			found, err := l.firstAtTime(t, sc, h, ms, l.start)
			if err != nil || found.Offset >= 0 {
				return found, err
			}
		}
		sc.skip(h)
	}
	return none, err
}

// scanFrom opens a scan of s at the batch that holds o. s must be pinned.
func (l *Log) scanFrom(t *ring.Task, s *segment, o Offset) (*scan, header, error) {
	if err := l.loadIndex(t, s, s.relative(o)); err != nil {
		return nil, nil, err
	}
	at := offsetIndex(s.index.mem).find(int64(o - s.base))
	if err := s.open(t); err != nil {
		return nil, nil, err
	}
	if err := l.knowEnd(t, s); err != nil {
		return nil, nil, err
	}
	sc := newScan(t, s.file, at, s.written, scanSmall)
	h, err := sc.locate(o)
	if err != nil {
		sc.release()
		return nil, nil, err
	}
	return sc, h, nil
}

// decompressedMax bounds what one batch may hold once decompressed, when a record is looked for in it.
const decompressedMax = 256 << 20

// firstAtTime finds the first record of the batch at hand whose timestamp is ms or later and whose offset is not below from.
func (l *Log) firstAtTime(t *ring.Task, sc *scan, h header, ms int64, from Offset) (TimeOffset, error) {
	found := TimeOffset{Timestamp: noTimestamp, Offset: -1, LeaderEpoch: h.leaderEpoch()}
	if h.isV2() && h.v2().LogAppendTime() {
		found.Timestamp, found.Offset = h.maxTime(), max(h.base(), from)
		return found, nil
	}
	buf := l.loop.Alloc(int(h.size()))
	defer buf.Release()
	whole := buf.B[:h.size()]
	n, err := t.Read(sc.f, whole, sc.pos)
	if err != nil || n < len(whole) {
		return found, err
	}
	look := func() {
		var records batch.Records
		if records, err = batch.Open(whole, decompressedMax); err != nil {
			return
		}
		for records.Next() {
			if records.Timestamp >= ms && Offset(records.Offset) >= from {
				found.Timestamp, found.Offset = records.Timestamp, Offset(records.Offset)
				return
			}
		}
		err = records.Err
	}
	if len(whole) <= scanSmall && h.isV2() && h.v2().Codec() == batch.None {
		look()
	} else {
		buf.Retain() // the helper may outlive this task
		t.Wait(func(op *ring.Op) { l.loop.Offload(look, op) })
		buf.Release()
	}
	if err != nil {
		return found, fmt.Errorf("%s at position %d: %w", l.dir, sc.pos, err)
	}
	return found, nil
}
