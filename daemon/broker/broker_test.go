package broker

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

func TestAutoCreatedTopicTakesAndGives(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start()
		c := connect(t, p)
		defer c.close()
		name := "auto"
		m := kmsg.NewPtrMetadataRequest()
		m.AllowAutoTopicCreation = true
		m.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		first := ask[*kmsg.MetadataResponse](c, m, 12)
		if code := wire.Code(first.Topics[0].ErrorCode); code != wire.LeaderNotAvailable {
			t.Fatalf("first answer: %v", code)
		}
		var resp *kmsg.MetadataResponse
		ready := func() bool { resp = ask[*kmsg.MetadataResponse](c, m, 12); return resp.Topics[0].ErrorCode == 0 }
		if !eventually(ready) || len(resp.Topics[0].Partitions) != 1 {
			t.Fatalf("%+v", resp.Topics[0])
		}
		for i, acks := range []int16{1, -1} {
			base, code := c.produce("auto", 0, acks, words("a", "b"))
			if code != wire.None || base != int64(2*i) {
				t.Fatalf("acks %d: base %d, %v", acks, base, code)
			}
		}
		if got := c.all("auto", 0); !slices.Equal(got, []string{"a", "b", "a", "b"}) {
			t.Fatal(got)
		}
	})
}

func TestTopicsComeAndGo(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start("auto.create.topics.enable=false", "log.segment.delete.delay.ms=0")
		c := connect(t, p)
		defer c.close()
		for round := range 3 {
			// a deletion is answered when nobody sees the topic any more; its name is free a little later
			again := func() bool { return c.createTopic("six", 6, "max.message.bytes=1000") == wire.None }
			if !eventually(again) {
				t.Fatal("the topic cannot be created again")
			}
			if code := c.createTopic("six", 6); code != wire.TopicAlreadyExists {
				t.Errorf("created twice: %v", code)
			}
			for i := range int32(6) {
				want := fmt.Sprint("round ", round, " partition ", i)
				if base, code := c.produce("six", i, -1, words(want)); base != 0 || code != wire.None {
					t.Fatalf("round %d, partition %d: base %d, %v", round, i, base, code)
				}
				if got := c.all("six", i); !slices.Equal(got, []string{want}) {
					t.Fatal(got)
				}
			}
			if _, code := c.produce("six", 0, -1, words(string(make([]byte, 2000)))); code != wire.MessageTooLarge {
				t.Errorf("max.message.bytes does nothing: %v", code)
			}
			if _, code := c.produce("six", 6, -1, words("none")); code != wire.UnknownTopicOrPartition {
				t.Errorf("partition 6: %v", code)
			}
			if code := c.deleteTopic("six"); code != wire.None {
				t.Fatal(code)
			}
			if code := c.deleteTopic("six"); code != wire.UnknownTopicOrPartition {
				t.Errorf("deleted twice: %v", code)
			}
			if _, code := c.produce("six", 0, -1, words("gone")); code != wire.UnknownTopicOrPartition {
				t.Errorf("produced to a deleted topic: %v", code)
			}
		}
	})
}

func TestPartitionsAreAdded(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start()
		c := connect(t, p)
		defer c.close()
		if code := c.createTopic("grows", 1); code != wire.None {
			t.Fatal(code)
		}
		m := kmsg.NewPtrCreatePartitionsRequest()
		m.TimeoutMillis = 10_000
		m.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "grows", Count: 5}, {Topic: "none", Count: 2}, {Topic: "twice"}, {Topic: "twice"}}
		resp := ask[*kmsg.CreatePartitionsResponse](c, m, 3)
		if len(resp.Topics) != 3 {
			t.Fatalf("%+v", resp.Topics)
		}
		for i, want := range []wire.Code{wire.None, wire.UnknownTopicOrPartition, wire.InvalidRequest} {
			if got := wire.Code(resp.Topics[i].ErrorCode); got != want {
				t.Errorf("%s: %v", resp.Topics[i].Topic, got)
			}
		}
		for i := range int32(5) {
			if _, code := c.produce("grows", i, -1, words("x")); code != wire.None {
				t.Errorf("partition %d: %v", i, code)
			}
		}
	})
}

