package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sideBySide runs fn with each count of loops, all at once: for tests that mostly wait, whatever -parallel is.
func sideBySide(t *testing.T, fn func(t *testing.T, loops int)) {
	if os.Getenv("CONFORMANCE_ADDR") != "" || oracle() {
		everyLoops(t, fn)
		return
	}
	var all sync.WaitGroup
	for _, n := range loops {
		all.Go(func() {
			t.Run(fmt.Sprintf("loops=%d", n), func(t *testing.T) { fn(t, n) })
		})
	}
	all.Wait()
}

// ask sends a request on c and decodes the answer strictly: encoding what was understood gives the same bytes.
func ask[R kmsg.Response](c net.Conn, req kmsg.Request) (R, error) {
	var none R
	b, err := roundTrip(c, encode(req))
	if err != nil {
		return none, err
	}
	return decode[R](req, b)
}

func decode[R kmsg.Response](req kmsg.Request, b []byte) (R, error) {
	var none R
	resp := req.ResponseKind()
	head := 4
	if resp.IsFlexible() && resp.Key() != kmsg.ApiVersions.Int16() {
		head = 5
	}
	if len(b) < head {
		return none, fmt.Errorf("an answer of %d bytes", len(b))
	}
	if err := resp.ReadFrom(b[head:]); err != nil {
		return none, fmt.Errorf("%s v%d: %w: %x", kmsg.NameForKey(req.Key()), req.GetVersion(), err, b)
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, b[head:]) {
		return none, fmt.Errorf("%s v%d: the answer is not as it should be encoded:\n%x\n%x", kmsg.NameForKey(req.Key()), req.GetVersion(), b[head:], again)
	}
	return resp.(R), nil
}

// must is for answers that have to come.
func must[R kmsg.Response](t *testing.T, c net.Conn, req kmsg.Request) R {
	t.Helper()
	resp, err := ask[R](c, req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// coming is an answer that is awaited while other things happen.
type coming[R kmsg.Response] struct {
	what string
	done chan struct{}
	resp R
	err  error
	at   time.Time
}

func begin[R kmsg.Response](c net.Conn, req kmsg.Request) *coming[R] {
	p := &coming[R]{what: kmsg.NameForKey(req.Key()), done: make(chan struct{})}
	frame := encode(req)
	c.SetDeadline(time.Now().Add(5 * time.Minute))
	_, p.err = c.Write(frame)
	go func() {
		defer close(p.done)
		var b []byte
		if p.err == nil {
			b, p.err = answer(c)
		}
		p.at = time.Now()
		if p.err == nil {
			p.resp, p.err = decode[R](req, b)
		}
	}()
	return p
}

func (p *coming[R]) get(t *testing.T, most time.Duration) R {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(most):
		t.Fatalf("no answer to %s within %v", p.what, most)
	}
	if p.err != nil {
		t.Fatalf("%s: %v", p.what, p.err)
	}
	return p.resp
}

// pending fails if the answer is there.
func (p *coming[R]) pending(t *testing.T, when string) {
	t.Helper()
	select {
	case <-p.done:
		t.Fatalf("%s is answered %s: %+v %v", p.what, when, p.resp, p.err)
	default:
	}
}

// code names an error code as Kafka does.
func code(c int16) string {
	if c == 0 {
		return "NONE"
	}
	var e *kerr.Error
	if err := kerr.ErrorForCode(c); errors.As(err, &e) {
		return fmt.Sprintf("%s (%d)", e.Message, c)
	}
	return fmt.Sprint(c)
}

func wantCode(t *testing.T, what string, got, want int16) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %s, want %s", what, code(got), code(want))
	}
}

// codes as the field cases name them.
const (
	codeUnknownTopic    = int16(3)
	codeLoading         = int16(14)
	codeUnavailable     = int16(15)
	codeNotCoordinator  = int16(16)
	codeIllegalGen      = int16(22)
	codeUnknownMember   = int16(25)
	codeRebalancing     = int16(27)
	codeNotEmpty        = int16(68)
	codeGroupNotFound   = int16(69)
	codeMemberIDNeeded  = int16(79)
	codeFencedInstance  = int16(82)
	codeGroupSubscribed = int16(86)
)

// member is a raw member of a group.
type rawMember struct {
	t                  *testing.T
	b                  *broker
	c                  net.Conn
	group, id, client  string
	instance           *string
	session, rebalance time.Duration
	topics             []string
	generation         int32
	leader             bool
	members            []kmsg.JoinGroupResponseMember
}

func newMember(b *broker, group string, topics ...string) *rawMember {
	return &rawMember{t: b.t, b: b, c: b.dial(), group: group, session: 6 * time.Second, rebalance: 300 * time.Second, topics: topics}
}

// on makes the member report to a subtest.
func (m *rawMember) on(t *testing.T) *rawMember { m.t = t; return m }

func (m *rawMember) static(instance string) *rawMember { m.instance = &instance; return m }

func (m *rawMember) joinRequest() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = 9
	req.Group, req.MemberID, req.InstanceID = m.group, m.id, m.instance
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), int32(m.rebalance.Milliseconds())
	req.ProtocolType = "consumer"
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = m.topics
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", meta.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	return req
}

