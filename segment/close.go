package segment

import (
	"errors"
	"io/fs"
	"path"
	"time"

	"kring/ring"
)

// Flush makes everything appended so far durable.
func (l *Log) Flush(t *ring.Task) error {
	goal := l.end
	l.syncWanted = max(l.syncWanted, goal)
	l.pump()
	l.sync()
	l.startFinishing()
	l.until(t, func() bool { return l.durable >= goal || l.Failed() != nil || l.end < goal })
	return l.Failed()
}

// Close flushes and closes the log so that a clean start may trust it. Appends are refused from its beginning on.
func (l *Log) Close(t *ring.Task) error {
	if err := l.Failed(); err != nil {
		l.Abandon()
		return err
	}
	l.closing = true
	l.notify() // a cleaning ends
	l.until(t, func() bool { return !l.reverting })
	err := l.Flush(t)
	if err == nil {
		l.until(t, func() bool { return l.still() || l.failed != nil })
		if err = l.Failed(); err == nil { // else a rolled segment may lack its indexes, and nothing is to vouch for it
			err = l.closeCleanly(t)
		}
	}
	l.Abandon()
	return err
}

// closeCleanly leaves the active segment as Kafka does: final time index entry, indexes and file cut to their sizes, and the
// producer state at the end of the log.
func (l *Log) closeCleanly(t *ring.Task) error {
	s := l.active()
	s.addTime()
	if l.until(t, func() bool { return !s.room.busy || l.closed }); l.closed {
		return ErrClosed
	}
	long := s.room.preset || s.room.end > s.size
	if long || s.create {
		if err := s.open(t); err != nil {
			return err
		}
		s.pin()
		defer s.unpin()
	}
	if l.prods.saved != l.end && (l.end > l.segs[0].base || len(l.prods.byID) > 0) {
		s.snapshot = encodeSnapshot(&l.prods)
	}
	if l.epochsNew {
		l.epochsNew = false
		if err := t.WriteFile(l.dir, epochsFile, l.epochs.encode()); err != nil {
			return err
		}
	}
	names := l.namesDirty || l.parentDirty || s.snapshot != nil || s.txnDirty || !s.index.settled() || !s.times.settled()
	if long {
		if err := s.trim(t); err != nil {
			return err
		}
	}
	if names || long {
		job, err := l.beside(t, []*segment{s}, func(s *segment, t *ring.Task) error {
			if !long {
				return nil
			}
			return t.Sync(s.file) // zeros that come back under a clean-stop marker would stop a Kafka
		}, (*segment).writeIndex, (*segment).writeTimes, (*segment).writeTxns, (*segment).writeSnapshot)
		if err != nil && job == 0 {
			l.fail("a sync", err)
		}
		if err != nil {
			return err
		}
	}
	if names { // a log that was left alone is as the last stop left it
		if err := l.syncNames(t); err != nil {
			return err
		}
	}
	l.closedCleanly = true
	return nil
}

// Abandon closes the files and nothing else: the next start recovers. Waiting appends get ErrClosed.
func (l *Log) Abandon() {
	if l.closed {
		return
	}
	l.closed = true
	l.loop.Cancel(&l.flushTimer)
	l.refuseAll(ErrClosed)
	for _, s := range l.segs {
		if s.pins == 0 {
			s.close()
		}
		s.pending = nil
	}
	l.notify()
	for _, t := range l.tasks {
		t.Stop()
	}
	l.tasks = nil
}

// Remove renames the directory to "<topic>-<partition>.<uuid>-delete" and removes it after file.delete.delay.ms. The log is
// closed by it; ranges that are pinned stay readable.
func (l *Log) Remove(t *ring.Task) error {
	l.Abandon()
	l.until(t, l.still) // or a task of the old log might write into a new one of the same name
	var uuid [16]byte
	for i := range uuid {
		uuid[i] = byte(l.loop.Rand().Uint32())
	}
	parent := path.Dir(l.dir)
	gone := parent + "/" + deletedName(path.Base(l.dir), uuid)
	if err := t.Rename(l.dir, gone); err != nil {
		return err
	}
	if err := t.SyncDir(parent); err != nil {
		return err
	}
	delay := time.Duration(l.conf.FileDeleteDelayMs) * time.Millisecond
	ring.Go(l.loop, func(t *ring.Task) {
		t.Sleep(delay)
		if err := removeTree(t, gone); err != nil {
			l.warn("a deleted partition could not be removed", "dir", gone, "cause", err)
		}
	})
	return nil
}

// still says whether nothing works on the log's files any more.
func (l *Log) still() bool {
	return l.quiet() && !l.finishing && !l.epochsBusy && !l.reverting && !l.spilling && !l.cleaning && l.removals == 0 && l.mendings == 0
}

// RemoveDir removes a partition's directory in which no log is open; one that is not there is no error.
func RemoveDir(t *ring.Task, dir string) error {
	if err := removeTree(t, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.SyncDir(path.Dir(dir))
}

// removeTree removes a partition's directory and the files in it.
func removeTree(t *ring.Task, dir string) error {
	entries, err := t.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := t.Remove(dir + "/" + e.Name); err != nil {
			return err
		}
	}
	return t.Remove(dir)
}
