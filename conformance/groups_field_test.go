package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// compacting are settings under which the offsets topic is compacted soon: little segments, a cleaner that looks often.
var compacting = []string{"offsets.topic.num.partitions=3", "offsets.topic.segment.bytes=20000", "log.cleaner.backoff.ms=100",
	"log.cleaner.min.cleanable.ratio=0.01", "log.retention.check.interval.ms=200", "log.segment.delete.delay.ms=100", "group.initial.rebalance.delay.ms=0"}

// churnOffsets commits over and over for groups of its own, so that every offsets partition has several segments to clean, and waits
// until the cleaner has been to each: less is there than was written.
func churnOffsets(t *testing.T, b *broker, partitions int32) {
	t.Helper()
	c := b.dial()
	defer c.Close()
	b.create("churned", 20)
	for g := range 4 * partitions { // whatever they hash to
		req := commitRequest(fmt.Sprint("churn-", g), "churned", 0, 1)
		for p := range int32(20) {
			part := kmsg.NewOffsetCommitRequestTopicPartition()
			part.Partition, part.Offset = p, int64(g)
			req.Topics[0].Partitions = append(req.Topics[0].Partitions, part)
		}
		for range 20 {
			wantCode(t, "OffsetCommit", commitCode(t, must[*kmsg.OffsetCommitResponse](t, c, req)), 0)
		}
	}
	dirty := map[int32]bool{}
	for p := range partitions {
		dirty[p] = true
	}
	for until := time.Now().Add(time.Minute); len(dirty) > 0; time.Sleep(100 * time.Millisecond) {
		maps.DeleteFunc(dirty, func(p int32, _ bool) bool { return holes(t, b, "__consumer_offsets", p) })
		if time.Now().After(until) {
			t.Fatalf("the cleaner does not come to partitions %v of the offsets topic", slices.Sorted(maps.Keys(dirty)))
		}
	}
}

// holes tells whether a partition holds fewer records than it was given: it was compacted.
func holes(t *testing.T, b *broker, topic string, partition int32) bool {
	t.Helper()
	end := listOffset(t, b, topic, partition, -1)
	cl := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(0)}}))
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	n, last := int64(0), int64(-1)
	for last < end-1 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) { n, last = n+1, r.Offset })
	}
	return n < end && end > 0
}

func listOffset(t *testing.T, b *broker, topic string, partition int32, at int64) int64 {
	t.Helper()
	c := b.dial()
	defer c.Close()
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, at, -1
	tp := kmsg.NewListOffsetsRequestTopic()
	tp.Topic, tp.Partitions = topic, append(tp.Partitions, p)
	req.Topics = append(req.Topics, tp)
	resp := must[*kmsg.ListOffsetsResponse](t, c, req)
	wantCode(t, "ListOffsets", resp.Topics[0].Partitions[0].ErrorCode, 0)
	return resp.Topics[0].Partitions[0].Offset
}

// offsetsOf is what each group has committed.
func offsetsOf(t *testing.T, b *broker, groups []string) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, g := range groups {
		all[g] = settledOffsets(t, b, g)
	}
	return all
}

func wantOffsets(t *testing.T, when string, got, want map[string]map[string]string) {
	t.Helper()
	for _, g := range slices.Sorted(maps.Keys(want)) {
		if !maps.Equal(got[g], want[g]) {
			t.Errorf("%s: group %s has\n%v\nhad\n%v", when, g, got[g], want[g])
		}
	}
}

// ends are the ways a broker comes to read its offsets topic again.
func (b *broker) again(sig syscall.Signal) {
	b.t.Helper()
	b.stop(sig)
	b.run()
}

