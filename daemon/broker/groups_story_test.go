package broker

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring/simring"
	"kring/wire"
)

// tale is what happens to some groups, and what has been promised to their members.
type tale struct {
	t      testing.TB
	sim    *sim
	groups []*tribe
	over   bool
	codes  map[wire.Code]int
}

// tribe is a group as its members see it.
type tribe struct {
	name   string
	owners map[int32]map[int32]string // generation, partition: who owns it
	acked  [talePartitions]int64      // the highest offset whose commit was answered
	syncs  int
}

const talePartitions = 4 // of topic t

// nomad is a member that lives by callbacks: it joins, is given partitions, commits ever higher offsets for them, and now and then
// leaves, falls silent, or loses its connection.
type nomad struct {
	tale   *tale
	group  *tribe
	name   string
	static bool
	conn   *simring.Client
	in     []byte
	asked  []kmsg.Request

	member     string
	generation int32
	mine       []int32
	next       map[int32]int64
}

func (n *nomad) start() {
	if n.tale.over {
		return
	}
	n.in, n.asked, n.mine = nil, nil, nil
	conn := n.tale.sim.w.Dial(simAddr)
	n.conn = conn
	conn.OnReceive = func(b []byte) {
		if n.conn != conn {
			return
		}
		n.in = append(n.in, b...)
		for n.conn == conn && len(n.in) >= 4 && len(n.in) >= 4+int(binary.BigEndian.Uint32(n.in)) {
			size := 4 + int(binary.BigEndian.Uint32(n.in))
			body := n.in[4:size]
			n.in = n.in[size:]
			n.answer(body)
		}
	}
	conn.OnClose = func(error) {
		if n.conn == conn {
			n.later(200, n.start)
		}
	}
	n.join()
}

// later does something after up to ms milliseconds, if nothing has changed by then.
func (n *nomad) later(ms int, fn func()) {
	conn := n.conn
	n.tale.sim.w.After(time.Duration(1+n.tale.sim.w.Rand().IntN(ms))*time.Millisecond, func() {
		if n.conn == conn && !n.tale.over {
			fn()
		}
	})
}

func (n *nomad) send(m kmsg.Request, version int16) {
	m.SetVersion(version)
	head := wire.RequestHeader{Key: m.Key(), Version: version, CorrelationID: 1, ClientID: []byte(n.name)}
	frame := m.AppendTo(wire.AppendRequestHeader(make([]byte, 4), &head))
	wire.PutFrameSize(frame, 0)
	n.asked = append(n.asked, m)
	n.conn.Send(frame)
}

func (n *nomad) instance() *string {
	if n.static {
		return &n.name
	}
	return nil
}

func (n *nomad) join() {
	n.mine = nil
	m := joinRequest(n.group.name, n.member, n.instance(), "range=t")
	m.SessionTimeoutMillis, m.RebalanceTimeoutMillis = 6000, 9000
	n.send(m, 5)
}

// answer goes on where the answer leads.
func (n *nomad) answer(body []byte) {
	m := n.asked[0]
	n.asked = n.asked[1:]
	resp := m.ResponseKind()
	resp.SetVersion(m.GetVersion())
	if err := resp.ReadFrom(body[wire.ResponseHeaderSize(m.Key(), m.GetVersion()):]); err != nil {
		n.tale.t.Fatal(err)
	}
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		n.joined(r)
	case *kmsg.SyncGroupResponse:
		n.synced(r)
	case *kmsg.HeartbeatResponse:
		if n.good(wire.Code(r.ErrorCode)) {
			n.later(1000, n.live)
		}
	case *kmsg.OffsetFetchResponse:
		n.found(r)
	case *kmsg.OffsetCommitResponse:
		n.committed(m.(*kmsg.OffsetCommitRequest), r)
	}
}

// good is true for no error; any other has the member begin anew.
func (n *nomad) good(code wire.Code) bool {
	n.tale.codes[code]++
	switch code {
	case wire.None:
		return true
	case wire.RebalanceInProgress:
		n.later(20, n.join)
	case wire.FencedInstanceID:
		n.tale.t.Errorf("%s is fenced", n.name)
	case wire.UnknownMemberID, wire.IllegalGeneration:
		n.member = ""
		n.later(20, n.join)
	case wire.MemberIDRequired, wire.NotCoordinator, wire.CoordinatorLoadInProgress, wire.CoordinatorNotAvailable, wire.RequestTimedOut:
		n.later(100, n.join)
	default:
		n.tale.t.Errorf("%s: %v", n.name, code)
	}
	return false
}

func (n *nomad) joined(r *kmsg.JoinGroupResponse) {
	if wire.Code(r.ErrorCode) == wire.MemberIDRequired {
		n.member = r.MemberID
		n.join()
		return
	}
	if !n.good(wire.Code(r.ErrorCode)) {
		return
	}
	n.member, n.generation = r.MemberID, r.Generation
	y := syncRequest(n.group.name, n.member, n.generation)
	y.InstanceID = n.instance()
	for i, m := range r.Members {
		var parts []byte
		for p := range talePartitions {
			if p%len(r.Members) == i {
				parts = append(parts, byte(p))
			}
		}
		y.GroupAssignment = append(y.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: m.MemberID, MemberAssignment: parts})
	}
	n.send(y, 3)
}

