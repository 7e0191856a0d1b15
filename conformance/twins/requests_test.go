package twins

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("__admin_client")) // may write to internal topics

// try sends a request and decodes the answer.
func (w *twin) try(req kmsg.Request) (kmsg.Response, error) {
	_ = w.conn.SetDeadline(time.Now().Add(patience))
	if _, err := w.conn.Write(formatter.AppendRequest(nil, req, 1)); err != nil {
		return nil, err
	}
	var h [4]byte
	if _, err := io.ReadFull(w.conn, h[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(h[:]))
	if _, err := io.ReadFull(w.conn, b); err != nil {
		return nil, err
	}
	b = b[4:]
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != 18 {
		b = b[1:] // no tagged fields in the header
	}
	return resp, resp.ReadFrom(b)
}

func (w *twin) ask(t *testing.T, req kmsg.Request) kmsg.Response {
	t.Helper()
	resp, err := w.try(req)
	if err != nil {
		t.Fatalf("%s: %s: %v", w.name, kmsg.NameForKey(req.Key()), err)
	}
	return resp
}

// story is what happens to both brokers.
type story struct {
	t      *testing.T
	twins  []*twin
	base   int64 // the first records' timestamp, Unix ms
	killed bool  // how the brokers were stopped last
	wide   bool  // the topics of edged are there
	begun  time.Time
}

func newStory(t *testing.T, loops int) *story {
	s := &story{t: t, begun: time.Now(), base: time.Now().Add(-time.Hour).UnixMilli()}
	s.twins = startTwins(t, loops)
	return s
}

// same sends a request to both; the answers must be equal. what tells of them.
func same[R kmsg.Response](s *story, req kmsg.Request, what string) R {
	s.t.Helper()
	var answers []R
	for _, w := range s.twins {
		answers = append(answers, w.ask(s.t, req).(R))
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		s.t.Errorf("%s: Kafka answers %+v, kring %+v", what, answers[0], answers[1])
	}
	return answers[0]
}

func metadataRequest() kmsg.Request {
	m := kmsg.NewPtrMetadataRequest()
	m.Version = 9
	return m
}

// create makes a topic with settings "key", "value", ... on both and waits until it can be written to.
func (s *story) create(topic string, partitions int32, configs ...string) {
	s.t.Helper()
	m := kmsg.NewPtrCreateTopicsRequest()
	m.Version, m.TimeoutMillis = 4, 30_000
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, partitions, 1
	for i := 0; i < len(configs); i += 2 {
		one.Configs = append(one.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: configs[i], Value: &configs[i+1]})
	}
	m.Topics = append(m.Topics, one)
	if a := same[*kmsg.CreateTopicsResponse](s, m, "create "+topic); a.Topics[0].ErrorCode != 0 {
		s.t.Fatalf("create %s: %+v", topic, a.Topics[0])
	}
	for _, w := range s.twins {
		w.topics++
		w.await(s.t)
	}
}

// produce sends one batch to both and gives the answer's code.
func (s *story) produce(topic string, partition int32, b batch) int16 {
	s.t.Helper()
	m := kmsg.NewPtrProduceRequest()
	m.Version, m.Acks, m.TimeoutMillis = 8, -1, 30_000
	if b.transactional {
		id := fmt.Sprint("twin ", b.producer)
		m.TransactionID = &id
	}
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, b.bytes(s.t)
	m.Topics = append(m.Topics, kmsg.ProduceRequestTopic{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{p}})
	var seen []kmsg.ProduceResponseTopicPartition
	for _, w := range s.twins {
		from := time.Now().UnixMilli()
		a := w.ask(s.t, m).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		if a.LogAppendTime >= 0 && strings.HasPrefix(topic, "append-time") {
			if to := time.Now().UnixMilli(); a.LogAppendTime < from || a.LogAppendTime > to {
				s.t.Errorf("produce to %s-%d: %s gives the time %d, asked between %d and %d", topic, partition, w.name, a.LogAppendTime, from, to)
			}
			a.LogAppendTime = 0
		}
		if a.ErrorCode == invalidTimestamp { // words that tell of the broker's clock
			a.ErrorMessage = nil
			if b.codec != 0 {
				a.ErrorRecords = a.ErrorRecords[:1] // kring does not look inside
			}
			for i := range a.ErrorRecords {
				a.ErrorRecords[i].ErrorMessage = nil
			}
		}
		seen = append(seen, a)
	}
	if !reflect.DeepEqual(seen[0], seen[1]) {
		s.t.Errorf("produce to %s-%d: Kafka answers %+v, kring %+v", topic, partition, seen[0], seen[1])
	}
	return seen[0].ErrorCode
}

// must is produce of a batch that is taken.
func (s *story) must(topic string, partition int32, b batch) {
	s.t.Helper()
	if code := s.produce(topic, partition, b); code != 0 {
		s.t.Fatalf("produce to %s-%d: code %d", topic, partition, code)
	}
}

// deleteRecords raises the log start.
func (s *story) deleteRecords(topic string, partition int32, offset int64) {
	s.t.Helper()
	m := kmsg.NewPtrDeleteRecordsRequest()
	m.Version, m.TimeoutMillis = 1, 30_000
	m.Topics = append(m.Topics, kmsg.DeleteRecordsRequestTopic{Topic: topic,
		Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}})
	a := same[*kmsg.DeleteRecordsResponse](s, m, "delete records of "+topic)
	if p := a.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != offset {
		s.t.Fatalf("delete records of %s: %+v", topic, p)
	}
}

// deleteTopic removes a topic from both.
func (s *story) deleteTopic(topic string) {
	s.t.Helper()
	m := kmsg.NewPtrDeleteTopicsRequest()
	m.Version, m.TimeoutMillis, m.TopicNames = 4, 30_000, []string{topic}
	if a := same[*kmsg.DeleteTopicsResponse](s, m, "delete "+topic); a.Topics[0].ErrorCode != 0 {
		s.t.Fatalf("delete %s: %+v", topic, a.Topics[0])
	}
	for _, w := range s.twins {
		w.topics--
		w.await(s.t)
	}
}
