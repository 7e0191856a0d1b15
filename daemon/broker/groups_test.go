package broker

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/ring"
	"kring/wire"
	"kring/wire/batch"
)

// settled has the topics t and u, and waits until every group is served.
func settled(t testing.TB, p place) *script {
	t.Helper()
	s := newScript(t, p)
	s.create("c")
	s.served()
	return s
}

// create makes the topics t, of 4 partitions, and u, of one.
func (s *script) create(conn string) {
	s.t.Helper()
	for i, name := range []string{"t", "u"} {
		if !eventually(func() bool {
			code := s.conn(conn).createTopic(name, []int32{4, 1}[i])
			return code == wire.None || code == wire.TopicAlreadyExists
		}) {
			s.t.Fatalf("%s cannot be created", name)
		}
	}
}

// served waits until every group is served: one of each partition.
func (s *script) served() {
	s.until("c", findRequest(0, "g"), 3, func(r kmsg.Response) bool { return r.(*kmsg.FindCoordinatorResponse).ErrorCode == 0 })
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{{Topic: ref("__consumer_offsets")}}
	count := len(ask[*kmsg.MetadataResponse](s.conn("c"), m, 12).Topics[0].Partitions)
	asked := map[int32]bool{}
	for i := 0; len(asked) < count; i++ {
		g := fmt.Sprint("any", i)
		if p := coordinator.PartitionOf(g, int32(count)); !asked[p] {
			asked[p] = true
			s.until("c", fetchOffsets(g), 7, func(r kmsg.Response) bool { return r.(*kmsg.OffsetFetchResponse).ErrorCode == 0 })
		}
	}
}

// again makes new connections after a restart.
func (s *script) again() {
	s.conns, s.under = map[string]*client{}, map[string][]kmsg.Request{}
	s.served()
}

// committed is the offset a group has for a partition, -1 for none.
func (s *script) committed(group, topic string, partition int32) int64 {
	s.t.Helper()
	r := s.ask("c", fetchOffsets(group, fmt.Sprint(topic, " ", partition)), 7).(*kmsg.OffsetFetchResponse)
	if r.ErrorCode != 0 {
		s.t.Fatalf("%s: %v", group, wire.Code(r.ErrorCode))
	}
	return r.Topics[0].Partitions[0].Offset
}

// commit commits offsets and wants the code for all.
func (s *script) commit(want wire.Code, group, member string, generation int32, offsets ...string) {
	s.t.Helper()
	r := s.ask("c", commitRequest(group, member, generation, offsets...), 8).(*kmsg.OffsetCommitResponse)
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if code := wire.Code(p.ErrorCode); code != want {
				s.t.Errorf("%s: commit of %s %d: %v, want %v", group, t.Topic, p.Partition, code, want)
			}
		}
	}
}

// alone lets one member in, with everything assigned to it.
func (s *script) alone(conn, group string) (member string, generation int32) {
	s.t.Helper()
	member = s.join(conn, group, 9, "range=t")
	j := s.take(conn).(*kmsg.JoinGroupResponse)
	y := s.ask(conn, syncRequest(group, member, j.Generation, member, "all"), 5).(*kmsg.SyncGroupResponse)
	if j.ErrorCode != 0 || y.ErrorCode != 0 || string(y.MemberAssignment) != "all" {
		s.t.Fatalf("%s: %+v %+v", group, j, y)
	}
	return member, j.Generation
}

func (s *script) state(group string) string {
	s.t.Helper()
	return s.ask("c", describeRequest(false, group), 5).(*kmsg.DescribeGroupsResponse).Groups[0].State
}

func (s *script) beat(group, member string, generation int32) wire.Code {
	s.t.Helper()
	return wire.Code(s.ask("c", heartbeatRequest(group, member, generation, nil), 4).(*kmsg.HeartbeatResponse).ErrorCode)
}

const noDelay = "group.initial.rebalance.delay.ms=0"

