package coordinator

// Fetch visits the committed offsets of the partitions asked for, in that order; nil topics are all that have one, by topic and
// partition. With requireStable offsets with unsettled commits have ErrUnstableOffset. It is answered at once.
func (s *Shard) Fetch(group string, topics []TopicPartitions, requireStable bool, visit func(Committed)) error {
	if err := s.admits(group, false); err != nil {
		return err
	}
	g := s.groups[group]
	if topics == nil {
		if g == nil {
			return nil
		}
		for _, k := range s.sorted(g) {
			if g.offsets.entries.find(k).base >= 0 {
				visit(s.committed(g, k, requireStable))
			}
		}
		return nil
	}
	for i := range topics {
		number, known := s.topics.numbers[topics[i].Topic]
		for _, p := range topics[i].Partitions {
			c := Committed{Offset: -1, LeaderEpoch: -1, CommitMs: -1}
			if known && g != nil {
				c = s.committed(g, place{number, p}, requireStable)
			}
			c.Topic, c.Partition = topics[i].Topic, p
			visit(c)
		}
	}
	return nil
}

func (s *Shard) committed(g *group, k place, requireStable bool) Committed {
	c := Committed{Topic: s.topics.name(k), Partition: k.partition, Offset: -1, LeaderEpoch: -1, CommitMs: -1}
	if requireStable && g.offsets.unstable(k) {
		c.Err = ErrUnstableOffset
		return c
	}
	if v, ok := g.offsets.get(k); ok {
		c.Offset, c.LeaderEpoch, c.Metadata, c.CommitMs = v.offset, v.leaderEpoch, v.metadata, v.commitMs
	}
	return c
}