// join begins to join; a member without an id gets one first, as clients since 2.2 do.
func (m *rawMember) join() *coming[*kmsg.JoinGroupResponse] {
	m.t.Helper()
	if m.id == "" && m.instance == nil {
		m.askID()
	}
	return begin[*kmsg.JoinGroupResponse](m.c, m.joinRequest())
}

// askID gets a member id and no more: the member is pending.
func (m *rawMember) askID() {
	m.t.Helper()
	resp := must[*kmsg.JoinGroupResponse](m.t, m.c, m.joinRequest())
	wantCode(m.t, "the first JoinGroup", resp.ErrorCode, codeMemberIDNeeded)
	if resp.MemberID == "" {
		m.t.Fatal("MEMBER_ID_REQUIRED without a member id")
	}
	m.id = resp.MemberID
}

// joined takes the answer in.
func (m *rawMember) joined(p *coming[*kmsg.JoinGroupResponse], most time.Duration) *kmsg.JoinGroupResponse {
	m.t.Helper()
	resp := p.get(m.t, most)
	wantCode(m.t, "JoinGroup of "+m.group, resp.ErrorCode, 0)
	m.id, m.generation = resp.MemberID, resp.Generation
	m.leader, m.members = resp.LeaderID == m.id, resp.Members
	if m.leader != (len(resp.Members) > 0) {
		m.t.Fatalf("leader: %v, and gets %d members", m.leader, len(resp.Members))
	}
	return resp
}

// plan is the assignment a leader hands in: every member the topic named after it.
func plan(to ...string) (out []kmsg.SyncGroupRequestGroupAssignment) {
	for _, id := range to {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = id, []byte("to "+id)
		out = append(out, a)
	}
	return out
}

func (m *rawMember) syncRequest(p []kmsg.SyncGroupRequestGroupAssignment) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = 5
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.group, m.generation, m.id, m.instance
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	req.GroupAssignment = p
	return req
}

func (m *rawMember) sync(p []kmsg.SyncGroupRequestGroupAssignment) *coming[*kmsg.SyncGroupResponse] {
	return begin[*kmsg.SyncGroupResponse](m.c, m.syncRequest(p))
}

func (m *rawMember) heartbeat() int16 {
	m.t.Helper()
	code, err := m.tryHeartbeat()
	if err != nil {
		m.t.Fatal(err)
	}
	return code
}

func (m *rawMember) tryHeartbeat() (int16, error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = 4
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.group, m.generation, m.id, m.instance
	resp, err := ask[*kmsg.HeartbeatResponse](m.c, req)
	if err != nil {
		return 0, err
	}
	return resp.ErrorCode, nil
}

func (m *rawMember) leave() int16 {
	m.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version = 5
	req.Group = m.group
	l := kmsg.NewLeaveGroupRequestMember()
	l.MemberID, l.InstanceID = m.id, m.instance
	req.Members = append(req.Members, l)
	resp := must[*kmsg.LeaveGroupResponse](m.t, m.c, req)
	wantCode(m.t, "LeaveGroup", resp.ErrorCode, 0)
	if len(resp.Members) != 1 {
		m.t.Fatalf("LeaveGroup of one member answers %d", len(resp.Members))
	}
	return resp.Members[0].ErrorCode
}

func (m *rawMember) commitRequest(topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	req := commitRequest(m.group, topic, partition, offset)
	req.Generation, req.MemberID, req.InstanceID = m.generation, m.id, m.instance
	return req
}

func (m *rawMember) commit(topic string, partition int32, offset int64) int16 {
	m.t.Helper()
	return commitCode(m.t, must[*kmsg.OffsetCommitResponse](m.t, m.c, m.commitRequest(topic, partition, offset)))
}

// commitRequest is a commit of nobody: no member, no generation.
func commitRequest(group, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = 9
	req.Group, req.Generation = group, -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Metadata = partition, offset, kmsg.StringPtr("m")
	tp := kmsg.NewOffsetCommitRequestTopic()
	tp.Topic, tp.Partitions = topic, append(tp.Partitions, p)
	req.Topics = append(req.Topics, tp)
	return req
}

func commitCode(t *testing.T, resp *kmsg.OffsetCommitResponse) int16 {
	t.Helper()
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			return p.ErrorCode
		}
	}
	t.Fatal("OffsetCommit answers for no partition")
	return 0
}

// fetchOffsets asks for a topic's partitions, or for all the group has where partitions is 0.
func fetchOffsets(c net.Conn, group, topic string, partitions int) (*kmsg.OffsetFetchResponseGroup, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 8
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	if partitions > 0 {
		tp := kmsg.NewOffsetFetchRequestGroupTopic()
		tp.Topic = topic
		for i := range partitions {
			tp.Partitions = append(tp.Partitions, int32(i))
		}
		g.Topics = append(g.Topics, tp)
	}
	req.Groups = append(req.Groups, g)
	resp, err := ask[*kmsg.OffsetFetchResponse](c, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Groups) != 1 || resp.Groups[0].Group != group {
		return nil, fmt.Errorf("OffsetFetch for %s answers %+v", group, resp.Groups)
	}
	return &resp.Groups[0], nil
}

