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
			all := s.cleanable
			if !compacted {
				all = s.replicas
			}
			for _, r := range all() {
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
