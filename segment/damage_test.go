package segment

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"kring/ring"
)

// damagedLog makes a log of 40 records in a segment, stops it cleanly, and gives its options for a clean start, and its bytes.
func damagedLog(t *testing.T, r *rig) (Options, []byte) {
	t.Helper()
	o := r.options("/d/t-0")
	l := r.open(o)
	for i := range 40 {
		if a := r.append(l, records(1, epoch+int64(i), strings.Repeat("v", 200))); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	r.close(l)
	b, err := r.m.ReadFile("/d/t-0/" + fileName(0, logSuffix))
	if err != nil {
		t.Fatal(err)
	}
	o.Clean, o.RecoveryPoint = true, l.RecoveryPoint()
	return o, bytes.Clone(b)
}

// After a clean stop nothing is cut off from the last segment that may have been records: what stands before the damage is given, what
// lies behind is an error, and new records get offsets that were never given.
func TestDamageAfterACleanStopIsNotCutOff(t *testing.T) {
	const size = 271 // of a batch
	for name, c := range map[string]struct {
		damage func([]byte) []byte
		whole  Offset
	}{
		"a length":              {func(b []byte) []byte { b[35*size+8] = 0x7f; return b }, 35},
		"a length of nothing":   {func(b []byte) []byte { clear(b[35*size+8 : 35*size+12]); return b }, 35},
		"an offset":             {func(b []byte) []byte { b[35*size+6] = 9; return b }, 35},
		"a magic":               {func(b []byte) []byte { b[35*size+16] = 77; return b }, 35},
		"a length in the midst": {func(b []byte) []byte { b[20*size+8] = 0x7f; return b }, 20},
		"the end is gone":       {func(b []byte) []byte { return b[:30*size+100] }, 30},
		"whole batches missing": {func(b []byte) []byte { return b[:30*size] }, 30},
		"all is gone":           {func(b []byte) []byte { return nil }, 0},
		"all is zero":           {func(b []byte) []byte { clear(b); return b }, 0},
	} {
		for _, indexes := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, 1)
				o, b := damagedLog(t, r)
				if len(b) != 40*size {
					t.Fatalf("%d bytes", len(b))
				}
				written := bytes.Clone(b)
				b = c.damage(b)
				path := o.Dir + "/" + fileName(0, logSuffix)
				r.m.WriteFile(path, bytes.Clone(b))
				if !indexes {
					r.m.WriteFile(o.Dir+"/"+fileName(0, indexSuffix), []byte("what"))
				}
				for start := range 3 {
					if start == 2 && name == "a length in the midst" && indexes {
						break // the log goes on in the damaged segment: a crash ends it at the damage
					}
					l := r.open(o)
					if l.End() != 40+Offset(start) {
						t.Fatalf("start %d: the log ends at %d", start, l.End())
					}
					checkServed(t, r, l, c.whole, written)
					if a := r.append(l, records(1, epoch, "new")); a.Err != nil || a.Base != 40+Offset(start) {
						t.Fatalf("start %d: appended at %d, %v", start, a.Base, a.Err)
					}
					r.close(l)
					o.RecoveryPoint, o.Clean = l.RecoveryPoint(), start == 0 // and once after a crash
					if after, _ := r.m.ReadFile(path); name != "all is zero" && !bytes.HasPrefix(after, b) {
						t.Fatalf("start %d: the damaged file changed: %d bytes of %d", start, len(after), len(b))
					}
				}
			})
		}
	}
}

// Where all segments are gone, too, no offset is given again, and the producers are known as the stop left them.
func TestALogWhoseSegmentsAreGoneGoesOnAtItsEnd(t *testing.T) {
	r := newRig(t, 1)
	o, _ := damagedLog(t, r)
	if err := r.m.RemoveAll(o.Dir + "/" + fileName(0, logSuffix)); err != nil {
		t.Fatal(err)
	}
	for start := range 3 {
		l := r.open(o)
		if l.Start() != 40 || l.End() != 40+Offset(start) {
			t.Fatalf("start %d: the log is from %d to %d", start, l.Start(), l.End())
		}
		if a := r.append(l, records(1, epoch, "new")); a.Err != nil || a.Base != 40+Offset(start) {
			t.Fatalf("start %d: appended at %d, %v", start, a.Base, a.Err)
		}
		r.close(l)
		o.RecoveryPoint, o.Clean = l.RecoveryPoint(), start == 0
	}
}