// TestCommittedOffsetsStay: what was committed is the same before and after every restart and compaction.
func TestCommittedOffsetsStay(t *testing.T) {
	everyLoops(t, func(t *testing.T, loops int) {
		t.Parallel()
		b := start(t, loops, compacting...)
		b.create("x", 3)
		b.create("y.z", 2)
		var groups []string
		for g := range 9 {
			m := newMember(b, fmt.Sprint("group-", g), "x")
			groups = append(groups, m.group)
			if g%3 == 0 { // of members
				stable(m)
			} else {
				findCoordinator(t, m.c, m.group)
				m.generation = -1
			}
			for i := range int64(10) { // forwards, backwards, and again the same
				wantCode(t, "OffsetCommit", m.commit("x", int32(i)%3, []int64{5, 1 << 40, 7, 0}[(int(i)+g)%4]), 0)
			}
			req := m.commitRequest("y.z", 1, int64(g))
			p := &req.Topics[0].Partitions[0]
			p.LeaderEpoch, p.Metadata = int32(g), kmsg.StringPtr(fmt.Sprintf("metadata of %d: é\x00", g))
			wantCode(t, "OffsetCommit", commitCode(t, must[*kmsg.OffsetCommitResponse](t, m.c, req)), 0)
			p.Partition, p.Metadata = 0, nil
			wantCode(t, "OffsetCommit", commitCode(t, must[*kmsg.OffsetCommitResponse](t, m.c, req)), 0)
			if g%3 == 0 && g > 0 {
				wantCode(t, "LeaveGroup", m.leave(), 0)
			}
		}
		before := offsetsOf(t, b, groups)
		if n := len(before["group-4"]); n != 5 {
			t.Fatalf("group-4 has %d offsets, want 5: %v", n, before["group-4"])
		}
		b.again(syscall.SIGTERM)
		wantOffsets(t, "after a stop", offsetsOf(t, b, groups), before)
		b.again(syscall.SIGKILL)
		wantOffsets(t, "after a kill", offsetsOf(t, b, groups), before)
		churnOffsets(t, b, 3)
		wantOffsets(t, "after compaction", offsetsOf(t, b, groups), before)
		b.again(syscall.SIGKILL)
		wantOffsets(t, "after compaction and a kill", offsetsOf(t, b, groups), before)
		b.again(syscall.SIGTERM)
		wantOffsets(t, "after compaction and a stop", offsetsOf(t, b, groups), before)
	})
}

// TestDeletedGroupsStayAway: groups, offsets and topics that were deleted do not come back, whatever happens; others do not go.
func TestDeletedGroupsStayAway(t *testing.T) {
	everyLoops(t, func(t *testing.T, loops int) {
		t.Parallel()
		b := start(t, loops, compacting...)
		for _, topic := range []string{"x", "y", "z"} {
			b.create(topic, 2)
		}
		var groups []string
		for g := range 5 {
			m := newMember(b, fmt.Sprint("g", g), "x")
			groups = append(groups, m.group)
			stable(m)
			for _, topic := range []string{"x", "y", "z"} {
				for p := range int32(2) {
					wantCode(t, "OffsetCommit", m.commit(topic, p, int64(10*g)+int64(p)), 0)
				}
			}
			if g == 0 {
				wantCode(t, "DeleteGroups of a group with a member", deleteGroups(t, b, m.group)[m.group], codeNotEmpty)
			}
			wantCode(t, "LeaveGroup", m.leave(), 0)
		}
		got := deleteGroups(t, b, "g0", "g1", "g2", "nobody")
		want := map[string]int16{"g0": 0, "g1": 0, "g2": 0, "nobody": codeGroupNotFound}
		if !maps.Equal(got, want) {
			t.Fatalf("DeleteGroups: %v, want %v", got, want)
		}
		wantCode(t, "DeleteGroups of a deleted group", deleteGroups(t, b, "g1")["g1"], codeGroupNotFound)
		deleteOffsets(t, b, "g3", "y", 0, 1)
		removeTopic(t, b, "z")
		check := func(when string) {
			t.Helper()
			c := b.dial()
			defer c.Close()
			now := offsetsOf(t, b, groups)
			for i, g := range groups {
				state := map[bool]string{true: "Dead", false: "Empty"}[i < 3]
				if d := describe(t, c, g); d.State != state || d.ErrorCode != 0 || len(d.Members) != 0 {
					t.Errorf("%s: DescribeGroups of %s: %+v, want %s", when, g, d, state)
				}
				var topics []string
				for tp := range now[g] {
					topics = append(topics, tp)
				}
				slices.Sort(topics)
				if want := [][]string{nil, nil, nil, {"x-0", "x-1"}, {"x-0", "x-1", "y-0", "y-1"}}[i]; !slices.Equal(topics, want) {
					t.Errorf("%s: %s has offsets of %v, want %v", when, g, topics, want)
				}
				one, err := fetchOffsets(c, g, "x", 2)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range one.Topics[0].Partitions {
					if want := map[bool]int64{true: -1, false: int64(10*i) + int64(p.Partition)}[i < 3]; p.ErrorCode != 0 || p.Offset != want {
						t.Errorf("%s: OffsetFetch of %s for x-%d: %d, %s; want %d", when, g, p.Partition, p.Offset, code(p.ErrorCode), want)
					}
				}
			}
			l := listed(t, c)
			maps.DeleteFunc(l, func(g, _ string) bool { return g[0] == 'c' })
			if want := map[string]string{"g3": "Empty", "g4": "Empty"}; !maps.Equal(l, want) {
				t.Errorf("%s: ListGroups: %v, want %v", when, l, want)
			}
		}
		awaitNoOffsets(t, b, "g4", "z")
		check("at once")
		b.again(syscall.SIGTERM)
		check("after a stop")
		b.again(syscall.SIGKILL)
		check("after a kill")
		churnOffsets(t, b, 3)
		check("after compaction")
		b.again(syscall.SIGKILL)
		check("after compaction and a kill")
	})
}

