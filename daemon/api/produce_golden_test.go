package api

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/replication"
)

// probe is a Produce request that Kafka was sent, and its answer.
type probe struct {
	Case     string
	Args     struct{ Acks *int }
	Request  string
	Response string
}

// skipped are the probes that need what one broker without a controller here has not.
var skipped = map[string]string{
	"not leader": "the partition was led by another broker then",
	"too large":  "not recorded; see TestProduceTooLarge",
}

func TestProduceAnswersAsKafka(t *testing.T) {
	raw, err := os.ReadFile("testdata/produce-probes.json")
	if err != nil {
		t.Fatal(err)
	}
	var probes []probe
	if err := json.Unmarshal(raw, &probes); err != nil {
		t.Fatal(err)
	}
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "p1", partitions: 1},
			topic{name: "p2", partitions: 1, conf: func(c *replication.Config) { c.LogAppendTime = true }},
			topic{name: "p3", partitions: 1, conf: func(c *replication.Config) { c.Compacted = true }},
			topic{name: "p4", partitions: 1, conf: func(c *replication.Config) { c.MinISR = 2 }},
			topic{name: "__consumer_offsets", partitions: 1})
		x.partition("p4", 0, func(p *replication.Partition) {
			p.Lead(replication.State{Leader: self, LeaderEpoch: 4, ISR: []int32{self}, Replicas: []int32{self, 2}}, 0)
		})
		p := x.dial(loops - 1)
		p.put("p1", 0, records(22, 1))
		p.put("p2", 0, records(2, 1))
		resp := call[*kmsg.ProduceResponse](p, produceRequest(9, 1, piece{"p4", 0, records(1, 1)}))
		if resp.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatal("produce to p4")
		}
		p.id = adminClient
		p.put("__consumer_offsets", 0, records(5, 1))
		for _, probe := range probes {
			if skipped[probe.Case] == "" {
				x.probe(p, probe)
			}
		}
	})
}

// probe sends a request as Kafka got it and compares the answers.
func (x *world) probe(p *peer, probe probe) {
	x.t.Helper()
	request, err := hex.DecodeString(probe.Request)
	if err != nil {
		x.t.Fatal(err)
	}
	p.c.Send(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...))
	if probe.Args.Acks != nil && *probe.Args.Acks == 0 {
		return
	}
	want, err := hex.DecodeString(probe.Response)
	if err != nil {
		x.t.Fatal(err)
	}
	got := p.answer(int32(binary.BigEndian.Uint32(request[4:])), false)
	var a, b kmsg.ProduceResponse
	a.Version, b.Version = 8, 8
	if err := a.ReadFrom(got); err != nil {
		x.t.Fatalf("%s: %v", probe.Case, err)
	}
	if err := b.ReadFrom(want[8:]); err != nil {
		x.t.Fatal(err)
	}
	ours, kafkas := &a.Topics[0].Partitions[0], &b.Topics[0].Partitions[0]
	if kafkas.LogAppendTime >= 0 && !strings.Contains(probe.Case, "duplicate") && ours.LogAppendTime >= 0 {
		ours.LogAppendTime = kafkas.LogAppendTime // the time it was then
	}
	oursJSON, _ := json.Marshal(a.Topics)
	kafkasJSON, _ := json.Marshal(b.Topics)
	if string(oursJSON) != string(kafkasJSON) {
		x.t.Errorf("%s:\n ours  %s\n Kafka %s", probe.Case, oursJSON, kafkasJSON)
	}
}

func TestProduceTooLarge(t *testing.T) {
	x := newWorld(t, 1, topic{name: "p1", partitions: 1})
	p := x.dial(0)
	resp := call[*kmsg.ProduceResponse](p, produceRequest(8, -1, piece{"p1", 0, records(1, 1048588)}))
	if rp := resp.Topics[0].Partitions[0]; rp.ErrorCode != 10 || rp.BaseOffset != -1 || rp.LogStartOffset != -1 {
		t.Fatalf("%+v", rp)
	}
}
