package segment

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"kring/ring"
)

// seedsOr is how many seeds to try: usual, or SEGMENT_SEEDS for a longer search.
func seedsOr(usual uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("SEGMENT_SEEDS"), 10, 64); err == nil {
		return n
	}
	return usual
}

// crashGarden is a log in which a cleaning has much to do: several groups of several segments, transactions, producers.
func crashGarden(t *testing.T, seed uint64) *garden {
	g := newGarden(t, seed)
	g.keys = 12
	g.o.Config.SegmentBytes = 1000
	g.on(func() { g.l.SetConfig(g.o.Config) })
	for range 16 {
		g.grow(12)
	}
	for id := range int64(3) {
		if len(g.open[id]) > 0 {
			g.end(id, id == 0)
		}
	}
	g.o.Config.SegmentBytes = 3000
	g.on(func() { g.l.SetConfig(g.o.Config) })
	g.grow(3)
	g.do("flush", func(t *ring.Task) {
		_ = g.l.Flush(t)
		g.l.Roll()
		g.l.until(t, func() bool { return g.l.unfinished() == nil && !g.l.finishing })
	})
	return g
}

// A crash or a kill at any step of a cleaning loses no key's last record, doubles nothing, and the next cleaning goes on.
func TestCrashAtEveryStepOfACleaning(t *testing.T) {
	steps := uint64(0)
	for _, power := range []bool{true, false} {
		stride := uint64(3)
		if !power {
			stride = 8
		}
		if os.Getenv("SEGMENT_SEEDS") != "" {
			stride = 1
		}
		for at := uint64(0); ; at += stride {
			g := crashGarden(t, 7)
			done := false
			g.m.Do(g.loop, func() {
				ring.Go(g.loop, func(task *ring.Task) {
					o := g.how()
					o.Stable = g.stable()
					if s, err := g.l.Clean(task, o); err != nil || s.Groups < 2 || s.Segments < 2*s.Groups {
						t.Errorf("%+v %v", s, err)
					}
					done = true
				})
			})
			began := g.w.Steps()
			if err := g.w.RunUntil("a step", 1<<40, func() bool { return done || g.w.Steps() >= began+at }); err != nil {
				t.Fatal(err)
			}
			last := done
			g.afterCrash(t, power, at)
			if last {
				steps = at
				break
			}
		}
		if steps < 30 {
			t.Errorf("%d steps", steps)
		}
	}
	t.Logf("%d steps", steps)
}

// afterCrash ends the process and looks what a new one finds.
func (g *garden) afterCrash(t *testing.T, power bool, at uint64) {
	t.Helper()
	point, end, whole := g.l.RecoveryPoint(), g.l.End(), g.l.active().base
	if power {
		g.m.Crash()
	} else {
		g.m.Kill()
	}
	g.boot()
	g.o.Files, g.o.RecoveryPoint = g.files, point
	g.l = g.rig.open(g.o)
	if g.l.End() != end {
		t.Fatalf("step %d, power %v: ends at %d, was %d", at, power, g.l.End(), end)
	}
	g.verify(0, whole, false)
	for _, name := range g.m.Files(g.o.Dir) {
		if strings.HasSuffix(name, cleanedSuffix) || strings.HasSuffix(name, swapSuffix) || strings.HasSuffix(name, deletedSuffix) {
			t.Fatalf("step %d, power %v: %s is left over", at, power, name)
		}
	}
	for id, seq := range g.seqs {
		if p := g.l.prods.get(id); p == nil || p.lastSeq() != seq-1 || p.txnFirst >= 0 {
			t.Fatalf("step %d, power %v: producer %d is %+v, its next sequence number %d", at, power, id, p, seq)
		}
	}
	g.grow(5)
	s, err := g.clean(g.how())
	if err != nil {
		t.Fatalf("step %d, power %v: %v", at, power, err)
	}
	g.verify(s.To, s.To, false)
}

// While a log is cleaned others append to it and read it from its start, over and over: each reader sees offsets rise and the last
// value of every key that was there when it began, or a newer one. Now and then the machine loses its power.
func TestReadersAndWritersMeetACleaning(t *testing.T) {
	for seed := range seedsOr(6) {
		g := newGarden(t, 1000+seed)
		g.keys = 5 + g.rnd.IntN(60)
		cleaned := Offset(0)
		for range 4 {
			for range 30 {
				g.grow(20)
			}
			cleaned = g.amidst(cleaned, g.rnd.IntN(3) == 0)
		}
		g.verify(cleaned, max(cleaned, g.l.active().base), false)
	}
}

// amidst cleans while readers and a writer are at work; crash ends it with a loss of power. It returns how far the log is clean.
func (g *garden) amidst(cleaned Offset, crash bool) Offset {
	g.tb.Helper()
	g.do("flush", func(t *ring.Task) { _ = g.l.Flush(t) })
	var stats CleanStats
	var err error
	left, whole := 1, g.l.active().base
	g.m.Do(g.loop, func() {
		ring.Go(g.loop, func(task *ring.Task) {
			o := g.how()
			o.Stable, o.BufferBytes = g.stable(), 1<<10
			stats, err = g.l.Clean(task, o)
			left--
		})
	})
	began, stop := g.w.Steps(), 20+uint64(g.rnd.IntN(600))
	for left > 0 {
		if g.rnd.IntN(2) == 0 {
			g.grow(3)
		} else {
			g.verify(0, whole, false)
		}
		if crash && g.w.Steps() > began+stop {
			break
		}
	}
	if crash {
		g.do("flush", func(t *ring.Task) { _ = g.l.Flush(t) })
		point, end := g.l.RecoveryPoint(), g.l.End()
		g.m.Crash()
		g.boot()
		g.o.Files, g.o.Clean, g.o.RecoveryPoint, g.o.Cleaned = g.files, false, point, cleaned
		g.l = g.rig.open(g.o)
		if g.l.End() != end {
			g.tb.Fatalf("seed %d: ends at %d, was %d", g.w.Seed(), g.l.End(), end)
		}
		return cleaned
	}
	if err != nil {
		g.tb.Fatalf("seed %d: %v", g.w.Seed(), err)
	}
	return max(stats.To, cleaned)
}
