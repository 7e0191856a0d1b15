package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"kring/ring"
	"kring/segment"
)

const (
	// drainFirst is how long a stop waits for requests before it lets those go that wait for data.
	drainFirst = 200 * time.Millisecond
	// drainMost is how long it waits for peers to read their answers.
	drainMost = 5 * time.Second
)

// drain ends the connections: what is under way is answered, nothing more is taken. A request waits on one loop for partitions of
// others: those are closed only when every loop has had its time.
func (b *Broker) drain(t *ring.Task) {
	b.each(t, func(s *shard, done func()) {
		ring.Go(s.loop, func(t *ring.Task) {
			s.server.Stop()
			s.await(t, drainFirst)
			done()
		})
	})
	b.each(t, func(s *shard, done func()) {
		ring.Go(s.loop, func(t *ring.Task) {
			for g := range s.ctx.GroupShards() {
				g.Drop()
			}
			for r := s.first; r != nil; r = r.next {
				if r.part != nil {
					r.part.Close()
				}
			}
			s.await(t, drainMost)
			s.server.Abort()
			s.await(t, drainMost)
			done()
		})
	})
}

// await waits until the server holds nothing, at most for limit.
func (s *shard) await(t *ring.Task, limit time.Duration) {
	for end := s.loop.Now() + limit; s.server.Count()+s.server.Busy() > 0 && s.loop.Now() < end; {
		t.Sleep(quietStep)
	}
}

const closing = "closing logs"

// closeLogs closes every log and writes the checkpoints.
func (b *Broker) closeLogs(t *ring.Task) {
	closed, total := 0, len(b.placed)
	b.tell(closing, 0, total)
	b.each(t, func(s *shard, done func()) {
		all := s.replicas()
		s.tasks(len(all), func(t *ring.Task, i int) {
			r := all[i]
			r.quiet(t)
			if err := r.log.Close(t); err != nil {
				post(b.loop, func() { r.dir.spoiled = true })
				level := slog.LevelError
				if errors.Is(err, segment.ErrOffline) {
					level = slog.LevelDebug // that was said when it happened
				}
				b.log.Log(context.Background(), level, "log did not close", "topic", r.Topic, "partition", r.Index, "error", err)
			}
			post(b.loop, func() {
				closed++
				b.tell(closing, closed, total)
			})
		}, done)
	})
	b.checkpoint(t, recoveryPoints)
	b.checkpoint(t, logStarts)
	if b.recovered {
		b.checkpoint(t, highWatermarks)
	}
}

// quiet ends the replica and waits until its log has answered all appends. Others may stop it meanwhile, too.
func (r *replica) quiet(t *ring.Task) {
	part := r.part
	if part == nil {
		return
	}
	part.Close()
	for !part.Idle() {
		t.Sleep(quietStep)
	}
}
