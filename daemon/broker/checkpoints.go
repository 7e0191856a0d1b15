package broker

import (
	"slices"

	"kring/ring"
	"kring/segment"
)

// Checkpoint files are gathered and written where something has changed: a broker may have ten thousand quiet partitions. A log tells its
// shard that it may have changed (touch), the shard looks when a file is due (changes), and loop 0 keeps what stands in the files.

// kind is one of the checkpoint files.
type kind uint8

const (
	recoveryPoints kind = iota
	logStarts
	highWatermarks
	cleanedOffsets
	kinds
)

// line is what the checkpoint files of a log dir say of one log. It belongs to loop 0; its replica only passes it back.
type line struct {
	segment.Partition
	dir     *dir
	offsets [kinds]segment.Offset
	listed  [kinds]bool // it stands in that file
	known   bool        // the dir has it
	gone    bool        // the log was removed
}

// lines are those of a log dir.
type lines struct {
	all    []*line
	struck bool        // some of them are gone
	stale  [kinds]bool // the file lags behind
}

// change is an offset on its way to loop 0.
type change struct {
	*line
	offset segment.Offset
	listed bool
}

// touch notes that what checkpoints say of a replica may have changed.
func (s *shard) touch(r *replica) {
	if r.touched == s.noted || r.gone {
		return
	}
	for what := range kinds {
		if bit := uint8(1) << what; s.noted&^r.touched&bit != 0 {
			s.touched[what] = append(s.touched[what], r)
		}
	}
	r.touched = s.noted
}

// changes takes what may have changed since the last call.
func (s *shard) changes(what kind) []change {
	touched := s.touched[what]
	s.touched[what] = nil
	all := make([]change, 0, len(touched))
	for _, r := range touched {
		if r.touched &^= 1 << what; r.gone {
			continue
		}
		c := change{line: r.line}
		c.offset, c.listed = r.checkpoint(what)
		all = append(all, c)
	}
	return all
}

// checkpoint is what a file is to say of r; false if it is to say nothing.
func (r *replica) checkpoint(what kind) (o segment.Offset, listed bool) {
	switch what {
	case recoveryPoints:
		return r.log.RecoveryPoint(), true
	case logStarts:
		return r.log.StartCheckpoint() // else it is where its first segment begins
	case highWatermarks:
		if r.part != nil {
			return segment.Offset(r.part.HighWatermark()), true
		}
	case cleanedOffsets:
		return r.log.Cleaned()
	}
	return 0, false
}

// note enters changes.
func (b *Broker) note(what kind, all []change) {
	for _, c := range all {
		if c.gone {
			continue
		}
		if !c.known {
			c.known = true
			c.dir.lines.all = append(c.dir.lines.all, c.line)
		}
		if !c.listed {
			c.offset = 0
		}
		if c.line.listed[what] != c.listed || c.offsets[what] != c.offset {
			c.line.listed[what], c.offsets[what] = c.listed, c.offset
			c.dir.lines.stale[what] = true
		}
	}
}

// strike takes out what the files say of a log that is removed.
func (b *Broker) strike(l *line) {
	l.gone = true
	for what, listed := range l.listed {
		l.dir.lines.stale[what] = l.dir.lines.stale[what] || listed
	}
	l.dir.lines.struck = true
}

// of is the content of a file.
func (x *lines) of(what kind) []segment.Checkpoint {
	if x.struck {
		x.struck = false
		x.all = slices.DeleteFunc(x.all, func(l *line) bool { return l.gone })
	}
	all := make([]segment.Checkpoint, 0, len(x.all))
	for _, l := range x.all {
		if l.listed[what] {
			all = append(all, segment.Checkpoint{Partition: l.Partition, Offset: l.offsets[what]})
		}
	}
	return all
}

// checkpoint gathers from all loops what has changed and writes one file in each log dir in which it differs from what was written last.
func (b *Broker) checkpoint(t *ring.Task, what kind) {
	if len(b.shards) == 0 {
		return
	}
	b.lookAtStore()
	parts := make([][]change, len(b.shards))
	b.each(t, func(s *shard, done func()) {
		parts[s.id] = s.changes(what)
		done()
	})
	for _, p := range parts {
		b.note(what, p)
	}
	for _, d := range b.dirs {
		if d.failed != nil || !d.lines.stale[what] {
			continue
		}
		d.lines.stale[what] = false
		all := d.lines.of(what)
		var err error
		switch what {
		case recoveryPoints:
			err = d.WriteRecoveryPoints(t, all)
		case logStarts:
			err = d.WriteLogStarts(t, all)
		case highWatermarks:
			err = d.WriteHighWatermarks(t, all)
		case cleanedOffsets:
			err = d.WriteCleaned(t, all)
		}
		d.lines.stale[what] = d.lines.stale[what] || err != nil
		b.checkpointed(d, what, err)
	}
}

// checkpointed hears of a checkpoint. A full disk is told of once and passes; a disk that fails takes its log dir along. What a clean
// stop could not write must not be missed behind a marker that says it was clean.
func (b *Broker) checkpointed(d *dir, what kind, err error) {
	switch {
	case err == nil && d.unsaid[what]:
		d.unsaid[what] = false
		b.log.Info("checkpoints are written again", "dir", d.Path())
	case err != nil && b.stopping:
		d.spoiled = true
		b.log.Error("checkpoint failed", "dir", d.Path(), "error", err)
	case err != nil && (ring.NoSpace(err) || ring.NoDescriptors(err)):
		if !d.unsaid[what] {
			d.unsaid[what] = true
			b.log.Warn("checkpoint cannot be written; the last one stands until it can", "dir", d.Path(), "error", err)
		}
	case err != nil:
		b.dirFailed(d, err)
	}
}

// lookAtStore warns once of what is wrong with the store, and tells when that is over.
func (b *Broker) lookAtStore() {
	if b.store.Trouble == nil {
		return
	}
	now := b.store.Trouble()
	switch {
	case now != nil && (b.trouble == nil || b.trouble.Error() != now.Error()):
		b.log.Error("the store works on, but not as it should", "error", now)
	case now == nil && b.trouble != nil:
		b.log.Info("the store is well again")
	}
	b.trouble = now
}
