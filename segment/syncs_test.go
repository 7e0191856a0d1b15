package segment

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"kring/ring"
)

// syncs counts what a rig's disk is asked for, by operation and suffix.
func (r *rig) syncs() map[string]int {
	counts := map[string]int{}
	r.m.Faults.Saw = func(what, name string) { counts[what+path.Ext(name)]++ }
	return counts
}

// TestSyncsOfFinishedSegments finishes 64 small segments: bytes, times and snapshot of each are synced once, an index without entries is
// not, and the directory is synced once for all that are finished at a time.
func TestSyncsOfFinishedSegments(t *testing.T) {
	const segments = 4 * finishMost
	r := newRig(t, 5)
	o := r.options("/data/t-0")
	o.Config.SegmentBytes = 1000
	l := r.open(o)
	counts := r.syncs()
	r.m.Faults.Slow = 1 // so that all of them wait to be finished before the first is
	r.do("appends", func(task *ring.Task) {
		for range segments + 1 {
			l.Append(&Append{Data: records(1, 1000, strings.Repeat("v", 900)), Done: func(*Append) {}})
		}
		l.until(task, func() bool { return l.Segments() == segments+1 && l.segs[segments-1].synced })
	})
	for what, want := range map[string]int{"sync.log": segments, "sync.index": 0, "sync.timeindex": segments, "sync.snapshot": segments} {
		if counts[what] != want {
			t.Errorf("%s: %d, want %d", what, counts[what], want)
		}
	}
	if n := counts["syncdir"]; n > segments/finishMost+5 { // the first one is finished alone; its log is new
		t.Errorf("the directory was synced %d times", n)
	}
}

// TestLogLeftAloneIsNotSynced closes a log that was opened and only read.
func TestLogLeftAloneIsNotSynced(t *testing.T) {
	r := newRig(t, 6)
	o := r.options("/data/t-0")
	o.Config.SegmentBytes = 1000
	l := r.open(o)
	for range 5 {
		r.append(l, records(1, 1000, strings.Repeat("v", 400)))
	}
	end := l.End()
	r.close(l)
	for range 2 {
		o.Files, o.Clean, o.RecoveryPoint = r.files, true, end
		l = r.open(o)
		if _, err := r.read(l, 1, end, 100, true); err != nil {
			t.Fatal(err)
		}
		counts := r.syncs()
		r.close(l)
		if len(counts) > 0 {
			t.Errorf("closing asks the disk for %v", counts)
		}
	}
	l = r.open(o)
	r.append(l, records(1, 2000, "v"))
	counts := r.syncs()
	r.close(l)
	for _, what := range []string{"sync.log", "sync.timeindex", "sync.snapshot", "syncdir"} {
		if counts[what] == 0 {
			t.Errorf("after an append closing does not ask for %s: %v", what, counts)
		}
	}
}

// TestFewLogsSaveTheirEpochsAtATime gives a hundred logs a new leader epoch in one turn: few of them have a file open for it, and all get it.
func TestFewLogsSaveTheirEpochsAtATime(t *testing.T) {
	r := newRig(t, 7)
	var logs []*Log
	for i := range 100 {
		logs = append(logs, r.open(r.options(fmt.Sprint("/data/t-", i))))
	}
	open, most, saved := 0, 0, 0
	r.m.Faults.Saw = func(what, name string) {
		switch what + path.Base(name) {
		case "open" + epochsFile + tmpSuffix:
			open++
			most = max(most, open)
		case "rename" + epochsFile + tmpSuffix, "rename" + epochsFile:
			open--
			saved++
		}
	}
	r.do("new epochs", func(task *ring.Task) {
		for _, l := range logs {
			l.AssignEpoch(5)
		}
		for _, l := range logs {
			l.until(task, func() bool { return !l.epochsBusy })
		}
	})
	if most > savesMost || saved != len(logs) {
		t.Errorf("%d files were open at a time, %d of %d were written", most, saved, len(logs))
	}
}

// TestFailedSyncBesideWantOfRoom: what failed for good is not tried again as if it had been for want of room.
func TestFailedSyncBesideWantOfRoom(t *testing.T) {
	r := newRig(t, 8)
	o := r.options("/data/t-0")
	l := r.open(o)
	r.append(l, records(1, 1000, "v"))
	r.m.FailNext("open", timeSuffix, 0, 1, syscall.ENOSPC)
	r.m.FailNext("sync", snapshotSuffix, 0, 1, syscall.EIO)
	r.do("roll", func(t *ring.Task) {
		l.Roll()
		l.until(t, func() bool { return l.segs[0].synced || l.failed != nil })
	})
	if err := l.Failed(); !errors.Is(err, syscall.EIO) {
		t.Errorf("after a failed sync: %v", err)
	}
}
