package coordinator

import (
	"strings"
	"time"
)

// Event is a step of a group, for logs.
type Event struct {
	Group      string
	State      State
	Generation int32
	Members    int
	Leader     string
	Reason     string // of the rebalance that led to it
}

// awayMin is how often a group at least waits for static members of whom none has joined, whatever they gave as rebalance timeout.
const awayMin = time.Second

func (s *Shard) enter(g *group, state State, now Now) {
	s.become(g, state)
	g.stateMs = now.UnixMilli
}

func (s *Shard) become(g *group, state State) {
	s.states[g.state]--
	s.states[state]++
	g.state = state
}

func (s *Shard) tell(g *group) {
	if s.Observe != nil {
		s.Observe(Event{g.id, g.state, g.generation, len(g.members), g.leaderID(), g.reason})
	}
}

// reasonMost bounds what is kept of a reason: a client's words may be part of it.
const reasonMost = 300

func (g *group) because(reason string) {
	if len(reason) > reasonMost {
		reason = strings.Clone(reason[:reasonMost])
	}
	g.reason = reason
}

// rebalance makes all members join again, unless they are being asked to already.
func (s *Shard) rebalance(g *group, reason string, now Now) {
	if g.state == PreparingRebalance || g.state == Dead {
		return
	}
	if g.state == CompletingRebalance {
		s.refuseSyncs(g, ErrRebalancing, now)
	}
	s.endSyncPhase(g)
	g.because(reason)
	timeout := g.rebalanceTimeout()
	g.phase = joining
	if g.state == Empty {
		g.phase, g.newcomer = initial, false
		g.delay = s.config.InitialDelay
		g.remaining = max(timeout-g.delay, 0)
		timeout = g.delay
	}
	s.enter(g, PreparingRebalance, now)
	s.tell(g)
	s.timers.arm(&g.timer, now.Mono+timeout)
	s.tryJoin(g, now)
}

// tryJoin ends the join phase if all known members have joined.
func (s *Shard) tryJoin(g *group, now Now) {
	if g.phase == joining && g.joined == len(g.members) && len(g.pending) == 0 {
		s.completeJoin(g, now)
	}
}

// alarm ends a phase that has taken its time.
func (g *group) alarm(s *Shard, now Now) {
	switch g.phase {
	case initial:
		if g.newcomer && g.remaining > 0 {
			g.newcomer = false
			passed := g.delay
			g.delay = min(s.config.InitialDelay, g.remaining)
			g.remaining = max(g.remaining-passed, 0)
			s.timers.arm(&g.timer, now.Mono+g.delay)
			return
		}
		s.completeJoin(g, now)
	case joining:
		s.completeJoin(g, now)
	case syncing:
		s.expireSync(g, now)
	}
}

// completeJoin begins the next generation with those who have joined, and with static members, who may come back.
func (s *Shard) completeJoin(g *group, now Now) {
	s.endPhase(g)
	for i := 0; i < len(g.order); {
		if m := g.order[i]; m.join == nil && m.instance == nil {
			s.remove(g, m)
			continue
		}
		i++
	}
	if len(g.members) > 0 && !g.elect() {
		g.phase = joining // nobody is here: wait for them until a session ends
		s.timers.arm(&g.timer, now.Mono+max(g.rebalanceTimeout(), awayMin))
		return
	}
	s.beginGeneration(g, now)
	if g.state == Empty {
		s.tell(g)
		s.writeGroup(g, nil, now, func(error, Now) {}) // if that fails, the last generation comes back and its sessions end
		return
	}
	s.rebalances++
	s.tell(g)
	for _, m := range g.order {
		a := g.joinAnswer(m)
		if m == g.leader {
			a.Members = g.seen()
		}
		s.answerJoin(g, m, a)
		s.startSession(m, now)
		m.isNew = false
		if !m.unsynced {
			m.unsynced = true
			g.unsynced++
		}
	}
	g.phase = syncing
	s.timers.arm(&g.timer, now.Mono+g.rebalanceTimeout())
}

// elect makes a member lead that has joined; false if none has.
func (g *group) elect() bool {
	if g.leader.join != nil {
		return true
	}
	for _, m := range g.order {
		if m.join != nil {
			g.leader = m
			return true
		}
	}
	return false
}

func (s *Shard) beginGeneration(g *group, now Now) {
	g.generation++
	g.storing = false
	if len(g.members) == 0 {
		g.protocol = nil
		g.subscriptions()
		s.enter(g, Empty, now)
		return
	}
	protocol := g.elected()
	g.protocol = &protocol
	g.subscriptions()
	s.enter(g, CompletingRebalance, now)
}

func (s *Shard) endPhase(g *group) {
	g.phase = idle
	s.timers.stop(&g.timer)
}

// endSyncPhase waits no longer for members to send Sync.
func (s *Shard) endSyncPhase(g *group) {
	for _, m := range g.order {
		m.unsynced = false
	}
	g.unsynced = 0
	if g.phase == syncing {
		s.endPhase(g)
	}
}

// expireSync removes the members that were told the generation and have not asked for their assignment.
func (s *Shard) expireSync(g *group, now Now) {
	s.endPhase(g)
	for i := 0; i < len(g.order); {
		if m := g.order[i]; m.unsynced {
			s.remove(g, m)
			continue
		}
		i++
	}
	s.rebalance(g, "members did not sync in time", now)
}

// remove takes m out of its group and answers what it waits for. The caller sees to the group's phase.
func (s *Shard) remove(g *group, m *member) {
	s.answerJoin(g, m, JoinAnswer{Err: ErrUnknownMember, Generation: -1})
	s.answerSync(m, SyncAnswer{Err: ErrUnknownMember})
	s.timers.stop(&m.session)
	g.drop(m)
}

// removeAndRebalance takes m out for good, and the others rebalance.
func (s *Shard) removeAndRebalance(g *group, m *member, reason string, now Now) {
	s.remove(g, m)
	switch g.state {
	case Stable, CompletingRebalance:
		s.rebalance(g, reason, now)
	case PreparingRebalance:
		g.because(reason)
		s.tryJoin(g, now)
	}
}

func (s *Shard) removePending(g *group, p *pendingMember, now Now) {
	s.timers.stop(&p.session)
	delete(g.pending, p.id)
	if g.state == PreparingRebalance {
		s.tryJoin(g, now)
	}
}

func (s *Shard) startSession(m *member, now Now) {
	s.timers.arm(&m.session, now.Mono+time.Duration(m.sessionMs)*time.Millisecond)
}

// alarm removes a member whose session is over. While it waits for an answer it cannot send heartbeats, unless it is new.
func (m *member) alarm(s *Shard, now Now) {
	if !m.isNew && (m.join != nil || m.sync != nil) {
		return
	}
	s.removeAndRebalance(m.group, m, "session of member "+m.id+" is over", now)
}

func (p *pendingMember) alarm(s *Shard, now Now) { s.removePending(p.group, p, now) }
