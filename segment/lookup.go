package segment

import (
	"fmt"

	"kring/ring"
	"kring/wire/batch"
)

// OffsetForTime finds the first record whose timestamp is ms or later; Offset -1 if there is none.
func (l *Log) OffsetForTime(t *ring.Task, ms int64) (TimeOffset, error) {
	for i := 0; i < len(l.segs); i++ {
		s := l.segs[i]
		if err := l.knowMax(t, s); err != nil {
			return TimeOffset{}, l.readError(err)
		}
		if s.maxMs < ms || s.gone || s.next <= l.start {
			continue
		}
		found, err := l.timeIn(t, s, ms)
		if err != nil || found.Offset >= 0 {
			return found, l.readError(err)
		}
	}
	return TimeOffset{Timestamp: noTimestamp, Offset: -1, LeaderEpoch: noEpoch}, l.Failed()
}

// MaxTimestamp finds the first record that has the largest timestamp of the log; Offset -1 if the log is empty.
func (l *Log) MaxTimestamp(t *ring.Task) (TimeOffset, error) {
	none := TimeOffset{Timestamp: noTimestamp, Offset: -1, LeaderEpoch: noEpoch}
	var best *segment
	for i := 0; i < len(l.segs); i++ {
		s := l.segs[i]
		if err := l.knowMax(t, s); err != nil {
			return none, l.readError(err)
		}
		if best == nil || s.maxMs > best.maxMs {
			best = s
		}
	}
	if best == nil || best.maxMs < 0 {
		return none, l.Failed()
	}
	ms, last := best.maxMs, best.maxLast
	best.pin()
	defer best.unpin()
	sc, h, err := l.scanFrom(t, best, last)
	if err != nil {
		return none, l.readError(err)
	}
	defer sc.release()
	if h == nil {
		return none, nil
	}
	o, err := l.firstAtTime(t, sc, h, ms, 0)
	return o, l.readError(err)
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
