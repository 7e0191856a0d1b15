package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"kring/ring"
)

// Open opens or creates the log in o.Dir, recovering it if the stop was not clean. Errors name the file.
func Open(t *ring.Task, o Options) (*Log, error) {
	l := newLog(t.Loop(), o)
	if err := l.load(t, o); err != nil {
		l.Abandon()
		return nil, err
	}
	l.check()
	return l, nil
}

func newLog(loop ring.Loop, o Options) *Log {
	l := &Log{loop: loop, dir: o.Dir, conf: o.Config, files: o.Files, log: o.Log, cleaned: o.Cleaned, suspect: o.Suspect}
	if l.files == nil {
		l.files = NewFiles(loop, filesDefault)
	}
	l.writeOp.Done = l.onWritten
	l.turnOp.Done = l.onTurnEnd
	l.syncOp.Done = l.onSynced
	l.flushTimer.Fire = l.onFlushTimer
	return l
}

// found is what a partition's directory holds.
type found struct {
	logs      []ring.Entry
	sizes     map[string]int64 // of all files
	snapshots []Offset
	traces
}

func (l *Log) load(t *ring.Task, o Options) error {
	f, err := l.survey(t)
	if errors.Is(err, fs.ErrNotExist) {
		if err := t.MakeDir(l.dir); err != nil {
			return err
		}
		f, err = l.survey(t)
	}
	if err != nil {
		return err
	}
	if err := l.loadTopicID(t, o.TopicID, f); err != nil {
		return err
	}
	epochsLost, err := l.loadEpochs(t, o.recollect)
	if err != nil {
		return err
	}
	if err := l.loadSegments(t, f); err != nil {
		return err
	}
	l.start, l.prods.end = o.LogStart, -1
	changed, err := l.recoverSegments(t, f, o, epochsLost)
	if err != nil {
		return err
	}
	if len(f.logs) > 0 {
		l.tellMissing(f.traces, o.LogStart)
	}
	if len(l.segs) > 0 && l.active().next < o.LogStart {
		l.warn("the log ends before its start; it begins anew", "end", l.active().next, "start", o.LogStart)
		if err := l.removeAll(t); err != nil {
			return err
		}
		l.epochs, l.epochsNew, changed = nil, true, true
	}
	if len(l.segs) == 0 {
		if err := l.createFirst(t, o.LogStart); err != nil {
			return err
		}
	}
	l.start = max(o.LogStart, l.segs[0].base)
	l.end = l.active().next
	l.written = l.end
	l.target = l.active()
	if l.end < o.RecoveryPoint {
		l.warn("the log ends before its recovery point: records that were durable are missing, unless the checkpoint is wrong",
			"from", l.end, "to", o.RecoveryPoint-1)
	}
	if l.epochs.truncateEnd(l.end) || l.epochs.truncateStart(l.start) {
		l.epochsNew = true
	}
	if err := l.loadProducers(t, f.snapshots); err != nil {
		return err
	}
	l.ExpireProducers(l.loop.UnixMilli())
	l.durable = l.end
	if !o.Clean || changed {
		l.distrust(o.RecoveryPoint)
	}
	l.saveEpochs()
	l.startFinishing()
	l.mendMissing()
	return nil
}

// distrust takes for durable what is below the recovery point or finished: the process before us may not have synced the rest, nor names.
func (l *Log) distrust(point Offset) {
	l.namesDirty, l.parentDirty = true, true
	l.durable = max(min(point, l.end), l.segs[0].base)
	for _, s := range l.segs {
		if !s.synced {
			break
		}
		l.durable = max(l.durable, s.next)
	}
}

