package segment

import (
	"fmt"
	"strings"
	"testing"

	"kring/ring"
)

// emptiedGarden is a log in which a cleaning leaves nothing of some segments, shortly after another one whose files are still
// waiting to be removed.
func emptiedGarden(t *testing.T) *garden {
	g := newGarden(t, 7)
	g.set(func(c *Config) { c.SegmentBytes, c.FileDeleteDelayMs = 3000, 60_000 })
	pad := strings.Repeat(".", 100)
	all := func(value string) {
		for i := range 6 {
			p := planted{key: fmt.Appendf(nil, "key %d", i), value: []byte(value + pad), ms: g.clock, offset: g.l.End()}
			g.records = append(g.records, p)
			g.plant(p.ms, string(p.key), string(p.value))
		}
	}
	all("old")
	if s, err := g.clean(g.how()); err != nil || s.Segments < 2 {
		t.Fatalf("%+v %v", s, err)
	}
	for i := range 3 {
		all(fmt.Sprint("new ", i))
	}
	g.set(func(c *Config) { c.SegmentBytes = 1200 })
	g.do("flush", func(t *ring.Task) {
		_ = g.l.Flush(t)
		g.l.until(t, func() bool { return g.l.unfinished() == nil && !g.l.finishing })
	})
	return g
}

// A crash or a kill at any step of a cleaning that leaves nothing of a segment loses no key's last record.
func TestCrashAtEveryStepOfAnEmptyingCleaning(t *testing.T) {
	for _, power := range []bool{true, false} {
		for at := uint64(0); ; at++ {
			g := emptiedGarden(t)
			done := false
			g.m.Do(g.loop, func() {
				ring.Go(g.loop, func(task *ring.Task) {
					o := g.how()
					o.Stable = g.stable()
					if s, err := g.l.Clean(task, o); err != nil || s.Groups < 2 || g.l.segs[0].size > 0 {
						t.Errorf("%+v %v; %d bytes are left of the first segment", s, err, g.l.segs[0].size)
					}
					done = true
				})
			})
			began := g.w.Steps()
			if err := g.w.RunUntil("a step", 1<<40, func() bool { return done || g.w.Steps() >= began+at }); err != nil {
				t.Fatal(err)
			}
			last := done
			if power {
				g.m.Crash()
			} else {
				g.m.Kill()
			}
			g.startAnew(t, fmt.Sprintf("step %d, power %v", at, power))
			if last {
				break
			}
		}
	}
}

// startAnew opens the log in a new process that reads all of it, and looks what it finds.
func (g *garden) startAnew(t *testing.T, when string) {
	t.Helper()
	end, whole := g.l.End(), g.l.active().base
	g.boot()
	g.o.Files, g.o.RecoveryPoint = g.files, 0
	g.l = g.rig.open(g.o)
	if g.l.End() != end {
		t.Fatalf("%s: ends at %d, was %d", when, g.l.End(), end)
	}
	g.verify(0, whole, false)
	for _, name := range g.m.Files(g.o.Dir) {
		if strings.HasSuffix(name, damagedSuffix) && !strings.Contains(name, swapSuffix) {
			t.Fatalf("%s: something was set aside: %s", when, name)
		}
	}
}

// Of a .swap file that is not whole, and of those it was made from, the latter stay: but not what an earlier exchange has taken out.
func TestRefusedSwapBringsBackItsOwn(t *testing.T) {
	g := emptiedGarden(t)
	dir := g.o.Dir + "/"
	for _, name := range []string{fileName(2, logSuffix+deletedSuffix), fileName(5, logSuffix+deletedSuffix)} {
		if _, err := g.m.ReadFile(dir + name); err != nil {
			t.Fatalf("%s is not there: %v", name, g.m.Files(g.o.Dir))
		}
	}
	g.do("an exchange that is cut short", func(t *ring.Task) {
		for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix} {
			for _, base := range []Offset{0, 6, 7} {
				_ = t.Rename(dir+fileName(base, suffix), dir+fileName(base, suffix+deletedSuffix))
			}
		}
	})
	g.m.WriteFile(dir+fileName(0, logSuffix+swapSuffix), []byte("no batch"))
	g.m.Kill()
	g.startAnew(t, "with half an exchange")
}
