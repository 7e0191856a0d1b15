package segment

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"kring/ring"
)

// TruncateTo takes back every record from o on (a follower does so, never a leader). Appends are refused meanwhile.
func (l *Log) TruncateTo(t *ring.Task, o Offset) error {
	if err := l.refusal(); err != nil {
		return err
	}
	if o < l.start {
		return ErrOutOfRange
	}
	if o >= l.end {
		return nil
	}
	l.cuts++ // a cleaning ends
	if err := l.Flush(t); err != nil {
		return err
	}
	l.until(t, func() bool { return !l.swapping })
	if err := l.refusal(); err != nil {
		return err
	}
	l.cuts++
	l.cleaned = min(l.cleaned, o)
	l.reverting = true
	defer l.resume()
	l.until(t, func() bool { return l.alone() && !l.finishing })
	s := l.segs[l.floor(o)]
	_, _, position, err := l.seek(t, s, o)
	if err != nil {
		return err
	}
	return l.takeBack(t, o, position)
}

// resume ends a time in which nothing was written or synced.
func (l *Log) resume() {
	l.reverting = false
	l.pump()
	l.sync()
	l.startFinishing()
	l.notify()
}

// quiet says whether neither a write nor a sync is under way.
func (l *Log) quiet() bool { return l.writing == nil && l.syncing == nil && !l.spilling }

// alone says whether, besides, no task exchanges, removes or mends segments.
func (l *Log) alone() bool { return l.quiet() && !l.swapping && !l.retaining && l.mendings == 0 }

// revert takes back what is appended but not on file, since there was no room or no descriptor for it. Nobody can have read it.
func (l *Log) revert(cause error) {
	if l.reverting || l.failed != nil || l.closed {
		return
	}
	l.reverting = true
	refused := 0
	for a := l.waiters.head; a != nil; a = a.next {
		refused++
	}
	l.noRoom("an append", refused, cause)
	l.refuseUnwritten(ErrNoSpace)
	ring.Go(l.loop, func(t *ring.Task) {
		l.until(t, l.alone)
		if l.failed == nil && !l.closed {
			s := l.segs[l.floor(l.written)]
			err := l.takeBack(t, l.written, s.written)
			for (ring.NoSpace(err) || ring.NoDescriptors(err)) && !l.closed && !l.closing && l.failed == nil {
				l.noRoom("taking back an append", 0, err)
				t.Sleep(time.Second)
				err = l.takeBack(t, l.written, s.written)
			}
			if err != nil && !l.closed && l.failed == nil {
				l.fail("taking back what there was no room for", err)
			}
		}
		l.resume()
	})
}

// takeBack ends the log at o, which begins at position in its segment. No write or sync is under way.
func (l *Log) takeBack(t *ring.Task, o Offset, position int64) error {
	i := l.floor(o)
	s := l.segs[i]
	cutOff := slices.Clone(l.segs[i+1:])
	l.segs = slices.Delete(l.segs, i+1, len(l.segs))
	for _, c := range cutOff {
		c.gone = true
		if c.opening { // it would make the file anew behind our back
			t.Suspend(func(wake func()) { c.waiting = append(c.waiting, func(error) { wake() }) })
		}
		l.namesDirty = true // a removed name that comes back after a power cut would cut off what is appended from now on
		l.files.giveBack(c.pending)
		c.pending = nil
		if c.pins == 0 {
			c.close()
		}
		for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix} {
			if suffix == snapshotSuffix && c.base == o {
				continue
			}
			if err := t.Remove(c.path(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	l.files.giveBack(s.pending)
	s.pending, s.snapshot = nil, nil
	if err := l.cutIndexes(t, s, o, position); err != nil {
		return err
	}
	s.closed, s.synced, s.trimmed = false, false, false
	s.size, s.written, s.next = position, position, o
	if !s.create {
		if s.file != nil && !s.writable {
			l.until(t, func() bool { return s.pins == 0 })
			s.close()
		}
		if err := s.open(t); err != nil {
			return err
		}
		s.pin()
		defer s.unpin()
		l.until(t, func() bool { return !s.room.busy })
		if err := t.Truncate(s.file, position); err != nil {
			return err
		}
		s.room.end, s.room.preset = min(s.room.end, position), false
	}
	l.recent.cut(o)
	l.end, l.written, l.target = o, min(l.written, o), s
	l.durable, l.syncWanted = min(l.durable, o), min(l.syncWanted, o)
	if l.epochs.truncateEnd(o) {
		l.epochsNew = true
		l.saveEpochs()
	}
	return l.reloadProducers(t)
}

// cutIndexes takes entries at or above o out of the indexes of s, and finds the largest timestamp of what remains.
func (l *Log) cutIndexes(t *ring.Task, s *segment, o Offset, position int64) error {
	if err := l.loadIndex(t, s, -1); err != nil {
		return err
	}
	if err := l.loadTimes(t, s); err != nil {
		return err
	}
	s.index.keep(len(offsetIndex(s.index.mem).cut(int64(o-s.base), position)))
	s.times.keep(len(timeIndex(s.times.mem).cut(int64(o - s.base))))
	if kept := s.txns.cut(o); len(kept) < len(s.txns) {
		s.txns, s.txnDirty = kept, true
	}
	ms, relative := timeIndex(s.times.mem).last()
	s.maxMs, s.maxLast, s.lastMs, s.maxKnown, s.sinceIdx = ms, s.base+Offset(relative), ms, true, 0
	if position == 0 {
		s.firstMs = noTimestamp
		return nil
	}
	if err := s.open(t); err != nil {
		return err
	}
	s.pin()
	defer s.unpin()
	at := int64(0)
	if n := len(s.index.mem); n > 0 {
		_, p := offsetIndex(s.index.mem).at(n/indexEntry - 1)
		at = int64(p)
	}
	sc := newScan(t, s.file, at, position, scanSmall)
	defer sc.release()
	for {
		h, err := sc.peek()
		if h == nil || err != nil {
			return err
		}
		s.note(h)
		sc.skip(h)
	}
}

// reloadProducers makes the producer state anew, as of the end of the log. Until it is whole the one before stands: readers and a
// cleaning that come meanwhile must not take an open transaction for none.
func (l *Log) reloadProducers(t *ring.Task) error {
	entries, err := t.List(l.dir)
	if err != nil {
		return err
	}
	var snapshots []Offset
	for _, e := range entries {
		o, suffix, ok := parseName(e.Name)
		if !ok || suffix != snapshotSuffix {
			continue
		}
		if o > l.end {
			l.namesDirty = true
			if err := t.Remove(l.dir + "/" + e.Name); err != nil {
				return err
			}
			continue
		}
		snapshots = append(snapshots, o)
	}
	ps, err := l.producersUpTo(t, snapshots, l.end)
	if err != nil {
		return err
	}
	ps.unreplicated = slices.DeleteFunc(ps.unreplicated, func(o openTxn) bool { return !slices.Contains(l.prods.unreplicated, o) })
	l.prods = ps
	return nil
}
