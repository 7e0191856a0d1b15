package broker

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring"
	"kring/wire"
)

// TestStopUnderLoadLosesNothing stops a broker while clients produce: every acknowledged record is there after the restart,
// which has nothing to recover.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	for seed := range seeds(6) {
		for _, loops := range []int{1, 2, 4} {
			s := newSim(t, loops, seed)
			s.start()
			c := connect(t, s)
			c.createTopic("k", 4)
			var acked [4][]string
			for i := range 4 {
				pusher(s, i, 0, &acked[i])
			}
			s.w.RunFor(time.Duration(5+s.w.Rand().IntN(50)) * time.Millisecond)
			s.stop()
			if _, err := s.m.ReadFile("/data/.kafka_cleanshutdown"); err != nil {
				t.Fatalf("seed %d: no clean-stop marker: %v", seed, err)
			}
			s.start()
			c = connect(t, s)
			for i := range acked {
				checkAcked(t, seed, acked[i], c.all("k", int32(i)))
			}
			s.stop()
		}
	}
}

// TestPowerLossKeepsWhatWasFlushed cuts the power under a topic that flushes every batch.
func TestPowerLossKeepsWhatWasFlushed(t *testing.T) {
	for seed := range seeds(12) {
		s := newSim(t, 2, seed)
		s.start()
		c := connect(t, s)
		if code := c.createTopic("k", 4, "flush.messages=1", "segment.bytes=3000"); code != wire.None {
			t.Fatal(code)
		}
		var acked [4][]string
		for i := range 4 {
			pusher(s, i, 0, &acked[i])
		}
		s.w.RunFor(time.Duration(20+s.w.Rand().IntN(300)) * time.Millisecond)
		s.m.Crash()
		s.start()
		c = connect(t, s)
		for i := range acked {
			checkAcked(t, seed, acked[i], c.all("k", int32(i)))
		}
		s.stop()
	}
}

func TestKilledWhileTopicsChange(t *testing.T) {
	for seed := range seeds(12) {
		s := newSim(t, 2, seed)
		s.start("log.segment.delete.delay.ms=0")
		conn := s.w.Dial(simAddr)
		c := &client{link: &simLink{t, conn}, t: t}
		for i := range 6 {
			name := fmt.Sprint("t", i)
			m := kmsg.NewPtrCreateTopicsRequest()
			m.TimeoutMillis = 1000
			m.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: name, NumPartitions: 5, ReplicationFactor: 1}}
			m.SetVersion(7)
			c.post(m)
			if i%2 == 1 {
				d := kmsg.NewPtrDeleteTopicsRequest()
				d.TimeoutMillis = 1000
				d.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
				d.SetVersion(6)
				c.post(d)
			}
		}
		s.w.RunFor(time.Duration(s.w.Rand().IntN(60)) * time.Millisecond)
		s.m.Kill()
		s.start("log.segment.delete.delay.ms=0")
		c = connect(t, s)
		ready := func() bool {
			for _, topic := range ask[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 12).Topics {
				for _, p := range topic.Partitions {
					if p.ErrorCode != 0 {
						return false
					}
				}
			}
			return true
		}
		if !eventually(ready) {
			t.Fatalf("seed %d: a partition has no leader", seed)
		}
		for _, topic := range ask[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 12).Topics {
			for _, p := range topic.Partitions {
				if _, code := c.produce(*topic.Topic, p.Partition, -1, words("x")); code != wire.None {
					t.Errorf("seed %d: %s-%d: %v", seed, *topic.Topic, p.Partition, code)
				}
			}
		}
		if !eventually(func() bool {
			code := c.createTopic("t1", 2)
			return code == wire.None || code == wire.TopicAlreadyExists
		}) {
			t.Fatalf("seed %d: t1 cannot be created", seed)
		}
		s.stop()
	}
}

// on0stop stops the broker, whose stop may tell of failed logs.
func (s *sim) on0stop() {
	s.t.Helper()
	done := false
	s.m.Do(s.all[0], func() {
		b := s.b
		stopIn(s.all[0], b, func() { done = true })
	})
	if err := s.w.RunUntil("the stop", time.Hour, func() bool { return done }); err != nil {
		s.t.Fatal(err)
	}
	s.w.RunFor(time.Second)
	s.m.Exit()
	s.b = nil
}

