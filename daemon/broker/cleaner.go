package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"kring/daemon/api"
	"kring/daemon/config"
	"kring/ring"
	"kring/segment"
)

// cleaner chooses the logs that are cleaned, as Kafka's does: the dirtiest first, log.cleaner.threads at a time, and when there is
// nothing to do it looks again after log.cleaner.backoff.ms. It belongs to loop 0; the cleaning is done on the log's loop and
// by helpers. A log that cannot be cleaned is set aside until the next start, and the others go on.
type cleaner struct {
	b       *Broker
	timer   ring.Timer
	due     time.Duration // of the timer
	armed   bool
	running []*run
	aside   map[segment.Partition]error
	tight   map[segment.Partition]time.Duration // there was no room for them; not before then
	scarce  bool                                // that was said, and no log could be cleaned since
	passing bool                                // a pass is under way
	again   bool                                // another one is wanted after it
	unsaved bool                                // the checkpoint files lag behind
	deleted time.Duration
	looked  time.Duration // when the logs were looked at; 0: never
	closed  bool
	idle    func()
	figures CleanerFigures
}

// run is a cleaning under way.
type run struct {
	at       segment.Partition
	s        *shard
	log      *segment.Log // the shard's
	throttle *segment.Throttle
	began    time.Duration
}

// CleanerFigures is what the cleaner has done since the start.
type CleanerFigures struct {
	// Running is how many logs are being cleaned, Aside how many cannot be cleaned.
	Running, Aside int
	// Cleanings that ended well, and what they have read (twice, where it is mapped and copied) and written.
	Cleanings, ReadBytes, WrittenBytes uint64
	// DirtyRatio is that of the dirtiest log at the last look, 0 to 1; DirtyBytes what could be cleaned then in all, and AsideBytes
	// what could be of those that cannot be cleaned.
	DirtyRatio             float64
	DirtyBytes, AsideBytes int64
	// Overdue is by how much max.compaction.lag.ms was exceeded at the last look, by the log where it was most.
	Overdue time.Duration
	// SinceLook is how long ago the cleaner has looked at the logs, -1 if it never did.
	SinceLook time.Duration
	// Longest and LongestKeys are of all cleanings; Last, LastFull and LastKept of the last one: how long it took, how full its
	// memory for keys was, and which part of what it copied it kept, 0 to 1.
	Longest            time.Duration
	LongestKeys        int
	Last               time.Duration
	LastFull, LastKept float64
}

const (
	// cleanSoon is how long after a log has called for it the cleaner looks.
	cleanSoon = 250 * time.Millisecond
	// cleanTight is how long a log waits for which the disk had no room: others may need less.
	cleanTight = time.Minute
	// cleanDeletes is how often compacted logs delete what retention lets them, at most.
	cleanDeletes = time.Second
	// cleanPiece is how many logs are looked at before the loop does something else.
	cleanPiece = 64
)

// begin starts the clock.
func (c *cleaner) begin(b *Broker) {
	c.b, c.aside, c.tight = b, map[segment.Partition]error{}, map[segment.Partition]time.Duration{}
	c.timer.Fire = func(*ring.Timer) {
		c.armed = false
		c.pass()
	}
	if b.static.CleanerEnabled {
		c.arm(0)
	}
}

// end stops the clock and the cleanings.
func (c *cleaner) end(t *ring.Task) {
	c.closed = true
	c.b.loop.Cancel(&c.timer)
	for _, r := range c.running {
		post(r.s.loop, r.log.StopCleaning)
	}
	if c.passing || len(c.running) > 0 {
		t.Suspend(func(wake func()) { c.idle = wake })
	}
}

// ended lets end go on.
func (c *cleaner) ended() {
	if c.closed && c.idle != nil && !c.passing && len(c.running) == 0 {
		post(c.b.loop, c.idle)
		c.idle = nil
	}
}

// arm lets the next pass come after d, or earlier if that was wanted before.
func (c *cleaner) arm(d time.Duration) {
	due := c.b.loop.Now() + d
	if c.closed || c.armed && c.due <= due {
		return
	}
	c.armed, c.due = true, due
	c.b.loop.After(d, &c.timer)
}

// soon is asked for by a log that should not wait for the next look.
func (c *cleaner) soon() {
	if c.b != nil && c.b.static.CleanerEnabled && !c.passing {
		c.arm(cleanSoon)
	}
}

// loaded is told that a loop has loaded its groups, for which its logs were passed over.
func (c *cleaner) loaded() {
	c.again = c.again || c.passing
	c.soon()
}

