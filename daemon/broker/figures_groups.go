package broker

import (
	"cmp"
	"slices"

	"kring/coordinator"
	"kring/ring"
)

// GroupFigures is what one loop knows of consumer groups.
type GroupFigures struct {
	// States is how many groups are in each state, Offsets how many offsets are committed.
	States  [coordinator.States]int
	Offsets int
	// Counted while their partition is led here: generations begun, offsets committed, offsets forgotten for their age.
	Rebalances, Commits, Expired uint64
	// Failed is of how many partitions of the offsets' topic the groups could not be loaded.
	Failed int
	// Committed are some of the offsets, in no order.
	Committed []CommittedFigures
}

// CommittedFigures is one committed offset.
type CommittedFigures struct {
	Group, Topic string
	Partition    int32
	Offset       int64
	// Lag is what is missing to the high watermark; -1 where that is not known. Lag fills it in.
	Lag int64
}

// groups copies what the loop knows of groups; offsets as long as all of a partition of the offsets' topic fit into most.
func (s *shard) groupFigures(t *ring.Task, most int, f *GroupFigures) {
	for g := range s.ctx.GroupShards() {
		for state := range f.States {
			f.States[state] += g.GroupsIn(coordinator.State(state))
		}
		if g.Failed() {
			f.Failed++
		}
		offsets := g.Offsets()
		f.Offsets += offsets
		f.Rebalances += g.Rebalances()
		f.Commits += g.Commits()
		f.Expired += g.Expired()
		if offsets == 0 || offsets > most-len(f.Committed) {
			continue
		}
		g.VisitOffsets(func(group, topic string, partition int32, offset int64) {
			f.Committed = append(f.Committed, CommittedFigures{group, topic, partition, offset, -1})
		})
		t.Sleep(0)
	}
}

// Add makes f the sum of both, with the offsets of both.
func (f *GroupFigures) Add(g *GroupFigures) {
	for i, n := range g.States {
		f.States[i] += n
	}
	f.Offsets += g.Offsets
	f.Rebalances += g.Rebalances
	f.Commits += g.Commits
	f.Expired += g.Expired
	f.Failed += g.Failed
	f.Committed = append(f.Committed, g.Committed...)
}

// Lag orders the offsets by group, topic and partition, cuts them down to most, and finds out how far each is behind.
func Lag(committed []CommittedFigures, partitions []PartitionFigures, most int) []CommittedFigures {
	slices.SortFunc(committed, func(a, b CommittedFigures) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	committed = committed[:min(len(committed), most)]
	for i := range committed {
		c := &committed[i]
		at, found := slices.BinarySearchFunc(partitions, c, func(p PartitionFigures, c *CommittedFigures) int {
			return cmp.Or(cmp.Compare(p.Topic, c.Topic), cmp.Compare(p.Partition, c.Partition))
		})
		if found && partitions[at].HighWatermark >= 0 {
			c.Lag = max(partitions[at].HighWatermark-c.Offset, 0)
		}
	}
	return committed
}
