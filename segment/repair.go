package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"kring/ring"
)

// Repaired is what a repair has done.
type Repaired struct {
	Steps []string // in words; in the infinitive where nothing was done yet
	Files int      // kept, with names that end in .damaged
	Bytes int64    // in them
}

// Add makes r the sum of both.
func (r *Repaired) Add(o Repaired) {
	r.Steps, r.Files, r.Bytes = append(r.Steps, o.Steps...), r.Files+o.Files, r.Bytes+o.Bytes
}

func (r *Repaired) step(format string, args ...any) {
	r.Steps = append(r.Steps, fmt.Sprintf(format, args...))
}

// Plan says in words what Repair would do.
func (h *Health) Plan(rebuild bool) (steps []string) {
	for _, d := range h.damaged {
		for _, x := range d.holes {
			if x.zero {
				steps = append(steps, fmt.Sprintf("take out bytes %d to %d of %s, which are zeros", x.from, x.to-1, fileName(d.base, logSuffix)))
				continue
			}
			steps = append(steps, fmt.Sprintf("copy bytes %d to %d of %s to %s, and take them out",
				x.from, x.to-1, fileName(d.base, logSuffix), asideName(d.base, x.from, 0)))
		}
	}
	switch {
	case rebuild:
		steps = append(steps, "make all indexes, leader epochs and producer snapshots anew from the batches")
	case h.Rebuild >= 0:
		steps = append(steps, fmt.Sprintf("make indexes and producer snapshots anew from the batches, from %s on",
			fileName(h.Rebuild, logSuffix)))
	}
	if h.epochs && !rebuild {
		steps = append(steps, "collect the leader epochs anew from the batches")
	}
	return steps
}

// Repair mends a partition's log that nobody has open, as h says: what is no batch is set aside and taken out, and all that follows
// from the batches is made anew where it was wrong, or everywhere if all is set. Batches are not changed. o is that of its log dir
// (Dir.Options); Config need not be the topic's.
func Repair(t *ring.Task, o Options, h *Health, all bool) (done Repaired, err error) {
	l := newLog(t.Loop(), o)
	for _, d := range h.damaged {
		if err := l.takeOut(t, d, &done); err != nil {
			return done, err
		}
	}
	return done, remake(t, o, h, all, &done)
}

// remake makes what follows from the batches anew, where h says so or everywhere.
func remake(t *ring.Task, o Options, h *Health, all bool, done *Repaired) error {
	o.Config.Compact = true // offsets may lack now
	o.Config.SegmentMs, o.Config.RetentionMs = 1<<62, -1
	from := h.Rebuild
	if all {
		from = 0
		if err := t.Remove(o.Dir + "/" + epochsFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	o.recollect = h.epochs
	if from >= 0 {
		o.rebuild = &from
	} else if !o.recollect {
		return nil
	}
	opened, err := Open(t, o)
	if err != nil {
		return err
	}
	if err := opened.Close(t); err != nil {
		return err
	}
	switch {
	case all:
		done.step("made all indexes, leader epochs and producer snapshots anew from the batches")
	case h.Rebuild >= 0:
		done.step("made indexes and producer snapshots anew from the batches, from %s on", fileName(h.Rebuild, logSuffix))
	}
	if h.epochs && !all {
		done.step("collected the leader epochs anew from the batches")
	}
	return nil
}

// RepairCheckpoints puts an empty file in the place of each checkpoint file of a log dir that cannot be read, as a start does, and keeps it
// under another name. Nobody may use the log dir. It says what it did, or, if dry is set, would do.
func RepairCheckpoints(t *ring.Task, dir string, dry bool) (done Repaired, err error) {
	entries, err := t.List(dir)
	if err != nil {
		return done, err
	}
	for _, name := range checkpointFiles {
		b, err := t.ReadFile(dir+"/"+name, checkpointMax)
		if err == nil {
			_, err = decodeCheckpoints(b)
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil {
			continue
		} else if !unreadable(err) {
			return done, err
		}
		aside := name + damagedSuffix
		for n := 1; slices.ContainsFunc(entries, func(e ring.Entry) bool { return e.Name == aside }); n++ { // of an earlier repair
			aside = fmt.Sprintf("%s.%d%s", name, n, damagedSuffix)
		}
		if dry {
			done.step("rename %s to %s, and put an empty one in its place", name, aside)
			continue
		}
		if err := t.Rename(dir+"/"+name, dir+"/"+aside); err != nil {
			return done, err
		}
		if err := t.WriteFile(dir, name, encodeCheckpoints(nil)); err != nil {
			return done, err
		}
		done.step("renamed %s to %s, and put an empty one in its place", name, aside)
		done.Files++
		if i := slices.IndexFunc(entries, func(e ring.Entry) bool { return e.Name == name }); i >= 0 {
			done.Bytes += entries[i].Size
		}
	}
	return done, nil
}

// takeOut sets the holes of a segment aside and writes its batches anew without them.
func (l *Log) takeOut(t *ring.Task, d damagedSegment, done *Repaired) error {
	s := l.newSegment(d.base)
	s.size, s.written = d.size, d.size
	if err := s.open(t); err != nil {
		return err
	}
	s.pin()
	defer s.close()
	defer s.unpin()
	if now, _, err := t.Size(s.file); err != nil || now != d.size {
		return fmt.Errorf("%s has changed since it was verified (%d bytes, not %d): %w",
			s.path(logSuffix), now, d.size, errors.Join(err, ErrMalformed))
	}
	kept := [][2]int64{}
	from := int64(0)
	var steps Repaired // told of when they are durable
	for _, x := range d.holes {
		if !x.zero {
			name, err := l.setAside(t, s, x.from, x.to)
			if err != nil {
				return err
			}
			done.Files, done.Bytes = done.Files+1, done.Bytes+x.to-x.from
			steps.step("copied bytes %d to %d of %s to %s, and took them out", x.from, x.to-1, fileName(d.base, logSuffix), path.Base(name))
		} else {
			steps.step("took out bytes %d to %d of %s, which were zeros", x.from, x.to-1, fileName(d.base, logSuffix))
		}
		if x.from > from {
			kept = append(kept, [2]int64{from, x.from})
		}
		from = x.to
	}
	if from < d.size {
		kept = append(kept, [2]int64{from, d.size})
	}
	tmp := s.path(logSuffix) + tmpSuffix
	f, err := t.Open(tmp, ring.Write|ring.Create|ring.Cut)
	if err != nil {
		return err
	}
	defer f.Close()
	at := int64(0)
	for _, r := range kept {
		if err := l.copyRange(t, s.file, f, r[0], r[1], at); err != nil {
			return err
		}
		at += r[1] - r[0]
	}
	if err := t.Sync(f); err != nil {
		return err
	}
	if err := t.Rename(tmp, s.path(logSuffix)); err != nil {
		return err
	}
	if err := t.SyncDir(l.dir); err != nil {
		return err
	}
	done.Add(steps)
	return nil
}

// copyRange copies the bytes from one position up to another.
func (l *Log) copyRange(t *ring.Task, from, to ring.File, pos, end, at int64) error {
	buf := l.loop.Alloc(scanLarge)
	defer buf.Release()
	for pos < end {
		n, err := t.Read(from, buf.B[:min(scanLarge, end-pos)], pos)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: it became shorter", ErrMalformed)
		}
		if err == nil {
			err = t.Write(to, buf.B[:n], at)
		}
		if err != nil {
			return err
		}
		pos, at = pos+int64(n), at+int64(n)
	}
	return nil
}
