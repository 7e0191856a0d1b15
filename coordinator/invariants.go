package coordinator

import "fmt"

// Verify is check for the simulator and other tests.
func (s *Shard) Verify() error { return s.check() }

// check holds the truths of a shard at rest:
//
//  1. Groups stand once in the map and once in the order, and are counted by their states; none is Dead.
//  2. A group has members unless it is Empty or prepares a rebalance; an Empty group has none, and no protocol.
//  3. Who leads is a member; a member stands once in the map, in the order, and under its instance id.
//  4. Joined, unsynced and supported count what the members say; all members support one protocol.
//  5. A member waits in a join only while the group prepares a rebalance, or while its new id is being written; in a sync only
//     while the rebalance completes. Who does not wait has a session.
//  6. The group's timer runs while a phase lasts, and the phase fits the state.
//  7. Offsets are counted; each topic is counted by the places it is used in; nothing is kept of a place without an offset and
//     without commits under way.
//  8. A producer's open groups are those that hold staged offsets of it.
//  9. Timers stand in the heap, early or right, in its order.
//  10. A request that was given back is not kept.
func (s *Shard) check() error {
	states := [States]int{}
	uses := map[uint32]int{}
	visible, open := 0, 0
	for i, g := range s.order {
		if s.groups[g.id] != g || g.at != i || g.state == Dead {
			return fmt.Errorf("coordinator: group %q (%v) is not where it belongs", g.id, g.state)
		}
		states[g.state]++
		visible += g.offsets.visible
		open += len(g.offsets.staged)
		if err := s.checkGroup(g); err != nil {
			return fmt.Errorf("coordinator: group %q (%v, generation %d): %w", g.id, g.state, g.generation, err)
		}
		if err := s.checkOffsets(g, uses); err != nil {
			return fmt.Errorf("coordinator: group %q: %w", g.id, err)
		}
	}
	if len(s.order) != len(s.groups) || states != s.states || visible != s.offsets {
		return fmt.Errorf("coordinator: %d groups of %d, states %v of %v, offsets %d of %d",
			len(s.order), len(s.groups), states, s.states, visible, s.offsets)
	}
	for number, topic := range s.topics.names {
		if topic.uses != uses[uint32(number)] || topic.uses > 0 && s.topics.numbers[topic.name] != uint32(number) {
			return fmt.Errorf("coordinator: topic %q counts %d uses of %d", topic.name, topic.uses, uses[uint32(number)])
		}
	}
	for producer, groups := range s.open {
		for _, g := range groups {
			open--
			if g.offsets.staging(producer) == nil {
				return fmt.Errorf("coordinator: producer %d is open in group %q without staged offsets", producer, g.id)
			}
		}
	}
	if open != 0 {
		return fmt.Errorf("coordinator: %d groups with staged offsets are not open", open)
	}
	for _, r := range s.answers[:s.answered] {
		if r != nil {
			return fmt.Errorf("coordinator: %T was given back and is kept", r)
		}
	}
	return s.timers.check()
}

