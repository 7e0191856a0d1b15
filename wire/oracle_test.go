package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The tests here compare with kmsg, which knows nothing of us: for every version, random messages.

type random struct{ *rand.Rand }

func (r random) name() string {
	b := make([]byte, r.IntN(300)*r.IntN(2)+r.IntN(5))
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

func (r random) nullable() *string {
	if r.IntN(2) == 0 {
		return nil
	}
	s := r.name()
	return &s
}

func (r random) i32() int32 { return int32(r.Uint32()) >> (8 * r.IntN(4)) }
func (r random) i64() int64 { return int64(r.Uint64()) >> (8 * r.IntN(8)) }
func (r random) id() (id [16]byte) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

func (r random) tags(t *kmsg.Tags) {
	if r.IntN(4) == 0 {
		for range r.IntN(3) {
			t.Set(uint32(20+r.IntN(1000)), []byte(r.name()))
		}
	}
}

func (r random) produce(version int16) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.TransactionID, q.Acks, q.TimeoutMillis = version, r.nullable(), int16(r.i32()), r.i32()
	r.tags(&q.UnknownTags)
	for range r.IntN(4) {
		t := kmsg.NewProduceRequestTopic()
		t.Topic = r.name()
		r.tags(&t.UnknownTags)
		for range r.IntN(4) {
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition = r.i32()
			if r.IntN(5) > 0 {
				p.Records = []byte(r.name())
			}
			r.tags(&p.UnknownTags)
			t.Partitions = append(t.Partitions, p)
		}
		q.Topics = append(q.Topics, t)
	}
	return q
}

func showProduce(q *kmsg.ProduceRequest) string {
	s := fmt.Sprint(q.Acks, q.TimeoutMillis, q.TransactionID != nil)
	if q.TransactionID != nil {
		s += *q.TransactionID
	}
	for _, t := range q.Topics {
		s += "\n" + t.Topic
		for _, p := range t.Partitions {
			s += fmt.Sprint(" ", p.Partition, p.Records != nil, p.Records)
		}
	}
	return s
}

func showOurProduce(q *ProduceRequest) string {
	s := fmt.Sprint(q.Acks, q.TimeoutMillis, q.TransactionalID != nil) + string(q.TransactionalID)
	it := q.Iter()
	for it.NextTopic() {
		s += "\n" + string(it.Topic)
		for it.NextPartition() {
			s += fmt.Sprint(" ", it.Partition, it.Records != nil, it.Records)
		}
	}
	return s
}

func TestProduceRequestAgrees(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 1))}
	for v := int16(3); v <= 11; v++ {
		for range 200 {
			want := r.produce(v)
			body := want.AppendTo(nil)
			var got ProduceRequest
			if err := got.Parse(v, body); err != nil {
				t.Fatal(v, err)
			}
			if a, b := showOurProduce(&got), showProduce(want); a != b {
				t.Fatalf("version %d:\n got %s\nwant %s", v, a, b)
			}
			topics, partitions := 0, 0
			for it := got.Iter(); it.NextTopic(); topics++ { // partitions may be left out
				partitions += it.Count
			}
			if topics != got.Topics || partitions != got.Partitions || topics != len(want.Topics) {
				t.Fatal(v, topics, partitions, got)
			}
			checkCutShort(t, v, body, func(b []byte) error { return new(ProduceRequest).Parse(v, b) })
		}
	}
	for _, v := range []int16{-1, 0, 1, 2, 12} {
		if err := new(ProduceRequest).Parse(v, nil); err != ErrVersion {
			t.Error(v, err)
		}
	}
}

// checkCutShort: no proper prefix of a body is a body, and bytes after it do not matter.
func checkCutShort(t *testing.T, v int16, body []byte, parse func([]byte) error) {
	t.Helper()
	for n := 0; n < len(body); n += 1 + len(body)/50 {
		if err := parse(body[:n:n]); err != ErrBody {
			t.Fatalf("version %d: %d of %d bytes: %v", v, n, len(body), err)
		}
	}
	if err := parse(append(body[:len(body):len(body)], 1, 2, 3)); err != nil {
		t.Fatal(v, err)
	}
}

