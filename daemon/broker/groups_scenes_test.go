package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// The requests of the scenes.

func joinRequest(group, member string, instance *string, protocols ...string) *kmsg.JoinGroupRequest {
	m := kmsg.NewPtrJoinGroupRequest()
	m.Group, m.MemberID, m.InstanceID, m.ProtocolType = group, member, instance, "consumer"
	m.SessionTimeoutMillis, m.RebalanceTimeoutMillis = 30_000, 60_000
	for _, p := range protocols {
		name, subscription, _ := strings.Cut(p, "=")
		m.Protocols = append(m.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: subscribed(subscription)})
	}
	return m
}

// subscribed is the metadata of a consumer of these topics, the user's data being the same words.
func subscribed(topics string) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics, m.UserData = strings.Split(topics, "+"), []byte(topics)
	return m.AppendTo(nil)
}

func syncRequest(group, member string, generation int32, assigned ...string) *kmsg.SyncGroupRequest {
	m := kmsg.NewPtrSyncGroupRequest()
	m.Group, m.MemberID, m.Generation = group, member, generation
	kind, protocol := "consumer", "range"
	m.ProtocolType, m.Protocol = &kind, &protocol
	for i := 0; i+1 < len(assigned); i += 2 {
		m.GroupAssignment = append(m.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: assigned[i],
			MemberAssignment: []byte(assigned[i+1])})
	}
	return m
}

func heartbeatRequest(group, member string, generation int32, instance *string) *kmsg.HeartbeatRequest {
	m := kmsg.NewPtrHeartbeatRequest()
	m.Group, m.MemberID, m.Generation, m.InstanceID = group, member, generation, instance
	return m
}

func leaveRequest(group string, members ...string) *kmsg.LeaveGroupRequest {
	m := kmsg.NewPtrLeaveGroupRequest()
	m.Group = group
	for _, member := range members {
		id, instance, static := strings.Cut(member, "/")
		lm := kmsg.LeaveGroupRequestMember{MemberID: id}
		if m.MemberID = id; static {
			lm.InstanceID = &instance
		}
		m.Members = append(m.Members, lm)
	}
	return m
}

// commitRequest commits offsets "topic partition offset", all with the metadata "m".
func commitRequest(group, member string, generation int32, offsets ...string) *kmsg.OffsetCommitRequest {
	m := kmsg.NewPtrOffsetCommitRequest()
	m.Group, m.MemberID, m.Generation = group, member, generation
	for _, o := range offsets {
		var topic string
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		fmt.Sscan(o, &topic, &p.Partition, &p.Offset)
		text := "m"
		p.Metadata, p.LeaderEpoch = &text, int32(p.Offset)%5
		if n := len(m.Topics); n == 0 || m.Topics[n-1].Topic != topic {
			m.Topics = append(m.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic})
		}
		t := &m.Topics[len(m.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return m
}

// fetchOffsets asks for partitions "topic partition", or with none for all there are; also in the form of version 8 and later.
func fetchOffsets(group string, partitions ...string) *kmsg.OffsetFetchRequest {
	m := kmsg.NewPtrOffsetFetchRequest()
	m.Group = group
	for _, p := range partitions {
		var topic string
		var index int32
		fmt.Sscan(p, &topic, &index)
		if n := len(m.Topics); n == 0 || m.Topics[n-1].Topic != topic {
			m.Topics = append(m.Topics, kmsg.OffsetFetchRequestTopic{Topic: topic})
		}
		t := &m.Topics[len(m.Topics)-1]
		t.Partitions = append(t.Partitions, index)
	}
	m.Groups = append(m.Groups, groupOffsets(m))
	return m
}

func groupOffsets(m *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = m.Group
	for _, t := range m.Topics {
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	return g
}

func describeRequest(operations bool, groups ...string) *kmsg.DescribeGroupsRequest {
	m := kmsg.NewPtrDescribeGroupsRequest()
	m.Groups, m.IncludeAuthorizedOperations = groups, operations
	return m
}

func deleteRequest(groups ...string) *kmsg.DeleteGroupsRequest {
	m := kmsg.NewPtrDeleteGroupsRequest()
	m.Groups = groups
	return m
}

// deleteOffsets deletes the offsets of "topic partition".
func deleteOffsets(group string, partitions ...string) *kmsg.OffsetDeleteRequest {
	m := kmsg.NewPtrOffsetDeleteRequest()
	m.Group = group
	for _, p := range partitions {
		var topic string
		var index int32
		fmt.Sscan(p, &topic, &index)
		if n := len(m.Topics); n == 0 || m.Topics[n-1].Topic != topic {
			m.Topics = append(m.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic})
		}
		t := &m.Topics[len(m.Topics)-1]
		t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: index})
	}
	return m
}