// few is enough partitions for groups to live on all loops.
const few = "offsets.topic.num.partitions=8"

func TestRestartKeepsGroups(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start(noDelay, few)
		s := settled(t, p)
		var members [8]string
		for i := range members {
			g := fmt.Sprint("g", i)
			members[i], _ = s.alone("c", g)
			for n := range 5 {
				s.commit(wire.None, g, members[i], 1, fmt.Sprint("t 0 ", n), fmt.Sprint("u 0 ", 10*i+n))
			}
		}
		s.commit(wire.None, "simple", "", -1, "t 3 77")
		for round := range 2 {
			p.stop()
			p.start(noDelay, few)
			s.again()
			for i := range members {
				g := fmt.Sprint("g", i)
				if got := s.committed(g, "u", 0); got != int64(10*i+4+round) {
					t.Errorf("round %d: %s has offset %d", round, g, got)
				}
				if code := s.beat(g, members[i], 1); code != wire.None {
					t.Errorf("round %d: a member that came back: %v", round, code)
				}
				if got := s.state(g); got != "Stable" {
					t.Errorf("round %d: %s is %s", round, g, got)
				}
				s.commit(wire.None, g, members[i], 1, fmt.Sprint("u 0 ", 10*i+5+round))
			}
			if got := s.committed("simple", "t", 3); got != 77 {
				t.Errorf("round %d: offset %d", round, got)
			}
		}
	})
}

// TestLoadingSaysSo: until a group is loaded, nothing else is answered about its offsets (a -1 would have clients read anew).
func TestLoadingSaysSo(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		sim := newSim(t, loops, 1)
		sim.start(noDelay, "offsets.topic.num.partitions=3")
		s := settled(t, sim)
		member, _ := s.alone("c", "m")
		for i := range 50 {
			for p := range 3 {
				s.commit(wire.None, fmt.Sprint("g", p), "", -1, fmt.Sprint("t 0 ", i), fmt.Sprint("t 1 ", i), fmt.Sprint("t 2 ", i))
			}
		}
		sim.m.Kill()
		sim.m.Faults.Slow = 1
		sim.start(noDelay, "offsets.topic.num.partitions=3", "offsets.load.buffer.size=1")
		sim.m.Faults.Slow = 0
		s.conns, s.under = map[string]*client{}, map[string][]kmsg.Request{}
		loading := 0
		for p := range 3 {
			for version := int16(1); ; version = version%9 + 1 {
				g := fmt.Sprint("g", p)
				r := s.ask("c", fetchOffsets(g, "t 1"), version).(*kmsg.OffsetFetchResponse)
				code, offset := offsetOf(r)
				if code == wire.CoordinatorLoadInProgress && offset <= 0 {
					loading++
					continue
				}
				if code != wire.None || offset != 49 {
					t.Fatalf("%d loops: %s, version %d: %v, offset %d", loops, g, version, code, offset)
				}
				break
			}
		}
		if loading == 0 {
			t.Errorf("%d loops: nothing was loading", loops)
		}
		s.served()
		if code := s.beat("m", member, 1); code != wire.None {
			t.Error(code)
		}
		sim.stop()
	}
}

// offsetOf is the answer for the one partition asked for, in whatever version; 0 where there is none.
func offsetOf(r *kmsg.OffsetFetchResponse) (wire.Code, int64) {
	code, offset := r.ErrorCode, int64(0)
	for _, t := range r.Topics {
		offset = t.Partitions[0].Offset
		code = max(code, t.Partitions[0].ErrorCode)
	}
	for _, g := range r.Groups {
		code = max(code, g.ErrorCode)
		for _, t := range g.Topics {
			offset = t.Partitions[0].Offset
			code = max(code, t.Partitions[0].ErrorCode)
		}
	}
	return wire.Code(code), offset
}

