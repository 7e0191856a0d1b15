package broker

import (
	"time"

	"kring/ring"
	"kring/segment"
)

// upkeep is what a broker does by the clock: retention, checkpoints, flushes.
type upkeep struct {
	timers []*ring.Timer
	busy   int // tasks of loop 0 under way
	idle   func()
	closed bool
}

// quietStep is how long the stop waits before it looks again.
const quietStep = 2 * time.Millisecond

// begin starts the clocks.
func (u *upkeep) begin(b *Broker) {
	u.every(b, b.static.RetentionCheckInterval, func(t *ring.Task) { b.retain(t, false) })
	u.every(b, b.static.ProducerCheckInterval, func(t *ring.Task) { b.expireProducers(t) })
	u.every(b, b.static.Groups.CheckInterval, func(t *ring.Task) { b.expireGroups(t) })
	u.every(b, b.static.RecoveryPointInterval, func(t *ring.Task) {
		b.checkpoint(t, recoveryPoints)
		for _, d := range b.dirs {
			b.lookAtDir(t, d)
		}
	})
	u.every(b, b.static.LogStartInterval, func(t *ring.Task) { b.checkpoint(t, logStarts) })
	u.every(b, b.static.HighWatermarkInterval, func(t *ring.Task) { b.checkpoint(t, highWatermarks) })
}

// every runs fn as a task of loop 0, again after each interval; never twice at once.
func (u *upkeep) every(b *Broker, interval time.Duration, fn func(*ring.Task)) {
	if interval <= 0 {
		return
	}
	timer := &ring.Timer{}
	timer.Fire = func(*ring.Timer) {
		u.busy++
		ring.Go(b.loop, func(t *ring.Task) {
			fn(t)
			if u.left(b); !u.closed {
				b.loop.After(interval, timer)
			}
		})
	}
	u.timers = append(u.timers, timer)
	b.loop.After(interval, timer)
}

// left is called at the end of each task that busy counts.
func (u *upkeep) left(b *Broker) {
	if u.busy--; u.closed && u.busy == 0 && u.idle != nil {
		post(b.loop, u.idle)
	}
}

// end stops the clocks and waits for what they have begun.
func (u *upkeep) end(t *ring.Task, b *Broker) {
	u.closed = true
	for _, timer := range u.timers {
		b.loop.Cancel(timer)
	}
	if u.busy > 0 {
		t.Suspend(func(wake func()) { u.idle = wake })
	}
}

// retain lets logs delete what their settings say. Those that are compacted are the cleaner's to delete from, where there is one; if
// there is none nothing of theirs is deleted, as in Kafka.
func (b *Broker) retain(t *ring.Task, compacted bool) {
	b.each(t, func(s *shard, done func()) {
		ring.Go(s.loop, func(t *ring.Task) {
			for _, r := range s.replicas() {
				if r.gone || r.part == nil || r.log.Failed() != nil || compacted && (!r.log.Config().Compact || r.log.Cleaning()) {
					continue
				}
				upTo := segment.Offset(r.part.HighWatermark())
				if !compacted && r.log.Config().Compact {
					upTo = -1 // it gives memory back
				}
				n, err := r.log.Retain(t, s.loop.UnixMilli(), upTo)
				if err != nil {
					s.b.log.Error("retention failed", "topic", r.Topic, "partition", r.Index, "error", err)
				} else if n > 0 {
					s.b.log.Info("segments deleted", "topic", r.Topic, "partition", r.Index, "segments", n, "log.start", r.log.Start())
				}
			}
			done()
		})
	})
}

// expireProducers lets logs forget producers that have been silent for long.
func (b *Broker) expireProducers(t *ring.Task) {
	b.each(t, func(s *shard, done func()) {
		for r := s.first; r != nil; r = r.next {
			r.log.ExpireProducers(s.loop.UnixMilli())
		}
		done()
	})
}

// kind is one of the checkpoint files.
type kind uint8

const (
	recoveryPoints kind = iota
	logStarts
	highWatermarks
	cleanedOffsets
	kinds
)

// checkpoint gathers offsets from all loops and writes one file in each log dir.
func (b *Broker) checkpoint(t *ring.Task, what kind) {
	if len(b.shards) == 0 {
		return
	}
	b.lookAtStore()
	parts := make([]map[*dir][]segment.Checkpoint, len(b.shards))
	b.each(t, func(s *shard, done func()) {
		parts[s.id] = s.offsets(what)
		done()
	})
	for _, d := range b.dirs {
		if d.failed != nil {
			continue
		}
		var all []segment.Checkpoint
		for _, p := range parts {
			all = append(all, p[d]...)
		}
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

// offsets is this shard's part of a checkpoint, by log dir.
func (s *shard) offsets(what kind) map[*dir][]segment.Checkpoint {
	out := map[*dir][]segment.Checkpoint{}
	for r := s.first; r != nil; r = r.next {
		c := segment.Checkpoint{Partition: r.Partition}
		switch what {
		case recoveryPoints:
			c.Offset = r.log.RecoveryPoint()
		case logStarts:
			var ahead bool
			if c.Offset, ahead = r.log.StartCheckpoint(); !ahead {
				continue // that is where its first segment begins
			}
		case highWatermarks:
			if r.part == nil {
				continue
			}
			c.Offset = segment.Offset(r.part.HighWatermark())
		case cleanedOffsets:
			var cleaned bool
			if c.Offset, cleaned = r.log.Cleaned(); !cleaned {
				continue
			}
		}
		out[r.dir] = append(out[r.dir], c)
	}
	return out
}
