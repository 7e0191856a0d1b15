package segment

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"kring/ring"
)

// A log that is not written to costs little memory, whatever it holds.
func TestIdleLogIsSmall(t *testing.T) {
	const n = 2000
	loop := &nullLoop{}
	files := NewFiles(loop, 100)
	logs := make([]*Log, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range logs {
		c := DefaultConfig()
		c.IndexIntervalBytes = 100
		ring.Go(loop, func(task *ring.Task) {
			l, err := nullOpen{loop}.open(task, Options{Dir: fmt.Sprintf("/data/topic-%d", i), Config: c, Files: files})
			if err != nil {
				t.Fatal(err)
			}
			logs[i] = l
		})
		for logs[i] == nil {
			loop.turn()
		}
		a := Append{Data: records(1, epoch, strings.Repeat("v", 200)), Done: func(*Append) {}}
		for range 300 { // 20 ms of a busy life
			a.next = nil
			logs[i].Append(&a)
			loop.turn()
			loop.turn()
		}
		for range 2 {
			done := false
			ring.Go(loop, func(task *ring.Task) {
				if _, err := logs[i].Retain(task, epoch, 0); err != nil {
					t.Error(err)
				}
				done = true
			})
			for !done {
				loop.turn()
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := (after.HeapAlloc - before.HeapAlloc) / n
	t.Logf("%d bytes per idle log; Log has %d, a segment %d", per, unsafe.Sizeof(Log{}), unsafe.Sizeof(segment{}))
	if per > 4096 {
		t.Errorf("an idle log holds %d bytes", per)
	}
	runtime.KeepAlive(logs)
}

// An idle log's indexes are on file; appends, reads and look-ups go on as before.
func TestIndexesSpillAndReturn(t *testing.T) {
	for seed := range uint64(20) {
		r := newRig(t, seed)
		r.m.WriteFile("/data/.lock", nil)
		o := r.options("/data/t-0")
		o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 30_000, 300
		l := r.open(o)
		w := &twin{}
		for range 4 {
			appendMany(t, r, l, w, 15, false)
			for range 2 {
				r.do("retain", func(task *ring.Task) {
					l.until(task, l.still)
					if n, err := l.Retain(task, epoch, 0); n != 0 || err != nil {
						t.Fatal(n, err)
					}
				})
			}
			if s := l.active(); len(s.index.mem) > 0 || len(s.times.mem) > 0 || l.recent.n > 0 {
				t.Fatalf("seed %d: an idle log holds indexes of %d and %d bytes", seed, len(s.index.mem), len(s.times.mem))
			}
			compareTimes(t, r, l, w)
			if err := w.isPrefix(r.readAll(l, 3000)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		r.close(l)
		for _, s := range l.segs {
			b, err := r.m.ReadFile(s.path(indexSuffix))
			if err != nil || offsetIndex(b).check(s.size) != nil {
				t.Fatalf("seed %d: %v, %v", seed, err, offsetIndex(b).check(s.size))
			}
		}
		if err := r.m.Exit(); err != nil {
			t.Fatal(err)
		}
	}
}
