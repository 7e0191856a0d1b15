package segment

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kring/ring"
	"kring/wire/batch"
)

// BenchmarkClean cleans 64 MB of records of 160 bytes on a real disk: bytes are those of the dirty part, which is read twice.
func BenchmarkClean(b *testing.B) {
	for _, codec := range []batch.Codec{batch.None, batch.LZ4, batch.Zstd} {
		for _, keys := range []int{1000, 400_000} {
			b.Run(fmt.Sprintf("%v-%d-keys", codec, keys), func(b *testing.B) { benchClean(b, codec, keys) })
		}
	}
}

func benchClean(b *testing.B, codec batch.Codec, keys int) {
	dir := b.TempDir()
	k, err := ring.New(ring.Options{Loops: 1, Dirs: []string{dir}})
	if err != nil {
		b.Fatal(err)
	}
	err = k.Run(func() {
		ring.Go(k.Loops()[0], func(t *ring.Task) {
			defer k.Stop()
			var allocs, records, mapBytes int64
			var took, spent time.Duration
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				l := fillLog(b, t, dir, codec, keys)
				b.SetBytes(l.Size())
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				b.StartTimer()
				began, cpu := time.Now(), processorTime()
				s, err := l.Clean(t, CleanOptions{Now: epoch, Stable: l.End(), MapBytes: 128 << 20, MapLoad: 0.9, BufferBytes: 256 << 10})
				took, spent = took+time.Since(began), spent+processorTime()-cpu
				b.StopTimer()
				runtime.ReadMemStats(&after)
				if err != nil || s.Keys != keys {
					b.Fatalf("%+v %v", s, err)
				}
				allocs += int64(after.Mallocs - before.Mallocs)
				records += s.ReadRecords
				mapBytes = max(mapBytes, s.MapBytes)
				if err := l.Remove(t); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(allocs)/float64(records), "allocs/record")
			b.ReportMetric(float64(took.Nanoseconds())/float64(records), "ns/record")
			b.ReportMetric(float64(spent.Nanoseconds())/float64(records), "cpu-ns/record")
			b.ReportMetric(float64(mapBytes)/1e6, "map-MB")
		})
	})
	if err != nil {
		b.Fatal(err)
	}
}

// processorTime is what the process has computed.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fillLog makes a log of 64 MB and rolls it.
func fillLog(b *testing.B, t *ring.Task, dir string, codec batch.Codec, keys int) *Log {
	o := Options{Dir: dir + "/t-0", Config: DefaultConfig()}
	o.Config.Compact, o.Config.DeleteRetained, o.Config.SegmentBytes, o.Config.FileDeleteDelayMs = true, false, 16<<20, 0
	l, err := Open(t, o)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for l.Segments() < 5 {
		bb := batch.NewBuilder(codec)
		for range 100 {
			bb.Add(epoch+int64(n), fmt.Appendf(nil, "group-%020d-topic", (n*7919)%keys), fmt.Appendf(nil, "value %090d of %d", n*2654435761, n))
			n++
		}
		left := true
		l.Append(&Append{Data: bb.AppendTo(nil), Done: func(*Append) { left = false; l.notify() }})
		l.until(t, func() bool { return !left })
	}
	l.until(t, func() bool { return l.unfinished() == nil && !l.finishing })
	return l
}