// checkServed reads offsets 0 to 39: those below whole are there, the others are as they were written or not there at all.
func checkServed(t *testing.T, r *rig, l *Log, whole Offset, written []byte) {
	t.Helper()
	size := len(written) / 40
	for at := Offset(0); at < 40; at++ {
		b, err := r.read(l, at, l.Written(), 1, true)
		switch {
		case err != nil && !errors.Is(err, ErrMalformed):
			t.Fatal(err)
		case err != nil || len(b) == 0 || header(b).base() >= 40:
			if at < whole {
				t.Fatalf("offset %d: %d bytes, %v", at, len(b), err)
			}
		case !bytes.Equal(b, written[int(at)*size:int(at+1)*size]):
			t.Fatalf("offset %d: a batch at %d that is not the one written", at, header(b).base())
		}
	}
}

// What follows the end a clean stop has left is nobody's record; it is set aside all the same.
func TestJunkBehindACleanlyStoppedLogIsSetAside(t *testing.T) {
	r := newRig(t, 1)
	o, b := damagedLog(t, r)
	junk := []byte("this was never a record, nor will it be one in the days to come: it is sixty-one bytes and more")
	path := o.Dir + "/" + fileName(0, logSuffix)
	r.m.WriteFile(path, append(bytes.Clone(b), junk...))
	l := r.open(o)
	if l.End() != 40 {
		t.Errorf("ends at %d", l.End())
	}
	r.close(l)
	if after, _ := r.m.ReadFile(path); !bytes.Equal(after, b) {
		t.Errorf("%d bytes, want %d", len(after), len(b))
	}
	if got, err := r.m.ReadFile(o.Dir + "/" + asideName(0, int64(len(b)), 0)); err != nil || !bytes.Equal(got, junk) {
		t.Errorf("set aside: %d bytes, %v", len(got), err)
	}
}

// A crash may tear the end of a log, not what was durable before: recovery ends the log at the damage, and every byte it takes out
// of the log is kept beside it.
func TestDamageBelowTheRecoveryPointIsSetAside(t *testing.T) {
	for _, known := range []bool{true, false} { // without a recovery point, what stands in front of another segment was finished, too
		damageInTheMiddle(t, known)
	}
}

func damageInTheMiddle(t *testing.T, known bool) {
	r := newRig(t, 1)
	o := r.options("/d/t-0")
	o.Config.SegmentBytes = 3000
	l := r.open(o)
	for i := range 40 {
		r.append(l, records(1, epoch+int64(i), strings.Repeat("v", 200)))
	}
	r.close(l)
	bases := []Offset{l.segs[0].base, l.segs[1].base, l.segs[2].base}
	path := func(i int) string { return o.Dir + "/" + fileName(bases[i], logSuffix) }
	first, _ := r.m.ReadFile(path(0))
	first = bytes.Clone(first)
	first[1000] ^= 1
	r.m.WriteFile(path(0), bytes.Clone(first))
	second, _ := r.m.ReadFile(path(1))
	second = bytes.Clone(second)
	if known {
		o.RecoveryPoint = bases[1] - 1
	}
	l = r.open(o)
	if l.End() != 3 {
		t.Errorf("ends at %d", l.End())
	}
	if got, err := r.m.ReadFile(o.Dir + "/" + asideName(0, 3*271, 0)); err != nil || !bytes.Equal(got, first[3*271:]) {
		t.Errorf("set aside of the first segment: %d bytes, %v", len(got), err)
	}
	if got, err := r.m.ReadFile(o.Dir + "/" + asideName(bases[1], 0, 0)); err != nil || !bytes.Equal(got, second) {
		t.Errorf("set aside of the second segment: %d bytes, %v", len(got), err)
	}
	r.close(l)
	entries := 0
	r.do("list", func(task *ring.Task) {
		list, err := task.List(o.Dir)
		if err != nil {
			t.Error(err)
		}
		for _, e := range list {
			if strings.HasSuffix(e.Name, damagedSuffix) {
				entries++
			}
		}
	})
	if entries != 4 {
		t.Errorf("%d files of damaged bytes", entries)
	}
}

