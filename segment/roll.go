package segment

import (
	"path"
	"time"

	"kring/ring"
)

// Rolling. The new segment takes appends at once, in memory; they are written when its file is open and the old one has all
// of its own. The old one is finished behind: indexes and producer snapshot written, the file trimmed, everything synced.

// Roll begins a new segment at the end of the log, if the active one holds anything.
func (l *Log) Roll() {
	if l.refusal() == nil && l.active().size > 0 {
		l.roll(l.end, l.end)
	}
}

// roll closes the active segment and begins one for an append from first to last.
func (l *Log) roll(first, last Offset) *segment {
	old := l.active()
	base := l.end
	if last-base > maxRelative {
		base = first // a replica's copy may leave a gap
	}
	old.closed, old.modMilli = true, l.loop.UnixMilli()
	old.addTime()
	if l.prods.saved != l.end {
		old.snapshot, l.prods.saved = encodeSnapshot(&l.prods), l.end
	}
	s := l.newSegment(base)
	s.create, s.fresh = true, true
	l.segs = append(l.segs, s)
	l.namesDirty = true
	s.whenOpen(l.onOpen)
	l.startFinishing()
	return s
}

// finishMost is how many segments are finished at a time. Their syncs run beside each other, which the file system's journal
// makes few commits of; more would keep the kernel's workers from reads.
const finishMost = 16

// unfinished are the earliest closed segments that are not durable, with all their bytes on file.
func (l *Log) unfinished() (segs []*segment) {
	first := len(l.segs) - 1
	for first > 0 && !l.segs[first-1].synced {
		first--
	}
	for _, s := range l.segs[first : len(l.segs)-1] {
		if s.written < s.size || l.writing == s || len(segs) == finishMost {
			break
		}
		segs = append(segs, s)
	}
	return segs
}

func (l *Log) startFinishing() {
	if l.finishing || l.failed != nil || l.closed || len(l.unfinished()) == 0 {
		return
	}
	l.finishing = true
	ring.Go(l.loop, l.finishAll)
}

func (l *Log) finishAll(t *ring.Task) {
	defer func() {
		l.finishing, l.cramped = false, false
		l.notify()
	}()
	for l.failed == nil && !l.closed {
		segs := l.unfinished()
		if len(segs) == 0 {
			return
		}
		err := l.finish(t, segs)
		l.cramped = ring.NoSpace(err) || ring.NoDescriptors(err)
		switch {
		case err == nil, l.closed:
		case l.cramped && !l.closing: // a stop does not wait for room
			l.noRoom("finishing a segment", 0, err)
			l.notify()
			t.Sleep(time.Second)
		default:
			l.fail("finishing a segment", err)
			return
		}
	}
}

// finish makes closed segments, neighbours, durable with their indexes and the snapshots at their ends.
func (l *Log) finish(t *ring.Task, segs []*segment) error {
	for _, s := range segs {
		s.pin()
		defer s.unpin()
	}
	_, err := l.beside(t, segs, func(s *segment, t *ring.Task) error {
		if err := s.open(t); err != nil {
			return err
		}
		if l.until(t, func() bool { return !s.room.busy && !l.spilling || l.closed }); l.closed {
			return ErrClosed
		}
		return s.trim(t)
	})
	if err == nil {
		err = l.syncFinal(t, segs)
	}
	if err != nil {
		return err
	}
	for _, s := range segs {
		if s.gone {
			continue
		}
		s.synced, s.snapshot = true, nil
		s.index.drop()
		s.times.drop()
	}
	l.notify()
	if l.OnFinished != nil {
		l.OnFinished()
	}
	return nil
}

// beside runs each of jobs for each of segs, side by side. The error is that of the first job that has one for a segment that is still in
// the log, and which of them that was; from the second job on, one that does not pass comes before a want of room.
func (l *Log) beside(t *ring.Task, segs []*segment, jobs ...func(s *segment, t *ring.Task) error) (job int, err error) {
	errs := l.sideBySide(t, len(segs)*len(jobs), func(t *ring.Task, i int) error {
		if s := segs[i%len(segs)]; !s.gone {
			return jobs[i/len(segs)](s, t)
		}
		return nil
	})
	passes := func(err error) bool { return ring.NoSpace(err) || ring.NoDescriptors(err) }
	for i, e := range errs {
		if e == nil || segs[i%len(segs)].gone {
			continue
		}
		if err == nil || job > 0 && passes(err) && !passes(e) { // or what a failed sync may have lost would be tried again
			job, err = i/len(segs), e
		}
	}
	return job, err
}