func (r random) fetch(version int16) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.Version, q.MaxWaitMillis, q.MinBytes, q.MaxBytes, q.IsolationLevel = version, r.i32(), r.i32(), r.i32(), int8(r.IntN(2))
	if version <= 14 {
		q.ReplicaID = r.i32()
	} else {
		q.ReplicaState.ID, q.ReplicaState.Epoch = r.i32(), r.i64()
		r.tags(&q.ReplicaState.UnknownTags)
	}
	if version >= 7 {
		q.SessionID, q.SessionEpoch = r.i32(), r.i32()
	}
	if version >= 11 {
		q.Rack = r.name()
	}
	if version >= 12 {
		q.ClusterID = r.nullable()
	}
	r.tags(&q.UnknownTags)
	for range r.IntN(4) {
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = r.name(), r.id()
		r.tags(&t.UnknownTags)
		for range r.IntN(4) {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.PartitionMaxBytes = r.i32(), r.i64(), r.i32()
			p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = r.i32(), r.i32(), r.i64()
			if version >= 17 {
				p.ReplicaDirectoryID = r.id()
			}
			r.tags(&p.UnknownTags)
			t.Partitions = append(t.Partitions, p)
		}
		q.Topics = append(q.Topics, t)
	}
	for range r.IntN(3) {
		t := kmsg.NewFetchRequestForgottenTopic()
		t.Topic, t.TopicID = r.name(), r.id()
		for range r.IntN(4) {
			t.Partitions = append(t.Partitions, r.i32())
		}
		r.tags(&t.UnknownTags)
		q.ForgottenTopics = append(q.ForgottenTopics, t)
	}
	return q
}

// showFetch shows a request after a round trip through kmsg, so that what the version lacks is at kmsg's default.
func showFetch(q *kmsg.FetchRequest) string {
	id, epoch := q.ReplicaID, int64(-1)
	if q.Version >= 15 {
		id, epoch = q.ReplicaState.ID, q.ReplicaState.Epoch
	}
	cluster := ""
	if q.ClusterID != nil {
		cluster = *q.ClusterID
	}
	s := fmt.Sprint(id, epoch, q.MaxWaitMillis, q.MinBytes, q.MaxBytes, q.IsolationLevel == 1, q.SessionID, q.SessionEpoch,
		q.Rack, q.ClusterID != nil, cluster)
	for _, t := range q.Topics {
		s += fmt.Sprint("\n", t.Topic, t.TopicID)
		for _, p := range t.Partitions {
			s += fmt.Sprint(" ", p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset)
		}
	}
	for _, t := range q.ForgottenTopics {
		s += fmt.Sprint("\nforget ", t.Topic, t.TopicID, t.Partitions)
	}
	return s
}

func showOurFetch(f *FetchRequest) string {
	s := fmt.Sprint(f.ReplicaID, f.ReplicaEpoch, f.WaitMillis, f.MinBytes, f.MaxBytes, f.ReadCommitted, f.SessionID, f.SessionEpoch,
		string(f.Rack), f.ClusterID != nil, string(f.ClusterID))
	it := f.Iter()
	for it.NextTopic() {
		s += fmt.Sprint("\n", string(it.Topic), it.TopicID)
		for it.NextPartition() {
			s += fmt.Sprint(" ", it.Partition, it.Offset, it.MaxBytes, it.LeaderEpoch, it.LastEpoch, it.LogStart)
		}
	}
	for it := f.IterForgotten(); it.NextTopic(); {
		partitions := []int32{}
		for it.NextPartition() {
			partitions = append(partitions, it.Partition)
		}
		s += fmt.Sprint("\nforget ", string(it.Topic), it.TopicID, partitions)
	}
	return s
}

