package segment

import (
	"bytes"
	"strings"
	"testing"

	"kring/ring"
)

// snapshotOf copies a directory of a simulated machine.
func (r *rig) snapshotOf(dir string) map[string][]byte {
	files := map[string][]byte{}
	r.do("copy", func(task *ring.Task) {
		list, err := task.List(dir)
		if err != nil {
			r.tb.Fatal(err)
		}
		for _, e := range list {
			if !e.Dir {
				b, err := task.ReadFile(dir+"/"+e.Name, 1<<30)
				if err != nil {
					r.tb.Fatal(err)
				}
				files[dir+"/"+e.Name] = b
			}
		}
	})
	return files
}

// verifyRig verifies a partition's directory of a simulated machine.
func (r *rig) verifyRig(o Options) (h *Health, found []Finding) {
	r.tb.Helper()
	v := filesOnly(r.snapshotOf(o.Dir), func(f Finding) {
		if !f.Harmless {
			found = append(found, f)
		}
	})
	v.Clean, v.RecoveryPoint, v.LogStart = o.Clean, o.RecoveryPoint, o.LogStart
	h, err := VerifyPartition(o.Dir, v)
	if err != nil {
		r.tb.Fatal(err)
	}
	return h, found
}

// A repair takes out what is no batch, keeps every byte of it beside the log, and leaves a log in which nothing is to be found; the
// batches before and behind the damage are there.
func TestRepairKeepsWhatIsWhole(t *testing.T) {
	const size = 271
	for name, c := range map[string]struct {
		damage func(b []byte) []byte
		lost   []Offset
	}{
		"a bit in a batch": {func(b []byte) []byte { b[20*size+100] ^= 1; return b }, []Offset{20}},
		"a length":         {func(b []byte) []byte { b[20*size+8] = 0x7f; return b }, []Offset{20}},
		"two places":       {func(b []byte) []byte { b[3*size+100] ^= 1; b[30*size+8] = 9; return b }, []Offset{3, 30}},
		"the first":        {func(b []byte) []byte { clear(b[:size]); return b }, []Offset{0}},
		"the last":         {func(b []byte) []byte { b[39*size+70] ^= 1; return b }, []Offset{39}},
		"a torn end":       {func(b []byte) []byte { return b[:39*size+70] }, []Offset{39}},
		"junk put in between": {func(b []byte) []byte {
			return append(append(bytes.Clone(b[:5*size]), "junk put in between batches"...), b[5*size:]...)
		}, nil},
		"an offset":     {func(b []byte) []byte { b[20*size+6] = 1; return b }, []Offset{20}},
		"indexes alone": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			o, written := damagedLog(t, r)
			if h, found := r.verifyRig(o); len(found) > 0 || h.Damaged() || h.Start != 0 || h.End != 40 {
				t.Fatalf("before the damage: %+v %+v", h, found)
			}
			if c.damage != nil {
				r.m.WriteFile(o.Dir+"/"+fileName(0, logSuffix), c.damage(bytes.Clone(written)))
			} else {
				r.m.WriteFile(o.Dir+"/"+fileName(0, indexSuffix), []byte("12345678"))
				r.m.WriteFile(o.Dir+"/"+fileName(0, timeSuffix), []byte("12345678"))
			}
			h, found := r.verifyRig(o)
			if len(found) == 0 || h.Damaged() != (c.damage != nil) || len(h.Plan(false)) == 0 {
				t.Fatalf("%+v %+v", h, found)
			}
			r.do("repair", func(task *ring.Task) {
				if _, err := Repair(task, o, h, false); err != nil {
					t.Fatal(err)
				}
			})
			if _, found := r.verifyRig(o); len(found) > 0 {
				t.Errorf("after the repair: %+v", found)
			}
			aside := 0
			for name, b := range r.snapshotOf(o.Dir) {
				if strings.HasSuffix(name, damagedSuffix) {
					aside += len(b)
				}
			}
			if c.damage != nil && aside == 0 {
				t.Error("nothing was set aside")
			}
			l := r.open(o)
			if l.End() != 40 && o.Clean {
				t.Errorf("ends at %d", l.End())
			}
			got := map[Offset][]byte{}
			for at := Offset(0); at < 40; at++ {
				b, err := r.read(l, at, l.Written(), 1, true)
				if err != nil {
					t.Fatal(err)
				}
				if len(b) > 0 {
					got[header(b).base()] = b
				}
			}
			for _, at := range c.lost {
				if got[at] != nil {
					t.Errorf("offset %d is there", at)
				}
			}
			if len(got) != 40-len(c.lost) {
				t.Errorf("%d batches are there, %d are lost", len(got), len(c.lost))
			}
			for at, b := range got {
				if at >= 40 || !bytes.Equal(b, written[int(at)*size:int(at+1)*size]) {
					t.Errorf("the batch at %d is another", at)
				}
			}
			r.close(l)
		})
	}
}
