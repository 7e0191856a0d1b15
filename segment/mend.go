package segment

import (
	"errors"
	"fmt"
	"io/fs"

	"kring/ring"
)

// Index files of finished segments that are missing or wrong are made anew from the batches, where somebody needs them or behind a start,
// and written: each start would have to read the batches again otherwise, be it Kafka's. What a reader waits for is in memory before.

// mending says what becomes of the index files of a finished segment.
type mending uint8

const (
	sound   mending = iota // the files are right, as far as is known
	missing                // they have to be made anew
	rebuilt                // they are in memory, and not on file
)

// mendMissing sees to the segments whose index files were missing at the start, or no whole entries long.
func (l *Log) mendMissing() {
	for _, s := range l.segs[:len(l.segs)-1] {
		if s.synced && s.size > 0 && s.mending == sound && (!s.index.saved || !s.times.saved) {
			s.mending = missing
		}
	}
	l.mendSoon()
}

// mendSoon starts a task that mends if there is something to mend, when its turn comes: one log of a loop does so at a time.
func (l *Log) mendSoon() {
	if l.mendArmed || l.closed || l.target == nil || l.toMend() == nil {
		return
	}
	l.mendArmed = true
	if f := l.files; f.mender != nil {
		f.toMend = append(f.toMend, l)
	} else {
		f.mender = l
		l.later(l.mendAll)
	}
}

// nextMender gives the turn to the next log.
func (f *Files) nextMender() {
	f.mender = nil
	for len(f.toMend) > 0 && f.mender == nil {
		l := f.toMend[0]
		f.toMend = f.toMend[1:]
		l.mendArmed = false
		l.mendSoon()
	}
}

// toMend is a segment that needs it.
func (l *Log) toMend() *segment {
	for _, s := range l.segs {
		if s.mending != sound && s.synced {
			return s
		}
	}
	return nil
}

// mendAll goes on until everything is on file. What cannot be read or written stays as it is until the next start: nothing but time is
// lost by it.
func (l *Log) mendAll(t *ring.Task) {
	defer func() {
		l.mendArmed = false
		l.files.nextMender()
	}()
	for !l.closing && !l.closed && l.failed == nil {
		s := l.toMend()
		if s == nil {
			return
		}
		var err error
		if s.mending == missing {
			err = l.reindex(t, s, fmt.Errorf("%w: an index file is missing or cut", ErrMalformed))
		}
		if err == nil && s.mending == rebuilt {
			err = l.writeRebuilt(t, s)
		}
		s.mending = sound
		if err != nil && !s.gone && !l.closed {
			l.warn("the indexes of a segment are not on file", "segment", s.base, "cause", err)
		}
	}
}

// writeRebuilt replaces the index files of a finished segment by what is in memory. No name changes hands meanwhile: neither a cleaned
// segment takes this one's place, nor does the log end somewhere else.
func (l *Log) writeRebuilt(t *ring.Task, s *segment) error {
	l.until(t, func() bool { return !l.swapping && !l.reverting || l.closing || l.closed || l.failed != nil })
	if l.closing || l.closed || l.failed != nil || s.gone {
		return nil
	}
	l.mendings++
	defer func() {
		l.mendings--
		l.notify()
	}()
	if err := l.replaceIndex(t, s, indexSuffix, &s.index); err != nil {
		return err
	}
	return l.replaceIndex(t, s, timeSuffix, &s.times)
}

func (l *Log) replaceIndex(t *ring.Task, s *segment, suffix string, x *indexFile) error {
	if s.gone || x.saved || !x.whole() {
		return nil
	}
	n := x.len()
	if err := t.WriteFile(l.dir, fileName(s.base, suffix), x.mem); err != nil {
		return err
	}
	if s.gone { // deleted meanwhile, and its files have other names or none
		return removed(t.Remove(s.path(suffix)))
	}
	x.disk, x.saved = n, true
	return nil
}

// removed takes a file that is not there for one that was removed.
func removed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
