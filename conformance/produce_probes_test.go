package conformance

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// probe is a recorded request and Kafka's answer.
type probe struct {
	Case     string          `json:"case"`
	Answer   json.RawMessage `json:"answer"`
	Request  string          `json:"request"`
	Response string          `json:"response"`
}

// notOne are the probes that one broker without transactions cannot be asked, and why.
var notOne = map[string]string{
	"not leader": "needs a partition led by another broker",
	"transactional batch, unknown transaction": "transactions",
	"min ISR 2 of one in sync":                 "needs a second replica",
	"min ISR 2 acks 1":                         "needs a second replica",
}

func TestProduceAnswersAreKafkas(t *testing.T) {
	raw, err := os.ReadFile("testdata/Produce-probes.json")
	if err != nil {
		t.Fatal(err)
	}
	var probes []probe
	if err := json.Unmarshal(raw, &probes); err != nil {
		t.Fatal(err)
	}
	everyLoops(t, func(t *testing.T, loops int) {
		b := start(t, loops)
		b.create("p1", 1)
		b.create("p2", 1, "message.timestamp.type=LogAppendTime")
		b.create("p3", 1, "cleanup.policy=compact")
		b.create("__consumer_offsets", 1, "cleanup.policy=compact")
		c := b.dial()
		fill := func(topic, client string, n int) {
			for range n {
				if _, err := roundTrip(c, produceFrame(topic, client, recordBatch([]byte("k"), []byte("v")))); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill("p1", "conformance", 22)
		fill("p2", "conformance", 2)
		fill("__consumer_offsets", "__admin_client", 5)
		for _, p := range probes {
			if notOne[p.Case] != "" {
				continue
			}
			t.Run(p.Case, func(t *testing.T) { p.check(t, b) })
		}
	})
}

func (p probe) check(t *testing.T, b *broker) {
	request, err := hex.DecodeString(p.Request)
	if err != nil {
		if p.Case != "too large" {
			t.Fatal(err)
		}
		request = produceFrame("p1", "probe", recordBatch(nil, make([]byte, 1048618)))[4:]
	}
	c := b.dial()
	if string(p.Answer) == `"no answer"` {
		// An answer would come before the one to a second request.
		got, err := roundTrip(c, append(frame(request), encode(kmsg.NewPtrApiVersionsRequest())...))
		if err != nil || binary.BigEndian.Uint32(got) != 1 {
			t.Fatalf("acks 0: the next answer is %x, %v; want that of ApiVersions", got, err)
		}
		return
	}
	got, err := roundTrip(c, frame(request))
	if err != nil {
		t.Fatalf("answer: %v; Kafka's: %s", err, p.Answer)
	}
	want, err := hex.DecodeString(p.Response)
	if err != nil {
		t.Fatal(err)
	}
	g, w := decodeProduce(t, got), decodeProduce(t, want[4:])
	if !reflect.DeepEqual(g, w) {
		t.Errorf("answer %+v\nKafka's %+v", g.Topics, w.Topics)
	}
}

// decodeProduce decodes a v8 answer; an append time is only there or not, and record error texts follow Kafka's.
func decodeProduce(t *testing.T, b []byte) *kmsg.ProduceResponse {
	t.Helper()
	r := kmsg.NewPtrProduceResponse()
	r.Version = 8
	if err := r.ReadFrom(b[4:]); err != nil {
		t.Fatalf("decoding %x: %v", b, err)
	}
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			if p := &r.Topics[i].Partitions[j]; p.LogAppendTime > 0 {
				p.LogAppendTime = 1
			}
		}
	}
	return r
}

func produceFrame(topic, client string, batch []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 8, -1, 3000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch
	req.Topics = append(req.Topics, kmsg.ProduceRequestTopic{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{p}})
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(client))
	return f.AppendRequest(nil, req, 5)
}

// recordBatch is one uncompressed record.
func recordBatch(key, value []byte) []byte {
	r := kmsg.NewRecord()
	r.Key, r.Value = key, value
	r.Length = int32(len(r.AppendTo(nil)) - 1)
	rec := r.AppendTo(nil)
	b := kmsg.NewRecordBatch()
	b.Length, b.Magic, b.PartitionLeaderEpoch, b.NumRecords = int32(49+len(rec)), 2, -1, 1
	b.FirstTimestamp, b.MaxTimestamp = 1796011937000, 1796011937000
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = -1, -1, -1
	b.Records = rec
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

func TestProbesLeftOutExist(t *testing.T) {
	raw, err := os.ReadFile("testdata/Produce-probes.json")
	if err != nil {
		t.Fatal(err)
	}
	for name := range notOne {
		if !strings.Contains(string(raw), `"case": "`+name+`"`) && !strings.Contains(string(raw), `"case":"`+name+`"`) {
			t.Errorf("%q is left out but is no probe", name)
		}
	}
}
