package coordinator

import "bytes"

// Sync gives a member its assignment; it waits for the leader's.
func (s *Shard) Sync(y *Sync, now Now) {
	defer s.answer()
	y.Answer = SyncAnswer{}
	if err := s.admits(y.Group, true); err != nil {
		if err == ErrLoading {
			// What was known of the rebalance is lost: let the member join again, without looking for another coordinator.
			err = ErrRebalancing
		}
		s.refuseSync(y, err)
		return
	}
	g := s.groups[y.Group]
	if g == nil {
		s.refuseSync(y, ErrUnknownMember)
		return
	}
	m, err := g.member(y.Member, y.Instance)
	if err == nil {
		err = g.accepts(y)
	}
	if err != nil {
		s.refuseSync(y, err)
		return
	}
	switch g.state {
	case PreparingRebalance:
		s.refuseSync(y, ErrRebalancing)
	case CompletingRebalance:
		s.answerSync(m, SyncAnswer{Err: ErrRebalancing}) // an earlier one that its client has given up
		m.sync = y
		s.synced(g, m)
		if m == g.leader && !g.storing {
			s.storeAssignment(g, y, now)
		}
	case Stable:
		s.synced(g, m)
		m.sync = y
		s.answerSync(m, g.syncAnswer(m))
		s.startSession(m, now)
	default:
		s.refuseSync(y, ErrUnknownMember)
	}
}

func (g *group) accepts(y *Sync) error {
	switch {
	case y.Generation != g.generation:
		return ErrIllegalGeneration
	case y.ProtocolType != nil && *y.ProtocolType != g.protocolType,
		y.Protocol != nil && (g.protocol == nil || *y.Protocol != *g.protocol):
		return ErrInconsistentProtocol
	}
	return nil
}

// synced notes that m has sent Sync in this generation.
func (s *Shard) synced(g *group, m *member) {
	if m.unsynced {
		m.unsynced = false
		g.unsynced--
	}
	if g.unsynced == 0 {
		s.endSyncPhase(g)
	}
}

// storeAssignment writes the generation with the leader's assignment to the journal; when it is there, the group is stable and
// all get their share. Members the leader has left out get an empty one. A leader that sends another assignment meanwhile is not
// listened to: one generation has one.
func (s *Shard) storeAssignment(g *group, y *Sync, now Now) {
	assignments := make(map[string][]byte, len(y.Assignments))
	for _, a := range y.Assignments {
		assignments[a.Member] = bytes.Clone(a.Data)
	}
	generation := g.generation
	g.storing = true
	s.writeGroup(g, func(m *member) []byte { return assignments[m.id] }, now, func(err error, now Now) {
		if g.state != CompletingRebalance || g.generation != generation {
			return
		}
		g.storing = false
		if err != nil {
			s.refuseSyncs(g, err, now)
			s.rebalance(g, "assignment could not be written: "+err.Error(), now)
			return
		}
		s.enter(g, Stable, now)
		s.tell(g)
		for _, m := range g.order {
			m.assignment = assignments[m.id]
			if m.sync != nil {
				s.answerSync(m, g.syncAnswer(m))
				s.startSession(m, now)
			}
		}
	})
}

// refuseSyncs answers all who wait for the leader's assignment, which will not come.
func (s *Shard) refuseSyncs(g *group, err error, now Now) {
	for _, m := range g.order {
		m.assignment = nil
		if m.sync != nil {
			s.answerSync(m, SyncAnswer{Err: err})
			s.startSession(m, now)
		}
	}
}

func (g *group) syncAnswer(m *member) SyncAnswer {
	return SyncAnswer{ProtocolType: g.answeredType(), Protocol: g.protocol, Assignment: m.assignment}
}

// answerSync answers the sync m waits in, if it does.
func (s *Shard) answerSync(m *member, a SyncAnswer) {
	if m.sync == nil {
		return
	}
	m.sync.Answer = a
	s.reply(m.sync)
	m.sync = nil
}

func (s *Shard) refuseSync(y *Sync, err error) {
	y.Answer = SyncAnswer{Err: err}
	s.reply(y)
}
