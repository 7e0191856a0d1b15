package segment

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"kring/ring"
)

// lines logs into b, without the time.
func lines(b *strings.Builder) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// segments makes a log of several segments under leader epoch 0, and kills it. Their first offsets come with the options to open it again.
func segments(t *testing.T, r *rig) (Options, []Offset) {
	t.Helper()
	o := r.options("/d/t-0")
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 3000, 300
	l := r.open(o)
	for i := range 40 {
		if a := r.appendAs(l, &Append{Data: records(1, epoch+int64(i), strings.Repeat("v", 200)), LeaderEpoch: 0}); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if err := r.w.RunUntil("the segments are finished", 1<<40, func() bool { return l.segs[len(l.segs)-2].synced && !l.epochsBusy }); err != nil {
		t.Fatal(err)
	}
	o.RecoveryPoint = l.RecoveryPoint()
	var bases []Offset
	for _, s := range l.segs {
		bases = append(bases, s.base)
	}
	r.m.Kill()
	r.boot()
	o.Files = r.files
	return o, bases
}

// After a crash, too, the log's start does not move without a word because a segment is gone; what a deletion takes is not missed.
func TestMissingSegmentsAreTold(t *testing.T) {
	all := []string{logSuffix, indexSuffix, timeSuffix, snapshotSuffix}
	for name, c := range map[string]struct {
		segments []int
		suffixes []string
		deleting bool
		logStart int    // the number of the segment the log is to begin with
		told     [2]int // the segments that are told of: from the first on, up to before the second; -1: none
	}{
		"the first":                         {segments: []int{0}, suffixes: all, told: [2]int{0, 1}},
		"the first two":                     {segments: []int{0, 1}, suffixes: all, told: [2]int{0, 2}},
		"the log file of the first":         {segments: []int{0}, suffixes: all[:1], told: [2]int{0, 1}},
		"the log file of the second":        {segments: []int{1}, suffixes: all[:1], told: [2]int{1, 2}},
		"the first, which was deleted":      {segments: []int{0}, suffixes: all, deleting: true, told: [2]int{-1}},
		"the first, below the log's start":  {segments: []int{0}, suffixes: all, logStart: 1, told: [2]int{-1}},
		"two, one of them below the start":  {segments: []int{0, 1}, suffixes: all, logStart: 1, told: [2]int{1, 2}},
		"none":                              {told: [2]int{-1}},
		"the time index and the snapshot":   {segments: []int{1}, suffixes: all[2:], told: [2]int{-1}},
		"the first, and its index is there": {segments: []int{0}, suffixes: []string{logSuffix, timeSuffix}, told: [2]int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			o, bases := segments(t, r)
			for _, i := range c.segments {
				for _, suffix := range c.suffixes {
					path := o.Dir + "/" + fileName(bases[i], suffix)
					if !slices.Contains(r.m.Files(o.Dir), path) {
						continue
					}
					if err := r.m.RemoveAll(path); err != nil {
						t.Fatal(err)
					}
					if c.deleting {
						r.m.WriteFile(path+deletedSuffix, []byte("x"))
					}
				}
			}
			var out strings.Builder
			o.Log, o.LogStart = lines(&out), bases[c.logStart]
			l := r.open(o)
			want := ""
			if c.told[0] >= 0 {
				want = fmt.Sprintf("level=WARN msg=\"segments are gone, and the records in them are lost; see kring log verify\" log=%s from=%d to=%d\n",
					o.Dir, bases[c.told[0]], bases[c.told[1]]-1)
			}
			got := ""
			for line := range strings.Lines(out.String()) {
				if strings.Contains(line, "gone") {
					got += line
				}
			}
			if got != want {
				t.Errorf("said %swant %s", out.String(), want)
			}
			if l.End() != 40 {
				t.Errorf("ends at %d", l.End())
			}
			r.close(l)
		})
	}
}

// What is no file where a file is to be: whatever is read from it is refused by its name, and only that log is.
func TestNoRegularFile(t *testing.T) {
	for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix, epochsFile, metadataFile} {
		for _, pipe := range []bool{true, false} {
			r := newRig(t, 1)
			o, _ := damagedLog(t, r)
			path := o.Dir + "/" + suffix
			if suffix[0] == '.' {
				path = o.Dir + "/" + fileName(0, suffix)
			}
			if slices.Contains(r.m.Files(o.Dir), path) {
				if err := r.m.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
			if pipe {
				r.m.MakePipe(path)
			} else {
				r.do("mkdir", func(task *ring.Task) {
					if err := task.MakeDir(path); err != nil {
						t.Fatal(err)
					}
				})
			}
			r.do("open", func(task *ring.Task) {
				if _, err := Open(task, o); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
					t.Errorf("%s: %v", path, err)
				}
			})
		}
	}
}

