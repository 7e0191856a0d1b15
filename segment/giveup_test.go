package segment

import (
	"errors"
	"testing"

	"kring/ring"
)

// TestRecoveryThatIsGivenUp gives a recovery up when some of the segments have been read: the log is not opened, and later is what it was.
func TestRecoveryThatIsGivenUp(t *testing.T) {
	r := newRig(t, 1)
	o := r.options("/data/t-0")
	o.Config.SegmentBytes = 1000
	l := r.open(o)
	for range 100 {
		r.append(l, records(3, 1000, "value"))
	}
	end, segments := l.End(), len(l.segs)
	r.m.Kill()
	r.boot()
	o = r.options("/data/t-0")
	o.Config.SegmentBytes = 1000
	o.Clean = false
	for _, after := range []int{0, 1, segments / 2} {
		p := &Progress{}
		o.Progress = p
		var err error
		r.do("opening it", func(task *ring.Task) {
			watch := ring.Go(task.Loop(), func(other *ring.Task) {
				for p.Segments < after {
					other.Sleep(1)
				}
				p.GivenUp = true
			})
			defer watch.Stop()
			_, err = Open(task, o)
		})
		if !errors.Is(err, ErrGivenUp) || p.Segments >= segments || p.Left != 0 {
			t.Errorf("given up after %d segments of %d: %v, %+v", after, segments, err, *p)
		}
	}
	o.Progress = &Progress{}
	if l := r.open(o); l.End() != end {
		t.Errorf("the log ends at %d, not %d", l.End(), end)
	}
}