func TestFailedStoreStopsTheBroker(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start()
	c := connect(t, s)
	c.createTopic("k", 1)
	s.m.FailNext("sync", "kring-store", 0, 1, syscall.EIO)
	m := kmsg.NewPtrCreateTopicsRequest()
	m.TimeoutMillis = 1000
	m.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "never", NumPartitions: 1, ReplicationFactor: 1}}
	m.SetVersion(7)
	c.post(m)
	if err := s.w.RunUntil("the broker to give up", time.Minute, func() bool { return s.err != nil }); err != nil {
		t.Fatal(err)
	}
	s.on0stop()
	s.start()
	c = connect(t, s)
	if _, code := c.produce("k", 0, 1, words("x")); code != wire.None {
		t.Error(code)
	}
	s.stop()
}

func TestConnectionLimits(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("max.connections=3", "connections.max.idle.ms=5000", "socket.request.max.bytes=2000")
	big := connect(t, s)
	m := produceRequest("k", 0, 1, words(string(make([]byte, 3000))))
	big.post(m)
	if _, err := big.tryReceive(m); err == nil {
		t.Error("a request over socket.request.max.bytes was answered")
	}
	var open []*client
	for range 3 {
		c := connect(t, s)
		ask[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 12)
		open = append(open, c)
	}
	if _, err := connect(t, s).read(1); err == nil {
		t.Error("a fourth connection was taken")
	}
	var refused, connections int
	s.on(func(t *ring.Task, b *Broker) {
		for _, f := range figures(t, b) {
			refused += int(f.Refused)
			connections += f.Connections
		}
	})
	if refused != 1 || connections != 3 {
		t.Errorf("%d refused, %d held", refused, connections)
	}
	s.w.RunFor(7 * time.Second)
	for _, c := range open {
		if _, err := c.read(1); err == nil {
			t.Error("an idle connection was left open")
		}
	}
	ask[*kmsg.MetadataResponse](connect(t, s), kmsg.NewPtrMetadataRequest(), 12)
	s.stop()
}

func TestConnectionsPerAddress(t *testing.T) {
	r := &real{t: t, loops: 2, dir: t.TempDir()}
	r.start("max.connections.per.ip=1")
	c := connect(t, r)
	ask[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 12)
	if _, err := connect(t, r).read(1); err == nil {
		t.Error("a second connection of one address was taken")
	}
	c.close()
	again := func() bool {
		c := connect(t, r)
		defer c.close()
		m := kmsg.NewPtrMetadataRequest()
		m.SetVersion(12)
		c.post(m)
		_, err := c.tryReceive(m)
		return err == nil
	}
	if !eventually(again) {
		t.Error("no connection is taken after the first has ended")
	}
	r.stop()
}

func TestDynamicBrokerSettingActs(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start()
		c := connect(t, p)
		defer c.close()
		c.createTopic("k", 2)
		value := "1000"
		for _, name := range []string{"", "self"} {
			m := kmsg.NewPtrIncrementalAlterConfigsRequest()
			if name != "" {
				name = fmt.Sprint(ask[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 12).ControllerID)
				value = "500"
			}
			m.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 4, ResourceName: name,
				Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "message.max.bytes", Value: &value}}}}
			if r := ask[*kmsg.IncrementalAlterConfigsResponse](c, m, 1).Resources[0]; r.ErrorCode != 0 {
				t.Fatalf("%q: %v", name, wire.Code(r.ErrorCode))
			}
			size := 2000
			if name != "" {
				size = 700
			}
			acts := func() bool {
				_, code := c.produce("k", 1, 1, words(string(make([]byte, size))))
				return code == wire.MessageTooLarge
			}
			if !eventually(acts) {
				t.Errorf("message.max.bytes=%s of broker %q does not act", value, name)
			}
		}
		d := kmsg.NewPtrDescribeConfigsRequest()
		d.IncludeSynonyms = true
		d.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: "k", ConfigNames: []string{"max.message.bytes"}}}
		e := ask[*kmsg.DescribeConfigsResponse](c, d, 4).Resources[0].Configs[0]
		var sources []int8
		for _, s := range e.ConfigSynonyms {
			sources = append(sources, int8(s.Source))
		}
		if *e.Value != "500" || !slices.Equal(sources, []int8{2, 3, 5}) {
			t.Errorf("%s from %v", *e.Value, sources)
		}
	})
}
