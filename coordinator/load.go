package coordinator

import (
	"errors"
	"fmt"
)

// life is what a shard does.
type life uint8

const (
	unloaded life = iota
	loading
	serving
)

// BeginLoad makes an unloaded shard loading in an epoch (the partition's leader epoch). It is false, and nothing is to be read,
// if a higher epoch was seen or the shard is loading or serving already.
func (s *Shard) BeginLoad(epoch int32) bool {
	if epoch < s.epoch {
		return false
	}
	s.epoch = epoch
	if s.life != unloaded {
		return false
	}
	s.life, s.loadEpoch = loading, epoch
	return true
}

// Loading says whether the load begun in epoch is still wanted: whoever reads for it asks before each piece.
func (s *Shard) Loading(epoch int32) bool { return s.life == loading && s.loadEpoch == epoch }

// Serving says whether requests are served.
func (s *Shard) Serving() bool { return s.life == serving }

// Replay applies one record of a data batch. Records must come in the order of their offsets. A record that cannot be
// understood is skipped, and the error says why: nothing needs to be done about it.
func (s *Shard) Replay(e Entry) error {
	if s.life != loading {
		return nil
	}
	k, err := parseKey(e.Key)
	if err != nil {
		return fmt.Errorf("record at offset %d: %w", e.Offset, err)
	}
	if k.version == groupKeyVersion {
		err = s.replayGroup(k, e.Value)
	} else {
		err = s.replayOffset(k, &e)
	}
	if err != nil {
		return fmt.Errorf("record at offset %d: %w", e.Offset, err)
	}
	return nil
}

func (s *Shard) replayOffset(k rawKey, e *Entry) error {
	var raw rawOffset
	if e.Value != nil {
		var err error
		if raw, err = parseOffset(e.Value); err != nil {
			return err
		}
	}
	g := s.replayed(k.group)
	number, ok := s.topics.numbers[string(k.topic)]
	if !ok {
		if e.Value == nil {
			return nil
		}
		number = s.topics.number(string(k.topic))
	}
	p := place{number, k.partition}
	if e.Value == nil && !e.Transactional {
		s.erase(g, p)
		return nil
	}
	v := value{raw.offset, raw.commitMs, raw.leaderEpoch, extra{expireMs: raw.expireMs}}
	if len(raw.metadata) > 0 {
		v.metadata = g.offsets.extras[p].metadata
		if v.metadata != string(raw.metadata) {
			v.metadata = string(raw.metadata)
		}
	}
	if !e.Transactional {
		s.apply(g, p, &v, e.Offset, 0)
		return nil
	}
	t := s.stage(g, e.ProducerID)
	staged := s.stagedValue(t, p)
	staged.value, staged.base = v, e.Offset
	if e.Value == nil {
		staged.base = -1
	}
	s.putStaged(g, t, p, staged)
	return nil
}

// ReplayMarker applies a transaction's end: the control record of a control batch.
func (s *Shard) ReplayMarker(producerID int64, committed bool, offset int64) {
	if s.life == loading {
		s.completeTransaction(producerID, committed)
	}
}

// CompleteTransaction puts a producer's offsets in force, or forgets them, once its marker is in the journal.
func (s *Shard) CompleteTransaction(producerID int64, committed bool) {
	if s.life == serving {
		s.completeTransaction(producerID, committed)
	}
}

// replayed finds or makes the group of a record. Records of one group stand together as a rule.
func (s *Shard) replayed(id []byte) *group {
	if s.lastReplayed != nil && s.lastReplayed.id == string(id) {
		return s.lastReplayed
	}
	g := s.groups[string(id)]
	if g == nil {
		g = s.newGroup(string(id), Now{})
	}
	s.lastReplayed = g
	return g
}

var errBadMembers = errors.New("group with members that cannot be")

// replayGroup makes a group what its record says, or takes its members if it is a tombstone.
func (s *Shard) replayGroup(k rawKey, b []byte) error {
	if b == nil {
		if g := s.groups[string(k.group)]; g != nil {
			s.reset(g)
		}
		return nil
	}
	v, err := DecodeGroup(b)
	if err != nil {
		return err
	}
	members := map[string]bool{}
	instances := map[string]bool{}
	for i := range v.Members {
		m := &v.Members[i]
		if members[m.Member] || m.Member == "" || v.Protocol == nil || m.Instance != nil && instances[*m.Instance] {
			return fmt.Errorf("%w: %q", errBadMembers, m.Member)
		}
		members[m.Member] = true
		if m.Instance != nil {
			instances[*m.Instance] = true
		}
	}
	g := s.replayed(k.group)
	s.reset(g)
	g.recorded = true
	g.generation, g.protocol, g.stateMs, g.protocolType = v.Generation, v.Protocol, v.StateMs, v.ProtocolType
	for i := range v.Members {
		g.restore(&v.Members[i])
	}
	if len(g.members) > 0 {
		s.become(g, Stable)
	}
	if v.Leader != nil && g.members[*v.Leader] != nil {
		g.leader = g.members[*v.Leader]
	}
	return nil
}

// reset takes all a group record gives.
func (s *Shard) reset(g *group) {
	s.become(g, Empty)
	g.members, g.order, g.instances, g.supported, g.leader = nil, nil, nil, nil, nil
	g.generation, g.protocol, g.protocolType, g.recorded = 0, nil, "", false
}

func (g *group) restore(v *MemberValue) {
	m := &member{
		group: g, id: v.Member, instance: v.Instance, clientID: v.ClientID, clientHost: v.ClientHost,
		sessionMs: v.SessionMs, rebalanceMs: v.RebalanceMs,
		protocols:  []Protocol{{*g.protocol, v.Subscription}},
		assignment: v.Assignment,
	}
	m.session.owner = m
	g.add(m, g.protocolType)
}

// Loaded ends the load of epoch: the shard serves, and the sessions of its members begin. A group that is larger than allowed
// rebalances, so that its members can commit before some are turned away.
func (s *Shard) Loaded(epoch int32, now Now) {
	if !s.Loading(epoch) {
		return
	}
	defer s.answer()
	s.life, s.lastReplayed = serving, nil
	for i := len(s.order) - 1; i >= 0; i-- { // backwards, since a group may go
		switch g := s.order[i]; {
		case !g.recorded && g.offsets.empty():
			s.bury(g)
		case !g.recorded:
			g.stateMs = now.UnixMilli
		default:
			s.revive(g, now)
		}
	}
}

func (s *Shard) revive(g *group, now Now) {
	g.subscriptions()
	if len(g.members) > s.config.MaxSize {
		s.rebalance(g, "group is larger than group.max.size", now)
	}
	for _, m := range g.order {
		s.startSession(m, now)
	}
}

// Unload answers all who wait in a group with ErrNotCoordinator and forgets the groups. Nothing happens if a higher epoch was
// seen; -1 is any epoch. Commits under way are answered when the journal answers.
func (s *Shard) Unload(epoch int32) {
	if epoch != -1 && epoch < s.epoch {
		return
	}
	s.epoch = max(s.epoch, epoch)
	defer s.answer()
	for i := len(s.order) - 1; i >= 0; i-- {
		s.bury(s.order[i])
	}
	s.life, s.lastReplayed = unloaded, nil
	s.groups, s.order, s.topics, s.open, s.timers, s.places = map[string]*group{}, nil, topics{}, nil, timers{}, nil
	s.bytes, s.records, s.commitWrites = nil, nil, nil
}
