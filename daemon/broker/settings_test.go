package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring"
	"kring/wire"
)

// TestSettingsAct starts a broker with two listeners, two log dirs and what else can be seen from outside.
func TestSettingsAct(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("log.dirs=/data/a,/data/b", "num.partitions=6", "broker.id=5", "broker.rack=r1",
		"listeners=IN://10.0.0.1:9092,OUT://10.0.0.1:9093", "advertised.listeners=IN://inside:1,OUT://outside:2",
		"listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT", "inter.broker.listener.name=IN")
	for port, host := range map[string]string{"9092": "inside", "9093": "outside"} {
		c := &client{link: &simLink{t, s.w.Dial("10.0.0.1:" + port)}, t: t}
		m := kmsg.NewPtrMetadataRequest()
		m.AllowAutoTopicCreation = true
		name := "t"
		m.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		var resp *kmsg.MetadataResponse
		ready := func() bool { resp = ask[*kmsg.MetadataResponse](c, m, 12); return resp.Topics[0].ErrorCode == 0 }
		if !eventually(ready) {
			t.Fatal(wire.Code(resp.Topics[0].ErrorCode))
		}
		if b := resp.Brokers[0]; b.NodeID != 5 || b.Host != host || *b.Rack != "r1" {
			t.Errorf("port %s: %+v", port, b)
		}
		if n := len(resp.Topics[0].Partitions); n != 6 {
			t.Errorf("%d partitions", n)
		}
	}
	count := map[string]int{}
	for i := range 6 {
		for _, dir := range []string{"a", "b"} {
			if _, err := s.m.ReadFile(fmt.Sprintf("/data/%s/t-%d/partition.metadata", dir, i)); err == nil {
				count[dir]++
			}
		}
	}
	if count["a"] != 3 || count["b"] != 3 {
		t.Errorf("partitions by log dir: %v", count)
	}
	s.stop()
}

// TestCheckpointsAreWritten waits for the files that are written by the clock.
func TestCheckpointsAreWritten(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("replica.high.watermark.checkpoint.interval.ms=1000", "log.flush.offset.checkpoint.interval.ms=2000",
		"log.flush.start.offset.checkpoint.interval.ms=2000")
	c := connect(t, s)
	c.createTopic("k", 1, "flush.messages=1")
	for range 3 {
		c.produce("k", 0, 1, words("a", "b"))
	}
	d := kmsg.NewPtrDeleteRecordsRequest()
	d.TimeoutMillis = 1000
	d.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "k", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: 3}}}}
	if r := ask[*kmsg.DeleteRecordsResponse](c, d, 2).Topics[0].Partitions[0]; r.ErrorCode != 0 || r.LowWatermark != 3 {
		t.Fatalf("%+v", r)
	}
	s.w.RunFor(5 * time.Second)
	for name, want := range map[string]string{
		"replication-offset-checkpoint":    "0\n1\nk 0 6\n",
		"recovery-point-offset-checkpoint": "0\n1\nk 0 5\n", // one before the end: the newest segment is read again
		"log-start-offset-checkpoint":      "0\n1\nk 0 3\n",
	} {
		if got, _ := s.m.ReadFile("/data/" + name); string(got) != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	s.m.Kill()
	s.start()
	c = connect(t, s)
	if p := c.fetch("k", 0, 3, 0); p.ErrorCode != 0 || p.LogStartOffset != 3 || p.HighWatermark != 6 {
		t.Errorf("after a kill: %+v", p)
	}
	s.stop()
}

func TestQueuedBytesPauseConnections(t *testing.T) {
	s := newSim(t, 1, 1)
	s.start("queued.max.request.bytes=2500", "socket.request.max.bytes=2500")
	c := connect(t, s)
	c.createTopic("k", 1)
	for range 10 {
		m := produceRequest("k", 0, 1, words(string(make([]byte, 2000))))
		c.post(m)
		c.post(m)
		c.receive(m)
		c.receive(m)
	}
	s.on(func(t *ring.Task, b *Broker) {
		if figures(t, b)[0].Server.Pauses == 0 {
			s.t.Error("nobody was paused")
		}
	})
	s.stop()
}

func TestConnectionLimitsChangeWhileTheBrokerRuns(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start()
	c := connect(t, s)
	one := "1"
	m := kmsg.NewPtrIncrementalAlterConfigsRequest()
	m.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 4, ResourceName: "",
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "max.connections", Value: &one}}}}
	if r := ask[*kmsg.IncrementalAlterConfigsResponse](c, m, 1).Resources[0]; r.ErrorCode != 0 {
		t.Fatal(wire.Code(r.ErrorCode))
	}
	s.w.RunFor(time.Second)
	if _, err := connect(t, s).read(1); err == nil {
		t.Error("a second connection was taken")
	}
	s.stop()
}

// TestDeletedLogsGoAfterARestart stops a broker before a deleted topic's files are gone.
func TestDeletedLogsGoAfterARestart(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("log.segment.delete.delay.ms=60000")
	c := connect(t, s)
	c.createTopic("k", 1)
	c.produce("k", 0, 1, words("a"))
	c.deleteTopic("k")
	s.w.RunFor(time.Second)
	marked := func() bool {
		return slices.ContainsFunc(s.m.Files("/data"), func(name string) bool { return strings.Contains(name, "-delete") })
	}
	if !marked() {
		t.Fatalf("nothing is marked as deleted: %v", s.m.Files("/data"))
	}
	s.m.Kill()
	s.start("log.segment.delete.delay.ms=60000")
	s.w.RunFor(2 * time.Minute)
	if marked() {
		t.Errorf("still there: %v", s.m.Files("/data"))
	}
	s.stop()
}