// sideBySide runs fn for 0 to n-1, each in a task of its own, and waits for all.
func (l *Log) sideBySide(t *ring.Task, n int, fn func(t *ring.Task, i int) error) []error {
	errs, left := make([]error, n), n
	var wake func()
	for i := range n {
		ring.Go(l.loop, func(t *ring.Task) {
			errs[i] = fn(t, i)
			if left--; left == 0 && wake != nil {
				wake()
			}
		})
	}
	if left > 0 {
		t.Suspend(func(w func()) { wake = w })
	}
	return errs
}

// syncFinal makes the bytes and the final sizes of closed segments durable, and what stands beside them: all of it is asked for at once,
// and then, once, for the names, so that the file system's journal makes few commits of it. Even where the file system calls a failed sync
// of bytes a full disk, what is on file is unknown then; a want of room for the rest is an error that passes.
func (l *Log) syncFinal(t *ring.Task, segs []*segment) error {
	if l.until(t, func() bool { return l.syncing == nil || l.closed }); l.closed {
		return ErrClosed
	}
	if l.failed != nil {
		return l.failed // the sync under way was of one of these files, perhaps: it must not be repeated
	}
	l.syncing = segs[0]
	job, err := l.beside(t, segs, (*segment).syncBytes, (*segment).writeIndex, (*segment).writeTimes, (*segment).writeTxns,
		(*segment).writeSnapshot, (*segment).openNext)
	rest := error(nil)
	if job > 0 {
		rest, err = err, nil
	}
	if err == nil && (rest == nil || l.namesDirty || l.parentDirty) {
		err = l.syncNames(t)
	}
	l.syncing = nil
	if err != nil {
		l.fail("a sync", err)
		return err
	}
	for _, s := range segs {
		s.trimmed = true
	}
	l.raiseDurable(segs[len(segs)-1].next)
	return rest
}

// syncNames makes the names in the directory durable, and the directory's own if it is new.
func (l *Log) syncNames(t *ring.Task) error {
	l.namesDirty = false
	if err := t.SyncDir(l.dir); err != nil || !l.parentDirty {
		return err
	}
	if err := t.SyncDir(path.Dir(l.dir)); err != nil {
		return err
	}
	l.parentDirty = false
	return nil
}

// writeSynced writes a whole new file and syncs it; the name is the caller's to sync.
func writeSynced(t *ring.Task, path string, b []byte) error {
	f, err := t.Open(path, ring.Write|ring.Create|ring.Cut)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(b) > 0 {
		if err := t.Write(f, b, 0); err != nil {
			return err
		}
	}
	return t.Sync(f)
}

// syncBytes, writeIndex, writeTimes, writeTxns and writeSnapshot make a closed segment's files durable, with their right sizes.
func (s *segment) syncBytes(t *ring.Task) error {
	if s.trimmed {
		return nil
	}
	return t.Sync(s.file)
}

func (s *segment) writeIndex(t *ring.Task) error { return s.index.write(t, s.path(indexSuffix), true) }

func (s *segment) writeTimes(t *ring.Task) error { return s.times.write(t, s.path(timeSuffix), true) }

func (s *segment) writeTxns(t *ring.Task) error {
	if !s.txnDirty {
		return nil
	}
	if err := writeSynced(t, s.path(txnSuffix), s.txns); err != nil {
		return err
	}
	s.txnDirty = false
	return nil
}

func (s *segment) writeSnapshot(t *ring.Task) error {
	if s.snapshot == nil {
		return nil
	}
	return writeSynced(t, s.log.dir+"/"+fileName(s.next, snapshotSuffix), s.snapshot)
}

// openNext sees to it that there is a file where the log goes on.
func (s *segment) openNext(t *ring.Task) error {
	if next := s.log.after(s); next.create {
		return next.open(t)
	}
	return nil
}

// settled says whether the file is what it is to be, durably.
func (x *indexFile) settled() bool { return x.disk == x.len() && x.saved }

// write appends what the file lacks and cuts off what it has too much (Kafka's active indexes are long and full of zeros).
func (x *indexFile) write(t *ring.Task, path string, durably bool) error {
	if x.disk == x.len() && (x.saved || !durably) {
		return nil
	}
	how, fresh := ring.Write|ring.Create, x.absent && x.disk == 0
	if fresh {
		how |= ring.Cut
	}
	f, err := t.Open(path, how)
	if err != nil {
		return err
	}
	defer f.Close()
	n := x.len()
	x.absent = false
	if b := x.unwritten(); len(b) > 0 {
		if err := t.Write(f, b, int64(x.disk*x.width)); err != nil {
			return err
		}
	}
	if n > 0 || !fresh { // else its name is all there is to it
		if err := t.Truncate(f, int64(n*x.width)); err != nil {
			return err
		}
		if durably {
			if err := t.Sync(f); err != nil {
				return err
			}
		}
	}
	x.disk, x.saved = n, durably && n == x.len()
	return nil
}