func compareFetch(t *testing.T, v int16, body []byte) {
	t.Helper()
	want := kmsg.NewPtrFetchRequest()
	want.Version = v
	if err := want.ReadFrom(body); err != nil {
		t.Fatal(v, err)
	}
	var got FetchRequest
	if err := got.Parse(v, body); err != nil {
		t.Fatal(v, err)
	}
	if a, b := showOurFetch(&got), showFetch(want); a != b {
		t.Fatalf("version %d:\n got %s\nwant %s", v, a, b)
	}
	partitions := 0
	for i := range want.Topics {
		partitions += len(want.Topics[i].Partitions)
	}
	if got.Topics != len(want.Topics) || got.Partitions != partitions || got.Forgotten != len(want.ForgottenTopics) {
		t.Fatal(v, got)
	}
}

func TestFetchRequestAgrees(t *testing.T) {
	r := random{rand.New(rand.NewPCG(2, 1))}
	for v := int16(4); v <= 17; v++ {
		for range 200 {
			body := r.fetch(v).AppendTo(nil)
			compareFetch(t, v, body)
			checkCutShort(t, v, body, func(b []byte) error { return new(FetchRequest).Parse(v, b) })
		}
	}
	for _, v := range []int16{-1, 0, 3, 18} {
		if err := new(FetchRequest).Parse(v, nil); err != ErrVersion {
			t.Error(v, err)
		}
	}
}

func TestCapturedFetchRequests(t *testing.T) {
	n := 0
	for _, c := range frames(t) {
		if c.Key == Fetch {
			_, body := c.body(t)
			compareFetch(t, c.Version, body)
			n++
		}
	}
	if n < 80 {
		t.Error("only", n)
	}
}

func TestCapturedProduceRequests(t *testing.T) {
	for _, c := range produceFrames(t) {
		_, body := c.body(t)
		want := kmsg.NewPtrProduceRequest()
		want.Version = c.Version
		if err := want.ReadFrom(body); err != nil {
			t.Fatal(err)
		}
		var got ProduceRequest
		if err := got.Parse(c.Version, body); err != nil {
			t.Fatal(err)
		}
		if a, b := showOurProduce(&got), showProduce(want); a != b {
			t.Fatalf("got %s\nwant %s", a, b)
		}
	}
}