func listRequest(filters ...string) *kmsg.ListGroupsRequest {
	m := kmsg.NewPtrListGroupsRequest()
	for _, f := range filters {
		if kind, ok := strings.CutPrefix(f, "type="); ok {
			m.TypesFilter = append(m.TypesFilter, kind)
		} else {
			m.StatesFilter = append(m.StatesFilter, f)
		}
	}
	return m
}

func findRequest(kind int8, keys ...string) *kmsg.FindCoordinatorRequest {
	m := kmsg.NewPtrFindCoordinatorRequest()
	m.CoordinatorType, m.CoordinatorKey, m.CoordinatorKeys = kind, keys[0], keys
	return m
}

// join lets a member in, by the two steps of version 4 and later, and gives the answer, not yet taken.
func (s *script) join(conn, group string, version int16, protocols ...string) (member string) {
	first := s.ask(conn, joinRequest(group, "", nil, protocols...), version).(*kmsg.JoinGroupResponse)
	if wire.Code(first.ErrorCode) != wire.MemberIDRequired {
		s.t.Fatalf("%s: %v", group, wire.Code(first.ErrorCode))
	}
	s.send(conn, joinRequest(group, first.MemberID, nil, protocols...), version)
	return first.MemberID
}

func ref(s string) *string { return &s }

