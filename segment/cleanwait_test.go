package segment

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/ring"
)

// fresh is a garden with many closed segments of which the disk is too slow to have finished any.
func fresh(t *testing.T) *garden {
	g := newGarden(t, 3)
	g.o.Config.SegmentBytes = 1000
	g.on(func() { g.l.SetConfig(g.o.Config) })
	g.m.Faults.Slow = 1
	g.do("appends", func(task *ring.Task) {
		left := 0
		for range 100 {
			left++
			g.l.Append(&Append{Data: records(1, 1000, strings.Repeat("v", 900)), Done: func(*Append) { left--; g.l.notify() }})
		}
		g.l.until(task, func() bool { return left == 0 })
	})
	return g
}

// What is dirty does not depend on how far closed segments are finished, and a cleaning takes all of it.
func TestCleanWaitsForWhatIsNotFinished(t *testing.T) {
	g := fresh(t)
	g.do("clean", func(task *ring.Task) {
		g.l.HighWatermark(g.l.Written())
		d, err := g.l.Dirt(task, g.clock, g.l.Written())
		if err != nil || d.To != g.l.active().base || d.Ratio() != 1 || g.l.segs[len(g.l.segs)-2].synced {
			t.Errorf("%+v, %v; the last segment begins at %d", d, err, g.l.active().base)
		}
		o := g.how()
		o.Stable = g.l.Written()
		s, err := g.l.Clean(task, o)
		if err != nil || s.To != d.To {
			t.Errorf("clean up to %d of %d: %v", s.To, d.To, err)
		}
	})
}

// A disk without room for what is to be finished ends the cleaning: others may need less.
func TestCleanDoesNotWaitForRoom(t *testing.T) {
	g := fresh(t)
	g.m.FailNext("open", timeSuffix, 0, 100, syscall.ENOSPC)
	g.do("clean", func(task *ring.Task) {
		g.l.HighWatermark(g.l.Written())
		o := g.how()
		o.Stable = g.l.Written()
		if s, err := g.l.Clean(task, o); !errors.Is(err, ErrNoSpace) {
			t.Errorf("%+v, %v", s, err)
		}
	})
	if s, err := g.clean(g.how()); err != nil || s.To != g.l.active().base {
		t.Errorf("with room again: clean up to %d of %d: %v", s.To, g.l.active().base, err)
	}
}

// Segments are finished beside each other: sixty-four take nothing like sixty-four times as long as one.
func TestSegmentsAreFinishedTogether(t *testing.T) {
	took := func(segments int) time.Duration {
		r := newRig(t, 5)
		o := r.options("/data/t-0")
		o.Config.SegmentBytes = 1000
		l := r.open(o)
		r.m.Faults.Slow = 1
		begin := r.w.Now()
		r.do("appends", func(task *ring.Task) {
			for range segments + 1 {
				l.Append(&Append{Data: records(1, 1000, strings.Repeat("v", 900)), Done: func(*Append) {}})
			}
			l.until(task, func() bool { return l.Segments() == segments+1 && l.segs[segments-1].synced })
		})
		return r.w.Now() - begin
	}
	one, many := took(1), took(64)
	t.Logf("one segment is finished in %v, 64 in %v", one, many)
	if many > 20*one {
		t.Errorf("one segment is finished in %v, 64 in %v", one, many)
	}
}