func TestDeletedGroupsStayAway(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start(noDelay, few, "log.segment.delete.delay.ms=0")
		s := settled(t, p)
		for i := range 5 {
			g := fmt.Sprint("g", i)
			m, generation := s.alone("c", g)
			s.commit(wire.None, g, m, generation, "t 0 1", "t 1 2", "u 0 3")
			if code := wire.Code(s.ask("c", deleteRequest(g), 2).(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode); code != wire.NonEmptyGroup {
				t.Errorf("a group with a member: %v", code)
			}
			s.ask("c", leaveRequest(g, m), 5)
		}
		for _, g := range s.ask("c", deleteRequest("g0", "g1", "g2", "none"), 2).(*kmsg.DeleteGroupsResponse).Groups {
			want := wire.None
			if g.Group == "none" {
				want = wire.GroupIDNotFound
			}
			if code := wire.Code(g.ErrorCode); code != want {
				t.Errorf("%s: %v", g.Group, code)
			}
		}
		s.ask("c", deleteOffsets("g3", "t 1"), 0)
		if code := s.conn("c").deleteTopic("u"); code != wire.None {
			t.Fatal(code)
		}
		for round := range 3 {
			listed := s.ask("c", listRequest(), 4).(*kmsg.ListGroupsResponse)
			if len(listed.Groups) != 2 || listed.Groups[0].Group != "g3" || listed.Groups[1].Group != "g4" {
				t.Errorf("round %d: listed %+v", round, listed.Groups)
			}
			for i := range 5 {
				g := fmt.Sprint("g", i)
				all := s.ask("c", fetchOffsets(g), 7).(*kmsg.OffsetFetchResponse)
				count := 0
				for _, topic := range all.Topics {
					count += len(topic.Partitions)
				}
				if want := []int{0, 0, 0, 1, 2}[i]; count != want {
					t.Errorf("round %d: %s has %d offsets: %+v", round, g, count, all.Topics)
				}
				if state := s.state(g); (state == "Dead") != (i < 3) {
					t.Errorf("round %d: %s is %s", round, g, state)
				}
			}
			p.stop()
			p.start(noDelay, few, "log.segment.delete.delay.ms=0")
			s.again()
		}
	})
}

// TestOffsetsExpire: KIP-211. What a group with members has committed stays; without members the time of retention begins.
func TestOffsetsExpire(t *testing.T) {
	sim := newSim(t, 2, 1)
	settings := []string{noDelay, few, "offsets.retention.minutes=1", "offsets.retention.check.interval.ms=5000"}
	sim.start(settings...)
	s := settled(t, sim)
	alive, _ := s.alone("a", "alive")
	gone, _ := s.alone("b", "gone")
	s.commit(wire.None, "alive", alive, 1, "t 0 1")
	s.commit(wire.None, "gone", gone, 1, "t 0 1")
	s.commit(wire.None, "simple", "", -1, "t 0 1")
	pass := func(d time.Duration) {
		for end := sim.w.Now() + d; sim.w.Now() < end; {
			sim.w.RunFor(5 * time.Second)
			s.beat("alive", alive, 1)
			s.beat("gone", gone, 1)
		}
	}
	has := func(when string, groups ...string) {
		t.Helper()
		for _, g := range []string{"alive", "gone", "simple"} {
			want := int64(-1)
			for _, h := range groups {
				if h == g {
					want = 1
				}
			}
			if got := s.committed(g, "t", 0); got != want {
				t.Errorf("%s: %s has offset %d, want %d", when, g, got, want)
			}
		}
	}
	pass(50 * time.Second)
	has("before the retention", "alive", "gone", "simple")
	pass(20 * time.Second)
	has("after it", "alive", "gone")
	s.ask("b", leaveRequest("gone", gone), 5)
	pass(30 * time.Second)
	sim.stop()
	sim.start(settings...)
	s.again()
	has("after a restart", "alive", "gone")
	pass(20 * time.Second)
	has("soon after it", "alive", "gone")
	pass(20 * time.Second)
	has("a minute after the last member left", "alive")
	pass(3 * time.Minute)
	has("in the end", "alive")
	sim.stop()
}

