package ring

import (
	"encoding/binary"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// BenchmarkCollectBesideAWaitingLoop is how long a collection takes while a loop waits; worst-ms is the longest.
func BenchmarkCollectBesideAWaitingLoop(b *testing.B) {
	k := onLoops(b, 1, Options{})
	l := k.Loops()[0]
	on(b, l, func(*Task) { l.After(Tick, &Timer{Fire: func(tm *Timer) { l.After(Tick, tm) }}) })
	worst := time.Duration(0)
	for b.Loop() {
		begin := time.Now()
		runtime.GC()
		worst = max(worst, time.Since(begin))
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}

// BenchmarkIdle is the CPU an idle loop takes per second.
func BenchmarkIdle(b *testing.B) {
	k := onLoops(b, 1, Options{})
	on(b, k.Loops()[0], func(t *Task) { t.Sleep(10 * Tick) })
	before, begin := cpuTime(b), time.Now()
	for b.Loop() {
		on(b, k.Loops()[0], func(t *Task) { t.Sleep(time.Second) })
	}
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/time.Since(begin).Seconds(), "CPU-us/s")
}

// BenchmarkEcho is a closed loop of 50 connections; the CPU is that of both ends.
func BenchmarkEcho(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"1KiB", 1 << 10}, {"128KiB", 128 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			k := onLoops(b, 1, Options{})
			a := serve(b, k, func(l Loop, s Socket) { attachEcho(l, s) })
			const conns = 50
			before := cpuTime(b)
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range conns {
				n := b.N / conns
				if i < b.N%conns {
					n++
				}
				wg.Go(func() {
					conn := dial(b, a)
					defer conn.Close()
					frame := binary.BigEndian.AppendUint32(nil, uint32(c.size))
					frame = append(frame, make([]byte, c.size)...)
					in := make([]byte, len(frame))
					for range n {
						conn.Write(frame)
						if _, err := io.ReadFull(conn, in); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "CPU-us/op")
		})
	}
}

// BenchmarkWrite is an append by each path, one at a time.
func BenchmarkWrite(b *testing.B) {
	for _, path := range []string{"ring", "pwrite"} {
		for _, size := range []int{1 << 10, 64 << 10} {
			b.Run(path+map[int]string{1 << 10: "/1KiB", 64 << 10: "/64KiB"}[size], func(b *testing.B) {
				dir := b.TempDir()
				k := onLoops(b, 1, Options{WritePath: path, Dirs: []string{dir}})
				b.SetBytes(int64(size))
				b.ReportAllocs()
				on(b, k.Loops()[0], func(t *Task) {
					f, err := t.Open(filepath.Join(dir, "f"), Write|Create)
					if err != nil {
						b.Error(err)
						return
					}
					defer f.Close()
					bufs := [][]byte{make([]byte, size)}
					at := int64(0)
					start := func(op *Op) { f.Write(bufs, at, op) }
					b.ResetTimer()
					for range b.N {
						if op := t.Wait(start); op.Err != nil {
							b.Error(op.Err)
							return
						}
						if at += int64(size); at > 1<<30 {
							at = 0
						}
					}
				})
			})
		}
	}
}

// BenchmarkPost is a round trip of a message between two loops.
func BenchmarkPost(b *testing.B) {
	k := onLoops(b, 2, Options{})
	x, y := k.Loops()[0], k.Loops()[1]
	done := make(chan bool)
	n := 0
	there, back := &Message{}, &Message{}
	there.Run = func(*Message) { x.Post(back) }
	back.Run = func(*Message) {
		if n++; n >= b.N {
			close(done)
			return
		}
		y.Post(there)
	}
	b.ReportAllocs()
	b.ResetTimer()
	y.Post(there)
	<-done
}

// BenchmarkAlloc lends and returns a buffer.
func BenchmarkAlloc(b *testing.B) {
	l := &loop{trimmer: Timer{set: true}}
	b.ReportAllocs()
	for b.Loop() {
		l.Alloc(5000).Release()
	}
}