// scenes are all that the recorded broker was asked, in order. The topics t (4 partitions) and u (1) are there.
var scenes = []struct {
	name string
	play func(s *script)
}{
	{"no topic of offsets yet", func(s *script) {
		s.ask("c", findRequest(0, "g"), 3)
		s.served()
	}},
	{"who coordinates", func(s *script) {
		for v := range int16(7) {
			s.ask("c", findRequest(0, "g", "h", ""), v)
		}
		for _, v := range []int16{1, 3, 4, 5, 6} {
			s.ask("c", findRequest(2, "g:id:0", "h"), v)
			s.ask("c", findRequest(7, "g", "h"), v)
		}
		none := findRequest(0, "g")
		none.CoordinatorKeys = nil
		s.ask("c", none, 4)
	}},
	{"a group that is not there", func(s *script) {
		for _, group := range []string{"none", ""} {
			for v := range int16(10) {
				s.ask("c", joinRequest(group, "m", nil, "range=t"), v)
			}
			for v := range int16(6) {
				s.ask("c", syncRequest(group, "m", 1), v)
				s.ask("c", describeRequest(true, group), v)
				s.ask("c", leaveRequest(group, "m"), v)
			}
			for v := range int16(5) {
				s.ask("c", heartbeatRequest(group, "m", 1, nil), v)
			}
			for v := int16(2); v < 10; v++ {
				s.ask("c", commitRequest(group, "m", 1, "t 0 5"), v)
			}
			for v := int16(1); v < 10; v++ {
				s.ask("c", fetchOffsets(group, "t 0", "t 1", "u 0"), v)
			}
			for v := range int16(3) {
				s.ask("c", deleteRequest(group), v)
			}
			s.ask("c", deleteOffsets(group, "t 0"), 0)
			s.ask("c", leaveRequest(group, "m/i", "/i", "n"), 5)
			s.ask("c", leaveRequest(group), 5)
		}
		s.ask("c", deleteRequest(), 2)
		s.ask("c", describeRequest(false), 5)
	}},
	{"a join that is refused", func(s *script) {
		short, long := joinRequest("refused", "", nil, "range=t"), joinRequest("refused", "", nil, "range=t")
		short.SessionTimeoutMillis, long.SessionTimeoutMillis = 5999, 1_800_001
		none, kind := joinRequest("refused", "", nil), joinRequest("refused", "", nil, "range=t")
		kind.ProtocolType = ""
		for _, v := range []int16{0, 5, 7, 9} {
			s.ask("c", short, v)
			s.ask("c", long, v)
			s.ask("c", none, v)
			s.ask("c", kind, v)
			s.ask("c", joinRequest("refused", "m", ref("i"), "range=t"), max(v, 5))
		}
		s.ask("c", describeRequest(false, "refused"), 4)
		s.ask("c", listRequest(), 5)
	}},
	{"offsets without members", func(s *script) {
		for v := int16(2); v < 10; v++ {
			s.ask("c", commitRequest("simple", "", -1, fmt.Sprint("t 0 ", v), fmt.Sprint("t 1 ", v), fmt.Sprint("u 0 ", v)), v)
			for w := int16(1); w < 10; w++ {
				s.ask("c", fetchOffsets("simple", "t 0", "t 3", "u 0", "none 7"), w)
			}
		}
		for w := int16(2); w < 10; w++ {
			s.ask("c", fetchOffsets("simple"), w)
		}
		s.ask("c", commitRequest("simple", "", -1, "t 0 20", "t 4 20", "none 0 20", "u -1 20"), 9)
		s.ask("c", commitRequest("simple", "", -1, "none 0 20"), 2)
		s.ask("c", commitRequest("simple", "", -1), 9)
		s.ask("c", commitRequest("simple", "m", 3, "t 0 20"), 9)
		s.ask("c", commitRequest("simple", "m", -1, "t 0 21"), 9)
		s.ask("c", commitRequest("simple", "", 0, "t 0 22"), 9)
		long := commitRequest("simple", "", -1, "t 0 30", "t 1 30")
		long.Topics[0].Partitions[0].Metadata = ref(strings.Repeat("x", 4097))
		long.Topics[0].Partitions[1].Metadata = nil
		s.ask("c", long, 8)
		s.ask("c", fetchOffsets("simple", "t 0", "t 1"), 8)
		static := commitRequest("simple", "m", 1, "t 0 5")
		static.InstanceID = ref("i")
		s.ask("c", static, 7)
		many := fetchOffsets("simple", "t 0", "u 0")
		many.Groups = append(many.Groups, groupOffsets(fetchOffsets("none")), groupOffsets(fetchOffsets("none", "t 2")), groupOffsets(fetchOffsets("simple")))
		many.RequireStable = true
		s.ask("c", many, 9)
		many.Groups[0].MemberID, many.Groups[0].MemberEpoch = ref("m"), 7
		s.ask("c", many, 9)
		for v := range int16(6) {
			s.ask("c", describeRequest(v%2 == 0, "simple", "none", "simple"), v)
			s.ask("c", listRequest(), v)
		}
		s.ask("c", deleteOffsets("simple", "t 0", "t 2", "none 0", "u 0", "u 3"), 0)
		s.ask("c", fetchOffsets("simple"), 8)
		s.ask("c", deleteRequest("simple", "none", "simple"), 2)
		s.ask("c", fetchOffsets("simple"), 8)
		s.ask("c", describeRequest(false, "simple"), 5)
		s.ask("c", listRequest(), 4)
	}},
	{"a member by every version", func(s *script) {
		for v := range int16(10) {
			group := fmt.Sprint("alone", v)
			conn := fmt.Sprint("c", v)
			if v < 4 {
				s.send(conn, joinRequest(group, "", nil, "range=t", "sticky=t"), v)
			} else {
				s.join(conn, group, v, "range=t", "sticky=t")
			}
			j := s.take(conn).(*kmsg.JoinGroupResponse)
			s.ask(conn, heartbeatRequest(group, j.MemberID, j.Generation, nil), min(v, 4))
			s.ask(conn, commitRequest(group, j.MemberID, j.Generation, "t 0 1"), max(v, 2))
			s.ask(conn, syncRequest(group, j.MemberID, j.Generation, j.MemberID, "all"), min(v, 5))
			s.ask(conn, syncRequest(group, j.MemberID, j.Generation), min(v, 5))
			s.ask(conn, commitRequest(group, j.MemberID, j.Generation, "t 0 2"), max(v, 2))
			s.ask(conn, describeRequest(true, group), min(v, 5))
			s.ask(conn, listRequest(), min(v, 5))
			s.ask(conn, deleteRequest(group), min(v, 2))
			s.ask(conn, leaveRequest(group, j.MemberID), min(v, 5))
			s.ask(conn, heartbeatRequest(group, j.MemberID, j.Generation, nil), min(v, 4))
			s.ask(conn, describeRequest(true, group), min(v, 5))
			s.ask(conn, deleteRequest(group), min(v, 2))
			s.ask(conn, describeRequest(true, group), min(v, 5))
		}
	}},
	{"two members", twoMembers},
	{"static members", staticMembers},
	{"lists by state and type", func(s *script) {
		s.ask("c", commitRequest("listed", "", -1, "t 0 1"), 9)
		for _, filters := range [][]string{{"Empty"}, {"empty", "STABLE"}, {"Stable"}, {"Nonsense"}, {"type=classic"}, {"type=Classic", "Empty"},
			{"type=consumer"}, {"type=nonsense"}, {"Dead", "PreparingRebalance", "CompletingRebalance"}} {
			s.ask("c", listRequest(filters...), 5)
			if !strings.HasPrefix(filters[0], "type=") {
				s.ask("c", listRequest(filters...), 4)
			}
		}
		s.ask("c", deleteRequest("listed"), 0)
	}},
}

