package coordinator

import (
	"slices"
	"time"
)

// consumerType is the protocol type of consumers, whose subscriptions the coordinator can read.
const consumerType = "consumer"

// phase is what a group's timer waits for.
type phase uint8

const (
	idle    phase = iota
	initial       // the first members of an empty group: the join lasts as long as it is set to
	joining       // all known members to join
	syncing       // all members to have sent Sync
)

// group is a group: its members, if it has any, and its offsets.
type group struct {
	id string
	at int // in the shard's order

	state        State
	stateMs      int64 // when the state was entered; -1: not known
	protocolType string
	typeGiven    *string // the same, as it was last answered
	protocol     *string
	generation   int32
	leader       *member
	recorded     bool // the last group record that was replayed is not a tombstone

	members   map[string]*member
	order     []*member // in the order in which they joined first
	instances map[string]*member
	pending   map[string]*pendingMember
	supported map[string]int // how many members support a protocol
	joined    int            // how many members wait in a join
	unsynced  int

	phase     phase
	timer     timer
	remaining time.Duration // by which the initial phase may still grow
	delay     time.Duration // of the initial phase
	newcomer  bool          // somebody joined in the initial phase since it was last looked at
	storing   bool          // the leader's assignment is being written
	reason    string        // of the last rebalance, for logs

	// subscribed holds the topics of a consumer group's generation; nil if they are not known.
	subscribed map[string]bool

	offsets  offsets
	written  uint64 // records of the group so far, but for tombstones
	expiring int    // tombstones of the last Expire that are under way
}

func (g *group) rebalanceTimeout() time.Duration {
	var most int32
	for _, m := range g.order {
		most = max(most, m.rebalanceMs)
	}
	return time.Duration(most) * time.Millisecond
}

// supports says whether a member with these protocols finds one that all members support.
func (g *group) supports(protocolType string, protocols []Protocol) bool {
	if g.state == Empty {
		return protocolType != "" && len(protocols) > 0
	}
	return g.protocolType == protocolType &&
		slices.ContainsFunc(protocols, func(p Protocol) bool { return g.supported[p.Name] == len(g.members) })
}

// elected is the protocol most members prefer among those that all support; of equals the one that was named first.
func (g *group) elected() string {
	votes := make(map[string]int, 1)
	best := ""
	for _, m := range g.order {
		for _, p := range m.protocols {
			if g.supported[p.Name] == len(g.members) {
				votes[p.Name]++
				break
			}
		}
	}
	for _, m := range g.order {
		for _, p := range m.protocols {
			if n := votes[p.Name]; n > votes[best] {
				best = p.Name
			}
		}
	}
	return best
}

func (g *group) count(m *member, by int) {
	for _, p := range m.protocols {
		if g.supported[p.Name] += by; g.supported[p.Name] == 0 {
			delete(g.supported, p.Name)
		}
	}
}

// add makes m a member. The first member decides the group's protocol type.
func (g *group) add(m *member, protocolType string) {
	if g.members == nil {
		g.members, g.supported = map[string]*member{}, map[string]int{}
	}
	if len(g.members) == 0 {
		g.protocolType = protocolType
	}
	if m.instance != nil {
		if g.instances == nil {
			g.instances = map[string]*member{}
		}
		g.instances[*m.instance] = m
	}
	if g.leader == nil {
		g.leader = m
	}
	g.members[m.id] = m
	g.order = append(g.order, m)
	g.count(m, 1)
}

// drop takes m out of the members. Another one leads if m did.
func (g *group) drop(m *member) {
	g.count(m, -1)
	delete(g.members, m.id)
	g.order = slices.DeleteFunc(g.order, func(o *member) bool { return o == m })
	if m.instance != nil {
		delete(g.instances, *m.instance)
	}
	if m.unsynced {
		m.unsynced = false
		g.unsynced--
	}
	if g.leader == m {
		g.leader = nil
		if len(g.order) > 0 {
			g.leader = g.order[0]
		}
	}
}

// member finds who sends a request: ErrFencedInstance if the instance id is another member's.
func (g *group) member(id string, instance *string) (*member, error) {
	if instance != nil {
		m := g.instances[*instance]
		if m == nil {
			return nil, ErrUnknownMember
		}
		if m.id != id {
			return nil, ErrFencedInstance
		}
	}
	// Of many small groups each is cold when its member's heartbeat comes: one look less at memory.
	if m := g.leader; m != nil && m.id == id {
		return m, nil
	}
	m := g.members[id]
	if m == nil {
		return nil, ErrUnknownMember
	}
	return m, nil
}

// leaderID is the leader's id, "" if nobody leads.
func (g *group) leaderID() string {
	if g.leader == nil {
		return ""
	}
	return g.leader.id
}

// seen is what the leader learns of the members.
func (g *group) seen() []JoinMember {
	list := make([]JoinMember, len(g.order))
	for i, m := range g.order {
		list[i] = JoinMember{Member: m.id, Instance: m.instance, Metadata: m.metadata(*g.protocol)}
	}
	return list
}

// subscribes says whether a consumer group reads the topic; if it is not known, it may.
func (g *group) subscribes(topic string) bool { return g.subscribed == nil || g.subscribed[topic] }

// subscriptions finds out what the members of a generation are subscribed to. It reads the first version's fields of a consumer's
// metadata, which begin all later ones.
func (g *group) subscriptions() {
	g.subscribed = nil
	if g.protocolType != consumerType {
		return
	}
	topics := map[string]bool{}
	for _, m := range g.order {
		if g.protocol == nil || !subscribedTopics(m.metadata(*g.protocol), topics) {
			return
		}
	}
	g.subscribed = topics
}

// subscribedTopics adds the topics of a consumer's metadata; false if it cannot be read.
func subscribedTopics(metadata []byte, topics map[string]bool) bool {
	r := reader{rest: metadata}
	r.int16() // the version
	n := r.int32()
	if r.bad || n < 0 || int(n) > len(r.rest)/2 {
		return false
	}
	for range n {
		topic := r.string()
		if r.bad {
			return false
		}
		if !topics[string(topic)] {
			topics[string(topic)] = true
		}
	}
	r.nullableBytes()
	return !r.bad
}
