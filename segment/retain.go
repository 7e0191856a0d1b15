package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"kring/ring"
)

// DeleteTo raises the log start offset (DeleteRecords); ErrOutOfRange beyond Written. Segments below go with the next Retain.
func (l *Log) DeleteTo(o Offset) error {
	if err := l.refusal(); err != nil {
		return err
	}
	if o > l.written {
		return ErrOutOfRange
	}
	if o > l.start {
		l.raiseStart(o)
	}
	return nil
}

func (l *Log) raiseStart(o Offset) {
	l.start = o
	l.touched()
	if l.epochs.truncateStart(o) {
		l.epochsNew = true
		l.saveEpochs()
	}
	l.check()
}

// Retain deletes segments by age, size and log start, none that reaches above the high watermark; now is ms of wall clock.
// It also forgets, if nothing was appended since the last call, memory that only a busy log needs. It returns how many segments went.
func (l *Log) Retain(t *ring.Task, now int64, highWatermark Offset) (int, error) {
	if err := l.refusal(); err != nil {
		return 0, err
	}
	if l.idleEnd == l.end {
		l.rest(t)
	}
	l.idleEnd = l.end
	l.until(t, func() bool { return !l.swapping && !l.retaining || l.Failed() != nil })
	if err := l.refusal(); err != nil || l.reverting { // the next look deletes what this one does not
		return 0, err
	}
	l.retaining = true
	defer func() {
		l.retaining = false
		l.notify()
	}()
	n, err := l.countRetired(t, now, highWatermark)
	if n == 0 || err != nil {
		return 0, err
	}
	if n == len(l.segs) {
		last := l.active() // goes, too
		l.Roll()
		if l.until(t, func() bool { return last.synced || l.Failed() != nil || l.reverting }); l.Failed() != nil {
			return 0, l.Failed()
		}
	}
	n = min(n, len(l.segs)-1)
	for i := range n { // only what is finished: its task still uses the file otherwise
		if !l.segs[i].synced {
			n = i
			break
		}
	}
	if n == 0 {
		return 0, nil
	}
	retired := slices.Clone(l.segs[:n])
	l.segs = slices.Delete(l.segs, 0, n)
	if base := l.segs[0].base; base > l.start {
		l.raiseStart(base)
	}
	l.remove(retired)
	return n, nil
}

// rest gives back the memory that only a log with appends needs.
func (l *Log) rest(t *ring.Task) {
	l.recent.drop()
	if l.writing == nil {
		l.files.giveBack(l.inflight)
		l.inflight = nil
	}
	s := l.active()
	if len(s.index.mem) == 0 && len(s.times.mem) == 0 || l.finishing || l.spilling || l.reverting {
		return
	}
	// Not durably: the active segment's indexes are rebuilt after an unclean stop.
	l.spilling = true
	err := s.index.write(t, s.path(indexSuffix), false)
	if err == nil {
		err = s.times.write(t, s.path(timeSuffix), false)
	}
	l.spilling = false
	if err == nil {
		s.index.drop()
		s.times.drop()
	} else if ring.NoSpace(err) {
		l.noRoom("writing indexes", 0, err)
	} else {
		l.warn("the indexes could not be written; they stay in memory", "cause", err)
	}
	l.notify()
}

// countRetired says how many segments from the first on are to go.
func (l *Log) countRetired(t *ring.Task, now int64, highWatermark Offset) (int, error) {
	c := &l.conf
	over := int64(0)
	if c.DeleteRetained && c.RetentionBytes >= 0 {
		over = l.Size() - c.RetentionBytes
	}
	for i := 0; i < len(l.segs); i++ {
		s := l.segs[i]
		if s.next > highWatermark || s.size == 0 && i == len(l.segs)-1 {
			return i, nil
		}
		if s.next <= l.start && i < len(l.segs)-1 {
			over -= s.size
			continue
		}
		if c.DeleteRetained && over > 0 && over-s.size >= 0 {
			over -= s.size
			continue
		}
		if !c.DeleteRetained || c.RetentionMs < 0 {
			return i, nil
		}
		ms, err := l.largestTime(t, s)
		if err != nil {
			return 0, err
		}
		if i >= len(l.segs) || l.segs[i] != s { // changed while we looked
			return 0, nil
		}
		if now-ms <= c.RetentionMs {
			return i, nil
		}
		over -= s.size
	}
	return len(l.segs), nil
}

// largestTime is the largest timestamp in s, or its last change if no record has one.
func (l *Log) largestTime(t *ring.Task, s *segment) (int64, error) {
	if err := l.knowMax(t, s); err != nil {
		return 0, err
	}
	if s.maxMs < 0 {
		return s.modMilli, nil
	}
	return s.maxMs, nil
}

// knowMax finds out the largest timestamp of a segment from the end of its time index.
func (l *Log) knowMax(t *ring.Task, s *segment) error {
	if s.maxKnown {
		return nil
	}
	if s.times.len() == 0 && s.size > 0 { // one that is finished has an entry at least, but where no record has a time
		return l.reindex(t, s, fmt.Errorf("%w: the time index is missing, empty or cut", ErrMalformed))
	}
	if err := l.loadTimes(t, s); err != nil {
		return err
	}
	ms, relative := timeIndex(s.times.mem).last()
	// One that was cut off between two entries does not show it. If the log cannot be read, that is told when somebody wants it.
	if err := l.knowEnd(t, s); s.maxKnown {
		return nil // the offset index was wrong, and both were made anew
	} else if err == nil && s.tailMs > ms {
		return l.reindex(t, s, fmt.Errorf("%w: the time index ends at time %d, and there is a batch of time %d", ErrMalformed, ms, s.tailMs))
	}
	s.maxMs, s.maxLast, s.lastMs, s.maxKnown = ms, s.base+Offset(relative), ms, true
	s.times.drop()
	return nil
}

// remove renames the files of segments that are no longer part of the log, and removes them after file.delete.delay.ms.
func (l *Log) remove(segs []*segment) {
	for _, s := range segs {
		s.gone = true
		if s.pins == 0 {
			s.close()
		}
	}
	l.removals++
	ring.Go(l.loop, func(t *ring.Task) {
		defer func() {
			l.removals--
			l.notify()
		}()
		var names []string
		for _, s := range segs {
			for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix} {
				if suffix == snapshotSuffix && s.base == l.segs[0].base {
					continue
				}
				from := s.path(suffix)
				l.namesDirty = true
				err := t.Rename(from, from+deletedSuffix)
				if err == nil {
					names = append(names, from+deletedSuffix)
				} else if !errors.Is(err, fs.ErrNotExist) {
					l.fail("deleting a segment", err)
					return
				}
			}
		}
		if l.closed {
			return // the next start removes them
		}
		l.removeLater(names)
	})
}