// awaitNoOffsets waits until the offsets of a deleted topic are gone: they go after the topic.
func awaitNoOffsets(t *testing.T, b *broker, group, topic string) {
	t.Helper()
	for until := time.Now().Add(startMax); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		there := false
		for tp := range settledOffsets(t, b, group) {
			there = there || tp[:len(tp)-2] == topic
		}
		if !there {
			return
		}
	}
	t.Fatalf("group %s keeps offsets of the deleted topic %s", group, topic)
}

func deleteGroups(t *testing.T, b *broker, groups ...string) map[string]int16 {
	t.Helper()
	c := b.dial()
	defer c.Close()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version = 2
	req.Groups = groups
	out := map[string]int16{}
	for _, g := range must[*kmsg.DeleteGroupsResponse](t, c, req).Groups {
		out[g.Group] = g.ErrorCode
	}
	return out
}

func deleteOffsets(t *testing.T, b *broker, group, topic string, partitions ...int32) {
	t.Helper()
	c := b.dial()
	defer c.Close()
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	tp := kmsg.NewOffsetDeleteRequestTopic()
	tp.Topic = topic
	for _, p := range partitions {
		part := kmsg.NewOffsetDeleteRequestTopicPartition()
		part.Partition = p
		tp.Partitions = append(tp.Partitions, part)
	}
	req.Topics = append(req.Topics, tp)
	resp := must[*kmsg.OffsetDeleteResponse](t, c, req)
	wantCode(t, "OffsetDelete", resp.ErrorCode, 0)
	for _, tp := range resp.Topics {
		for _, p := range tp.Partitions {
			wantCode(t, "OffsetDelete", p.ErrorCode, 0)
		}
	}
}

// TestNoFalseAbsenceWhileLoading: the offsets topic holds 200,000 offsets. In the first moments after a restart a group's requests are
// answered rightly or by 14, 15 or 16, a heartbeat also by NONE; never by NONE and -1. A consumer does not begin anew.
func TestNoFalseAbsenceWhileLoading(t *testing.T) {
	everyLoops(t, func(t *testing.T, loops int) {
		t.Parallel()
		b := start(t, loops, "offsets.topic.num.partitions=2", "log.cleaner.enable=false", "group.initial.rebalance.delay.ms=0")
		b.create("x", 100)
		fillOffsets(t, b, "held", "x", 100, 2000)
		b.create("read", 1)
		reader := readSome(t, b, "read")
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			h := &hammer{t: t, b: b, refused: map[int16]int{}}
			h.begin(4)
			b.stop(sig)
			b.run()
			h.wait()
			t.Logf("after %v: %d right answers, refused: %v", sig, h.right, h.refused)
		}
		reader.end()
	})
}

