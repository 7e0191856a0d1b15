package coordinator

import (
	"strings"
	"time"
)

// Join lets a member into its group; it waits until the group's next generation begins, unless nothing changes by it.
func (s *Shard) Join(j *Join, now Now) {
	defer s.answer()
	j.Answer = JoinAnswer{}
	if err := s.admits(j.Group, true); err != nil {
		s.refuseJoin(j, j.Member, err)
		return
	}
	if ms := time.Duration(j.SessionMs) * time.Millisecond; ms < s.config.MinSession || ms > s.config.MaxSession {
		s.refuseJoin(j, j.Member, ErrSessionTimeout)
		return
	}
	g := s.groups[j.Group]
	if g == nil {
		if j.Member != "" {
			s.refuseJoin(j, j.Member, ErrUnknownMember)
			return
		}
		g = s.newGroup(j.Group, now)
	}
	switch {
	case !s.hasRoom(g, j.Member):
		s.turnAway(g, j, now)
	case !g.supports(j.ProtocolType, j.Protocols) || !writable(j):
		s.refuseJoin(j, j.Member, ErrInconsistentProtocol)
	case j.Member == "":
		s.joinNew(g, j, now)
	default:
		s.joinKnown(g, j, now)
	}
	if g.state == PreparingRebalance {
		s.tryJoin(g, now)
	}
}

// writable says whether the strings of a join fit into a group's record.
func writable(j *Join) bool {
	for _, p := range j.Protocols {
		if len(p.Name) > stringMax {
			return false
		}
	}
	return len(j.ProtocolType) <= stringMax && len(j.ClientHost) <= stringMax && len(j.ClientID) <= stringMax-37 &&
		(j.Instance == nil || len(*j.Instance) <= stringMax-37)
}

// hasRoom holds group.max.size (KIP-389). While members join, those who have count: the group may be too large because the limit
// was lowered, and the last to come are turned away.
func (s *Shard) hasRoom(g *group, id string) bool {
	m := g.members[id]
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.join != nil || g.joined < s.config.MaxSize
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < s.config.MaxSize
	}
	return true
}

func (s *Shard) turnAway(g *group, j *Join, now Now) {
	if m := g.members[j.Member]; m != nil {
		s.remove(g, m)
	}
	if p := g.pending[j.Member]; p != nil {
		s.timers.stop(&p.session)
		delete(g.pending, p.id)
	}
	s.refuseJoin(j, "", ErrGroupFull)
}

func (s *Shard) joinNew(g *group, j *Join, now Now) {
	id := s.newMemberID(j)
	if j.Instance != nil {
		if m := g.instances[*j.Instance]; m != nil {
			s.replaceStatic(g, m, id, j, now)
			return
		}
	} else if j.RequireMemberID {
		p := &pendingMember{group: g, id: id}
		p.session.owner = p
		if g.pending == nil {
			g.pending = map[string]*pendingMember{}
		}
		g.pending[id] = p
		s.timers.arm(&p.session, now.Mono+time.Duration(j.SessionMs)*time.Millisecond)
		s.refuseJoin(j, id, ErrMemberIDRequired)
		return
	}
	s.addMember(g, id, j, now)
}

func (s *Shard) joinKnown(g *group, j *Join, now Now) {
	if p := g.pending[j.Member]; p != nil {
		if j.Instance != nil {
			s.refuseJoin(j, j.Member, ErrUnknownMember) // ids are given ahead to dynamic members alone
			return
		}
		s.timers.stop(&p.session)
		delete(g.pending, p.id)
		s.addMember(g, p.id, j, now)
		return
	}
	m, err := g.member(j.Member, j.Instance)
	switch {
	case err != nil:
		s.refuseJoin(j, j.Member, err)
	case g.state == PreparingRebalance,
		!m.matches(j.Protocols),
		g.state == Stable && m == g.leader: // it may see a change that does not show in its metadata, such as of topics
		s.updateMember(g, m, j)
		s.rebalance(g, because("member "+m.id+" joins again", j), now)
	default:
		// It may have missed the answer: the generation it knows is still the one.
		a := g.joinAnswer(m)
		if g.state == CompletingRebalance && m == g.leader {
			a.Members = g.seen()
		}
		j.Answer = a
		s.reply(j)
	}
}

func because(what string, j *Join) string {
	if j.Reason == "" {
		return what
	}
	return what + ": " + strings.Clone(j.Reason)
}

func (s *Shard) addMember(g *group, id string, j *Join, now Now) {
	m := &member{
		group: g, id: id, instance: keepString(j.Instance),
		clientID: strings.Clone(j.ClientID), clientHost: strings.Clone(j.ClientHost),
		sessionMs: j.SessionMs, rebalanceMs: j.RebalanceMs, protocols: keepProtocols(j.Protocols),
		isNew: true,
	}
	m.session.owner = m
	if g.state == PreparingRebalance && g.generation == 0 {
		g.newcomer = true
	}
	g.add(m, strings.Clone(j.ProtocolType))
	s.park(g, m, j)
	s.timers.arm(&m.session, now.Mono+newMemberJoinMax)
	s.rebalance(g, because("member "+id+" joins", j), now)
}

func (s *Shard) updateMember(g *group, m *member, j *Join) {
	if !m.matches(j.Protocols) {
		g.count(m, -1)
		m.protocols = keepProtocols(j.Protocols)
		g.count(m, 1)
	}
	m.rebalanceMs, m.sessionMs = j.RebalanceMs, j.SessionMs
	s.park(g, m, j)
}

// park lets j wait until the generation begins. A join of the same member that still waits is answered: its client has given
// it up.
func (s *Shard) park(g *group, m *member, j *Join) {
	s.answerJoin(g, m, JoinAnswer{Err: ErrRebalancing, Generation: -1, Member: m.id})
	m.join = j
	g.joined++
}

// answerJoin answers the join m waits in, if it does.
func (s *Shard) answerJoin(g *group, m *member, a JoinAnswer) {
	if m.join == nil {
		return
	}
	m.join.Answer = a
	s.reply(m.join)
	m.join = nil
	g.joined--
}

func (s *Shard) refuseJoin(j *Join, member string, err error) {
	j.Answer = JoinAnswer{Err: err, Generation: -1, Member: member}
	s.reply(j)
}

// joinAnswer is what m is told of the generation.
func (g *group) joinAnswer(m *member) JoinAnswer {
	return JoinAnswer{Generation: g.generation, ProtocolType: g.answeredType(), Protocol: g.protocol, Leader: g.leaderID(), Member: m.id}
}

// answeredType is the protocol type for answers, which keep it.
func (g *group) answeredType() *string {
	if g.typeGiven == nil || *g.typeGiven != g.protocolType {
		kept := g.protocolType
		g.typeGiven = &kept
	}
	return g.typeGiven
}
