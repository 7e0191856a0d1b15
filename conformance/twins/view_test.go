package twins

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// parts are the partitions whose view is compared.
var parts = map[string]int32{"codecs": 5, "rolls": 1, "rolls-time": 1, "idem": 1, "deleted": 1, "prealloc": 1, "prealloc-empty": 1, "synced": 1,
	"empty": 2, "compacted": 1, "txn": 2, "txn-week": 1}

// transactional are those in which transactions are.
var transactional = map[string]bool{"txn": true, "txn-week": true, "compacted": true, "append-time": true, "append-time-compacted": true}

// view compares what clients see of both brokers: offsets, times, batches, aborted transactions, producers.
func (s *story) view(what string) {
	s.t.Helper()
	if s.wide && !long() {
		s.viewOf(what, edgedParts)
	}
	s.glance(what)
}

// glance is view without the topics of edged, but in the long form.
func (s *story) glance(what string) {
	s.t.Helper()
	if s.wide && long() {
		s.viewOf(what, edgedParts)
	}
	s.viewOf(what, parts)
	s.consume(what)
	s.t.Logf("%s: seen after %v", what, time.Since(s.begun).Round(time.Millisecond))
}

func (s *story) viewOf(what string, topics map[string]int32) {
	s.t.Helper()
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		for p := range topics[topic] {
			where := fmt.Sprintf("%s: %s-%d", what, topic, p)
			s.offsets(where, topic, p)
			if s.start(topic, p) < s.bound(topic, p, -1) { // of a log that holds nothing Kafka forgets them at a start
				s.producers(where, topic, p)
			}
			s.fetchAll(where, topic, p, 0)
			if transactional[topic] {
				s.fetchAll(where, topic, p, 1)
			}
		}
	}
}

// offsets asks for the first, last, last stable and largest, and for some times between.
func (s *story) offsets(where, topic string, partition int32) {
	s.t.Helper()
	for _, ms := range []int64{-1, -2, -3, s.base, s.base + 150, s.base + 700, s.base + 100_100, s.base + 200_300} {
		for isolation := range int8(2) {
			if isolation == 1 && edgedParts[topic] > 0 && !transactional[topic] {
				continue
			}
			m := kmsg.NewPtrListOffsetsRequest()
			m.Version, m.ReplicaID, m.IsolationLevel = 7, -1, isolation
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, ms, -1
			m.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
			var got []string
			var answers []kmsg.ListOffsetsResponseTopicPartition
			for _, w := range s.twins {
				a := w.ask(s.t, m).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
				answers = append(answers, a)
				if a.Timestamp > s.base+3000_000 { // a marker's
					a.Timestamp = -7
				}
				got = append(got, fmt.Sprintf("code %d offset %d time %d epoch %d", a.ErrorCode, a.Offset, a.Timestamp, a.LeaderEpoch))
			}
			if got[0] != got[1] && !(topic == "cut-off" && ms > 0 && foundBehindTheStart(answers[0], answers[1], ms)) {
				s.t.Errorf("%s: offset of time %d, isolation %d: Kafka answers %s, kring %s", where, ms, isolation, got[0], got[1])
			}
		}
	}
}

// foundBehindTheStart says whether Kafka finds no record of a time where kring does: until Kafka has removed the segments in front of the
// log start, it looks at the first one with so late a record, and no further.
func foundBehindTheStart(kafka, kring kmsg.ListOffsetsResponseTopicPartition, ms int64) bool {
	return kafka.ErrorCode == 0 && kafka.Offset == -1 && kring.ErrorCode == 0 && kring.Timestamp >= ms
}

