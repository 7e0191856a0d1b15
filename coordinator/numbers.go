package coordinator

// Groups is the number of groups.
func (s *Shard) Groups() int { return len(s.groups) }

// Offsets is the number of committed offsets.
func (s *Shard) Offsets() int { return s.offsets }

// GroupsIn is the number of groups in a state.
func (s *Shard) GroupsIn(state State) int { return s.states[state] }

// Rebalances counts the generations that began, Commits the offsets that were committed, and Expired those that were forgotten
// because of their age, since the shard was made.
func (s *Shard) Rebalances() uint64 { return s.rebalances }

// Commits counts the offsets that were committed.
func (s *Shard) Commits() uint64 { return s.commits }

// Expired counts the offsets that were forgotten because of their age.
func (s *Shard) Expired() uint64 { return s.expired }

// VisitOffsets visits all committed offsets, ordered by topic and partition within a group, without allocating for each.
func (s *Shard) VisitOffsets(visit func(group, topic string, partition int32, offset int64)) {
	for _, g := range s.order {
		for _, k := range s.sorted(g) {
			if e := g.offsets.entries.find(k); e.base >= 0 {
				visit(g.id, s.topics.name(k), k.partition, e.offset)
			}
		}
	}
}