func TestNoRequestCreatesAnyNumberOfPartitions(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start()
	c := connect(t, s)
	if code := c.createTopic("many", 51); code != wire.PolicyViolation {
		t.Errorf("51 partitions: %v", code)
	}
	if code := c.createTopic("many", 2000000000); code != wire.PolicyViolation {
		t.Errorf("2,000,000,000 partitions: %v", code)
	}
	if code := c.createTopic("many", 50); code != wire.None {
		t.Fatal(code)
	}
	m := kmsg.NewPtrCreatePartitionsRequest()
	m.TimeoutMillis = 10_000
	m.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "many", Count: 101}}
	if code := wire.Code(ask[*kmsg.CreatePartitionsResponse](c, m, 3).Topics[0].ErrorCode); code != wire.PolicyViolation {
		t.Errorf("51 partitions more: %v", code)
	}
	names := kmsg.NewPtrMetadataRequest()
	names.AllowAutoTopicCreation = true
	for i := range 60 {
		name := fmt.Sprint("auto", i)
		names.Topics = append(names.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	made := 0
	for _, topic := range ask[*kmsg.MetadataResponse](c, names, 12).Topics {
		if wire.Code(topic.ErrorCode) == wire.LeaderNotAvailable {
			made++
		}
	}
	if made != 50 {
		t.Errorf("one Metadata request created %d topics", made)
	}
	s.stop()
}

func TestRestartKeepsEverything(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start()
		c := connect(t, p)
		if code := c.createTopic("kept", 6, "segment.bytes=10000"); code != wire.None {
			t.Fatal(code)
		}
		var want [6][]string
		var cluster string
		for round := range 3 {
			for n := range 60 {
				i := n % 6
				v := fmt.Sprint(round, " ", n, string(bytes.Repeat([]byte("x"), 1000)))
				want[i] = append(want[i], v)
				if base, code := c.produce("kept", int32(i), 1, words(v)); code != wire.None || base != int64(len(want[i])-1) {
					t.Fatalf("round %d: base %d of %d, %v", round, base, len(want[i]), code)
				}
			}
			m := kmsg.NewPtrMetadataRequest()
			id := *ask[*kmsg.MetadataResponse](c, m, 12).ClusterID
			if cluster == "" {
				cluster = id
			}
			if id != cluster {
				t.Fatalf("the cluster id changed from %s to %s", cluster, id)
			}
			c.close()
			p.stop()
			p.start()
			c = connect(t, p)
			for i := range want {
				if got := c.all("kept", int32(i)); !slices.Equal(got, want[i]) {
					t.Fatalf("round %d, partition %d: %d records of %d", round, i, len(got), len(want[i]))
				}
			}
		}
		c.close()
	})
}

func TestSettingsReachTheLogs(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start()
		c := connect(t, p)
		defer c.close()
		if code := c.createTopic("set", 2); code != wire.None {
			t.Fatal(code)
		}
		if code := c.createTopic("bad", 1, "segment.bytes=x"); code != wire.InvalidConfig {
			t.Errorf("a bad value: %v", code)
		}
		alter := func(name, value string, validate bool) wire.Code {
			m := kmsg.NewPtrIncrementalAlterConfigsRequest()
			m.ValidateOnly = validate
			m.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 2, ResourceName: "set",
				Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Value: &value}}}}
			return wire.Code(ask[*kmsg.IncrementalAlterConfigsResponse](c, m, 1).Resources[0].ErrorCode)
		}
		big := words(string(make([]byte, 5000)))
		if code := alter("max.message.bytes", "1000", true); code != wire.None {
			t.Fatal(code)
		}
		if _, code := c.produce("set", 0, 1, big); code != wire.None {
			t.Fatalf("a change that was only validated acts: %v", code)
		}
		if code := alter("max.message.bytes", "1000", false); code != wire.None {
			t.Fatal(code)
		}
		tooLarge := func(partition int32) bool {
			_, code := c.produce("set", partition, 1, big)
			return code == wire.MessageTooLarge
		}
		if !eventually(func() bool { return tooLarge(0) && tooLarge(1) }) {
			t.Error("max.message.bytes does not act")
		}
		if code := alter("no.such.setting", "1", false); code != wire.InvalidConfig {
			t.Errorf("an unknown setting: %v", code)
		}
	})
}

