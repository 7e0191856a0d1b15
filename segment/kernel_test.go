package segment

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"kring/ring"
)

// The same log on a real disk, by both ways to write.
func TestOnKernel(t *testing.T) {
	for _, path := range []string{"ring", "pwrite"} {
		t.Run(path, func(t *testing.T) {
			dir := t.TempDir()
			k, err := ring.New(ring.Options{Loops: 1, WritePath: path, Dirs: []string{dir}})
			var refused *ring.Refused
			if errors.As(err, &refused) && os.Getenv("CI") == "" {
				t.Skipf("no io_uring here: %v", refused)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = k.Run(func() {
				ring.Go(k.Loops()[0], func(task *ring.Task) {
					defer k.Stop()
					onKernel(t, task, dir)
				})
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func onKernel(t *testing.T, task *ring.Task, dir string) {
	d, err := OpenDir(task, dir, DirOptions{ClusterID: "c", BrokerID: 1})
	if err != nil {
		t.Error(err)
		return
	}
	defer d.Abandon()
	var all []byte
	for life := range 3 {
		o := d.Options(Partition{"t", 0})
		o.Config.SegmentBytes = 100_000
		o.Config.Preallocate = life == 1
		o.Config.FlushMessages = int64(1 + life*1000)
		o.Clean = life > 0
		l, err := Open(task, o)
		if err != nil {
			t.Error(err)
			return
		}
		left := 0
		for i := range 400 {
			data := records(3, epoch+int64(i), strings.Repeat("v", i))
			l.Append(&Append{Data: data, Done: func(a *Append) {
				if left--; a.Err != nil {
					t.Error(a.Err)
				}
			}})
			left++
			all = append(all, data...)
			if i%7 == 0 {
				l.until(task, func() bool { return left == 0 })
			}
		}
		l.until(task, func() bool { return left == 0 })
		if got := readBack(t, task, l); !bytes.Equal(got, all) {
			t.Errorf("life %d: %d bytes, want %d", life, len(got), len(all))
		}
		if err := l.Close(task); err != nil {
			t.Error(err)
		}
		entries, err := task.List(o.Dir)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name, logSuffix) && e.Size > 100_000 {
				t.Errorf("%s has %d bytes", e.Name, e.Size)
			}
		}
	}
}

func readBack(t *testing.T, task *ring.Task, l *Log) []byte {
	var all []byte
	for at := l.Start(); at < l.Written(); {
		var r Range
		if !l.Read(at, l.Written(), 5000, true, &r) {
			task.Suspend(func(wake func()) { r.Done = func(*Range) { wake() } })
		}
		if r.Err != nil || r.Len == 0 {
			t.Errorf("read at %d: %d bytes, %v", at, r.Len, r.Err)
			return all
		}
		b := make([]byte, r.Len)
		if n, err := task.Read(r.File, b, r.From); err != nil || n != len(b) {
			t.Error(n, err)
		}
		r.Unpin()
		for len(b) > headerSizeOf(b) && int64(len(b)) >= header(b).size() {
			all = append(all, b[:header(b).size()]...)
			at = header(b).last() + 1
			b = b[header(b).size():]
		}
	}
	return all
}

func headerSizeOf(b []byte) int {
	if len(b) < 17 {
		return len(b)
	}
	return header(b).need()
}

// BenchmarkSyncEach appends 16 KiB at a time, each made durable before the next (flush.messages=1).
func BenchmarkSyncEach(b *testing.B) {
	for _, fill := range []bool{true, false} {
		b.Run(map[bool]string{true: "into-zeros", false: "into-reserved"}[fill], func(b *testing.B) {
			dir := b.TempDir()
			k, err := ring.New(ring.Options{Loops: 1, Dirs: []string{dir}})
			if err != nil {
				b.Skip(err)
			}
			err = k.Run(func() {
				ring.Go(k.Loops()[0], func(task *ring.Task) {
					defer k.Stop()
					o := Options{Dir: dir + "/t-0", Config: DefaultConfig()}
					o.Config.FlushMessages = 1
					l, err := Open(task, o)
					if err != nil {
						b.Fatal(err)
					}
					done := false
					a := Append{Data: records(1, epoch, strings.Repeat("v", 16<<10)), Done: func(*Append) { done = true; l.notify() }}
					l.active().room.off = !fill
					b.SetBytes(int64(len(a.Data)))
					for b.Loop() {
						done = false
						l.Append(&a)
						l.until(task, func() bool { return done })
					}
					if err := l.Close(task); err != nil {
						b.Error(err)
					}
				})
			})
			if err != nil {
				b.Error(err)
			}
		})
	}
}
