package api

import (
	"bytes"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/metadata"
	"kring/ring"
	"kring/wire"
)

// newGroupWorld is a world that serves groups: topic a, and that of offsets with 3 partitions.
func newGroupWorld(t testing.TB, loops int) *world {
	t.Helper()
	x := newWorld(t, loops, topic{name: "a", partitions: 2}, topic{name: OffsetsTopic, partitions: 3})
	for i := range int32(3) {
		c := x.node.Contexts[0]
		x.on(c.LoopOf(c.topics[OffsetsTopic], i), func(_ *ring.Task, c *Context) {
			p, g := c.topics[OffsetsTopic].Partitions[i], c.GroupShard(i)
			if !g.Lead(p) {
				t.Fatal("the groups need not be loaded")
			}
			g.Loaded(p.LeaderEpoch(), c.now())
			g.Settle()
		})
	}
	return x
}

// verify holds the truths of every shard.
func (x *world) verify() {
	x.t.Helper()
	for i := range x.loops {
		x.on(i, func(_ *ring.Task, c *Context) {
			for g := range c.GroupShards() {
				if err := g.Verify(); err != nil {
					x.t.Error(err)
				}
			}
			if c.groups.first != nil || c.groups.sending {
				x.t.Error("an answer was not sent")
			}
		})
	}
}

// groupKeys are the APIs about groups.
var groupKeys = []int16{wire.OffsetCommit, wire.OffsetFetch, wire.FindCoordinator, wire.JoinGroup, wire.Heartbeat, wire.LeaveGroup,
	wire.SyncGroup, wire.DescribeGroups, wire.ListGroups, wire.DeleteGroups, wire.OffsetDelete}

// groupSeeds is a request of each of them.
func groupSeeds() []kmsg.Request {
	join, sync, commit := kmsg.NewPtrJoinGroupRequest(), kmsg.NewPtrSyncGroupRequest(), kmsg.NewPtrOffsetCommitRequest()
	join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = "g", 10_000, 10_000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{0, 0, 0, 0, 0, 1, 0, 1, 'a', 0, 0, 0, 0}}}
	sync.Group, sync.MemberID, sync.Generation = "g", "m", 1
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: "m", MemberAssignment: []byte("all")}}
	commit.Group, commit.Generation = "g", -1
	text := "m"
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetCommitRequestTopicPartition{
		{Partition: 1, Offset: 5, Metadata: &text}, {Partition: 9}}}}
	fetch, find, beat := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewPtrFindCoordinatorRequest(), kmsg.NewPtrHeartbeatRequest()
	fetch.Group, fetch.Topics = "g", []kmsg.OffsetFetchRequestTopic{{Topic: "a", Partitions: []int32{0, 1, 7}}}
	fetch.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "a",
		Partitions: []int32{0, 1, 7}}}}, {Group: "h"}}
	find.CoordinatorKey, find.CoordinatorKeys = "g", []string{"g", "h", ""}
	beat.Group, beat.MemberID = "g", "m"
	leave, describe, list := kmsg.NewPtrLeaveGroupRequest(), kmsg.NewPtrDescribeGroupsRequest(), kmsg.NewPtrListGroupsRequest()
	leave.Group, leave.MemberID, leave.Members = "g", "m", []kmsg.LeaveGroupRequestMember{{MemberID: "m"}, {InstanceID: &text}}
	describe.Groups, list.StatesFilter, list.TypesFilter = []string{"g", "h"}, []string{"Stable"}, []string{"classic"}
	remove, offsets := kmsg.NewPtrDeleteGroupsRequest(), kmsg.NewPtrOffsetDeleteRequest()
	remove.Groups = []string{"g", "h", "g"}
	offsets.Group = "g"
	offsets.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 1}, {Partition: 8}}}}
	return []kmsg.Request{commit, fetch, find, join, beat, leave, sync, describe, list, remove, offsets}
}

// FuzzGroupRequests sends any bytes as the body of a request about groups: it is answered or the connection is closed, in the end
// nothing waits, the groups' truths hold and they still serve.
func FuzzGroupRequests(f *testing.F) {
	for _, req := range groupSeeds() {
		for v := table[req.Key()].min; v <= table[req.Key()].max; v++ {
			req.SetVersion(v)
			f.Add(uint8(slot(groupKeys, req.Key())), v, req.AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, version int16, body []byte) {
		g := &garbage{key: groupKeys[int(which)%len(groupKeys)], version: version, body: body}
		if version < 0 || version > 10 || len(body) > 1<<16 {
			return
		}
		x := newGroupWorld(t, 2)
		for _, req := range groupSeeds()[:4] { // so that there is something to be found
			req.SetVersion(3)
			x.dial(0).send(req)
		}
		x.w.RunFor(5 * time.Second)
		p := x.dial(1)
		p.send(g)
		p.send(g)
		x.w.RunFor(time.Second)
		x.verify()
		p.c.Close()
		x.w.RunFor(40 * time.Minute) // the longest session
		x.verify()
		for _, c := range x.node.Contexts {
			if n := c.Server.Busy(); n > 0 {
				t.Errorf("%d requests are under way in the end", n)
			}
		}
		q := x.dial(0)
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Version, beat.Group, beat.MemberID = 4, "still", "m"
		if code := wire.Code(call[*kmsg.HeartbeatResponse](q, beat).ErrorCode); code != wire.UnknownMemberID {
			t.Errorf("a heartbeat afterwards: %v", code)
		}
	})
}

// TestGroupAnswersAreStrict: each version of each answer is encoded as it is read.
func TestGroupAnswersAreStrict(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newGroupWorld(t, loops)
		p := x.dial(0)
		for _, req := range groupSeeds() {
			for v := table[req.Key()].min; v <= table[req.Key()].max; v++ {
				req.SetVersion(v)
				id := p.send(req)
				body := p.answer(id, wire.Flexible(req.Key(), v))
				resp := req.ResponseKind()
				resp.SetVersion(v)
				if err := resp.ReadFrom(body); err != nil || !bytes.Equal(resp.AppendTo(nil), body) {
					t.Errorf("%s %d: %v: %x", wire.Name(req.Key()), v, err, body)
				}
			}
		}
		x.verify()
	})
}

// TestPartitionsOfOffsetsAreCountedOnce: a group stays where it is when the topic grows, and moves when it is another topic.
func TestPartitionsOfOffsetsAreCountedOnce(t *testing.T) {
	x := newGroupWorld(t, 1)
	show := func(id byte, partitions int, want int32) {
		t.Helper()
		e := x.node.Image().Edit()
		e.RemoveTopic(OffsetsTopic)
		if partitions > 0 {
			e.SetTopic(&metadata.Topic{Name: OffsetsTopic, ID: [16]byte{id}, Partitions: make([]metadata.Partition, partitions)})
		}
		x.node.SetImage(e.Image())
		if got := x.node.OffsetsPartitions(); got != want {
			t.Errorf("%d partitions of topic %d: groups are spread over %d, want %d", partitions, id, got, want)
		}
	}
	show(9, 4, 4)
	show(9, 8, 4)
	show(10, 8, 8)
	show(0, 0, 50)
	show(11, 5, 5)
}