// A .swap file takes the place of segments only if it is whole; else they stay, or come back from what was to be deleted.
func TestDamagedSwapTakesNobodysPlace(t *testing.T) {
	for name, c := range map[string]struct {
		swap    func(log []byte) []byte
		retired bool // the original is .deleted already
		taken   bool
	}{
		"whole":            {swap: func(b []byte) []byte { return b }, taken: true},
		"whole, retired":   {swap: func(b []byte) []byte { return b }, retired: true, taken: true},
		"empty":            {swap: func([]byte) []byte { return nil }},
		"empty, retired":   {swap: func([]byte) []byte { return nil }, retired: true},
		"junk":             {swap: func([]byte) []byte { return []byte("what is this, a batch?") }},
		"a bit, retired":   {swap: func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, retired: true},
		"cut off, retired": {swap: func(b []byte) []byte { return b[:len(b)-1] }, retired: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			o, b := damagedLog(t, r)
			path := o.Dir + "/" + fileName(0, logSuffix)
			r.m.WriteFile(path+swapSuffix, c.swap(bytes.Clone(b)))
			r.m.WriteFile(o.Dir+"/"+fileName(0, indexSuffix+swapSuffix), []byte("an index"))
			if c.retired {
				r.do("retire", func(task *ring.Task) {
					if err := task.Rename(path, path+deletedSuffix); err != nil {
						t.Fatal(err)
					}
				})
			}
			l := r.open(o)
			checkServed(t, r, l, 40, b)
			r.close(l)
			_, err := r.m.ReadFile(path + swapSuffix + damagedSuffix)
			if aside := err == nil; aside == c.taken {
				t.Errorf("set aside: %v", aside)
			}
		})
	}
}

// Times are found where the time index of a segment is missing, empty or cut after a clean stop, be it the last segment or not.
func TestTimesAreFoundWithoutATimeIndex(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"missing":             nil,
		"empty":               func([]byte) []byte { return []byte{} },
		"cut":                 func(b []byte) []byte { return b[:len(b)/2/timeEntry*timeEntry+5] },
		"cut between entries": func(b []byte) []byte { return b[:max(len(b)/2/timeEntry, 1)*timeEntry] },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			o := r.options("/d/t-0")
			o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 4096, 300
			l := r.open(o)
			for i := range 40 {
				if a := r.append(l, records(1, epoch+int64(i), strings.Repeat("v", 200))); a.Err != nil {
					t.Fatal(a.Err)
				}
			}
			r.close(l)
			o.Clean, o.RecoveryPoint = true, l.RecoveryPoint()
			n := 0
			for _, path := range r.m.Files(o.Dir) {
				if !strings.HasSuffix(path, timeSuffix) {
					continue
				}
				n++
				b, err := r.m.ReadFile(path)
				if err == nil && damage == nil {
					err = r.m.RemoveAll(path)
				} else if err == nil {
					r.m.WriteFile(path, damage(b))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if n < 3 {
				t.Fatalf("%d segments", n)
			}
			l = r.open(o)
			r.do("look-ups", func(task *ring.Task) {
				for i := range 40 {
					if got, err := l.OffsetForTime(task, epoch+int64(i)); err != nil || got.Offset != Offset(i) {
						t.Errorf("time %d is at %d, %v", i, got.Offset, err)
					}
				}
			})
			r.close(l)
		})
	}
}
