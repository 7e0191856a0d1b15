package segment

import (
	"kring/wire/batch"
)

// Append assigns offsets and queues a's batches; see Append's fields. All appends of a turn leave in one write.
func (l *Log) Append(a *Append) {
	a.Err, a.Duplicate, a.needSync = nil, false, false
	if a.Err = l.refusal(); a.Err != nil {
		return
	}
	maxMs, err := l.admit(a)
	if err != nil {
		a.Err = err
		return
	}
	if a.Duplicate {
		if l.conf.FlushMessages == 1 && a.Last >= l.durable {
			a.needSync = true
			l.syncWanted = max(l.syncWanted, a.Last+1)
		}
		l.waiters.push(a)
		l.armTurn()
		return
	}
	s := l.active()
	if l.mustRoll(s, int64(len(a.Data)), maxMs, a.Last) {
		s = l.roll(a.Base, a.Last)
	}
	l.place(s, a)
	if l.conf.FlushMessages < 1<<62 && int64(l.end-max(l.durable, l.syncWanted)) >= l.conf.FlushMessages {
		a.needSync = true
		l.syncWanted = l.end
	}
	l.waiters.push(a)
	l.armTurn()
	l.check()
}

func (l *Log) refusal() error {
	switch {
	case l.failed != nil:
		return l.failed
	case l.closed, l.closing:
		return ErrClosed
	case l.reverting:
		return ErrNoSpace
	}
	return nil
}

// admit checks a's batches and finds out the offsets they get, without changing anything but a.
func (l *Log) admit(a *Append) (maxMs int64, err error) {
	maxMs = noTimestamp
	if int64(len(a.Data)) > l.conf.SegmentBytes {
		return 0, ErrTooLarge
	}
	next := l.end
	first := true
	for rest := a.Data; len(rest) > 0; first = false {
		b, after, err := batch.Whole(rest)
		if err != nil {
			return 0, ErrCorrupt
		}
		rest = after
		h := header(b)
		if !h.isV2() || h.v2().LastOffsetDelta() < 0 {
			return 0, ErrCorrupt
		}
		base := next
		if a.Origin == FromLeader {
			if base = h.base(); base < next {
				return 0, ErrOffsets
			}
		}
		if first {
			a.Base = base
		}
		a.Last = base + Offset(h.v2().LastOffsetDelta())
		next = a.Last + 1
		maxMs = max(maxMs, h.maxTime())
		if h.hasProducer() && a.Origin != FromLeader {
			if dup, err := l.admitProducer(a, b); dup || err != nil {
				return 0, err
			}
		}
	}
	if first {
		return 0, ErrCorrupt
	}
	return maxMs, nil
}

// admitProducer checks one batch against its producer's state. Several batches of one producer in one append are checked
// against the state before it; clients send one.
func (l *Log) admitProducer(a *Append, b []byte) (duplicate bool, err error) {
	h := batch.Header(b)
	if a.Origin == FromClient {
		if p := l.prods.get(h.ProducerID()); p != nil {
			if d, ok := p.duplicate(h.ProducerEpoch(), h.BaseSequence(), h.LastSequence()); ok {
				a.Duplicate, a.Timestamp = true, d.timestamp
				a.Base, a.Last = d.last-Offset(d.delta), d.last
				return true, nil
			}
		}
	}
	return false, l.prods.checkBatch(b, a.Origin)
}

// mustRoll says whether an append of n bytes needs a new segment.
func (l *Log) mustRoll(s *segment, n, maxMs int64, last Offset) bool {
	c := &l.conf
	switch {
	case int64(last)-int64(s.base) > maxRelative:
		return true
	case s.size == 0:
		return false
	case s.size > c.SegmentBytes-n || s.full(c):
		return true
	case c.RollDirtyBytes > 0 && c.Compact && s.size > c.RollDirtyBytes && s.size > l.cleanBytes():
		return true
	case s.firstMs >= 0:
		return maxMs-s.firstMs > c.SegmentMs-s.jitterMs
	}
	return l.loop.UnixMilli()-s.modMilli > c.SegmentMs-s.jitterMs
}

// place gives a's bytes their position in s and notes all that follows from them.
func (l *Log) place(s *segment, a *Append) {
	next := l.end
	for rest := a.Data; len(rest) > 0; {
		b, after, _ := batch.Whole(rest)
		rest = after
		h := header(b)
		if a.Origin != FromLeader {
			batch.Stamp(b, int64(next), a.LeaderEpoch)
		}
		if e := h.leaderEpoch(); e > l.epochs.latest() {
			l.assignEpoch(e, h.base())
		}
		next = h.last() + 1
		l.recent.add(recentBatch{base: h.base(), position: int32(s.size), size: int32(len(b)), delta: h.v2().LastOffsetDelta()})
		s.noteBatch(h, l.conf.IndexIntervalBytes)
		if h.hasProducer() {
			l.applyProducer(s, b)
		}
	}
	if s.pending == nil {
		s.pending = l.files.vector()
	}
	s.pending = append(s.pending, a.Data)
	s.next, l.end, l.prods.end = next, next, next
}

func (l *Log) applyProducer(s *segment, b []byte) {
	if aborted, ok := l.prods.apply(b); ok {
		s.txns = s.txns.add(aborted)
		s.txnDirty = true
	}
}
