package broker

import (
	"fmt"
	"testing"
	"time"

	"kring/wire"
)

// TestSlowDiskCleansAllThereIs fills a topic of very small segments while the disk is slow, with the default dirty ratio: however
// far the rolled segments are finished when the cleaner looks, all of them are cleaned. What it left behind once, because it was
// not finished, would stay for ever: it is no longer dirty enough.
func TestSlowDiskCleansAllThereIs(t *testing.T) {
	for seed := range seeds(12) {
		s := newSim(t, 1+int(seed%2), seed)
		s.start("log.cleaner.backoff.ms=1000")
		c := connect(t, s)
		if code := c.createTopic("small", 1, "cleanup.policy=compact", "segment.bytes=200"); code != wire.None {
			t.Fatal(code)
		}
		s.m.Faults.Slow = 1
		const batches = 150
		for i := range batches {
			if _, code := c.produce("small", 0, 1, keyed(fmt.Sprintf("%04d", i), "once", "dup_", "dup_", "dup_", "dup_")); code != wire.None {
				t.Fatal(code)
			}
		}
		for i := range 5 {
			c.produce("small", 0, 1, keyed(fmt.Sprintf("e-%02d", i), "end", fmt.Sprintf("f-%02d", i), "end"))
		}
		s.w.RunFor(5 * time.Minute)
		if last, records := c.state("small", 0); records != batches+11 || len(last) != batches+11 {
			t.Errorf("seed %d: %d records of %d keys, wanted %d", seed, records, len(last), batches+11)
		}
		s.stop()
	}
}
