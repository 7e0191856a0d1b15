package segment

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"kring/ring"
	"kring/wire/batch"
)

var errBroken = errors.New("broken")

// A failed write or sync ends the log: waiters are told, nothing is tried again, and a new start finds what was good.
func TestIOErrorTakesLogOffline(t *testing.T) {
	for _, what := range []string{"write", "sync"} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, 11)
			o := r.options("/data/t-0")
			o.Config.FlushMessages = 1
			l := r.open(o)
			r.append(l, records(3, 1000, "good"))
			fails := 0
			r.on(func() { l.OnFail = func(error) { fails++ } })
			r.m.FailNext(what, ".log", 0, 1, errBroken)
			var told []error
			r.do("appends", func(task *ring.Task) {
				for range 5 {
					l.Append(&Append{Data: records(1, 1000, "lost"), Done: func(a *Append) { told = append(told, a.Err) }})
				}
				task.Sleep(time.Second)
			})
			if len(told) != 5 || fails != 1 {
				t.Fatalf("%d of 5 told, %d failures", len(told), fails)
			}
			for _, err := range told {
				if !errors.Is(err, ErrOffline) || !errors.Is(err, errBroken) {
					t.Errorf("told %v", err)
				}
			}
			if a := r.append(l, records(1, 1000, "v")); !errors.Is(a.Err, ErrOffline) {
				t.Errorf("append: %v", a.Err)
			}
			if _, err := r.read(l, 0, 3, 100, true); !errors.Is(err, ErrOffline) {
				t.Errorf("read: %v", err)
			}
			r.do("close", func(task *ring.Task) {
				if err := l.Close(task); !errors.Is(err, ErrOffline) {
					t.Errorf("close: %v", err)
				}
			})
			r.m.Crash()
			r.boot()
			o.Files, o.RecoveryPoint = r.files, l.RecoveryPoint()
			l = r.open(o)
			if l.End() < 3 {
				t.Errorf("ends at %d, 3 were durable", l.End())
			}
		})
	}
}

// A full disk refuses appends, keeps what was there readable, and takes appends again once there is room.
func TestFullDisk(t *testing.T) {
	for seed := range uint64(30) {
		r := newRig(t, seed)
		rnd := r.w.Rand()
		r.m.WriteFile("/data/.lock", nil)
		o := r.options("/data/t-0")
		o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 20_000, 100

		if seed%3 == 0 {
			o.Config.FlushMessages = 1
		}
		l := r.open(o)
		w := &twin{}
		appendMany(t, r, l, w, 10, false)
		r.m.SetCapacity(60_000 + rnd.Int64N(30_000))
		full := false
		seq := int32(0)
		for tries := 0; !full; tries++ {
			if tries > 1000 {
				t.Fatalf("seed %d: the disk does not fill up", seed)
			}
			var list []*Append
			left := 0

			r.do("appends", func(task *ring.Task) {
				for range 1 + rnd.IntN(6) {
					a := &Append{Data: produced(5, 0, seq, 100, epoch, false), Done: func(*Append) { left--; l.notify() }}
					l.Append(a)
					if a.Err != nil {
						break
					}
					seq += 100
					left++
					list = append(list, a)
				}
				l.until(task, func() bool { return left == 0 })
			})
			for _, a := range list {
				if a.Err == nil {
					if full {
						t.Fatalf("seed %d: an append after a refused one was taken", seed)
					}
					w.batches = append(w.batches, a.Data)
					continue
				}
				if !errors.Is(a.Err, ErrNoSpace) {
					t.Fatalf("seed %d: %v", seed, a.Err)
				}
				full = true
				seq = min(seq, batch.Header(a.Data).BaseSequence())
			}
		}
		r.do("the way back", func(task *ring.Task) { l.until(task, func() bool { return !l.reverting }) })
		if err := w.isPrefix(r.readAll(l, 3000)); err != nil || l.End() != w.end() {
			t.Fatalf("seed %d: %v; ends at %d, want %d", seed, err, l.End(), w.end())
		}
		r.m.SetCapacity(10_000_000)
		a := r.append(l, produced(5, 0, seq, 10, epoch, false))
		if a.Err != nil || a.Base != w.end() {
			t.Fatalf("seed %d: with room again: %v at %d, want %d", seed, a.Err, a.Base, w.end())
		}
		w.batches = append(w.batches, a.Data)
		appendMany(t, r, l, w, 20, false)
		compareTimes(t, r, l, w)
		if rnd.IntN(2) == 0 {
			r.close(l)
			o.Clean = true
		}
		if err := exitOr(r, o.Clean); err != nil {
			t.Fatal(err)
		}
		r.boot()
		o.Files = r.files
		l = r.open(o)
		if err := w.isPrefix(r.readAll(l, 3000)); err != nil || l.End() != w.end() {
			t.Fatalf("seed %d: after a start: %v; ends at %d, want %d", seed, err, l.End(), w.end())
		}
	}
}