// forgot is told that partitions were removed: they must leave the checkpoints, or another one of the name would inherit them.
func (c *cleaner) forgot(p segment.Partition) {
	if c.b == nil || !c.b.static.CleanerEnabled {
		return
	}
	delete(c.aside, p)
	delete(c.tight, p)
	c.unsaved = true
	c.soon()
}

// pass starts as many cleanings as may be, and does what else is due.
func (c *cleaner) pass() {
	if c.passing || c.closed {
		c.again = true
		return
	}
	c.passing, c.again = true, false
	ring.Go(c.b.loop, func(t *ring.Task) {
		for !c.closed && len(c.running) < c.b.node.Config().CleanerThreads && c.start(t) {
		}
		if c.unsaved && !c.closed {
			c.unsaved = false
			c.b.checkpoint(t, cleanedOffsets)
		}
		if now := c.b.loop.Now(); !c.closed && (c.deleted == 0 || now-c.deleted >= cleanDeletes) {
			c.deleted = now
			c.b.retain(t, true)
		}
		c.passing = false
		if c.again {
			c.arm(0)
		}
		c.arm(max(c.b.node.Config().CleanerBackoff, time.Millisecond))
		c.ended()
	})
}

// reconfigured puts settings in force: how many logs are cleaned, how fast, and how often the cleaner looks.
func (c *cleaner) reconfigured(conf *config.Config) {
	if c.share(conf); c.b != nil && c.b.static.CleanerEnabled {
		c.arm(0)
	}
}

// dirty is a log that could be cleaned.
type dirty struct {
	r     *replica
	s     *shard
	ratio float64
}

// found is what a shard sees of its logs.
type found struct {
	best         dirty   // the log to be cleaned first; its r is nil if none is dirty enough
	ratio        float64 // the largest
	bytes, aside int64   // that are dirty, of all logs and of those set aside
	overdue      int64   // ms, the most
}

// start looks at all logs and begins with the dirtiest; false if none is dirty enough.
func (c *cleaner) start(t *ring.Task) bool {
	all := make([]found, len(c.b.shards))
	aside := map[segment.Partition]bool{}
	busy := map[segment.Partition]bool{}
	for _, r := range c.running {
		busy[r.at] = true
	}
	for p := range c.aside {
		aside[p] = true
	}
	for p, until := range c.tight {
		if busy[p] = c.b.loop.Now() < until; !busy[p] {
			delete(c.tight, p)
		}
	}
	c.looked = c.b.loop.Now()
	c.b.each(t, func(s *shard, done func()) {
		ring.Go(s.loop, func(t *ring.Task) {
			all[s.id] = s.dirtiest(t, busy, aside)
			done()
		})
	})
	f := &c.figures
	f.DirtyRatio, f.DirtyBytes, f.AsideBytes, f.Overdue = 0, 0, 0, 0
	best := &dirty{}
	for i := range all {
		f.DirtyRatio = max(f.DirtyRatio, all[i].ratio)
		f.DirtyBytes, f.AsideBytes = f.DirtyBytes+all[i].bytes, f.AsideBytes+all[i].aside
		f.Overdue = max(f.Overdue, time.Duration(all[i].overdue)*time.Millisecond)
		if d := &all[i].best; d.r != nil && (best.r == nil || d.ratio > best.ratio) {
			best = d
		}
	}
	if best.r == nil || c.closed {
		return false
	}
	c.run(best)
	return true
}

// dirtiest looks at the shard's logs but those that are busy.
func (s *shard) dirtiest(t *ring.Task, busy, aside map[segment.Partition]bool) (f found) {
	if s.loads.busy {
		return f // groups are waited for; cleaning is not
	}
	for i, r := range s.cleanable() {
		if i%cleanPiece == cleanPiece-1 {
			t.Sleep(0)
		}
		if r.gone || r.part == nil || busy[r.Partition] || r.log.Failed() != nil || r.log.Cleaning() {
			continue
		}
		d, err := r.log.Dirt(t, s.loop.UnixMilli(), segment.Offset(r.part.LastStable()))
		if err != nil || d.Dirty == 0 || r.gone || r.part == nil {
			continue
		}
		if aside[r.Partition] {
			f.aside += d.Dirty
			continue
		}
		ratio := d.Ratio()
		f.ratio, f.bytes, f.overdue = max(f.ratio, ratio), f.bytes+d.Dirty, max(f.overdue, d.Overdue)
		if (ratio > r.log.Config().MinDirtyRatio || d.Overdue > 0) && (f.best.r == nil || ratio > f.best.ratio) {
			f.best = dirty{r, s, ratio}
		}
	}
	return f
}