func (n *nomad) synced(r *kmsg.SyncGroupResponse) {
	if !n.good(wire.Code(r.ErrorCode)) {
		return
	}
	g := n.group
	g.syncs++
	if g.owners[n.generation] == nil {
		g.owners[n.generation] = map[int32]string{}
	}
	n.mine = n.mine[:0]
	for _, b := range r.MemberAssignment {
		p := int32(b)
		if other := g.owners[n.generation][p]; other != "" && other != n.name {
			n.tale.t.Errorf("%s: generation %d: %s and %s own partition %d", g.name, n.generation, other, n.name, p)
		}
		g.owners[n.generation][p] = n.name
		n.mine = append(n.mine, p)
	}
	f := fetchOffsets(g.name)
	f.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: slices.Clone(n.mine)}}
	n.send(f, 7)
}

func (n *nomad) found(r *kmsg.OffsetFetchResponse) {
	if !n.good(wire.Code(r.ErrorCode)) {
		return
	}
	n.next = map[int32]int64{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if acked := n.group.acked[p.Partition]; acked > 0 && p.Offset < acked && n.generation == n.newest() {
				n.tale.t.Errorf("%s: %s found offset %d for partition %d, but %d was acknowledged", n.group.name, n.name, p.Offset, p.Partition, acked)
			}
			n.next[p.Partition] = max(p.Offset, 0) + 1
		}
	}
	n.live()
}

func (n *nomad) newest() (generation int32) {
	for g := range n.group.owners {
		generation = max(generation, g)
	}
	return generation
}

// live commits, or beats, or does something worse.
func (n *nomad) live() {
	random := n.tale.sim.w.Rand()
	switch random.IntN(60) {
	case 0: // leaves
		m := leaveRequest(n.group.name, n.member)
		if n.static {
			m = leaveRequest(n.group.name, n.member+"/"+n.name)
		}
		n.send(m, 3)
		n.again(1000)
		return
	case 1: // falls silent for longer than its session, and does not know
		conn := n.conn
		n.tale.sim.w.After(8*time.Second, func() {
			if n.conn == conn && !n.tale.over {
				n.live()
			}
		})
		return
	case 2: // loses its connection, and what it is told meanwhile
		n.again(300)
		return
	}
	if len(n.mine) == 0 || random.IntN(3) == 0 {
		n.send(heartbeatRequest(n.group.name, n.member, n.generation, n.instance()), 3)
		return
	}
	p := n.mine[random.IntN(len(n.mine))]
	m := commitRequest(n.group.name, n.member, n.generation, fmt.Sprint("t ", p, " ", n.next[p]))
	m.InstanceID = n.instance()
	n.next[p]++
	n.send(m, 7)
}

// again comes back by a new connection; a dynamic member as a new one.
func (n *nomad) again(ms int) {
	old := n.conn
	n.conn = nil
	if !n.static {
		n.member = ""
	} else if n.tale.sim.w.Rand().IntN(2) == 0 {
		n.member = "" // a process that was started anew
	}
	old.Close()
	n.later(ms, n.start)
}

func (n *nomad) committed(m *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse) {
	if !n.good(wire.Code(r.Topics[0].Partitions[0].ErrorCode)) {
		return
	}
	p := m.Topics[0].Partitions[0]
	n.group.acked[p.Partition] = max(n.group.acked[p.Partition], p.Offset)
	n.later(300, n.live)
}

// tell lets groups live through lives of a broker. It returns the digest of all that happened.
func tell(t *testing.T, seed uint64, loops int) uint64 {
	s := newSim(t, loops, seed)
	settings := []string{"group.initial.rebalance.delay.ms=100", "offsets.topic.num.partitions=5", "offsets.topic.segment.bytes=20000"}
	s.start(settings...)
	settled(t, s).close()
	x := &tale{t: t, sim: s, codes: map[wire.Code]int{}}
	for i := range 4 {
		g := &tribe{name: fmt.Sprint("group", i), owners: map[int32]map[int32]string{}}
		x.groups = append(x.groups, g)
		for k := range 2 + s.w.Rand().IntN(3) {
			n := &nomad{tale: x, group: g, name: fmt.Sprint(g.name, "-", k), static: i == 3}
			s.w.After(time.Duration(s.w.Rand().IntN(2000))*time.Millisecond, n.start)
		}
	}
	for range 3 {
		s.w.RunFor(time.Duration(5+s.w.Rand().IntN(25)) * time.Second)
		if s.w.Rand().IntN(2) == 0 {
			s.m.Kill()
		} else {
			s.stop()
		}
		s.start(settings...)
	}
	s.w.RunFor(30 * time.Second)
	x.over = true
	for _, g := range x.groups {
		if g.syncs < 5 {
			t.Errorf("seed %d: %s came to only %d assignments", seed, g.name, g.syncs)
		}
	}
	if x.codes[wire.None] < 100 || x.codes[wire.RebalanceInProgress] == 0 {
		t.Errorf("seed %d: nothing much happened: %v", seed, x.codes)
	}
	s.w.RunFor(20 * time.Second)
	last := settled(t, s)
	for _, g := range x.groups {
		for p, acked := range g.acked {
			if got := last.committed(g.name, "t", int32(p)); acked > 0 && got < acked {
				t.Errorf("seed %d: %s has offset %d for partition %d in the end, but %d was acknowledged", seed, g.name, got, p, acked)
			}
		}
	}
	last.close()
	s.stop()
	return s.w.Trace()
}

func TestGroupsKeepTheirPromises(t *testing.T) {
	for seed := range seeds(9) {
		loops := []int{1, 2, 4}[seed%3]
		t.Run(fmt.Sprintf("seed %d, %d loops", seed, loops), func(t *testing.T) { tell(t, seed, loops) })
	}
}

func TestSameSeedTellsTheSameOfGroups(t *testing.T) {
	for seed := range uint64(2) {
		if first, again := tell(t, seed, 2), tell(t, seed, 2); first != again {
			t.Errorf("seed %d told two stories: %x and %x", seed, first, again)
		}
	}
}