// A checkpoint file that cannot be one counts as empty, as a malformed one does, and is named.
func TestCheckpointThatIsNone(t *testing.T) {
	for _, file := range []string{recoveryFile, logStartFile, watermarkFile, cleanerFile} {
		r := newRig(t, 1)
		r.m.WriteFile("/d/"+propertiesFile, encodeProperties(Meta{"c", 1}, epoch))
		r.m.MakePipe("/d/" + file)
		var out strings.Builder
		r.do("open", func(task *ring.Task) {
			d, err := OpenDir(task, "/d", DirOptions{BrokerID: -1, Log: lines(&out)})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.writeCheckpoints(task, file, nil); err != nil {
				t.Error(err)
			}
			d.Abandon()
		})
		if !strings.Contains(out.String(), "file=/d/"+file) {
			t.Errorf("said %q", out.String())
		}
		if b, err := r.m.ReadFile("/d/" + file); err != nil || string(b) != "0\n0\n" {
			t.Errorf("%q, %v", b, err)
		}
	}
}

// Entries of indexes for offsets that a segment does not have: it is read anew, be it the last one or not, and everything is found.
func TestIndexEntriesBehindTheirSegment(t *testing.T) {
	for _, suffix := range []string{indexSuffix, timeSuffix} {
		for _, clean := range []bool{true, false} {
			r := newRig(t, 1)
			o, bases := segments(t, r)
			l := r.open(o)
			r.close(l)
			o.Clean, o.RecoveryPoint = clean, l.RecoveryPoint()
			for _, base := range bases {
				err := r.m.Damage(o.Dir+"/"+fileName(base, suffix), func(b []byte) []byte {
					if n := len(b); n > 0 {
						b[map[string]int{indexSuffix: n - 7, timeSuffix: n - 3}[suffix]] = 9
					}
					return b
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			l = r.open(o)
			if n := len(r.readAll(l, 300)); n != 40 {
				t.Errorf("%s, clean %v: %d batches", suffix, clean, n)
			}
			r.do("look-ups", func(task *ring.Task) {
				for i := range 40 {
					if got, err := l.OffsetForTime(task, epoch+int64(i)); err != nil || got.Offset != Offset(i) {
						t.Errorf("%s, clean %v: time %d is at %d, %v", suffix, clean, i, got.Offset, err)
					}
				}
			})
			r.on(l.checkAll)
			r.close(l)
		}
	}
}

// After a crash, too, it is said that a log ends before what its recovery point promises.
func TestEndBeforeTheRecoveryPointIsTold(t *testing.T) {
	for _, lost := range []bool{true, false} {
		r := newRig(t, 1)
		o, b := damagedLog(t, r)
		if lost {
			r.m.WriteFile(o.Dir+"/"+fileName(0, logSuffix), b[:30*271])
		}
		var out strings.Builder
		o.Clean, o.Log = false, lines(&out)
		r.close(r.open(o))
		if told := strings.Contains(out.String(), "ends before its recovery point"); told != lost || lost && !strings.Contains(out.String(), "from=30 to=39") {
			t.Errorf("lost %v: said %q", lost, out.String())
		}
	}
}

// A producer snapshot that knows of offsets behind its own is another partition's: a start makes the state of the batches instead.
func TestSnapshotOfAnotherLog(t *testing.T) {
	r := newRig(t, 1)
	r.put("logdir-clean.tar.gz")
	foreign := unpack(t, "logdir-clean.tar.gz")["logdir-clean/idem-0/00000000000000000051.snapshot"]
	name := "/logdir-clean/txn-0/00000000000000000013.snapshot"
	r.m.WriteFile(name, foreign)
	var out strings.Builder
	o := r.options("/logdir-clean/txn-0")
	o.Clean, o.RecoveryPoint, o.Log = true, 13, lines(&out)
	l := r.open(o)
	if !strings.Contains(out.String(), "removing a producer snapshot that cannot be read") || !strings.Contains(out.String(), "snapshot=13") {
		t.Errorf("said %q", out.String())
	}
	r.close(l)
}

// TestTracesInALargeDirectory: the work grows with the number of files, not with its square, for the loop does it in one go.
func TestTracesInALargeDirectory(t *testing.T) {
	var entries []ring.Entry
	for i := range Offset(1000) {
		for _, suffix := range []string{indexSuffix, logSuffix, timeSuffix} {
			entries = append(entries, ring.Entry{Name: fileName(i*10, suffix)})
		}
	}
	allocs := testing.AllocsPerRun(1, func() {
		if x := tracesIn(entries); x.going || len(x.orphans) > 0 {
			t.Errorf("%+v", x)
		}
	})
	if most := float64(10 * len(entries)); allocs > most {
		t.Errorf("%v allocations for %d files", allocs, len(entries))
	}
}