// twoMembers is a rebalance as two consumers see it, with what each may do wrong in each state.
func twoMembers(s *script) {
	const g = "two"
	a := s.join("a", g, 9, "range=t+u", "sticky=t")
	s.take("a")
	wrong := func(member string, generation int32) {
		s.ask("x", heartbeatRequest(g, member, generation, nil), 4)
		s.ask("x", commitRequest(g, member, generation, "t 0 1"), 8)
		s.ask("x", syncRequest(g, member, generation), 5)
	}
	wrong(a, 2)
	wrong("m", 1)
	s.ask("x", commitRequest(g, "", -1, "t 0 1"), 8)
	s.ask("x", deleteOffsets(g, "t 0"), 0)
	other := syncRequest(g, a, 1)
	other.Protocol = ref("sticky")
	s.ask("x", other, 5)
	other.Protocol, other.ProtocolType = ref("range"), ref("connect")
	s.ask("x", other, 5)
	other.Protocol = nil
	s.ask("x", other, 5)
	s.ask("x", describeRequest(false, g), 5)
	s.ask("a", syncRequest(g, a, 1, a, "0123"), 5)
	wrong(a, 2)
	wrong("m", 1)
	s.ask("a", commitRequest(g, a, 1, "t 0 11", "u 0 12"), 8)
	s.ask("x", deleteOffsets(g, "t 0", "t 1"), 0)
	s.ask("x", joinRequest(g, "", nil, "roundrobin=t"), 5)
	s.ask("x", joinRequest(g, "", nil), 5)

	b := s.join("b", g, 7, "sticky=t", "range=t")
	s.until("a", heartbeatRequest(g, a, 1, nil), 4, func(r kmsg.Response) bool {
		return wire.Code(r.(*kmsg.HeartbeatResponse).ErrorCode) == wire.RebalanceInProgress
	})
	s.ask("a", heartbeatRequest(g, a, 1, nil), 4)
	s.ask("a", commitRequest(g, a, 1, "t 0 13"), 8)
	s.ask("x", syncRequest(g, a, 1), 5)
	s.ask("x", describeRequest(false, g), 5)
	s.ask("a", joinRequest(g, a, nil, "range=t+u", "sticky=t"), 9)
	s.take("b")
	s.send("b", syncRequest(g, b, 2), 4)
	s.ask("a", heartbeatRequest(g, a, 2, nil), 3)
	s.ask("a", commitRequest(g, a, 2, "t 0 14"), 8)
	s.ask("x", describeRequest(false, g), 3)
	s.ask("a", syncRequest(g, a, 2, a, "01", b, "23"), 5)
	s.take("b")
	s.ask("x", describeRequest(false, g), 5)
	s.ask("x", deleteRequest(g), 2)
	s.ask("x", deleteOffsets(g, "t 0", "u 0", "none 1"), 0)
	s.ask("b", joinRequest(g, b, nil, "sticky=t", "range=t"), 6) // nothing new: the follower is told again
	s.ask("b", syncRequest(g, b, 2), 4)
	s.ask("x", leaveRequest(g, b+"/i", "m", b, b), 5)
	s.until("a", heartbeatRequest(g, a, 2, nil), 4, func(r kmsg.Response) bool {
		return wire.Code(r.(*kmsg.HeartbeatResponse).ErrorCode) == wire.RebalanceInProgress
	})
	s.ask("a", joinRequest(g, a, nil, "range=t", "sticky=t"), 9)
	s.ask("a", joinRequest(g, a, nil, "range=t", "sticky=t"), 9) // the same again
	s.ask("a", syncRequest(g, a, 3), 5)                          // no assignment for itself
	s.ask("a", joinRequest(g, a, nil, "range=t", "sticky=t"), 9) // the leader joins again: a rebalance
	s.ask("a", syncRequest(g, a, 4, a, "x", "m", "nobody's"), 5)
	s.ask("x", leaveRequest(g, a), 2)
	s.ask("x", leaveRequest(g, a), 2)
	s.ask("x", describeRequest(false, g), 5)
	s.ask("x", fetchOffsets(g), 5)
	s.ask("x", commitRequest(g, a, 4, "t 0 14"), 8)
	s.ask("x", commitRequest(g, "", -1, "t 0 15"), 8)
	s.ask("x", deleteRequest(g), 1)
}