// survey lists the directory, ends what a deletion or a compaction left half done, and drops what belongs to nothing.
func (l *Log) survey(t *ring.Task) (*found, error) {
	entries, err := t.List(l.dir)
	if err != nil {
		return nil, err
	}
	f := &found{traces: tracesIn(entries)}
	if entries, err = l.settleSwaps(t, entries); err != nil {
		return nil, err
	}
	f.sizes = make(map[string]int64, len(entries))
	for _, e := range entries {
		if !e.Dir {
			f.sizes[e.Name] = e.Size
		}
	}
	for _, e := range entries {
		base, suffix, ok := parseName(e.Name)
		switch {
		case (e.Dir || e.Special) && isOurs(e.Name):
			return nil, fmt.Errorf("%s/%s: %w: it is no regular file; move it away", l.dir, e.Name, ErrMalformed)
		case e.Dir || !ok:
		case suffix == logSuffix:
			f.logs = append(f.logs, e)
		case suffix == snapshotSuffix:
			f.snapshots = append(f.snapshots, base)
		case suffix == indexSuffix+tmpSuffix, suffix == timeSuffix+tmpSuffix: // a stop came while an index was written
			if err := t.Remove(l.dir + "/" + e.Name); err != nil {
				return nil, err
			}
		case suffix == indexSuffix, suffix == timeSuffix, suffix == txnSuffix:
			if _, ok := f.sizes[fileName(base, logSuffix)]; !ok {
				l.warn("removing an index without its segment", "file", l.dir+"/"+e.Name)
				if err := t.Remove(l.dir + "/" + e.Name); err != nil {
					return nil, err
				}
				delete(f.sizes, e.Name)
			}
		}
	}
	slices.SortFunc(f.logs, func(a, b ring.Entry) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(f.snapshots)
	return f, nil
}

// loadSegments makes a segment for each .log file; what is in them is not looked at but for aborted transactions.
func (l *Log) loadSegments(t *ring.Task, f *found) error {
	for i, e := range f.logs {
		base, _, _ := parseName(e.Name)
		if e.Size > maxRelative {
			return fmt.Errorf("%s: %w: %d bytes are more than a segment may have", path.Join(l.dir, e.Name), ErrMalformed, e.Size)
		}
		s := l.newSegment(base)
		s.size, s.written, s.closed, s.synced, s.maxKnown = e.Size, e.Size, true, true, false
		s.endKnown = e.Size == 0
		s.modMilli = e.ModTime.UnixMilli()
		if i > 0 {
			l.segs[i-1].next = base
		}
		s.index.adopt(f.sizes, fileName(base, indexSuffix))
		s.times.adopt(f.sizes, fileName(base, timeSuffix))
		if f.sizes[fileName(base, timeSuffix)]%timeEntry != 0 {
			s.times.set(nil) // cut off: its last entry, which is to be the segment's largest time, is not
		}
		if _, ok := f.sizes[fileName(base, txnSuffix)]; ok {
			b, err := t.ReadFile(s.path(txnSuffix), indexFileMax)
			if err == nil {
				s.txns = b
				err = s.txns.check(base)
			}
			if err != nil && !unreadable(err) {
				return err
			} else if err != nil {
				l.warn("a transaction index is wrong; the segment will be read", "segment", base, "cause", err)
				s.txns, s.txnDirty = nil, true
			}
		}
		l.segs = append(l.segs, s)
	}
	if n := len(l.segs); n > 0 {
		l.segs[n-1].closed, l.segs[n-1].synced = false, false
	}
	return nil
}

// adopt takes the entries of an existing file as they are.
func (x *indexFile) adopt(sizes map[string]int64, name string) {
	size, ok := sizes[name]
	x.first = int(size / int64(x.width))
	x.disk, x.saved, x.absent = x.first, ok && size%int64(x.width) == 0, !ok
}

func (l *Log) createFirst(t *ring.Task, base Offset) error {
	s := l.newSegment(base)
	s.create, s.fresh = true, true
	l.segs = append(l.segs, s)
	l.namesDirty, l.parentDirty = true, true
	return s.open(t)
}

// removeAll deletes every segment that is there, at start only.
func (l *Log) removeAll(t *ring.Task) error { return l.removeFrom(t, 0) }

// removeFrom deletes the segments from number i on.
func (l *Log) removeFrom(t *ring.Task, i int) error {
	for _, s := range l.segs[i:] {
		s.gone = true
		s.close()
		for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix} {
			if err := t.Remove(s.path(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	l.segs = slices.Delete(l.segs, i, len(l.segs))
	return t.SyncDir(l.dir) // or a crash could bring them back behind what is appended from now on
}
