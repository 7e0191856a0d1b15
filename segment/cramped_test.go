package segment

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/ring"
)

// TestFullDiskIsToldOfOnce: not once for each append that is refused, and its end is told too.
func TestFullDiskIsToldOfOnce(t *testing.T) {
	r := newRig(t, 3)
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	var logs []*Log
	for i := range 3 {
		o := r.options(fmt.Sprint("/data/t-", i))
		o.Log = log
		logs = append(logs, r.open(o))
		r.append(logs[i], records(1, 1000, "before"))
	}
	r.m.SetCapacity(1)
	large := string(make([]byte, 1_200_000))
	for range 20 {
		for _, l := range logs {
			if a := r.append(l, records(1, 1000, large)); !errors.Is(a.Err, ErrNoSpace) {
				t.Fatalf("an append beside a full disk: %v", a.Err)
			}
		}
		r.w.RunFor(time.Second)
	}
	if n := strings.Count(text.String(), "WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, text.String())
	}
	r.w.RunFor(time.Minute)
	r.append(logs[0], records(1, 1000, large))
	if n := strings.Count(text.String(), "WARN"); n != 2 || !strings.Contains(text.String(), "refused=61") {
		t.Errorf("%d warnings after a minute:\n%s", n, text.String())
	}
	r.m.SetCapacity(0)
	r.w.RunFor(5 * time.Second)
	for _, l := range logs {
		if a := r.append(l, records(1, 1000, large)); a.Err != nil {
			t.Errorf("there is room: %v", a.Err)
		}
	}
	if n := strings.Count(text.String(), "there is room again"); n != 1 || len(r.files.cramped) != 0 {
		t.Errorf("that it is over was told %d times:\n%s", n, text.String())
	}
}

// TestNoDescriptorForARoll: the append is refused, nothing is lost, and the log goes on when there are descriptors again.
func TestNoDescriptorForARoll(t *testing.T) {
	for seed := range uint64(5) {
		r := newRig(t, seed)
		o := r.options("/data/t-0")
		o.Config.SegmentBytes = 1000
		l := r.open(o)
		r.append(l, records(1, 1000, string(make([]byte, 500))))
		r.m.FailNext("open", ".log", 0, 3+int(seed), syscall.EMFILE)
		refused := 0
		for i := 0; ; i++ {
			a := r.append(l, records(1, 1000, fmt.Sprint("v", i, string(make([]byte, 500)))))
			if a.Err == nil {
				break
			}
			if refused++; !errors.Is(a.Err, ErrNoSpace) || refused > 20 {
				t.Fatalf("seed %d: %v", seed, a.Err)
			}
			r.w.RunFor(time.Second)
		}
		if refused == 0 || l.Failed() != nil {
			t.Errorf("seed %d: %d refused, %v", seed, refused, l.Failed())
		}
		r.m.CalmDown()
		if n := len(r.readAll(l, 1<<20)); n != 2 {
			t.Errorf("seed %d: %d batches", seed, n)
		}
		r.do("close", func(task *ring.Task) {
			if err := l.Close(task); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
}

// TestStopWithoutRoomForARolledSegment: the stop is not clean, and the next start reads the segment whose transactions are not on file.
func TestStopWithoutRoomForARolledSegment(t *testing.T) {
	r := newRig(t, 1)
	l := r.open(r.options("/data/t-0"))
	r.append(l, records(1, 1000, "v"))
	r.on(func() { l.segs[0].txnDirty = true })
	r.m.FailNext("open", txnSuffix, 0, 1<<20, syscall.ENOSPC)
	r.do("close", func(t *ring.Task) {
		l.Roll()
		if err := l.Close(t); !errors.Is(err, ErrOffline) {
			r.tb.Errorf("close: %v", err)
		}
	})
	if p, end := l.RecoveryPoint(), l.segs[0].next; p >= end {
		t.Errorf("the recovery point is %d, though the segment up to %d is not finished", p, end)
	}
}
