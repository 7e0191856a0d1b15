package segment

import (
	"errors"
	"testing"

	"kring/ring"
)

// A closed segment that was cut in the middle of a batch: what stands before the damage is given, what lay behind is a
// malformed file and not silence, and the next segment is read as ever.
func TestCutSegmentIsReadUpToTheDamage(t *testing.T) {
	r := newRig(t, 1)
	o := r.options("/d/t-0")
	o.Config.SegmentBytes = 2000
	o.Config.IndexIntervalBytes = 100
	l := r.open(o)
	for i := range 40 {
		if a := r.append(l, records(1, epoch+int64(i), "0123456789012345678901234567890123456789")); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	r.close(l)
	next := l.segs[1].base
	r.do("cut", func(task *ring.Task) {
		f, err := task.Open("/d/t-0/"+fileName(0, logSuffix), ring.Write)
		if err == nil {
			err = task.Truncate(f, 1000)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	})
	o.Clean = true
	l = r.open(o)
	at, failed := Offset(0), Offset(-1)
	for at < next {
		b, err := r.read(l, at, l.Written(), 1, true)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("read at %d: %v", at, err)
			}
			failed = at
			break
		}
		if h := header(b); len(b) == 0 || h.base() != at {
			t.Fatalf("read at %d gave %d bytes", at, len(b))
		}
		at++
	}
	if failed < 5 {
		t.Errorf("the first offset that cannot be read is %d, in 1000 bytes of a segment with %d records", failed, next)
	}
	b, err := r.read(l, next, l.Written(), 1, true)
	if err != nil || header(b).base() != next {
		t.Errorf("behind the damaged segment: %d bytes, %v", len(b), err)
	}
	r.close(l)
}

// A crash before anything was flushed, and leader epochs that cannot be read: every segment is recovered, none is left to be read
// for its epochs alone.
func TestLostEpochsOfALogWithoutARecoveryPoint(t *testing.T) {
	r := newRig(t, 1)
	o := r.options("/d/t-0")
	l := r.open(o)
	for i := range 3 {
		if a := r.append(l, records(1, epoch+int64(i), "v")); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	r.m.Kill()
	r.boot()
	r.do("damage", func(task *ring.Task) {
		if err := task.WriteFile("/d/t-0", epochsFile, []byte("xx")); err != nil {
			t.Fatal(err)
		}
	})
	o.Files = r.files
	if l = r.open(o); l.End() != 3 {
		t.Errorf("%d records of 3", l.End())
	}
	r.close(l)
}
