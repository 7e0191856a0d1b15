package segment

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"kring/ring"
)

// TestFailedSyncThenRestartThenPowerCut: a process that starts after a failed sync reads from the page cache what the disk may never get.
// If it knows (Options.Suspect), what it finds and what is flushed behind it survives a power cut; if it does not, some of it is lost.
func TestFailedSyncThenRestartThenPowerCut(t *testing.T) {
	lost := map[bool]int{}
	for seed := range uint64(20) {
		for _, suspect := range []bool{true, false} {
			r := newRig(t, seed)
			r.m.WriteFile("/data/.keep", nil) // the log dir's own name is durable
			o := r.options("/data/t-0")
			o.Config.SegmentBytes = 1500 // some are rolled and not finished
			l := r.open(o)
			for i := range 4 {
				r.append(l, records(1, 1000, fmt.Sprint("before ", i, string(make([]byte, 600)))))
			}
			r.m.FailNext("sync", ".log", 0, 1, syscall.EIO)
			r.do("flush", func(task *ring.Task) {
				if err := l.Flush(task); !errors.Is(err, ErrOffline) {
					t.Errorf("seed %d: flush after a failed sync: %v", seed, err)
				}
			})
			written := l.Written()
			r.m.Kill()
			r.m.CalmDown()
			r.boot()
			o.Files, o.RecoveryPoint, o.Suspect = r.files, l.RecoveryPoint(), suspect
			l = r.open(o)
			if l.End() != written {
				t.Fatalf("seed %d: the restart finds %d of %d", seed, l.End(), written)
			}
			r.append(l, records(1, 1000, "behind"))
			r.do("flush", func(task *ring.Task) {
				if err := l.Flush(task); err != nil {
					t.Fatalf("seed %d: flush: %v", seed, err)
				}
			})
			end, point := l.End(), l.RecoveryPoint()
			r.m.Crash()
			r.boot()
			o.Files, o.RecoveryPoint, o.Suspect = r.files, point, false
			if l = r.open(o); l.End() < end {
				lost[suspect]++
			}
			r.on(l.Abandon)
		}
	}
	if lost[true] > 0 {
		t.Errorf("what was flushed was lost with %d of 20 seeds", lost[true])
	}
	if lost[false] == 0 {
		t.Error("nothing is lost without writing anew: the test proves nothing")
	}
	t.Logf("without writing anew %d of 20 seeds lose what was flushed", lost[false])
}

// TestMarkOfAFailedDir: the mark makes the next start distrust the dir, until every log was opened.
func TestMarkOfAFailedDir(t *testing.T) {
	r := newRig(t, 1)
	open := func() (d *Dir) {
		r.do("open the dir", func(task *ring.Task) {
			var err error
			if d, err = OpenDir(task, "/data", DirOptions{BrokerID: -1}); err != nil {
				t.Fatal(err)
			}
		})
		return d
	}
	d := open()
	r.do("mark", func(task *ring.Task) {
		if err := d.MarkFailed(task, syscall.EIO); err != nil {
			t.Error(err)
		}
		if err := d.Close(task, true); err != nil { // a Kafka may have been here
			t.Error(err)
		}
	})
	d = open()
	if o := d.Options(Partition{"t", 0}); !d.Suspect() || d.Clean() || !o.Suspect || o.Clean {
		t.Errorf("suspect %v, clean %v, options %+v", d.Suspect(), d.Clean(), o)
	}
	r.do("trust", func(task *ring.Task) {
		if err := d.Trust(task); err != nil {
			t.Error(err)
		}
		d.Close(task, true)
	})
	if d = open(); d.Suspect() || !d.Clean() {
		t.Errorf("after Trust: suspect %v, clean %v", d.Suspect(), d.Clean())
	}
	r.on(d.Abandon)
}
