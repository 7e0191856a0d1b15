package broker

import (
	"fmt"
	"testing"
	"time"

	"kring/wire"
)

// TestQuietLogsCostNoCheckpoints puts a mark into the checkpoint files of a broker that is left alone: it stays until something changes, and
// then the files say what is so.
func TestQuietLogsCostNoCheckpoints(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		s := newSim(t, loops, 1)
		s.start("replica.high.watermark.checkpoint.interval.ms=1000", "log.flush.offset.checkpoint.interval.ms=1000",
			"log.flush.start.offset.checkpoint.interval.ms=1000", "log.retention.check.interval.ms=1000", "log.cleaner.backoff.ms=1000",
			"log.segment.delete.delay.ms=0")
		c := connect(t, s)
		c.createTopic("k", 2, "flush.messages=1")
		c.createTopic("other", 1, "cleanup.policy=compact")
		c.produce("k", 0, 1, words("a", "b"))
		c.produce("k", 1, 1, words("a"))
		s.w.RunFor(5 * time.Second)
		files := []string{"replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint"}
		hold := func(when string, want map[string]string) {
			t.Helper()
			for _, name := range files {
				text, differs := want[name]
				if !differs {
					text = "a mark"
				}
				if got, _ := s.m.ReadFile("/data/" + name); string(got) != text {
					t.Errorf("%s, %s: %q", when, name, got)
				}
			}
		}
		mark := func() {
			for _, name := range files {
				s.m.WriteFile("/data/"+name, []byte("a mark"))
			}
		}
		mark()
		s.w.RunFor(2 * time.Minute)
		hold("left alone", nil)
		c.produce("k", 0, 1, words("c"))
		s.w.RunFor(5 * time.Second)
		hold("after an append", map[string]string{
			"replication-offset-checkpoint":    "0\n3\nk 0 3\nk 1 1\nother 0 0\n",
			"recovery-point-offset-checkpoint": "0\n3\nk 0 2\nk 1 0\nother 0 0\n",
		})
		mark()
		c.deleteTopic("other")
		s.w.RunFor(5 * time.Second)
		hold("after a deletion", map[string]string{
			"replication-offset-checkpoint":    "0\n2\nk 0 3\nk 1 1\n",
			"recovery-point-offset-checkpoint": "0\n2\nk 0 2\nk 1 0\n",
			"cleaner-offset-checkpoint":        "0\n0\n",
		})
		s.stop()
	}
}

// BenchmarkIdleHour is an hour of a broker's clocks, without a request. Two things in it go over all partitions: a look at retention, twelve
// times, and one for directories that are gone, sixty times.
func BenchmarkIdleHour(b *testing.B) {
	for _, partitions := range []int32{10, 1000, 10_000} {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			s := newSim(b, 1, 1)
			s.start()
			c := connect(b, s)
			for i := int32(0); i < partitions; i += 50 {
				if code := c.createTopic(fmt.Sprint("t", i), min(partitions, 50)); code != wire.None {
					b.Fatal(code)
				}
			}
			c.close()
			s.w.RunFor(10 * time.Minute)
			for b.Loop() {
				s.w.RunFor(time.Hour)
			}
			b.StopTimer()
			s.stop()
		})
	}
}