// run begins to clean a log.
func (c *cleaner) run(d *dirty) {
	conf := c.b.node.Config()
	r := &run{at: d.r.Partition, s: d.s, log: d.r.log, throttle: &segment.Throttle{}, began: c.b.loop.Now()}
	c.running = append(c.running, r)
	c.share(conf)
	threads := max(conf.CleanerThreads, 1)
	o := segment.CleanOptions{MapBytes: conf.CleanerDedupeBytes / int64(threads), MapLoad: conf.CleanerLoadFactor,
		BufferBytes: conf.CleanerBufferBytes / threads / 2, Throttle: r.throttle}
	replica := d.r
	post(r.s.loop, func() {
		ring.Go(r.s.loop, func(t *ring.Task) {
			stats, err := r.s.clean(t, replica, o)
			failed := replica.log.Failed() != nil
			post(c.b.loop, func() { c.finished(r, stats, err, failed) })
		})
	})
}

// clean is the shard's part of it.
func (s *shard) clean(t *ring.Task, r *replica, o segment.CleanOptions) (segment.CleanStats, error) {
	if r.gone || r.part == nil || r.log.Cleaning() {
		return segment.CleanStats{}, segment.ErrAbandoned
	}
	o.Now, o.Stable = s.loop.UnixMilli(), segment.Offset(r.part.LastStable())
	return r.log.Clean(t, o)
}

// share divides what the cleaner may read and write in a second among those that run.
func (c *cleaner) share(conf *config.Config) {
	rate := conf.CleanerBytesPerSecond / float64(max(len(c.running), 1))
	for _, r := range c.running {
		post(r.s.loop, func() { r.throttle.Rate = rate })
	}
}

// finished is told that a cleaning has ended.
func (c *cleaner) finished(r *run, stats segment.CleanStats, err error, failed bool) {
	for i := range c.running {
		if c.running[i] == r {
			c.running = append(c.running[:i], c.running[i+1:]...)
			break
		}
	}
	conf := c.b.node.Config()
	c.share(conf)
	took := c.b.loop.Now() - r.began
	switch log := c.b.log.With("topic", r.at.Topic, "partition", r.at.Index); {
	case err == nil:
		c.scarce = false
		c.count(stats, took)
		c.unsaved = true
		level := slog.LevelInfo
		if r.at.Topic == api.OffsetsTopic {
			level = slog.LevelDebug // it is cleaned all the time
		}
		log.Log(context.Background(), level, "log cleaned", "from", stats.From, "to", stats.To,
			"read", stats.ReadBytes, "kept", stats.WrittenBytes,
			"records", stats.ReadRecords, "records.kept", stats.KeptRecords, "keys", stats.Keys, "segments", stats.Segments, "took", took)
		if stats.InvalidRecords > 0 {
			log.Warn("records without a key were dropped from a compacted topic", "records", stats.InvalidRecords)
		}
	case errors.Is(err, segment.ErrAbandoned), errors.Is(err, segment.ErrClosed), failed:
	case ring.NoSpace(err), errors.Is(err, segment.ErrNoSpace):
		c.tight[r.at] = c.b.loop.Now() + cleanTight
		level := slog.LevelWarn
		if c.scarce {
			level = slog.LevelDebug
		}
		c.scarce = true
		log.Log(context.Background(), level, "no space to clean a log; it and others are tried again later", "cause", err)
	default:
		c.aside[r.at] = err
		log.Error("log cannot be cleaned and is set aside until the next start; it is served as before", "cause", err)
	}
	if c.closed {
		c.ended()
	} else if err == nil || c.aside[r.at] != nil || c.tight[r.at] != 0 {
		c.pass()
	} else {
		c.arm(conf.CleanerBackoff)
	}
}

func (c *cleaner) count(stats segment.CleanStats, took time.Duration) {
	f := &c.figures
	f.Cleanings++
	f.ReadBytes += uint64(stats.IndexedBytes + stats.ReadBytes)
	f.WrittenBytes += uint64(stats.WrittenBytes)
	f.Last, f.LastFull, f.LastKept = took, stats.Full, float64(stats.WrittenBytes)/float64(max(stats.ReadBytes, 1))
	if took > f.Longest {
		f.Longest, f.LongestKeys = took, stats.Keys
	}
}

// Cleaner tells what the cleaner has done; on loop 0.
func (b *Broker) Cleaner() CleanerFigures {
	f := b.cleaner.figures
	f.Running, f.Aside, f.SinceLook = len(b.cleaner.running), len(b.cleaner.aside), -1
	if b.cleaner.looked > 0 {
		f.SinceLook = b.loop.Now() - b.cleaner.looked
	}
	return f
}
