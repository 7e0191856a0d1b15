package segment

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kring/ring"
)

// cleanFor begins a cleaning and runs the world for so many steps, or up to its end; then err is the cleaning's.
func (g *garden) cleanFor(t *testing.T, steps uint64) (done *bool, err *error) {
	t.Helper()
	done, err = new(bool), new(error)
	g.m.Do(g.loop, func() {
		ring.Go(g.loop, func(task *ring.Task) {
			o := g.how()
			o.Stable = g.stable()
			_, *err = g.l.Clean(task, o)
			*done = true
		})
	})
	began := g.w.Steps()
	if e := g.w.RunUntil("a step", time.Hour, func() bool { return *done || g.w.Steps() >= began+steps }); e != nil {
		t.Fatal(e)
	}
	return done, err
}

// A topic that is not compacted any more has the gaps of a cleaning that ended early: a kill then loses nothing of it.
func TestAbandonedCleaningThenDeletePolicy(t *testing.T) {
	abandoned := 0
	for at := uint64(0); ; at += 3 {
		g := crashGarden(t, 7)
		done, err := g.cleanFor(t, at)
		if *done {
			break
		}
		g.set(func(c *Config) { c.Compact, c.DeleteRetained = false, true })
		if e := g.w.RunUntil("the cleaning's end", time.Hour, func() bool { return *done }); e != nil {
			t.Fatal(e)
		}
		if errors.Is(*err, ErrAbandoned) {
			abandoned++
		}
		g.o.Cleaned, _ = g.l.Cleaned()
		g.m.Kill()
		g.startAnew(t, "with an abandoned cleaning")
	}
	if abandoned < 10 {
		t.Errorf("%d cleanings were abandoned", abandoned)
	}
}

// Segments that are deleted while they are cleaned end the cleaning, and are nothing that is wrong with the log.
func TestRetentionEndsACleaning(t *testing.T) {
	for at := uint64(0); ; at += 2 {
		g := crashGarden(t, 7)
		done, err := g.cleanFor(t, at)
		last := *done
		g.do("delete", func(t *ring.Task) {
			e := g.l.DeleteTo(g.l.segs[min(3, len(g.l.segs)-1)].base)
			if e == nil {
				_, e = g.l.Retain(t, g.clock, g.l.Written())
			}
			if e != nil {
				g.tb.Error(e)
			}
		})
		if e := g.w.RunUntil("the cleaning's end", time.Hour, func() bool { return *done }); e != nil {
			t.Fatal(e)
		}
		if *err != nil && !errors.Is(*err, ErrAbandoned) {
			t.Fatalf("step %d: %v", at, *err)
		}
		g.verify(0, g.l.active().base, false)
		if last {
			break
		}
	}
}

// What a full disk makes the log take back waits for an exchange of segments, and the next exchange for it.
func TestFullDiskAmidstAnExchange(t *testing.T) {
	met := 0
	for seed := range seedsOr(40) {
		g := crashGarden(t, 7)
		rnd := rand.New(rand.NewPCG(seed, 1))
		done, _ := g.cleanFor(t, 1)
		began := false
		g.m.Do(g.loop, func() {
			ring.Go(g.loop, func(task *ring.Task) {
				g.l.until(task, func() bool { return g.l.swapping || *done })
				g.l.revert(ErrNoSpace)
				began = true
			})
		})
		for !*done || !began || g.l.reverting {
			was, amidst := g.l.reverting, g.l.swapping
			if !g.w.Step() {
				t.Fatal("nothing goes on")
			}
			if was && amidst {
				met++
			}
			if was && amidst && g.l.swapping && !g.l.reverting {
				t.Fatalf("seed %d: the log was taken back while segments were exchanged", seed)
			}
			if rnd.IntN(20) == 0 && !g.l.reverting {
				g.m.Do(g.loop, func() { g.l.revert(ErrNoSpace) })
			}
		}
		g.verify(0, g.l.active().base, false)
	}
	if met == 0 {
		t.Error("no exchange was met")
	}
}

// Where each record is synced before it is acknowledged, a power cut around a roll takes none: the new segment's name is durable, too.
func TestPowerCutAroundARoll(t *testing.T) {
	for seed := range seedsOr(400) {
		r := newRig(t, seed)
		r.m.WriteFile("/data/.lock", nil)
		o := r.options("/data/t-0")
		o.Config.FlushMessages, o.Config.SegmentBytes = 1, 3000
		l := r.open(o)
		rnd := r.w.Rand()
		if seed%2 == 0 {
			r.m.Faults.Slow = 0.1
		}
		acked := Offset(0)
		r.m.Do(r.loop, func() {
			ring.Go(r.loop, func(task *ring.Task) {
				for {
					l.Append(&Append{Data: records(1, epoch, strings.Repeat("v", 100+rnd.IntN(1000))), Done: func(a *Append) {
						if a.Err == nil {
							acked = max(acked, a.Last+1)
						}
					}})
					task.Sleep(time.Duration(rnd.IntN(1000)) * time.Microsecond)
				}
			})
		})
		for range 50 + rnd.IntN(600) {
			r.w.Step()
		}
		r.m.Crash()
		r.m.CalmDown()
		r.boot()
		o.Files, o.RecoveryPoint = r.files, 0
		if l = r.open(o); l.End() < acked {
			t.Fatalf("seed %d: acknowledged up to %d, there up to %d", seed, acked, l.End())
		}
	}
}
