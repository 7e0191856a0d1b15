package coordinator

// replaceStatic lets a new process take the place of a static member that has the same instance id (KIP-345). Whoever had the
// old id is fenced. A stable group stays as it is if the protocol would stay the same: the new id is written to the journal
// before the answer.
func (s *Shard) replaceStatic(g *group, m *member, id string, j *Join, now Now) {
	oldID, oldLeader, oldSession, oldRebalance := m.id, g.leaderID(), m.sessionMs, m.rebalanceMs
	s.answerJoin(g, m, JoinAnswer{Err: ErrFencedInstance, Generation: -1, Member: oldID})
	s.answerSync(m, SyncAnswer{Err: ErrFencedInstance})
	g.rename(m, id)
	s.updateMember(g, m, j)
	if m.isNew {
		s.timers.arm(&m.session, now.Mono+newMemberJoinMax)
	} else {
		s.startSession(m, now)
	}
	switch {
	case g.state == CompletingRebalance:
		// The leader may have seen the old id: its assignment would not reach the new one.
		s.rebalance(g, because("static member "+id+" replaces "+oldID, j), now)
	case g.state == Stable && g.elected() != *g.protocol:
		s.rebalance(g, because("protocol changes with static member "+id, j), now)
	case g.state == Stable:
		generation := g.generation
		s.writeGroup(g, (*member).assigned, now, func(err error, now Now) {
			if m.id != id || m.join == nil || g.state != Stable || g.generation != generation {
				return // answered meanwhile, or part of a rebalance that has begun
			}
			if err != nil {
				g.rename(m, oldID)
				m.sessionMs, m.rebalanceMs = oldSession, oldRebalance
				a := g.joinAnswer(m)
				a.Err, a.Member, a.Leader = err, "", oldLeader
				s.answerJoin(g, m, a)
			} else {
				s.answerJoin(g, m, g.replacedAnswer(m, j, oldLeader))
			}
			s.startSession(m, now)
		})
	}
}

// replacedAnswer lets the new process go on as the old one did. A leader that cannot be told not to assign (before KIP-814) is
// told the old leader's id, and so takes itself for a follower.
func (g *group) replacedAnswer(m *member, j *Join, oldLeader string) JoinAnswer {
	a := g.joinAnswer(m)
	switch {
	case !j.SkipAssignment:
		a.Leader = oldLeader
	case m == g.leader:
		a.SkipAssignment = true
		a.Members = g.seen()
	}
	return a
}

// rename gives m another id; what is expected of the old one is expected of the new.
func (g *group) rename(m *member, id string) {
	delete(g.members, m.id)
	m.id = id
	g.members[id] = m
}

func (m *member) assigned() []byte { return m.assignment }