func exitOr(r *rig, clean bool) error {
	if clean {
		return r.m.Exit()
	}
	r.m.Kill()
	return nil
}

func TestRetention(t *testing.T) {
	r := newRig(t, 12)
	o := r.options("/data/t-0")
	o.Config.SegmentBytes = 1000
	o.Config.RetentionMs, o.Config.RetentionBytes = -1, -1
	l := r.open(o)
	for i := range 10 { // segments of two batches of 10 records
		r.append(l, records(10, epoch+int64(i)*1000, strings.Repeat("v", 30)))
	}
	if l.Segments() != 5 {
		t.Fatalf("%d segments", l.Segments())
	}
	retain := func(now int64, hw Offset, want int) {
		t.Helper()
		r.do("retain", func(task *ring.Task) {
			if n, err := l.Retain(task, now, hw); err != nil || n != want {
				t.Fatalf("%d segments went, %v; want %d (hw %d, start %d, size %d, now %d)", n, err, want, hw, l.start, l.Size(), now-epoch)
			}
		})
		r.do("rest", func(task *ring.Task) { task.Sleep(time.Second) })
	}
	set := func(change func(*Config)) {
		c := l.Config()
		change(&c)
		r.on(func() { l.SetConfig(c) })
	}
	r.do("flush", func(task *ring.Task) { _ = l.Flush(task) })
	retain(epoch+1<<40, 100, 0) // no limit is set
	pinned := Range{Done: func(*Range) {}}
	r.on(func() { l.Read(0, 100, 100, true, &pinned) })
	r.do("rest", func(task *ring.Task) { task.Sleep(time.Second) })
	r.on(func() {
		if err := l.DeleteTo(25); err != nil {
			t.Fatal(err)
		}
	})
	if l.Start() != 25 || l.Segments() != 5 {
		t.Fatalf("start %d, %d segments", l.Start(), l.Segments())
	}
	if o, ok := l.StartCheckpoint(); !ok || o != 25 {
		t.Errorf("checkpoint %d, %v", o, ok)
	}
	retain(epoch, 100, 1)
	if l.Start() != 25 || l.SegmentBase(25) != 20 {
		t.Fatalf("start %d in %d", l.Start(), l.SegmentBase(25))
	}
	r.do("the pinned range", func(task *ring.Task) {
		b := make([]byte, pinned.Len)
		if n, err := task.Read(pinned.File, b, pinned.From); err != nil || n != len(b) || header(b).base() != 0 {
			t.Errorf("a pinned range of a deleted segment: %d, %v", n, err)
		}
	})
	r.on(pinned.Unpin)
	set(func(c *Config) { c.RetentionBytes = l.Size() - 1 })
	retain(epoch, 100, 0) // a whole segment is more than what is too much
	set(func(c *Config) { c.RetentionBytes = l.Size() - l.segs[0].size })
	retain(epoch, 39, 0) // above the high watermark
	retain(epoch, 40, 1)
	set(func(c *Config) { c.RetentionBytes, c.RetentionMs = -1, 5000 })
	retain(epoch+5009+5000, 100, 0)
	retain(epoch+5009+5001, 100, 1)
	if l.Start() != 60 {
		t.Errorf("start %d", l.Start())
	}
	retain(epoch+1<<40, 100, 2) // the active one, too
	if l.Start() != 100 || l.End() != 100 || l.Segments() != 1 || l.Size() != 0 {
		t.Errorf("from %d to %d in %d segments", l.Start(), l.End(), l.Segments())
	}
	if _, err := r.read(l, 99, 100, 10, true); !errors.Is(err, ErrOutOfRange) {
		t.Errorf("read below the start: %v", err)
	}
	if got := strings.Join(r.m.Files(o.Dir), " "); !strings.Contains(got, deletedSuffix) {
		t.Errorf("deleted files are kept for a while: %s", got)
	}
	r.do("the delay", func(task *ring.Task) { task.Sleep(2 * time.Minute) })
	if got := strings.Join(r.m.Files(o.Dir), " "); strings.Contains(got, deletedSuffix) {
		t.Errorf("and go then: %s", got)
	}
	if a := r.append(l, records(1, epoch, "v")); a.Err != nil || a.Base != 100 {
		t.Errorf("append: %v at %d", a.Err, a.Base)
	}
	r.close(l)
	if err := r.m.Exit(); err != nil {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	r := newRig(t, 13)
	o := r.options("/data/t-0")
	l := r.open(o)
	r.append(l, records(3, epoch, "v"))
	r.do("remove", func(task *ring.Task) {
		if err := l.Remove(task); err != nil {
			t.Fatal(err)
		}
	})
	if a := r.append(l, records(3, epoch, "v")); !errors.Is(a.Err, ErrClosed) {
		t.Errorf("append: %v", a.Err)
	}
	files := r.m.Files("/data")
	if len(files) == 0 || strings.Contains(files[0], "/t-0/") || !strings.Contains(files[0], "-delete") {
		t.Errorf("files: %v", files)
	}
	l = r.open(o) // the same name again
	r.append(l, records(3, epoch, "v"))
	r.do("the delay", func(task *ring.Task) { task.Sleep(2 * time.Minute) })
	for _, f := range r.m.Files("/data") {
		if strings.Contains(f, "-delete") {
			t.Errorf("%s is still there", f)
		}
	}
	r.close(l)
	if err := r.m.Exit(); err != nil {
		t.Error(err)
	}
}

func TestTruncateTo(t *testing.T) {
	for seed := range uint64(20) {
		r := newRig(t, seed)
		rnd := r.w.Rand()
		r.m.WriteFile("/data/.lock", nil)
		o := r.options("/data/t-0")
		o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 9000, 500
		l := r.open(o)
		w := &twin{}
		for range 3 {
			appendMany(t, r, l, w, 30, false)
			n := rnd.IntN(len(w.batches))
			to := header(w.batches[n]).base()
			w.batches = w.batches[:n]
			r.do("truncate", func(task *ring.Task) {
				if err := l.TruncateTo(task, to); err != nil {
					t.Fatal(err)
				}
			})
			if err := w.isPrefix(r.readAll(l, 4000)); err != nil || l.End() != to || len(l.epochs) > 0 && l.epochs[len(l.epochs)-1].start >= to {
				t.Fatalf("seed %d: %v; ends at %d, want %d; epochs %v", seed, err, l.End(), to, l.epochs)
			}
			appendMany(t, r, l, w, 10, false)
			compareTimes(t, r, l, w)
		}
		r.close(l)
		if err := r.m.Exit(); err != nil {
			t.Fatal(err)
		}
		r.boot()
		o.Files, o.Clean = r.files, true
		l = r.open(o)
		if err := w.isPrefix(r.readAll(l, 4000)); err != nil || l.End() != w.end() {
			t.Fatalf("seed %d: after a start: %v; ends at %d, want %d", seed, err, l.End(), w.end())
		}
	}
}

// No more files stay open than allowed, whatever is read.
func TestFewFilesOpen(t *testing.T) {
	r := newRig(t, 14)
	r.files = NewFiles(r.loop, 3)
	var logs []*Log
	for _, dir := range []string{"/data/a-0", "/data/b-0", "/data/c-0", "/data/d-0", "/data/e-0"} {
		o := r.options(dir)
		o.Config.SegmentBytes = 1000
		l := r.open(o)
		for range 6 {
			r.append(l, records(10, epoch, strings.Repeat("v", 30)))
		}
		logs = append(logs, l)
	}
	for range 2 {
		for _, l := range logs {
			if n := len(r.readAll(l, 500)); n != 6 {
				t.Errorf("%s: %d batches", l.Dir(), n)
			}
		}
	}
	for _, l := range logs {
		r.do("flush", func(task *ring.Task) { _ = l.Flush(task) })
		r.readAll(l, 500)
	}
	if n := r.files.Open(); n > 4 {
		t.Errorf("%d files are open", n)
	}
	for _, l := range logs {
		r.close(l)
	}
	if n := r.files.Open(); n != 0 {
		t.Errorf("%d files are open after all logs were closed", n)
	}
	if err := r.m.Exit(); err != nil {
		t.Error(err)
	}
}

func TestFlushMs(t *testing.T) {
	r := newRig(t, 15)
	o := r.options("/data/t-0")
	o.Config.FlushMs = 100
	l := r.open(o)
	r.append(l, records(3, epoch, "v"))
	if l.Durable() != 0 {
		t.Errorf("durable %d at once", l.Durable())
	}
	r.w.RunFor(time.Second)
	if l.Durable() != 3 {
		t.Errorf("durable %d after flush.ms", l.Durable())
	}
}

func TestTopicIDMismatch(t *testing.T) {
	r := newRig(t, 16)
	o := r.options("/data/t-0")
	o.TopicID = TopicID{1}
	r.close(r.open(o))
	o.TopicID = TopicID{2}
	r.do("open", func(task *ring.Task) {
		if _, err := Open(task, o); !errors.Is(err, ErrTopicID) {
			t.Errorf("open: %v", err)
		}
	})
	b, err := r.m.ReadFile("/data/t-0/partition.metadata")
	if err != nil || string(b) != "version: 0\ntopic_id: AQAAAAAAAAAAAAAAAAAAAA" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := r.m.ReadFile("/data/t-0/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
