package segment

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kring/ring"
	"kring/wire/batch"
)

// BenchmarkCleaningHoldsTheLoop cleans large batches and small ones on a real disk, and reports how long the loop's thread has computed
// in one turn at most, and how many of a thousand turns took more than a millisecond: time that it was made to wait does not count.
func BenchmarkCleaningHoldsTheLoop(b *testing.B) {
	dir := b.TempDir()
	k, err := ring.New(ring.Options{Loops: 1, Dirs: []string{dir}})
	if err != nil {
		b.Fatal(err)
	}
	var all turnTimes
	err = k.Run(func() {
		loop := k.Loops()[0]
		ring.Go(loop, func(t *ring.Task) {
			defer k.Stop()
			for range b.N {
				b.StopTimer()
				l := mixedLog(b, t, dir)
				b.StartTimer()
				end := all.watch(loop)
				s, err := l.Clean(t, CleanOptions{Now: epoch, Stable: l.End(), MapBytes: 128 << 20, MapLoad: 0.9, BufferBytes: 256 << 10})
				end()
				if err != nil || s.Groups < 2 {
					b.Errorf("%+v %v", s, err)
				}
				b.StopTimer()
				if err := l.Remove(t); err != nil {
					b.Error(err)
				}
				b.StartTimer()
			}
		})
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(all.longest.Microseconds()), "us/longest-turn")
	b.ReportMetric(1000*float64(all.long)/float64(max(all.n, 1)), "long/1000-turns")
}

// mixedLog holds batches of all codecs and sizes up to 3 MB.
func mixedLog(b *testing.B, t *ring.Task, dir string) *Log {
	o := Options{Dir: dir + "/t-0", Config: DefaultConfig()}
	o.Config.Compact, o.Config.DeleteRetained, o.Config.SegmentBytes, o.Config.FileDeleteDelayMs = true, false, 8<<20, 0
	l, err := Open(t, o)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 300 {
		bb := batch.NewBuilder(batch.Codec(i % 5))
		for j := range 1 + i%20*100 {
			bb.Add(epoch, fmt.Appendf(nil, "key %d", i*j%5000), bytes.Repeat([]byte{byte(i), byte(j)}, 1+j%400))
		}
		if i%50 == 0 {
			bb.Add(epoch, []byte("large"), bytes.Repeat([]byte("large"), 600_000))
		}
		left := true
		l.Append(&Append{Data: bb.AppendTo(nil), Done: func(*Append) { left = false; l.notify() }})
		l.until(t, func() bool { return !left })
	}
	l.Roll()
	l.until(t, func() bool { return len(l.unfinished()) == 0 && !l.finishing })
	return l
}

// turnTimes is what was seen of a loop.
type turnTimes struct {
	n, long int // all, and those of more than a millisecond
	longest time.Duration
}

// watch looks at the thread's time once a turn until end is called.
func (all *turnTimes) watch(loop ring.Loop) (end func()) {
	last, stop := threadTime(), false
	var timer ring.Timer
	timer.Fire = func(t *ring.Timer) {
		now := threadTime()
		took := now - last
		last, all.longest = now, max(all.longest, took)
		if all.n++; took > time.Millisecond {
			all.long++
		}
		if !stop {
			loop.After(0, t)
		}
	}
	loop.After(0, &timer)
	return func() { stop = true }
}

// threadTime is what the calling thread has computed.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
