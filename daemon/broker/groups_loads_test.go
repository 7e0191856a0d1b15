package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/ring"
	"kring/wire"
)

// TestGroupsThatCannotBeLoadedAreCounted damages the log of one partition of groups: it is said and counted, and the others are served.
func TestGroupsThatCannotBeLoadedAreCounted(t *testing.T) {
	sim := newSim(t, 2, 1)
	settings := []string{noDelay, "offsets.topic.num.partitions=2"}
	sim.start(settings...)
	s := settled(t, sim)
	for _, g := range []string{"a", "b"} {
		s.commit(wire.None, g, "", -1, "t 0 7")
	}
	failed := func() (figure, node int) {
		sim.on(func(t *ring.Task, b *Broker) {
			for _, f := range figures(t, b) {
				figure += f.Groups.Failed
			}
			node = b.node.GroupsFailed()
		})
		return figure, node
	}
	if figure, node := failed(); figure != 0 || node != 0 {
		t.Fatalf("%d, %d failed", figure, node)
	}
	sim.stop()
	log := fmt.Sprintf("/data/__consumer_offsets-%d/00000000000000000000.log", coordinator.PartitionOf("b", 2))
	if err := sim.m.Damage(log, func(b []byte) []byte { b[len(b)-3] ^= 1; return b }); err != nil {
		t.Fatal(err)
	}
	sim.start(settings...)
	s.conns, s.under = map[string]*client{}, map[string][]kmsg.Request{}
	s.until("c", fetchOffsets("a", "t 0"), 7, func(r kmsg.Response) bool { return r.(*kmsg.OffsetFetchResponse).ErrorCode == 0 })
	s.until("c", fetchOffsets("b", "t 0"), 7, func(r kmsg.Response) bool {
		return wire.Code(r.(*kmsg.OffsetFetchResponse).ErrorCode) == wire.NotCoordinator
	})
	if figure, node := failed(); figure != 1 || node != 1 {
		t.Errorf("%d, %d failed, wanted 1", figure, node)
	}
	sim.stop()
}

// TestLoadingComesBeforeCleaning: after a start no log of a loop is cleaned while groups of it are waited for, and all are cleaned then.
func TestLoadingComesBeforeCleaning(t *testing.T) {
	for seed := range seeds(6) {
		sim := newSim(t, 1<<(seed%3), seed)
		settings := []string{noDelay, "offsets.topic.num.partitions=4", "offsets.topic.segment.bytes=1000", "offsets.load.buffer.size=200"}
		sim.start(append(settings, "log.cleaner.enable=false")...)
		s := settled(t, sim)
		for i := range 400 {
			s.commit(wire.None, fmt.Sprint("g", i%9), "", -1, fmt.Sprint("t 0 ", i))
		}
		sim.w.RunFor(time.Minute)
		sim.stop()
		sim.m.Faults.Slow = 0.5
		sim.start(append(settings, "log.cleaner.backoff.ms=20", "log.cleaner.min.cleanable.ratio=0.01")...)
		loading, early := 0, 0
		err := sim.w.RunUntil("cleanings", time.Hour, func() bool {
			for _, sh := range sim.b.shards {
				if sh.loads.busy {
					loading++
					for _, r := range sim.b.cleaner.running {
						if r.s == sh {
							early++
						}
					}
				}
			}
			return sim.b.cleaner.figures.Cleanings >= 4
		})
		if err != nil || early > 0 || loading == 0 {
			t.Errorf("seed %d: %v; seen loading %d times, cleaned meanwhile %d times", seed, err, loading, early)
		}
		sim.m.Faults.Slow = 0
		sim.stop()
	}
}