// fillOffsets commits rounds times for all partitions of a topic; the last round leaves offset 1000+partition.
func fillOffsets(t *testing.T, b *broker, group, topic string, partitions, rounds int) {
	t.Helper()
	c := b.dial()
	defer c.Close()
	findCoordinator(t, c, group)
	settledOffsets(t, b, group)
	req := commitRequest(group, topic, 0, 1000)
	for p := 1; p < partitions; p++ {
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset = int32(p), int64(1000+p)
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, part)
	}
	frame := encode(req)
	go func() {
		for range rounds {
			if _, err := c.Write(frame); err != nil {
				return
			}
		}
	}()
	for range rounds {
		c.SetReadDeadline(time.Now().Add(startMax))
		b, err := answer(c)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := decode[*kmsg.OffsetCommitResponse](req, b)
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, "OffsetCommit", commitCode(t, resp), 0)
	}
}

// hammer asks for a group's offsets without pause, across a restart, until it has had right answers after it.
type hammer struct {
	t       *testing.T
	b       *broker
	mu      sync.Mutex
	right   int
	refused map[int16]int
	all     sync.WaitGroup
}

func (h *hammer) begin(n int) {
	for i := range n {
		h.all.Add(1)
		go func() {
			defer h.all.Done()
			h.run(i)
		}()
	}
}

func (h *hammer) wait() { h.t.Helper(); h.all.Wait() }

// run asks until the broker has gone and given 200 right answers since.
func (h *hammer) run(i int) {
	gone, right := false, 0
	for until := time.Now().Add(time.Minute); right < 200; {
		if time.Now().After(until) {
			h.t.Errorf("after a minute no end: the broker was gone: %v, %d right answers since", gone, right)
			return
		}
		c, err := net.DialTimeout("tcp", h.b.addr, time.Second)
		for err == nil && right < 200 {
			var ok bool
			if ok, err = h.ask(c, i); ok && gone {
				right++
			}
		}
		if c != nil {
			c.Close()
		}
		gone = gone || err != nil
	}
	h.mu.Lock()
	h.right += right
	h.mu.Unlock()
}

var errWrong = errors.New("a wrong answer")

func (h *hammer) ask(c net.Conn, i int) (right bool, err error) {
	switch i {
	case 0, 1:
		g, err := fetchOffsets(c, "held", "x", []int{100, 0}[i])
		if err != nil {
			return false, err
		}
		if g.ErrorCode != 0 {
			return false, h.refusal("OffsetFetch", g.ErrorCode)
		}
		n := 0
		for _, tp := range g.Topics {
			for _, p := range tp.Partitions {
				if n++; p.ErrorCode != 0 || p.Offset != int64(1000+p.Partition) {
					h.t.Errorf("OffsetFetch of x-%d: offset %d, %s", p.Partition, p.Offset, code(p.ErrorCode))
					return false, errWrong
				}
			}
		}
		if n != 100 {
			h.t.Errorf("OffsetFetch answers %d offsets without an error, there are 100", n)
			return false, errWrong
		}
		return true, nil
	case 2: // a heartbeat of nobody, in a group that has no member
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version, req.Group, req.MemberID, req.Generation = 4, "held", "nobody", 1
		resp, err := ask[*kmsg.HeartbeatResponse](c, req)
		if err != nil || resp.ErrorCode == codeUnknownMember {
			return err == nil, err
		}
		if resp.ErrorCode == 0 { // so does Kafka while it loads, blindly: the member goes on
			return false, nil
		}
		return false, h.refusal("Heartbeat", resp.ErrorCode)
	default:
		resp, err := ask[*kmsg.OffsetCommitResponse](c, commitRequest("held", "x", 7, 1007))
		if err != nil {
			return false, err
		}
		if e := resp.Topics[0].Partitions[0].ErrorCode; e != 0 {
			return false, h.refusal("OffsetCommit", e)
		}
		join := kmsg.NewPtrJoinGroupRequest() // of an unknown member: it is told so, and leaves nothing behind
		join.Version, join.Group, join.MemberID, join.ProtocolType = 9, "held", "nobody", "consumer"
		join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 10000, 10000
		join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		j, err := ask[*kmsg.JoinGroupResponse](c, join)
		if err != nil || j.ErrorCode == codeUnknownMember {
			return err == nil, err
		}
		return false, h.refusal("JoinGroup", j.ErrorCode)
	}
}

