package coordinator

import "errors"

const (
	stringMax = 1<<15 - 1 // the longest string a record holds

	scratchMax = 1 << 20 // bytes of records that are kept to be used again
)

// addOffset adds a committed offset to the batch that is written next.
func (s *Shard) addOffset(g *group, o *CommitOffset, v value) {
	start := len(s.bytes)
	s.bytes = Key{offsetKeyVersion, OffsetKey, g.id, o.Topic, o.Partition}.AppendTo(s.bytes)
	end := len(s.bytes)
	version := offsetValueVersion
	if v.expireMs != -1 {
		version = expiringValueVersion
	}
	s.bytes = OffsetValue{version, v.offset, v.leaderEpoch, v.metadata, v.commitMs, v.expireMs}.AppendTo(s.bytes)
	s.records = append(s.records, Record{s.bytes[start:end], s.bytes[end:]})
}

// addTombstone adds the end of an offset to the batch that is written next; addGroupTombstone that of a group.
func (s *Shard) addTombstone(g *group, k place) {
	s.addKey(Key{offsetKeyVersion, OffsetKey, g.id, s.topics.name(k), k.partition})
}

func (s *Shard) addGroupTombstone(g *group) {
	s.addKey(Key{Version: groupKeyVersion, Kind: GroupKey, Group: g.id})
}

func (s *Shard) addKey(k Key) {
	start := len(s.bytes)
	s.bytes = k.AppendTo(s.bytes)
	s.records = append(s.records, Record{Key: s.bytes[start:]})
}

// writeGroup writes the group as it is, with an assignment for each member.
func (s *Shard) writeGroup(g *group, assigned func(*member) []byte, now Now, done func(err error, now Now)) {
	v := GroupValue{Version: groupValueVersion, ProtocolType: g.protocolType, Generation: g.generation, Protocol: g.protocol,
		StateMs: g.stateMs}
	if g.leader != nil {
		v.Leader = &g.leader.id
	}
	v.Members = make([]MemberValue, len(g.order))
	for i, m := range g.order {
		v.Members[i] = MemberValue{m.id, m.instance, m.clientID, m.clientHost, m.rebalanceMs, m.sessionMs,
			m.metadata(*g.protocol), assigned(m)}
	}
	start := len(s.bytes)
	s.bytes = Key{Version: groupKeyVersion, Kind: GroupKey, Group: g.id}.AppendTo(s.bytes)
	end := len(s.bytes)
	s.bytes = v.AppendTo(s.bytes)
	s.records = append(s.records, Record{s.bytes[start:end], s.bytes[end:]})
	g.written++
	s.write(plain, now, func(_ int64, err error, now Now) {
		done(groupError(err), now)
		s.answer()
	})
}

// plain is a batch of no transaction that is no commit.
var plain = Batch{ProducerID: -1, ProducerEpoch: -1}

// write appends the records that were added since the last batch.
func (s *Shard) write(b Batch, now Now, done func(base int64, err error, now Now)) {
	b.Records, b.UnixMilli = s.records, now.UnixMilli
	s.journal.Append(b, done)
	if cap(s.bytes) > scratchMax {
		s.bytes, s.records = nil, nil
	}
	clear(s.records)
	s.bytes, s.records = s.bytes[:0], s.records[:0]
}

// groupError is what members are told when their group could not be written: most can join again at once.
func groupError(err error) error {
	switch {
	case errors.Is(err, ErrJournalTimedOut):
		return ErrRebalancing
	case errors.Is(err, ErrJournalTooLarge):
		return ErrUnknown
	}
	return commitError(err)
}

// commitError is what a client is told when its offsets could not be written.
func commitError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrJournalUnavailable):
		return ErrUnavailable
	case errors.Is(err, ErrJournalNotLeader):
		return ErrNotCoordinator
	case errors.Is(err, ErrJournalTimedOut):
		return ErrTimedOut
	case errors.Is(err, ErrJournalTooLarge):
		return ErrCommitTooLarge
	}
	return ErrUnknown
}
