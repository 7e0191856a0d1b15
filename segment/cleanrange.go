package segment

import (
	"fmt"
	"math"

	"kring/ring"
)

// Dirt is how much of a log could be cleaned now.
type Dirt struct {
	// From is the first dirty offset, To the end of what may be cleaned: the base of a segment.
	From, To Offset
	// Clean and Dirty are the bytes before From and up to To. A segment that was mapped in part counts in both.
	Clean, Dirty int64
	// Overdue: a record that could be cleaned is older than max.compaction.lag.ms, by so many ms.
	Overdue int64
	// Reset: the offset that was noted as clean lies outside the log, and From is its start. NotedAt is that offset.
	Reset   bool
	NotedAt Offset
}

// Ratio is the dirty part of what could be clean, 0 to 1.
func (d *Dirt) Ratio() float64 {
	if d.Clean+d.Dirty == 0 {
		return 0
	}
	return float64(d.Dirty) / float64(d.Clean+d.Dirty)
}

// Cleaned is the offset up to which the log was cleaned, for the checkpoint file; false if it never was.
func (l *Log) Cleaned() (Offset, bool) { return l.cleaned, l.cleaned > 0 }

func (l *Log) setCleaned(o Offset) {
	l.cleaned = o
	l.touched()
}

// cleanBytes is the size of the segments that begin below the first dirty offset.
func (l *Log) cleanBytes() (n int64) {
	for _, s := range l.segs[:len(l.segs)-1] {
		if s.base >= max(l.cleaned, l.start) {
			break
		}
		n += s.size
	}
	return n
}

// Dirt looks what could be cleaned. now is in Unix ms; nothing from the offset stable on may be touched.
func (l *Log) Dirt(t *ring.Task, now int64, stable Offset) (Dirt, error) {
	if err := l.refusal(); err != nil {
		return Dirt{}, err
	}
	d := Dirt{From: l.cleaned, NotedAt: l.cleaned}
	switch {
	case d.From == 0:
		d.From = l.start
	case d.From < l.start, d.From > l.end:
		d.From, d.Reset = l.start, true
	}
	to, err := l.beforeLag(t, d.From, min(stable, l.active().base), now)
	if err != nil {
		return Dirt{}, err
	}
	d.To = l.segs[l.floor(max(to, d.From))].base
	for i := l.floor(min(d.From, d.To)); i < len(l.segs) && l.segs[i].base < d.To; i++ {
		d.Dirty += l.segs[i].size
	}
	for _, s := range l.segs {
		if s.base < d.From {
			d.Clean += s.size
		}
	}
	d.Overdue, err = l.overdue(t, d, now)
	return d, err
}

// whole waits until all segments below to are finished: how dirty a log is must not depend on how far that has come, or what is left
// of it would not be dirty enough for ever.
func (k *cleaning) whole(to Offset) error {
	l := k.l
	unfinished := func() bool {
		s := l.segs[max(l.floor(to)-1, 0)]
		return s.base < to && !s.synced
	}
	if l.until(k.t, func() bool { return k.stopped() != nil || l.cramped || !unfinished() }); k.stopped() != nil {
		return k.stopped()
	}
	if unfinished() {
		return fmt.Errorf("finishing what is to be cleaned: %w", ErrNoSpace)
	}
	return nil
}

// beforeLag is to, or the base of the first dirty segment with a record younger than min.compaction.lag.ms.
func (l *Log) beforeLag(t *ring.Task, from, to Offset, now int64) (Offset, error) {
	if l.conf.MinLagMs <= 0 {
		return to, nil
	}
	for s := l.segs[l.floor(from)]; s != l.active() && s.base < to; s = l.behind(s) {
		ms, err := l.largestTime(t, s)
		if s.gone {
			return from, nil // changed while we looked
		}
		if err != nil {
			return 0, l.readError(err)
		}
		if ms > now-l.conf.MinLagMs {
			return min(to, s.base), nil
		}
	}
	return to, nil
}

// overdue is by how many ms the oldest dirty record exceeds max.compaction.lag.ms; the first batch of each segment stands for
// it.
func (l *Log) overdue(t *ring.Task, d Dirt, now int64) (int64, error) {
	if l.conf.MaxLagMs >= math.MaxInt64-1 || d.Dirty == 0 {
		return 0, nil
	}
	oldest := int64(math.MaxInt64)
	for s := l.segs[l.floor(d.From)]; s != l.active(); s = l.behind(s) {
		ms, err := l.firstTime(t, s)
		if s.gone {
			return 0, nil
		}
		if err != nil {
			return 0, l.readError(err)
		}
		if ms > 0 {
			oldest = min(oldest, ms)
		}
	}
	return max(now-max(l.conf.MaxLagMs, 0)-oldest, 0), nil
}

// firstTime is the largest timestamp of the first batch of s, noTimestamp if there is none.
func (l *Log) firstTime(t *ring.Task, s *segment) (int64, error) {
	if s.firstMs >= 0 || s.size == 0 {
		return s.firstMs, nil
	}
	s.pin()
	defer s.unpin()
	if err := s.open(t); err != nil {
		return 0, err
	}
	sc := newScan(t, s.file, 0, s.written, scanSmall)
	defer sc.release()
	h, err := sc.peek()
	if err != nil || h == nil {
		return noTimestamp, err
	}
	s.firstMs = h.maxTime()
	return s.firstMs, nil
}

// warnReset says that the noted offset was of no use, unless retention alone explains that.
func (l *Log) warnReset(d Dirt) {
	if d.Reset && !(l.conf.DeleteRetained && d.NotedAt < l.start) {
		l.warn("the checkpointed end of the clean part lies outside the log; all of it counts as dirty",
			"checkpoint", d.NotedAt, "start", l.start, "end", l.end)
	}
}