// eventually looks again until cond holds: each look is a request, so a simulated world goes on meanwhile too.
func eventually(cond func() bool) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if cond() {
			return true
		}
	}
	return false
}

func TestLongPollIsWokenByAProduce(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start()
		c, reader := connect(t, p), connect(t, p)
		defer c.close()
		defer reader.close()
		if code := c.createTopic("poll", 4); code != wire.None {
			t.Fatal(code)
		}
		for i := range int32(4) {
			m := kmsg.NewPtrFetchRequest()
			m.MaxWaitMillis, m.MinBytes, m.MaxBytes, m.SessionEpoch = 30_000, 1, 1<<20, -1
			m.Topics = []kmsg.FetchRequestTopic{{Topic: "poll"}}
			for n := range int32(4) {
				rp := kmsg.NewFetchRequestTopicPartition()
				rp.Partition, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = n, 1<<20, -1
				if n < i {
					rp.FetchOffset = 1
				}
				m.Topics[0].Partitions = append(m.Topics[0].Partitions, rp)
			}
			m.SetVersion(11)
			reader.post(m)
			if _, code := c.produce("poll", i, 1, words("wake")); code != wire.None {
				t.Fatal(code)
			}
			resp := reader.receive(m).(*kmsg.FetchResponse)
			got := 0
			for _, rp := range resp.Topics[0].Partitions {
				got += len(rp.RecordBatches)
			}
			if got == 0 {
				t.Fatal("nothing came")
			}
		}
	})
}

func TestPipelinedProducesKeepTheirOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start()
		c := connect(t, p)
		defer c.close()
		if code := c.createTopic("order", 3); code != wire.None {
			t.Fatal(code)
		}
		const rounds, depth = 20, 5
		var want [3][]string
		for r := range rounds {
			var sent []kmsg.Request
			for d := range depth {
				i := (r + d) % 3
				v := fmt.Sprint(r, ".", d)
				want[i] = append(want[i], v)
				acks := int16(1)
				if d == 2 {
					acks = 0
				}
				m := produceRequest("order", int32(i), acks, words(v))
				c.post(m)
				if acks != 0 {
					sent = append(sent, m)
				}
			}
			for _, m := range sent {
				if code := wire.Code(c.receive(m).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode); code != wire.None {
					t.Fatal(code)
				}
			}
		}
		for i := range want {
			if got := c.all("order", int32(i)); !slices.Equal(got, want[i]) {
				t.Fatalf("partition %d: %v, not %v", i, got, want[i])
			}
		}
	})
}

// TestKilledBrokerKeepsWhatItAcknowledged kills a simulated broker (kill -9 keeps the page cache) while several clients
// produce, and looks for every acknowledged record, once, in order.
func TestKilledBrokerKeepsWhatItAcknowledged(t *testing.T) {
	for seed := range seeds(12) {
		for _, loops := range []int{1, 2, 4} {
			killed(t, seed, loops)
		}
	}
}

func killed(t *testing.T, seed uint64, loops int) {
	t.Helper()
	s := newSim(t, loops, seed)
	s.start()
	c := connect(t, s)
	if code := c.createTopic("k", 4, "segment.bytes=5000"); code != wire.None {
		t.Fatal(code)
	}
	var acked [3][4][]string // a client of an earlier life may go on in the next: each has an order of its own
	for life := range 3 {
		end := s.w.Now() + time.Duration(s.w.Rand().IntN(100)+5)*time.Millisecond
		for i := range 4 {
			pusher(s, i, life, &acked[life][i])
		}
		s.w.Run(func() bool { return s.w.Now() >= end })
		s.m.Kill()
		s.start()
		c = connect(t, s)
		for i := range 4 {
			got := c.all("k", int32(i))
			for _, a := range acked {
				checkAcked(t, seed, a[i], got)
			}
		}
	}
	s.stop()
}