// producers asks what the logs remember of producers.
func (s *story) producers(where, topic string, partition int32) {
	s.t.Helper()
	m := kmsg.NewPtrDescribeProducersRequest()
	m.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	type known = kmsg.DescribeProducersResponseTopicPartitionActiveProducer
	var seen [][]known
	for _, w := range s.twins {
		a := w.ask(s.t, m).(*kmsg.DescribeProducersResponse).Topics[0].Partitions[0]
		all := a.ActiveProducers
		slices.SortFunc(all, func(a, b known) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
		for i := range all {
			if all[i].LastTimestamp > s.base+3000_000 {
				all[i].LastTimestamp = -7
			}
		}
		seen = append(seen, all)
	}
	if len(seen[0])+len(seen[1]) > 0 && !reflect.DeepEqual(seen[0], seen[1]) {
		for i := range max(len(seen[0]), len(seen[1])) {
			if i >= len(seen[0]) || i >= len(seen[1]) || !reflect.DeepEqual(seen[0][i], seen[1][i]) {
				s.t.Errorf("%s: producers from number %d on: Kafka %+v, kring %+v", where, i,
					seen[0][min(i, len(seen[0])):], seen[1][min(i, len(seen[1])):])
				break
			}
		}
	}
}

// fetchAll reads a partition from its start in pieces and compares every answer.
func (s *story) fetchAll(where, topic string, partition int32, isolation int8) {
	s.t.Helper()
	m := kmsg.NewPtrFetchRequest()
	m.Version, m.ReplicaID, m.MaxBytes, m.SessionEpoch, m.IsolationLevel = 11, -1, 1<<20, -1, isolation
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.LogStartOffset, p.PartitionMaxBytes = partition, -1, -1, 9000
	p.FetchOffset = s.start(topic, partition)
	for {
		m.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
		var seen []string
		next := p.FetchOffset
		for _, w := range s.twins {
			a := w.ask(s.t, m).(*kmsg.FetchResponse).Topics[0].Partitions[0]
			rest := a.RecordBatches
			// The list of aborted transactions may name some that lie behind: what a client makes of it counts.
			text := fmt.Sprintf("code %d watermark %d stable %d start %d seen %v;", a.ErrorCode, a.HighWatermark, a.LastStableOffset,
				a.LogStartOffset, visible(a, p.FetchOffset, isolation))
			for b := cut(&rest); b != nil; b = cut(&rest) {
				if isControl(b) || hasHorizon(b) || appendTime(b) {
					text += fmt.Sprintf(" special at %d", offsetOf(b))
				} else {
					text += fmt.Sprintf(" %x", b)
				}
				next = max(next, offsetOf(b)+int64(lastDelta(b))+1)
			}
			seen = append(seen, text)
		}
		if seen[0] != seen[1] {
			s.t.Errorf("%s: fetch from %d, isolation %d: Kafka answers %.300s, kring %.300s", where, p.FetchOffset, isolation, seen[0], seen[1])
			return
		}
		if next == p.FetchOffset {
			return
		}
		p.FetchOffset = next
	}
}

// visible are the offsets a client gives to its user of an answer.
func visible(a kmsg.FetchResponseTopicPartition, from int64, isolation int8) (offsets []int64) {
	level := kgo.ReadUncommitted()
	if isolation == 1 {
		level = kgo.ReadCommitted()
	}
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: from, IsolationLevel: level}, &a, kgo.DefaultDecompressor(), nil)
	for _, r := range got.Records {
		offsets = append(offsets, r.Offset)
	}
	return offsets
}

// start is the log start of a partition, which both agree on.
func (s *story) start(topic string, partition int32) int64 { return s.bound(topic, partition, -2) }

// bound is the offset of a special time.
func (s *story) bound(topic string, partition int32, ms int64) int64 {
	s.t.Helper()
	return same[*kmsg.ListOffsetsResponse](s, offsetsRequest(topic, partition, ms), "offsets of "+topic).Topics[0].Partitions[0].Offset
}

func offsetsRequest(topic string, partition int32, ms int64) kmsg.Request {
	m := kmsg.NewPtrListOffsetsRequest()
	m.Version, m.ReplicaID = 4, -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, ms, -1
	m.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return m
}

// consume has a real client read the transactions' topics from both, committed records only.
func (s *story) consume(what string) {
	s.t.Helper()
	var seen [2]map[string]bool
	for i, w := range s.twins {
		cl, err := kgo.NewClient(kgo.SeedBrokers(w.addr), kgo.ConsumeTopics("txn", "txn-week", "compacted"),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
		if err != nil {
			s.t.Fatal(err)
		}
		seen[i] = map[string]bool{}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		for want := s.committed(w); len(seen[i]) < want && ctx.Err() == nil; {
			fetches := cl.PollFetches(ctx)
			for _, e := range fetches.Errors() {
				s.t.Errorf("%s: %s: consumer: %v", what, w.name, e.Err)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				text := fmt.Sprintf("%s-%d %d %d %d %q=%q %v", r.Topic, r.Partition, r.Offset, r.ProducerID, r.Timestamp.UnixMilli(),
					r.Key, r.Value, r.Headers)
				seen[i][text] = true
			})
		}
		cancel()
		cl.Close()
	}
	if len(seen[0]) == 0 || !maps.Equal(seen[0], seen[1]) {
		s.t.Errorf("%s: a consumer of committed records sees %d of Kafka and %d of kring, and not the same", what, len(seen[0]), len(seen[1]))
	}
}

// committed is how many records a consumer of committed ones is to see, by what the broker says of aborted transactions.
func (s *story) committed(w *twin) (n int) {
	s.t.Helper()
	for _, topic := range []string{"txn", "txn-week", "compacted"} {
		for partition := range parts[topic] {
			m := kmsg.NewPtrFetchRequest()
			m.Version, m.ReplicaID, m.MaxBytes, m.SessionEpoch, m.IsolationLevel = 11, -1, 16<<20, -1, 1
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LogStartOffset, p.PartitionMaxBytes = partition, -1, -1, 16<<20
			p.FetchOffset = s.start(topic, partition)
			m.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
			for {
				a := w.ask(s.t, m).(*kmsg.FetchResponse).Topics[0].Partitions[0]
				got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: topic, Offset: m.Topics[0].Partitions[0].FetchOffset,
					IsolationLevel: kgo.ReadCommitted()}, &a, kgo.DefaultDecompressor(), nil)
				n += len(got.Records)
				if next == m.Topics[0].Partitions[0].FetchOffset {
					break
				}
				m.Topics[0].Partitions[0].FetchOffset = next
			}
		}
	}
	return n
}