// produceAnswer encodes with our encoder what a kmsg answer holds.
func produceAnswer(dst []byte, v int16, want *kmsg.ProduceResponse) []byte {
	var a ProduceAnswer
	a.Begin(dst, v, len(want.Topics))
	for i := range want.Topics {
		t := &want.Topics[i]
		a.Topic([]byte(t.Topic), len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			out := ProducePartition{Partition: p.Partition, Code: Code(p.ErrorCode), BaseOffset: p.BaseOffset,
				LogAppendTime: p.LogAppendTime, LogStart: p.LogStartOffset}
			for _, e := range p.ErrorRecords {
				out.Records = append(out.Records, RecordError{e.RelativeOffset, value(e.ErrorMessage)})
			}
			out.Message = value(p.ErrorMessage)
			out.Leader = Leader{p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch, p.CurrentLeader.LeaderID != -1}
			a.Partition(&out)
		}
	}
	var nodes []Node
	for _, b := range want.Brokers {
		nodes = append(nodes, Node{b.NodeID, b.Host, b.Port, value(b.Rack)})
	}
	return a.End(want.ThrottleMillis, nodes)
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// full is a string that is not empty, or nil.
func (r random) full() *string {
	if s := r.name(); s != "" && r.IntN(2) == 0 {
		return &s
	}
	return nil
}

func TestProduceAnswerAgrees(t *testing.T) {
	r := random{rand.New(rand.NewPCG(3, 1))}
	for v := int16(3); v <= 11; v++ {
		for range 200 {
			want := kmsg.NewPtrProduceResponse()
			want.Version, want.ThrottleMillis = v, r.i32()
			for range r.IntN(4) {
				t := kmsg.NewProduceResponseTopic()
				t.Topic = r.name()
				for range r.IntN(4) {
					p := kmsg.NewProduceResponseTopicPartition()
					p.Partition, p.ErrorCode, p.BaseOffset, p.LogAppendTime, p.LogStartOffset = r.i32(), int16(r.IntN(100)), r.i64(), r.i64(), r.i64()
					for range r.IntN(3) {
						e := kmsg.NewProduceResponseTopicPartitionErrorRecord()
						e.RelativeOffset, e.ErrorMessage = r.i32(), r.full()
						p.ErrorRecords = append(p.ErrorRecords, e)
					}
					p.ErrorMessage = r.full()
					if v >= 10 && r.IntN(3) == 0 {
						p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = int32(r.IntN(100)), r.i32()
					}
					t.Partitions = append(t.Partitions, p)
				}
				want.Topics = append(want.Topics, t)
			}
			for range r.IntN(3) {
				b := kmsg.NewProduceResponseBroker()
				b.NodeID, b.Host, b.Port, b.Rack = r.i32(), r.name(), r.i32(), r.full()
				want.Brokers = append(want.Brokers, b)
			}
			if v < 10 {
				want.Brokers = nil
			}
			if a, b := produceAnswer(nil, v, want), want.AppendTo(nil); !bytes.Equal(a, b) {
				t.Fatalf("version %d\n got %x\nwant %x", v, a, b)
			}
		}
	}
}

func TestCapturedProduceAnswers(t *testing.T) {
	for _, c := range produceFrames(t) {
		if c.Response == "" {
			continue
		}
		answer := unhex(t, c.Response)
		want := kmsg.NewPtrProduceResponse()
		want.Version = c.Version
		if err := want.ReadFrom(answer[SizeLength+4:]); err != nil {
			t.Fatal(err)
		}
		h, _ := c.body(t)
		got := produceAnswer(AppendResponseHeader(make([]byte, SizeLength), Produce, c.Version, h.CorrelationID), c.Version, want)
		PutFrameSize(got, 0)
		if !bytes.Equal(got, answer) {
			t.Errorf("\n got %x\nwant %x", got, answer)
		}
	}
}

// fetchAnswer encodes with our encoder what a kmsg answer holds, and puts the records into the cuts.
func fetchAnswer(t *testing.T, dst []byte, v int16, want *kmsg.FetchResponse) []byte {
	var a FetchAnswer
	var records [][]byte
	a.Begin(dst, nil, v, FetchHead{want.ThrottleMillis, Code(want.ErrorCode), want.SessionID, len(want.Topics)})
	for i := range want.Topics {
		topic := &want.Topics[i]
		a.Topic([]byte(topic.Topic), topic.TopicID, len(topic.Partitions))
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			out := FetchPartition{Partition: p.Partition, Code: Code(p.ErrorCode), HighWatermark: p.HighWatermark,
				LastStable: p.LastStableOffset, LogStart: p.LogStartOffset, PreferredReplica: p.PreferredReadReplica,
				HasPreferred: p.PreferredReadReplica != -1, RecordBytes: int64(len(p.RecordBatches)),
				DivergingEpoch: p.DivergingEpoch.Epoch, DivergingEnd: p.DivergingEpoch.EndOffset, HasDiverging: p.DivergingEpoch.Epoch != -1,
				Leader:      Leader{p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch, p.CurrentLeader.LeaderID != -1},
				SnapshotEnd: p.SnapshotID.EndOffset, SnapshotEpoch: p.SnapshotID.Epoch, HasSnapshot: p.SnapshotID.Epoch != -1}
			if p.AbortedTransactions != nil {
				out.Aborted = []Aborted{}
			}
			for _, x := range p.AbortedTransactions {
				out.Aborted = append(out.Aborted, Aborted{x.ProducerID, x.FirstOffset})
			}
			if len(p.RecordBatches) > 0 {
				records = append(records, p.RecordBatches)
			}
			a.Partition(&out)
		}
	}
	var nodes []Node
	for _, b := range want.Brokers {
		nodes = append(nodes, Node{b.NodeID, b.Host, b.Port, value(b.Rack)})
	}
	b := a.End(nodes)
	if len(records) != len(a.Cuts) {
		t.Fatal(len(records), "pieces of records", len(a.Cuts), "cuts")
	}
	var whole []byte
	from, sum := 0, int64(0)
	for i, c := range a.Cuts {
		if c.Len != int64(len(records[i])) {
			t.Fatal("a cut has another length")
		}
		whole = append(append(whole, b[from:c.At]...), records[i]...)
		from = c.At
		sum += c.Len
	}
	if sum != a.RecordBytes {
		t.Fatal(sum, a.RecordBytes)
	}
	return append(whole, b[from:]...)
}

