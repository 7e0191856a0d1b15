package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring"
	"kring/wire"
)

// TestSlowDiskCleansAllThereIs fills a topic of very small segments while the disk is slow, with the default dirty ratio: however
// far the rolled segments are finished when the cleaner looks, all of them are cleaned. What it left behind once, because it was
// not finished, would stay for ever: it is no longer dirty enough.
func TestSlowDiskCleansAllThereIs(t *testing.T) {
	tried := uint64(0)
	for seed := range seeds(12) {
		s := newSim(t, 1+int(seed%2), seed)
		s.start("log.cleaner.backoff.ms=5000")
		c := connect(t, s)
		if code := c.createTopic("small", 1, "cleanup.policy=compact", "segment.bytes=200"); code != wire.None {
			t.Fatal(code)
		}
		s.m.Faults.Slow = 1
		const batches = 150
		var all []*kmsg.ProduceRequest
		for i := range batches {
			all = append(all, produceRequest("small", 0, 1, keyed(fmt.Sprintf("%04d", i), "once", "dup_", "dup_", "dup_", "dup_")))
		}
		for i := range 5 {
			all = append(all, produceRequest("small", 0, 1, keyed(fmt.Sprintf("e-%02d", i), "end", fmt.Sprintf("f-%02d", i), "end")))
		}
		for _, m := range all {
			m.Version = 9
			c.post(m)
		}
		for _, m := range all {
			if p := c.receive(m).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
				t.Fatal(wire.Code(p.ErrorCode))
			}
		}
		early := false // a pass in between leaves what comes behind it, in Kafka too
		s.on(func(_ *ring.Task, b *Broker) { early = b.Cleaner().Cleanings > 0 || b.Cleaner().Running > 0 })
		if early {
			s.stop()
			continue
		}
		tried++
		s.w.RunFor(5 * time.Minute)
		if last, records := c.state("small", 0); records != batches+11 || len(last) != batches+11 {
			t.Errorf("seed %d: %d records of %d keys, wanted %d", seed, records, len(last), batches+11)
		}
		s.stop()
	}
	if tried < seeds(12)/2 {
		t.Errorf("of %d seeds %d had a cleaning before all was written", seeds(12), seeds(12)-tried)
	}
}

// TestDeletionsDoNotHoldUpTheCleaner deletes compacted topics at any moment of its passes, on a disk that is slow now and then: it goes on
// with the others, and the broker can stop.
func TestDeletionsDoNotHoldUpTheCleaner(t *testing.T) {
	for seed := range seeds(12) {
		s := newSim(t, 1<<(seed%3), seed)
		s.start("log.cleaner.backoff.ms=20", "log.segment.delete.delay.ms=0", "log.retention.check.interval.ms=30")
		s.m.Faults.Slow = 0.05
		c := connect(t, s)
		rnd := s.w.Rand()
		names := []string{}
		for i := range 30 {
			name := fmt.Sprint("t", i)
			if code := c.createTopic(name, 2, "cleanup.policy=compact", "segment.bytes=300", "min.cleanable.dirty.ratio=0.01"); code != wire.None {
				t.Fatal(code)
			}
			for j := range 12 {
				c.produce(name, int32(j%2), 1, keyed("k", fmt.Sprint(j), "l", fmt.Sprint(j)))
			}
			s.w.RunFor(time.Duration(rnd.IntN(80)) * time.Millisecond)
			names = append(names, name)
			if at := rnd.IntN(len(names)); rnd.IntN(4) > 0 {
				if code := c.deleteTopic(names[at]); code != wire.None {
					t.Fatal(code)
				}
				names = append(names[:at], names[at+1:]...)
			}
		}
		s.m.Faults.Slow = 0
		for _, name := range names { // whatever has gone before, what is written now is cleaned
			for j := range 40 {
				c.produce(name, 0, 1, keyed("k", fmt.Sprint(j), "l", fmt.Sprint(j)))
			}
		}
		s.w.RunFor(20 * time.Second)
		for _, name := range names {
			if _, records := c.state(name, 0); records > 8 {
				t.Errorf("seed %d: %s has %d records of 2 keys", seed, name, records)
			}
		}
		s.stop()
	}
}