// TestFetchSeesTheCommitBeforeIt: Kafka takes the requests of a connection one after the other.
func TestFetchSeesTheCommitBeforeIt(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start(noDelay, few)
		s := settled(t, p)
		for i := range int64(20) {
			s.send("c", commitRequest("g", "", -1, fmt.Sprint("t 0 ", i)), 8)
			s.send("c", fetchOffsets("g", "t 0"), 7)
			s.take("c")
			if code, offset := offsetOf(s.take("c").(*kmsg.OffsetFetchResponse)); code != wire.None || offset != i {
				t.Errorf("commit of %d: %v, offset %d", i, code, offset)
			}
		}
	})
}

// TestStopAnswersWhoWaits: a member that waits for the others is told to look elsewhere.
func TestStopAnswersWhoWaits(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start(noDelay, few)
		s := settled(t, p)
		s.alone("a", "g")
		s.join("b", "g", 5, "range=t")
		s.until("c", describeRequest(false, "g"), 5, func(r kmsg.Response) bool {
			return r.(*kmsg.DescribeGroupsResponse).Groups[0].State == "PreparingRebalance"
		})
		answered := make(chan error, 1)
		read := func() {
			r, err := s.conns["b"].tryReceive(s.under["b"][0])
			if err == nil {
				err = wire.Code(r.(*kmsg.JoinGroupResponse).ErrorCode)
			}
			answered <- err
		}
		if _, ok := p.(*real); ok {
			go read()
			p.stop()
		} else {
			p.stop()
			read()
		}
		if err := <-answered; err != wire.NotCoordinator {
			t.Error(err)
		}
	})
}

// TestTopicOfOffsetsIsTheBrokersOwn: clients cannot write to it, and if it is deleted it begins anew.
func TestTopicOfOffsetsIsTheBrokersOwn(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		const topic = "__consumer_offsets"
		p.start(noDelay, "offsets.topic.num.partitions=3", "offsets.topic.segment.bytes=1000000", "offsets.topic.compression.codec=1",
			"log.segment.delete.delay.ms=0")
		s := settled(t, p)
		c := s.conn("c")
		if _, code := c.produce(topic, 0, -1, words("x")); code != wire.InvalidTopicException {
			t.Errorf("a client wrote to it: %v", code)
		}
		name := topic
		m := kmsg.NewPtrMetadataRequest()
		m.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		got := ask[*kmsg.MetadataResponse](c, m, 12).Topics[0]
		if !got.IsInternal || len(got.Partitions) != 3 || len(got.Partitions[0].Replicas) != 1 {
			t.Errorf("%+v", got)
		}
		for g := range 3 {
			s.commit(wire.None, fmt.Sprint("g", g), "", -1, "t 0 5")
		}
		codecs := map[batch.Codec]int{}
		for i := range int32(3) {
			for b := c.fetch(topic, i, 0, 0).RecordBatches; len(b) > 0; {
				one, rest, err := batch.Whole(b)
				if err != nil {
					t.Fatal(err)
				}
				codecs[batch.Header(one).Codec()]++
				b = rest
			}
		}
		if codecs[batch.Gzip] == 0 || len(codecs) != 1 {
			t.Errorf("batches by codec: %v", codecs)
		}
		member, _ := s.alone("c", "g0")
		if code := c.deleteTopic(topic); code != wire.None {
			t.Fatal(code)
		}
		s.until("c", heartbeatRequest("g0", member, 1, nil), 4, func(r kmsg.Response) bool {
			return wire.Code(r.(*kmsg.HeartbeatResponse).ErrorCode) == wire.NotCoordinator
		})
		s.served()
		if got := s.committed("g1", "t", 0); got != -1 {
			t.Errorf("offset %d outlived the topic", got)
		}
		s.commit(wire.None, "g1", "", -1, "t 0 6")
		p.stop()
		p.start(noDelay, few)
		s.again()
		if got := s.committed("g1", "t", 0); got != 6 {
			t.Errorf("offset %d", got)
		}
	})
}

