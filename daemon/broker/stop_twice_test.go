package broker

import (
	"testing"

	"kring/replication"
	"kring/replication/controller"
	"kring/ring"
	"kring/segment"
	"kring/wire"
)

// A replica that is told to stop, and to stop and be deleted, while its log has an append under way: both wait for that, and
// whichever is first must not take the ground from under the other.
func TestReplicaIsStoppedTwiceWhileItAppends(t *testing.T) {
	for _, order := range [][]bool{{false, true}, {true, false}, {true, true}, {false, false}} {
		s := newSim(t, 1, 1)
		s.start("log.segment.delete.delay.ms=0")
		c := connect(t, s)
		if code := c.createTopic("t", 1, "flush.messages=1"); code != wire.None {
			t.Fatal(code)
		}
		s.on(func(task *ring.Task, b *Broker) {
			at := segment.Partition{Topic: "t"}
			r := b.shards[0].byName[at]
			r.part.Append(&replication.Append{Data: words("a"), Acks: 1, Done: func(*replication.Append) {}})
			if r.part.Idle() {
				t.Fatal("nothing is under way")
			}
			var parts []controller.StopReplica
			for _, remove := range order {
				parts = append(parts, controller.StopReplica{Topic: "t", ID: b.node.Image().Topic("t").ID, Delete: remove,
					LeaderEpoch: controller.EpochDuringDelete})
			}
			task.Suspend(func(wake func()) {
				b.stopReplicas(parts, func(errs []error) {
					for i, err := range errs {
						if err != nil {
							t.Errorf("%v: order %d: %v", order, i, err)
						}
					}
					b.loop.AtTurnEnd(&ring.Op{Done: func(*ring.Op) { wake() }})
				})
			})
			if deleted := order[0] || order[1]; (b.shards[0].byName[at] == nil) != deleted {
				t.Errorf("%v: the replica is there: %v", order, !deleted)
			}
		})
		c.close()
		s.stop()
	}
}
