package segment

import (
	"io"
	"strings"
	"testing"

	"kring/ring"
)

// Leader epochs that are not those of the batches are collected anew; a single batch that says another epoch than those around it is
// told of, and changes nothing.
func TestRepairCollectsLeaderEpochs(t *testing.T) {
	r := newRig(t, 1)
	o, written := damagedLog(t, r)
	path := o.Dir + "/" + epochsFile
	r.m.WriteFile(path, []byte("0\n1\n7 0\n"))
	h, found := r.verifyRig(o)
	if len(found) != 1 || found[0].File != path || !strings.Contains(found[0].Do, "kring log repair collects") {
		t.Fatalf("%+v", found)
	}
	if plan := h.Plan(false); len(plan) != 1 || !strings.HasPrefix(plan[0], "collect the leader epochs") {
		t.Errorf("%q", plan)
	}
	r.do("repair", func(task *ring.Task) {
		if _, err := Repair(task, o, h, false); err != nil {
			t.Fatal(err)
		}
	})
	if b, err := r.m.ReadFile(path); err != nil || string(b) != "0\n1\n0 0\n" {
		t.Errorf("%q, %v", b, err)
	}
	if _, found := r.verifyRig(o); len(found) > 0 {
		t.Errorf("after the repair: %+v", found)
	}
	written[20*271+15] = 9 // of the batch at 20
	r.m.WriteFile(o.Dir+"/"+fileName(0, logSuffix), written)
	notes := ""
	v := filesOnly(r.snapshotOf(o.Dir), func(f Finding) {
		if notes += f.What; !f.Harmless {
			t.Errorf("%+v", f)
		}
	})
	v.Clean, v.RecoveryPoint = true, o.RecoveryPoint
	if _, err := VerifyPartition(o.Dir, v); err != nil || !strings.Contains(notes, "the batch of offset 20 says leader epoch 9, which was 0") {
		t.Errorf("%q, %v", notes, err)
	}
}

// Checkpoints that cannot be read give way to empty ones, and are kept.
func TestRepairOfCheckpoints(t *testing.T) {
	r := newRig(t, 1)
	good := "0\n1\nt 0 5\n"
	r.m.WriteFile("/d/"+recoveryFile, []byte("what"))
	r.m.WriteFile("/d/"+watermarkFile, []byte(good))
	r.m.MakePipe("/d/" + cleanerFile)
	for _, dry := range []bool{true, false} {
		r.do("repair", func(task *ring.Task) {
			done, err := RepairCheckpoints(task, "/d", dry)
			steps := done.Steps
			if want := map[bool]Repaired{false: {Files: 2, Bytes: 4}}[dry]; done.Files != want.Files || done.Bytes != want.Bytes {
				t.Errorf("dry %v: kept %d files, %d bytes", dry, done.Files, done.Bytes)
			}
			if err != nil || len(steps) != 2 || !strings.Contains(steps[0], recoveryFile) || !strings.Contains(steps[1], cleanerFile) {
				t.Errorf("%q, %v", steps, err)
			}
		})
		want := map[string]string{recoveryFile: "what", watermarkFile: good}
		if !dry {
			want = map[string]string{recoveryFile: "0\n0\n", watermarkFile: good, cleanerFile: "0\n0\n", recoveryFile + damagedSuffix: "what"}
		}
		for name, content := range want {
			if b, err := r.m.ReadFile("/d/" + name); err != nil || string(b) != content {
				t.Errorf("dry %v: %s is %q, %v", dry, name, b, err)
			}
		}
	}
	r.m.WriteFile("/d/"+recoveryFile, []byte("again"))
	r.do("repair", func(task *ring.Task) {
		if _, err := RepairCheckpoints(task, "/d", false); err != nil {
			t.Error(err)
		}
	})
	for name, content := range map[string]string{recoveryFile + damagedSuffix: "what", recoveryFile + ".1" + damagedSuffix: "again"} {
		if b, err := r.m.ReadFile("/d/" + name); err != nil || string(b) != content {
			t.Errorf("after two repairs %s is %q, %v", name, b, err)
		}
	}
}

// holes is a file of zeros behind head, of which only head may be read.
type holes struct {
	head string
	size int64
	read *int64
}

func (h holes) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	*h.read += int64(len(b))
	if at < int64(len(h.head)) {
		copy(b, h.head[at:])
	}
	return len(b), nil
}

func (h holes) NextData(at int64) (int64, error) { return h.size, nil }

// A log that somebody made gigabytes long is verified without reading them, and refused by name at the start.
func TestVerifyOfAVeryLongLog(t *testing.T) {
	r := newRig(t, 1)
	o, written := damagedLog(t, r)
	files := r.snapshotOf(o.Dir)
	path, read := o.Dir+"/"+fileName(0, logSuffix), int64(0)
	var found []Finding
	v := filesOnly(files, func(f Finding) { found = append(found, f) })
	open := v.Open
	v.Open = func(name string) (io.ReaderAt, int64, error) {
		if name == path {
			return holes{string(written), 8 << 30, &read}, 8 << 30, nil
		}
		return open(name)
	}
	v.Clean, v.RecoveryPoint = true, o.RecoveryPoint
	h, err := VerifyPartition(o.Dir, v)
	if err != nil || len(found) != 1 || found[0].Harmless || found[0].Position != int64(len(written)) || !h.Damaged() || h.End != 40 {
		t.Errorf("%+v, %v", found, err)
	}
	if read > 64<<20 {
		t.Errorf("%d bytes were read", read)
	}
	if plan := h.Plan(false); len(plan) == 0 || !strings.Contains(plan[0], "which are zeros") {
		t.Errorf("%q", plan)
	}
}
