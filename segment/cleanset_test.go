package segment

import (
	"bytes"
	"math"
	"testing"
	"time"

	"kring/ring"
	"kring/wire/batch"
)

// plant appends one batch of one record in a segment of its own.
func (g *garden) plant(ms int64, key, value string) {
	g.tb.Helper()
	b := batch.NewBuilder(batch.None)
	v := []byte(value)
	if value == "" {
		v = nil
	}
	b.Add(ms, []byte(key), v)
	if a := g.append(g.l, b.AppendTo(nil)); a.Err != nil {
		g.tb.Fatal(a.Err)
	}
	g.on(g.l.Roll)
}

func (g *garden) set(change func(*Config)) {
	change(&g.o.Config)
	g.on(func() { g.l.SetConfig(g.o.Config) })
}

func (g *garden) dirt() (d Dirt) {
	g.tb.Helper()
	g.do("dirt", func(t *ring.Task) {
		g.l.Flush(t)
		var err error
		if d, err = g.l.Dirt(t, g.clock, g.stable()); err != nil {
			g.tb.Fatal(err)
		}
	})
	return d
}

// min.compaction.lag.ms keeps the cleaner off the first segment with a younger record and all behind it.
func TestMinCompactionLag(t *testing.T) {
	g := newGarden(t, 5)
	for i := range int64(6) {
		g.plant(epoch+i*1000, "k", "v")
	}
	g.clock = epoch + 5500
	if d := g.dirt(); d.To != 6 {
		t.Errorf("without a lag: %+v", d)
	}
	g.set(func(c *Config) { c.MinLagMs = 2000 }) // 4000 and 5000 are younger
	if d := g.dirt(); d.To != 4 {
		t.Errorf("with a lag of 2 s: %+v", d)
	}
	g.set(func(c *Config) { c.DeleteRetained = false })
	if s, err := g.clean(g.how()); err != nil || s.To != 4 || s.KeptRecords != 1 {
		t.Errorf("%+v %v", s, err)
	}
	g.clock += 10_000
	if s, err := g.clean(g.how()); err != nil || s.To != 6 || s.KeptRecords != 1 {
		t.Errorf("later: %+v %v", s, err)
	}
}

// max.compaction.lag.ms counts from the oldest dirty record; what is clean is old and does not.
func TestMaxCompactionLag(t *testing.T) {
	g := newGarden(t, 6)
	for i := range int64(6) {
		g.plant(epoch+i*1000, "k", "v")
	}
	g.clock = epoch + 5500
	for lag, want := range map[int64]int64{math.MaxInt64: 0, 6000: 0, 5500: 0, 5000: 500, 1: 5499} {
		g.set(func(c *Config) { c.MaxLagMs = lag })
		if d := g.dirt(); d.Overdue != want {
			t.Errorf("lag %d: overdue by %d, want %d", lag, d.Overdue, want)
		}
	}
	if _, err := g.clean(g.how()); err != nil {
		t.Fatal(err)
	}
	g.plant(g.clock, "k", "v")
	if d := g.dirt(); d.Overdue != 0 || d.Dirty == 0 {
		t.Errorf("after a cleaning: %+v", d)
	}
}