// pusher is a client that produces one record after the other until its connection breaks.
func pusher(s *sim, partition, life int, acked *[]string) {
	conn := s.w.Dial(simAddr)
	n := 0
	var in []byte
	var next func()
	next = func() {
		v := fmt.Sprintf("%d-%d-%04d", life, partition, n)
		m := produceRequest("k", int32(partition), 1, words(v))
		head := wire.RequestHeader{Key: 0, Version: 9, CorrelationID: int32(n), ClientID: []byte("x")}
		frame := m.AppendTo(wire.AppendRequestHeader(make([]byte, 4), &head))
		wire.PutFrameSize(frame, 0)
		conn.Send(frame)
	}
	conn.OnReceive = func(b []byte) {
		in = append(in, b...)
		for len(in) >= 4 {
			size := int(in[0])<<24 | int(in[1])<<16 | int(in[2])<<8 | int(in[3])
			if len(in) < 4+size {
				return
			}
			resp := kmsg.NewPtrProduceResponse()
			resp.SetVersion(9)
			if resp.ReadFrom(in[4+5:4+size]) == nil && resp.Topics[0].Partitions[0].ErrorCode == 0 {
				*acked = append(*acked, fmt.Sprintf("%d-%d-%04d", life, partition, n))
				n++
			}
			in = in[4+size:]
			next()
		}
	}
	next()
}

// checkAcked looks for the acknowledged records in order; records that were not acknowledged may stand between them.
func checkAcked(t *testing.T, seed uint64, acked, got []string) {
	t.Helper()
	at := 0
	for _, v := range acked {
		for at < len(got) && got[at] != v {
			at++
		}
		if at == len(got) {
			t.Fatalf("seed %d: acknowledged record %q is lost: %d acknowledged, %d there", seed, v, len(acked), len(got))
		}
	}
	if seen := slices.Compact(slices.Sorted(slices.Values(got))); len(seen) != len(got) {
		t.Fatalf("seed %d: %d of %d records are there twice", seed, len(got)-len(seen), len(got))
	}
}

func TestRetentionMovesTheLogStart(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("log.retention.check.interval.ms=1000", "log.segment.delete.delay.ms=0")
	c := connect(t, s)
	if code := c.createTopic("short", 1, "segment.bytes=2000", "retention.bytes=4000"); code != wire.None {
		t.Fatal(code)
	}
	for range 20 {
		c.produce("short", 0, 1, words(string(make([]byte, 900))))
	}
	s.w.RunFor(5 * time.Second)
	p := c.fetch("short", 0, 19, 0)
	if p.LogStartOffset == 0 || p.LogStartOffset > 18 {
		t.Fatalf("log start %d", p.LogStartOffset)
	}
	if code := wire.Code(c.fetch("short", 0, 0, 0).ErrorCode); code != wire.OffsetOutOfRange {
		t.Errorf("offset 0: %v", code)
	}
	s.stop()
}

func TestStartRefusals(t *testing.T) {
	s := newSim(t, 1, 1)
	s.start()
	s.stop()
	s.begin("broker.id=7")
	if s.err == nil {
		t.Fatal("started with the broker id of another log dir")
	}
	if err := s.m.Exit(); err != nil {
		t.Error(err)
	}
	const store = "/data/kring-store-0000000000000000.log"
	whole, err := s.m.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	s.m.WriteFile(store, whole[:24]) // its header
	for range 2 {
		s.b, s.err = nil, nil
		s.begin()
		if s.err == nil || !strings.Contains(s.err.Error(), "knows nothing") {
			t.Fatalf("started with a store that has lost all that was in it: %v", s.err)
		}
		if err := s.m.Exit(); err != nil {
			t.Error(err)
		}
	}
	s.m.WriteFile(store, whole)
	s.m.WriteFile("/data/lost+found/x", []byte("x"))
	s.b, s.err = nil, nil
	s.begin()
	if s.err == nil {
		t.Fatal("started with a foreign directory in the log dir")
	}
	if err := s.m.Exit(); err != nil {
		t.Error(err)
	}
}

func TestSameSeedSameStory(t *testing.T) {
	story := func() uint64 {
		s := newSim(t, 4, 99)
		s.start("log.segment.delete.delay.ms=0")
		c := connect(t, s)
		c.createTopic("k", 4)
		var acked [4][]string
		for i := range 4 {
			pusher(s, i, 0, &acked[i])
		}
		s.w.RunFor(200 * time.Millisecond)
		c.deleteTopic("k")
		s.stop()
		return s.w.Trace()
	}
	if a, b := story(), story(); a != b {
		t.Fatalf("%x and %x", a, b)
	}
}