// staticMembers is KIP-345: one live member for each instance id.
func staticMembers(s *script) {
	const g = "static"
	i, k := ref("i"), ref("k")
	first := s.ask("a", joinRequest(g, "", i, "range=t", "sticky=t"), 9).(*kmsg.JoinGroupResponse)
	s.ask("a", syncRequest(g, first.MemberID, 1, first.MemberID, "all"), 5)
	s.send("b", joinRequest(g, "", k, "range=t"), 8)
	s.until("a", heartbeatRequest(g, first.MemberID, 1, i), 4, func(r kmsg.Response) bool {
		return wire.Code(r.(*kmsg.HeartbeatResponse).ErrorCode) == wire.RebalanceInProgress
	})
	s.ask("a", joinRequest(g, first.MemberID, i, "range=t", "sticky=t"), 9)
	second := s.take("b").(*kmsg.JoinGroupResponse)
	sync := syncRequest(g, second.MemberID, 2)
	sync.InstanceID = k
	s.send("b", sync, 5)
	s.ask("a", syncRequest(g, first.MemberID, 2, first.MemberID, "02", second.MemberID, "13"), 5)
	s.take("b")
	// the follower comes back: nothing changes but its id
	back := s.ask("c", joinRequest(g, "", k, "range=t"), 9).(*kmsg.JoinGroupResponse)
	fenced := func(member string, generation int32, instance *string) {
		s.ask("x", heartbeatRequest(g, member, generation, instance), 4)
		m := commitRequest(g, member, generation, "t 0 1")
		m.InstanceID = instance
		s.ask("x", m, 8)
		q := syncRequest(g, member, generation)
		q.InstanceID = instance
		s.ask("x", q, 5)
		s.ask("x", joinRequest(g, member, instance, "range=t"), 9)
		s.ask("x", leaveRequest(g, member+"/"+*instance), 5)
	}
	fenced(second.MemberID, 2, k)
	fenced("m", 2, k)
	fenced("m", 2, ref("unknown"))
	q := syncRequest(g, back.MemberID, 2)
	q.InstanceID = k
	s.ask("c", q, 5)
	// the leader comes back: it is told to skip the assignment, or that another leads
	led := s.ask("d", joinRequest(g, "", i, "range=t", "sticky=t"), 9).(*kmsg.JoinGroupResponse)
	s.ask("d", syncRequest(g, led.MemberID, 2), 5)
	led = s.ask("d", joinRequest(g, "", i, "range=t", "sticky=t"), 8).(*kmsg.JoinGroupResponse)
	s.ask("d", syncRequest(g, led.MemberID, 2), 5)
	s.ask("x", describeRequest(false, g), 5)
	s.ask("x", describeRequest(false, g), 3)
	s.ask("x", leaveRequest(g, "/i", "/unknown", "/k"), 5)
	s.ask("x", describeRequest(false, g), 5)
	s.ask("x", deleteRequest(g), 2)
}

// play runs every scene.
func play(t testing.TB, p place) []string {
	s := newScript(t, p)
	defer s.close()
	s.create("admin")
	for _, scene := range scenes {
		s.say("# %s", scene.name)
		scene.play(s)
	}
	return slices.Clip(s.lines)
}