func (s *Shard) checkGroup(g *group) error {
	if len(g.order) != len(g.members) || len(g.members) > 0 && g.state == Empty ||
		len(g.members) == 0 && (g.state == Stable || g.state == CompletingRebalance) {
		return fmt.Errorf("%d members, %d in order", len(g.members), len(g.order))
	}
	if (g.leader == nil) != (len(g.members) == 0) || g.leader != nil && g.members[g.leader.id] != g.leader {
		return fmt.Errorf("leader %q is not a member", g.leaderID())
	}
	if s.life == serving && (g.protocol == nil && (g.state == Stable || g.state == CompletingRebalance)) {
		return fmt.Errorf("no protocol")
	}
	joined, unsynced, instances, supported := 0, 0, 0, map[string]int{}
	for _, m := range g.order {
		if err := s.checkMember(g, m); err != nil {
			return fmt.Errorf("member %q: %w", m.id, err)
		}
		joined += one(m.join != nil)
		unsynced += one(m.unsynced)
		instances += one(m.instance != nil)
		for _, p := range m.protocols {
			supported[p.Name]++
		}
	}
	if joined != g.joined || unsynced != g.unsynced || instances != len(g.instances) || len(supported) != len(g.supported) {
		return fmt.Errorf("%d joined of %d, %d unsynced of %d, %d instances of %d, %d protocols of %d",
			joined, g.joined, unsynced, g.unsynced, instances, len(g.instances), len(supported), len(g.supported))
	}
	common := len(g.members) == 0
	for name, n := range supported {
		if g.supported[name] != n {
			return fmt.Errorf("protocol %q counts %d of %d", name, g.supported[name], n)
		}
		common = common || n == len(g.members)
	}
	if !common {
		return fmt.Errorf("no protocol that all members support")
	}
	fits := map[phase]bool{
		idle:    g.state == Empty || g.state == Stable || g.state == CompletingRebalance && g.unsynced == 0,
		initial: g.state == PreparingRebalance,
		joining: g.state == PreparingRebalance,
		syncing: (g.state == CompletingRebalance || g.state == Stable) && g.unsynced > 0,
	}
	if !fits[g.phase] || g.timer.running() != (g.phase != idle) {
		return fmt.Errorf("phase %d does not fit, timer runs: %v", g.phase, g.timer.running())
	}
	return nil
}

func (s *Shard) checkMember(g *group, m *member) error {
	switch {
	case m.group != g || g.members[m.id] != m || m.instance != nil && g.instances[*m.instance] != m:
		return fmt.Errorf("is not where it belongs")
	case g.pending[m.id] != nil:
		return fmt.Errorf("is pending too")
	case m.join != nil && g.state != PreparingRebalance && (g.state != Stable || m.instance == nil):
		return fmt.Errorf("waits in a join")
	case m.sync != nil && g.state != CompletingRebalance:
		return fmt.Errorf("waits in a sync")
	case s.life == serving && m.join == nil && m.sync == nil && !m.session.running():
		return fmt.Errorf("has no session")
	}
	return nil
}

func (s *Shard) checkOffsets(g *group, uses map[uint32]int) error {
	visible := 0
	for i := range g.offsets.entries.slots {
		k, e := g.offsets.entries.slots[i].place, &g.offsets.entries.slots[i].entry
		if g.offsets.entries.find(k) != e {
			return fmt.Errorf("%s-%d is not found", s.topics.name(k), k.partition)
		}
		uses[k.topic]++
		visible += one(e.base >= 0)
		if e.pending < 0 || e.base < 0 && e.pending == 0 {
			return fmt.Errorf("nothing is left of %s-%d, %d commits are under way", s.topics.name(k), k.partition, e.pending)
		}
	}
	for k := range g.offsets.extras {
		if e := g.offsets.entries.find(k); e == nil || e.base < 0 {
			return fmt.Errorf("metadata of %s-%d without an offset", s.topics.name(k), k.partition)
		}
	}
	if visible != g.offsets.visible {
		return fmt.Errorf("%d offsets of %d", visible, g.offsets.visible)
	}
	for _, t := range g.offsets.staged {
		if len(t.values) == 0 {
			return fmt.Errorf("transaction of producer %d holds nothing", t.producer)
		}
		for k, v := range t.values {
			uses[k.topic]++
			if v.pending < 0 || v.base < 0 && v.pending == 0 {
				return fmt.Errorf("nothing is staged of %s-%d", s.topics.name(k), k.partition)
			}
		}
	}
	return nil
}

func (h *timers) check() error {
	for i, t := range h.heap {
		if t.index != i+1 || t.at > t.due || i > 0 && t.before(h.heap[(i+1)/2-1]) {
			return fmt.Errorf("coordinator: timer %d stands at %d, at %v, due %v", i+1, t.index, t.at, t.due)
		}
	}
	return nil
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