func (r random) fetchPartition(v int16) kmsg.FetchResponseTopicPartition {
	p := kmsg.NewFetchResponseTopicPartition()
	p.Partition, p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.LogStartOffset = r.i32(), int16(r.IntN(100)), r.i64(), r.i64(), r.i64()
	if r.IntN(2) == 0 {
		p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		for range r.IntN(200) * r.IntN(2) {
			x := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
			x.ProducerID, x.FirstOffset = r.i64(), r.i64()
			p.AbortedTransactions = append(p.AbortedTransactions, x)
		}
	}
	p.RecordBatches = []byte(r.name())
	if v >= 11 && r.IntN(3) == 0 {
		p.PreferredReadReplica = int32(r.IntN(9))
	}
	if v >= 12 && r.IntN(3) == 0 {
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = int32(r.IntN(9)), r.i64()
	}
	if v >= 12 && r.IntN(3) == 0 {
		p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = int32(r.IntN(9)), r.i32()
	}
	if v >= 12 && r.IntN(3) == 0 {
		p.SnapshotID.Epoch, p.SnapshotID.EndOffset = int32(r.IntN(9)), r.i64()
	}
	return p
}

func TestFetchAnswerAgrees(t *testing.T) {
	r := random{rand.New(rand.NewPCG(4, 1))}
	for v := int16(4); v <= 17; v++ {
		for range 200 {
			want := kmsg.NewPtrFetchResponse()
			want.Version, want.ThrottleMillis, want.ErrorCode, want.SessionID = v, r.i32(), int16(r.IntN(100)), r.i32()
			for range r.IntN(4) {
				topic := kmsg.NewFetchResponseTopic()
				topic.Topic, topic.TopicID = r.name(), r.id()
				for range r.IntN(4) {
					topic.Partitions = append(topic.Partitions, r.fetchPartition(v))
				}
				want.Topics = append(want.Topics, topic)
			}
			for range r.IntN(3) {
				b := kmsg.NewFetchResponseBroker()
				b.NodeID, b.Host, b.Port, b.Rack = r.i32(), r.name(), r.i32(), r.full()
				want.Brokers = append(want.Brokers, b)
			}
			if v < 16 {
				want.Brokers = nil
			}
			if a, b := fetchAnswer(t, nil, v, want), want.AppendTo(nil); !bytes.Equal(a, b) {
				t.Fatalf("version %d\n got %x\nwant %x", v, a, b)
			}
		}
	}
}

func TestCapturedFetchAnswers(t *testing.T) {
	cuts := 0
	for _, c := range frames(t) {
		if c.Key != Fetch || c.Response == "" {
			continue
		}
		answer := unhex(t, c.Response)
		h, _ := c.body(t)
		head := AppendResponseHeader(make([]byte, SizeLength), Fetch, c.Version, h.CorrelationID)
		want := kmsg.NewPtrFetchResponse()
		want.Version = c.Version
		if err := want.ReadFrom(answer[len(head):]); err != nil {
			t.Fatal(err)
		}
		got := fetchAnswer(t, head, c.Version, want)
		PutFrameSize(got, 0)
		if !bytes.Equal(got, answer) {
			t.Errorf("version %d\n got %x\nwant %x", c.Version, got, answer)
		}
		for _, topic := range want.Topics {
			for _, p := range topic.Partitions {
				cuts += min(1, len(p.RecordBatches))
			}
		}
	}
	if cuts < 5 {
		t.Error("only", cuts, "answers with records")
	}
}