func TestTopicOfOffsetsNeedsItsReplicas(t *testing.T) {
	sim := newSim(t, 1, 1)
	sim.start("offsets.topic.replication.factor=2")
	c := connect(t, sim)
	for range 5 {
		if code := wire.Code(ask[*kmsg.FindCoordinatorResponse](c, findRequest(0, "g"), 3).ErrorCode); code != wire.CoordinatorNotAvailable {
			t.Fatal(code)
		}
		sim.w.RunFor(time.Second)
	}
	sim.stop()
}

// TestLostLogEndsItsGroups: groups whose log has failed are not served, and the others are.
func TestLostLogEndsItsGroups(t *testing.T) {
	sim := newSim(t, 2, 1)
	sim.start(noDelay, "offsets.topic.num.partitions=2", "log.dirs=/data,/more")
	s := settled(t, sim)
	lost, kept := "b", "a" // their hashes are 98 and 97
	away := sim.inDir("/more", "__consumer_offsets", 2)
	if len(away) != 1 {
		t.Fatal("the partitions of offsets lie in one log dir")
	}
	if away[0] == 1 {
		lost, kept = kept, lost
	}
	s.commit(wire.None, lost, "", -1, "t 0 1")
	s.commit(wire.None, kept, "", -1, "t 0 1")
	sim.m.FailNext("write", "/more/__consumer_offsets-", 0, 1, syscall.EIO)
	s.commit(wire.NotCoordinator, lost, "", -1, "t 0 2")
	s.until("c", fetchOffsets(lost, "t 0"), 7, func(r kmsg.Response) bool {
		return wire.Code(r.(*kmsg.OffsetFetchResponse).ErrorCode) == wire.NotCoordinator
	})
	s.commit(wire.None, kept, "", -1, "t 0 2")
	if got := s.committed(kept, "t", 0); got != 2 {
		t.Errorf("offset %d", got)
	}
	sim.on0stop()
}

// TestGroupsOfManyPartitionsLoadTogether: every partition is loaded, whatever comes between, and once.
func TestGroupsOfManyPartitionsLoadTogether(t *testing.T) {
	for seed := range seeds(6) {
		loops := []int{1, 2, 4}[seed%3]
		sim := newSim(t, loops, seed)
		settings := []string{noDelay, "offsets.topic.num.partitions=7", "offsets.load.buffer.size=300", "offsets.topic.compression.codec=" +
			fmt.Sprint(seed%5), "offsets.topic.segment.bytes=2000"}
		sim.start(settings...)
		s := settled(t, sim)
		want := map[string]int64{}
		for life := range 4 {
			for range 60 {
				g := fmt.Sprint("g", sim.w.Rand().IntN(20))
				want[g]++
				s.commit(wire.None, g, "", -1, fmt.Sprint("t 0 ", want[g]))
			}
			if life%2 == 0 {
				sim.m.Kill()
			} else {
				sim.stop()
			}
			sim.start(settings...)
			s.again()
			for i := range 20 {
				g := fmt.Sprint("g", i)
				w := want[g]
				if w == 0 {
					w = -1
				}
				if got := s.committed(g, "t", 0); got != w {
					t.Errorf("seed %d, life %d: %s has %d, want %d", seed, life, g, got, w)
				}
			}
		}
		sim.on(func(_ *ring.Task, b *Broker) {
			for _, sh := range b.shards {
				if sh.loads.busy || len(sh.loads.queue) > 0 {
					t.Error("a load is left over")
				}
			}
		})
		sim.stop()
	}
}