// A tombstone stays for delete.retention.ms after the cleaning that has met it first, and goes with the next one.
func TestDeleteRetention(t *testing.T) {
	g := newGarden(t, 7)
	g.set(func(c *Config) { c.DeleteRetentionMs = 10_000 })
	g.plant(epoch, "k", "v")
	g.plant(epoch, "k", "")
	clean := func(kept int) {
		t.Helper()
		g.plant(g.clock, "other", "v") // there is something dirty, and the tombstone is not the last batch
		if _, err := g.clean(g.how()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range g.found(1 << 20) {
			if bytes.Equal(r.key, []byte("k")) {
				n++
			}
		}
		if n != kept {
			t.Errorf("at %d: %d records of the deleted key, want %d", g.clock-epoch, n, kept)
		}
	}
	g.clock = epoch + 50_000
	clean(1)
	g.clock += 9_999
	clean(1)
	g.clock += 2
	clean(0)
}

// The map takes no more than it may, and what does not fit is cleaned the next time; buffers follow their setting, too.
func TestCleanerMemoryIsBounded(t *testing.T) {
	g := newGarden(t, 8)
	g.keys = 5000
	for range 150 {
		g.grow(40)
	}
	for id := range int64(3) {
		if len(g.open[id]) > 0 {
			g.end(id, true)
		}
	}
	g.on(g.l.Roll)
	o := g.how()
	o.MapBytes, o.MapLoad, o.BufferBytes = 32<<10, 0.5, 2<<10
	rounds, last := 0, Offset(0)
	for ; last < g.l.active().base; rounds++ {
		s, err := g.clean(o)
		if err != nil || s.To <= last || s.MapBytes > o.MapBytes || s.Full > 0.52 || s.BufferBytes != 6*int64(o.BufferBytes) {
			t.Fatalf("cleaning %d up to %d: %+v %v", rounds, last, s, err)
		}
		last = s.To
	}
	if rounds < 3 {
		t.Errorf("%d cleanings were enough", rounds)
	}
	g.verify(last, last, false)
}

// A log that is no longer to be compacted is left alone in the middle of it.
func TestChangedPolicyEndsACleaning(t *testing.T) {
	g := newGarden(t, 9)
	for range 100 {
		g.grow(20)
	}
	g.on(g.l.Roll)
	g.do("clean", func(task *ring.Task) {
		g.l.Flush(task)
		o := g.how()
		o.Stable, o.Throttle = g.stable(), &Throttle{Rate: 1000}
		ring.Go(g.loop, func(t *ring.Task) {
			t.Sleep(throttleMost)
			g.o.Config.Compact, g.o.Config.DeleteRetained = false, true
			g.l.SetConfig(g.o.Config)
		})
		if s, err := g.l.Clean(task, o); err != ErrAbandoned {
			t.Errorf("%+v %v", s, err)
		}
	})
}

// The active segment of a log that may end early does so when it is larger than RollDirtyBytes and than what is clean.
func TestEarlyRoll(t *testing.T) {
	g := newGarden(t, 10)
	g.set(func(c *Config) { c.SegmentBytes, c.RollDirtyBytes = 1<<20, 1000 })
	write := func(key string) {
		b := batch.NewBuilder(batch.None)
		b.Add(epoch, []byte(key), bytes.Repeat([]byte("x"), 100))
		if a := g.append(g.l, b.AppendTo(nil)); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	for range 12 {
		write("same")
	}
	if n := g.l.Segments(); n != 2 || g.l.segs[0].size <= 1000 {
		t.Fatalf("%d segments, the first of %d bytes", n, g.l.segs[0].size)
	}
	// Clean is 3 KB now: a segment ends when it is larger than that.
	g.set(func(c *Config) { c.RollDirtyBytes = 1 << 20 })
	for i := range 30 {
		write(string(rune('a' + i)))
	}
	g.on(g.l.Roll)
	if s, err := g.clean(g.how()); err != nil || s.KeptRecords < 30 {
		t.Fatalf("%+v %v", s, err)
	}
	g.set(func(c *Config) { c.RollDirtyBytes = 1000 })
	clean := g.l.cleanBytes()
	first := g.l.active()
	for g.l.active() == first {
		write("more")
	}
	if clean < 4000 || first.size <= clean || first.size > clean+500 {
		t.Errorf("the segment ended with %d bytes; %d are clean", first.size, clean)
	}
}

// A cleaned segment's file has the time of the newest of its originals, as Kafka gives it: what has no timestamp ages by it.
func TestCleanedSegmentKeepsItsTime(t *testing.T) {
	g := newGarden(t, 11)
	for range 3 {
		g.plant(epoch, "k", "v")
	}
	want := g.l.segs[2].modMilli
	g.w.RunFor(time.Hour)
	if _, err := g.clean(g.how()); err != nil {
		t.Fatal(err)
	}
	g.restart(3)
	if s := g.l.segs[0]; s.modMilli != want || g.l.Segments() != 2 {
		t.Errorf("the first of %d segments is of %d, its originals of %d", g.l.Segments(), s.modMilli, want)
	}
}