// settled waits until the group's coordinator has loaded, and returns every offset the group has, as text.
func settledOffsets(t *testing.T, b *broker, group string) map[string]string {
	t.Helper()
	c := b.dial()
	defer c.Close()
	for until := time.Now().Add(startMax); ; time.Sleep(5 * time.Millisecond) {
		findCoordinator(t, c, group)
		g, err := fetchOffsets(c, group, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if g.ErrorCode == 0 {
			out := map[string]string{}
			for _, tp := range g.Topics {
				for _, p := range tp.Partitions {
					wantCode(t, "OffsetFetch of "+group, p.ErrorCode, 0)
					meta := "<null>"
					if p.Metadata != nil {
						meta = *p.Metadata
					}
					out[fmt.Sprint(tp.Topic, "-", p.Partition)] = fmt.Sprint(p.Offset, " epoch ", p.LeaderEpoch, " ", meta)
				}
			}
			return out
		}
		if g.ErrorCode != codeLoading && g.ErrorCode != codeUnavailable && g.ErrorCode != codeNotCoordinator || time.Now().After(until) {
			t.Fatalf("OffsetFetch of %s: %s", group, code(g.ErrorCode))
		}
	}
}

// findCoordinator asks who coordinates the group; it waits until there is one, as clients do.
func findCoordinator(t *testing.T, c net.Conn, group string) {
	t.Helper()
	for until := time.Now().Add(startMax); ; time.Sleep(5 * time.Millisecond) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version = 4
		req.CoordinatorKeys = []string{group}
		resp := must[*kmsg.FindCoordinatorResponse](t, c, req)
		if len(resp.Coordinators) != 1 {
			t.Fatalf("FindCoordinator answers %+v", resp)
		}
		if resp.Coordinators[0].ErrorCode == 0 {
			return
		}
		if resp.Coordinators[0].ErrorCode != codeUnavailable || time.Now().After(until) {
			t.Fatalf("FindCoordinator: %s", code(resp.Coordinators[0].ErrorCode))
		}
	}
}

// describe is the group as DescribeGroups tells it.
func describe(t *testing.T, c net.Conn, group string) kmsg.DescribeGroupsResponseGroup {
	t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version = 5
	req.Groups = []string{group}
	resp := must[*kmsg.DescribeGroupsResponse](t, c, req)
	if len(resp.Groups) != 1 {
		t.Fatalf("DescribeGroups answers %+v", resp)
	}
	return resp.Groups[0]
}

// listed are the groups the broker lists, with their states.
func listed(t *testing.T, c net.Conn) map[string]string {
	t.Helper()
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = 5
	resp := must[*kmsg.ListGroupsResponse](t, c, req)
	wantCode(t, "ListGroups", resp.ErrorCode, 0)
	out := map[string]string{}
	for _, g := range resp.Groups {
		out[g.Group] = g.GroupState
	}
	return out
}

// awaitState waits until the group is in a state.
func awaitState(t *testing.T, c net.Conn, group, state string) {
	t.Helper()
	var g kmsg.DescribeGroupsResponseGroup
	for until := time.Now().Add(startMax); time.Now().Before(until); time.Sleep(2 * time.Millisecond) {
		if g = describe(t, c, group); g.State == state {
			return
		}
	}
	t.Fatalf("group %s is %s, not %s", group, g.State, state)
}

// stable makes a group of the members: each joins, the first leads, all have their assignment.
func stable(members ...*rawMember) {
	m := members[0]
	m.t.Helper()
	findCoordinator(m.t, m.c, m.group)
	for round := 1; ; round++ { // one after the other, those before join again
		all := members[:round]
		var joins []*coming[*kmsg.JoinGroupResponse]
		for i := len(all) - 1; i >= 0; i-- {
			joins = append(joins, all[i].join())
			if i == len(all)-1 && round > 1 {
				awaitState(m.t, m.b.dial(), m.group, "PreparingRebalance")
			}
		}
		for i, p := range joins {
			all[len(all)-1-i].joined(p, startMax)
		}
		synced(all...)
		if round == len(members) {
			return
		}
	}
}

// synced hands everybody an assignment.
func synced(members ...*rawMember) {
	m := members[0]
	m.t.Helper()
	var ids []string
	for _, m := range members {
		ids = append(ids, m.id)
	}
	var waiting []*coming[*kmsg.SyncGroupResponse]
	for _, m := range members {
		var p []kmsg.SyncGroupRequestGroupAssignment
		if m.leader {
			p = plan(ids...)
		}
		waiting = append(waiting, m.sync(p))
	}
	for i, p := range waiting {
		resp := p.get(m.t, startMax)
		wantCode(m.t, "SyncGroup", resp.ErrorCode, 0)
		if got := string(resp.MemberAssignment); got != "to "+members[i].id {
			m.t.Fatalf("member %s is assigned %q", members[i].id, got)
		}
	}
}