func (h *hammer) refusal(what string, e int16) error {
	switch e {
	case codeLoading, codeUnavailable, codeNotCoordinator:
		h.mu.Lock()
		h.refused[e]++
		h.mu.Unlock()
		return nil
	}
	h.t.Errorf("%s is answered %s", what, code(e))
	return errWrong
}

// groupReader consumes a topic in a group while the broker is restarted: it never comes to see a record below a commit of its own.
type groupReader struct {
	t    *testing.T
	cl   *kgo.Client
	w    *writer
	stop chan struct{}
	done chan struct{}
	mu   sync.Mutex
	read []string
	low  string
	some chan struct{}
}

func readSome(t *testing.T, b *broker, topic string) *groupReader {
	t.Helper()
	r := &groupReader{t: t, w: newWriter(b, topic), stop: make(chan struct{}), done: make(chan struct{}), some: make(chan struct{}, 1)}
	for range 50 {
		if err := r.w.write(10); err != nil {
			t.Fatal(err)
		}
	}
	r.cl = b.client(kgo.ConsumerGroup("readers"), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(50*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }), kgo.MetadataMinAge(20*time.Millisecond))
	go func() {
		defer close(r.done)
		committed := int64(-1)
		for {
			select {
			case <-r.stop:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			fs := r.cl.PollFetches(ctx)
			cancel()
			fs.EachRecord(func(rec *kgo.Record) {
				r.mu.Lock()
				if rec.Offset < committed && r.low == "" {
					r.low = fmt.Sprintf("offset %d is read again, %d is committed", rec.Offset, committed)
				}
				r.read = append(r.read, string(rec.Value))
				r.mu.Unlock()
			})
			if fs.NumRecords() == 0 {
				continue
			}
			ctx, cancel = context.WithTimeout(context.Background(), startMax)
			if err := r.cl.CommitUncommittedOffsets(ctx); err == nil {
				for _, ps := range r.cl.CommittedOffsets() {
					committed = ps[0].Offset
				}
			}
			cancel()
			select {
			case r.some <- struct{}{}:
			default:
			}
		}
	}()
	select {
	case <-r.some:
	case <-time.After(startMax):
		t.Fatal("the group's consumer reads nothing")
	}
	return r
}

// end writes a last record, and wants every record to have been read.
func (r *groupReader) end() {
	r.t.Helper()
	before := r.w
	r.w = newWriter(before.b, before.topic) // the old one's connection ended with the broker
	r.w.n, r.w.acked = before.n, before.acked
	if err := r.w.write(10); err != nil {
		r.t.Fatal(err)
	}
	last := fmt.Sprintf("%s %08d", r.w.topic, r.w.n)
	seen := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(r.read, func(v string) bool { return len(v) >= len(last) && v[:len(last)] == last })
	}
	for until := time.Now().Add(2 * startMax); !seen(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			r.t.Error("the group's consumer does not read on")
			break
		}
	}
	close(r.stop)
	<-r.done
	if r.low != "" {
		r.t.Error(r.low)
	}
	if n := len(r.w.acked); len(r.read) < n {
		r.t.Errorf("%d of %d records were read", len(r.read), n)
	}
}
