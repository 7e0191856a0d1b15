package segment

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"kring/ring"
)

// A cleaned segment takes the place of others in steps that a crash may come between (Kafka's LocalLog.replaceSegments; the start
// is settleSwaps):
//
//	.cleaned -> .swap       before the last of them a start drops all of it, after it a start completes the exchange
//	old files -> .deleted   a start removes them, and those that were not reached yet
//	.swap -> their names    a start goes on with it
//
// Names reach the disk in the order of the renames, the content of the new files before the first of them.

// swap puts s in the place of old, which are neighbours and finished. stopped is asked until the exchange begins; an error
// with s not synced means that it has not.
func (l *Log) swap(t *ring.Task, old []*segment, s *segment, stopped func() error) error {
	l.until(t, func() bool { return !l.reverting && !l.retaining && l.mendings == 0 || stopped() != nil })
	if err := stopped(); err != nil {
		return err
	}
	l.swapping = true
	defer func() {
		l.swapping = false
		l.notify()
	}()
	if !l.holds(old) {
		return ErrAbandoned
	}
	l.removeRetired(t, old[0].base, s.next)
	suffixes := []string{logSuffix, indexSuffix, timeSuffix}
	if len(s.txns) > 0 {
		suffixes = append(suffixes, txnSuffix)
	}
	for _, suffix := range suffixes {
		err := t.Rename(s.path(suffix)+cleanedSuffix, s.path(suffix)+swapSuffix)
		if err == nil {
			err = stopped()
		}
		if err != nil {
			return l.unswap(t, s, suffixes, err)
		}
	}
	l.take(old, s)
	err := l.retire(t, old)
	for _, suffix := range suffixes {
		if err == nil {
			err = t.Rename(s.path(suffix)+swapSuffix, s.path(suffix))
		}
	}
	if err == nil {
		err = t.SyncDir(l.dir)
	}
	if err != nil {
		l.fail("putting a cleaned segment in place", err)
		s.unpin()
		return l.Failed()
	}
	s.index.disk, s.index.saved, s.times.disk, s.times.saved = s.index.len(), true, s.times.len(), true
	s.index.drop()
	s.times.drop()
	s.unpin()
	return nil
}

// holds says whether segs are part of the log, next to one another, and finished.
func (l *Log) holds(segs []*segment) bool {
	at := l.floor(segs[0].base)
	if at+len(segs) >= len(l.segs) {
		return false
	}
	for i, s := range segs {
		if l.segs[at+i] != s || !s.synced || !s.closed {
			return false
		}
	}
	return true
}

// take exchanges the segments in memory: readers that come from now on see s. It stays pinned until its files have their names.
func (l *Log) take(old []*segment, s *segment) {
	at := l.floor(old[0].base)
	s.synced, s.trimmed = true, true
	s.pin()
	l.files.opened(s)
	l.segs[at] = s
	l.segs = append(l.segs[:at+1], l.segs[at+len(old):]...)
	l.recent.forget(s.next)
	for _, o := range old {
		o.gone = true
		if o.pins == 0 {
			o.close()
		}
	}
}

// retire renames the files of segments that were replaced, and removes them after file.delete.delay.ms. The producer snapshot
// at the begin of the first stays.
func (l *Log) retire(t *ring.Task, old []*segment) error {
	var names []string
	for i, s := range old {
		for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix} {
			if suffix == snapshotSuffix && i == 0 {
				continue
			}
			from := s.path(suffix)
			err := t.Rename(from, from+deletedSuffix)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			names = append(names, from+deletedSuffix)
		}
	}
	if !l.closed { // else the next start removes them
		l.removeLater(names)
	}
	return nil
}

// retired is a file on its way out.
type retired struct {
	name string // with its path
	gone bool
}

// removeLater removes files after file.delete.delay.ms.
func (l *Log) removeLater(names []string) {
	delay := time.Duration(l.conf.FileDeleteDelayMs) * time.Millisecond
	files := make([]*retired, len(names))
	for i, name := range names {
		files[i] = &retired{name: name}
	}
	l.retired = append(l.retired, files...)
	l.later(func(t *ring.Task) {
		t.Sleep(delay)
		for _, f := range files {
			l.removeNow(t, f)
		}
		l.retired = slices.DeleteFunc(l.retired, func(f *retired) bool { return f.gone })
	})
}

// removeRetired removes what earlier exchanges have retired between two offsets, before the next one there: a start that takes an
// exchange back could not tell the one's files from the other's. Who reads them has them open.
func (l *Log) removeRetired(t *ring.Task, from, to Offset) {
	for _, f := range slices.Clone(l.retired) {
		if base, _, ok := parseName(f.name[len(l.dir)+1:]); ok && base >= from && base < to {
			l.removeNow(t, f)
		}
	}
	l.retired = slices.DeleteFunc(l.retired, func(f *retired) bool { return f.gone })
}

func (l *Log) removeNow(t *ring.Task, f *retired) {
	if f.gone {
		return
	}
	f.gone = true
	if err := t.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.warn("a deleted file could not be removed; the next start will", "file", f.name, "cause", err)
	}
}

// unswap takes the first step back. A start that found some of it would do the same.
func (l *Log) unswap(t *ring.Task, s *segment, suffixes []string, cause error) error {
	for i := len(suffixes) - 1; i >= 0; i-- {
		for _, mark := range []string{cleanedSuffix, swapSuffix} {
			if err := t.Remove(s.path(suffixes[i]) + mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
				l.fail("taking back a cleaned segment", err)
				return l.failed
			}
		}
	}
	if l.failed == nil && !l.closed && !errors.Is(cause, ErrAbandoned) && !ring.NoSpace(cause) {
		l.fail("putting a cleaned segment in place", cause)
		return l.failed
	}
	return cause
}
