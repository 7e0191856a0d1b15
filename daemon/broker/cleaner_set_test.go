package broker

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/api"
	"kring/metadata"
	"kring/ring"
	"kring/wire"
)

// alter sets one setting, of all brokers (kind 4) or of a topic (2).
func (c *client) alter(kind kmsg.ConfigResourceType, name, key, value string) {
	c.t.Helper()
	m := kmsg.NewPtrIncrementalAlterConfigsRequest()
	m.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kind, ResourceName: name,
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: key, Value: &value}}}}
	if r := ask[*kmsg.IncrementalAlterConfigsResponse](c, m, 1).Resources[0]; r.ErrorCode != 0 {
		c.t.Fatal(key, wire.Code(r.ErrorCode))
	}
}

// bytes is how large a topic is.
func (c *client) bytes(topic string) (n int64) {
	c.t.Helper()
	for _, d := range ask[*kmsg.DescribeLogDirsResponse](c, kmsg.NewPtrDescribeLogDirsRequest(), 2).Dirs {
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				if t.Topic == topic {
					n += p.Size
				}
			}
		}
	}
	return n
}

// TestCompactedTopicIsBoundedUnderLoad goes on writing: what is stored must not follow what was written.
func TestCompactedTopicIsBoundedUnderLoad(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start(quickCleaner, "log.cleaner.threads=2", "log.segment.delete.delay.ms=0")
		c := connect(t, p)
		defer c.close()
		const parts = 3
		if code := c.createTopic("busy", parts, "cleanup.policy=compact", "segment.bytes=200000", "min.cleanable.dirty.ratio=0.1"); code != wire.None {
			t.Fatal(code)
		}
		want := make([]map[string]string, parts)
		for i := range want {
			want[i] = map[string]string{}
		}
		written, seen, bounded := 0, 0, false
		for i := 0; !bounded && i < 30_000; i++ {
			at := int32(i % parts)
			k, v := fmt.Sprint("key ", i%20), fmt.Sprint(i, strings.Repeat(".", 4000))
			want[at][k] = v
			b := keyed(k, v)
			written += len(b)
			if _, code := c.produce("busy", at, 1, b); code != wire.None {
				t.Fatal(code)
			}
			if i%100 == 99 && written > 8_000_000 {
				if c.bytes("busy") < int64(written/4) {
					seen++ // in the middle of the load, more than once
				}
				bounded = seen == 3
			}
		}
		if !bounded {
			t.Errorf("%d bytes were written and are %d", written, c.bytes("busy"))
		}
		for i := range want {
			if got, _ := c.state("busy", int32(i)); !maps.Equal(got, want[i]) {
				t.Errorf("partition %d: %v, want %v", i, got, want[i])
			}
		}
	})
}

// TestCleanerLooksWhenTold lets a cleaner that sleeps for an hour look more often.
func TestCleanerLooksWhenTold(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("log.cleaner.backoff.ms=3600000")
	c := connect(t, s)
	c.createTopic("a", 1, compacted...)
	s.w.RunFor(time.Second)
	c.write("a", 0, 60, map[string]string{})
	s.w.RunFor(time.Minute)
	if _, records := c.state("a", 0); records != 60 {
		t.Errorf("%d records are left before the cleaner was to look", records)
	}
	c.alter(4, "", "log.cleaner.backoff.ms", "1000")
	s.w.RunFor(10 * time.Second)
	if _, records := c.state("a", 0); records > 40 {
		t.Errorf("%d records are left", records)
	}
	s.on(func(_ *ring.Task, b *Broker) {
		if f := b.Cleaner(); f.SinceLook < 0 || f.SinceLook > 2*time.Second || f.Last == 0 || f.LastFull <= 0 || f.LastKept <= 0 || f.LastKept >= 1 {
			t.Errorf("%+v", f)
		}
	})
	s.stop()
}

// TestDirtyRatioAndLagDecide holds a log that is not dirty enough against one whose records have waited for too long.
func TestDirtyRatioAndLagDecide(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start(quickCleaner)
	c := connect(t, s)
	clean := []string{"cleanup.policy=compact", "segment.bytes=2000", "min.cleanable.dirty.ratio=1"}
	c.createTopic("content", 1, clean...)
	c.createTopic("overdue", 1, append(clean, "max.compaction.lag.ms=1000")...)
	c.createTopic("young", 1, append(compacted, "message.timestamp.type=LogAppendTime", "min.compaction.lag.ms=3600000")...)
	for _, topic := range []string{"content", "overdue", "young"} {
		c.write(topic, 0, 60, map[string]string{})
	}
	s.w.RunFor(10 * time.Second)
	for topic, whole := range map[string]bool{"content": true, "overdue": false, "young": true} {
		if _, records := c.state(topic, 0); (records == 60) != whole {
			t.Errorf("%s: %d records of 60", topic, records)
		}
	}
	c.alter(2, "content", "min.cleanable.dirty.ratio", "0.5")
	s.w.RunFor(time.Hour)
	c = connect(t, s) // the other one was idle for too long
	for _, topic := range []string{"content", "young"} {
		if _, records := c.state(topic, 0); records > 40 {
			t.Errorf("%s: %d records of 60, later", topic, records)
		}
	}
	s.stop()
}

// TestOffsetsEndTheirSegmentsEarly: no other topic's do, and none without a cleaner.
func TestOffsetsEndTheirSegmentsEarly(t *testing.T) {
	s := newSim(t, 1, 1)
	s.start()
	s.on(func(_ *ring.Task, b *Broker) {
		compact := metadata.Config{{Name: "cleanup.policy", Value: "compact"}}
		if b.settingsOf(api.OffsetsTopic, compact).log.RollDirtyBytes != offsetsRoll || b.settingsOf("a", compact).log.RollDirtyBytes != 0 {
			t.Error("segments of offsets alone are to end early")
		}
	})
	s.stop()
	s.start("log.cleaner.enable=false")
	s.on(func(_ *ring.Task, b *Broker) {
		if b.settingsOf(api.OffsetsTopic, metadata.Config{{Name: "cleanup.policy", Value: "compact"}}).log.RollDirtyBytes != 0 {
			t.Error("segments that nobody cleans end early")
		}
	})
	s.stop()
}

// TestOffsetsTopicIsBounded commits for one group over and over: much less than segment.bytes is left of it.
func TestOffsetsTopicIsBounded(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start(quickCleaner, "offsets.topic.num.partitions=1", "log.segment.delete.delay.ms=0")
	c := connect(t, s)
	c.createTopic("read", 50)
	m := kmsg.NewPtrOffsetCommitRequest()
	m.Group, m.Generation = "group", -1
	meta := strings.Repeat("m", 2000)
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "read"
	for p := range int32(50) {
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Metadata = p, &meta
		topic.Partitions = append(topic.Partitions, part)
	}
	m.Topics = append(m.Topics, topic)
	if !eventually(func() bool {
		return ask[*kmsg.FindCoordinatorResponse](c, findRequest(0, "group"), 3).ErrorCode == 0
	}) {
		t.Fatal("no coordinator")
	}
	const commits = 60
	for i := range commits {
		for p := range m.Topics[0].Partitions {
			m.Topics[0].Partitions[p].Offset = int64(i)
		}
		for _, p := range ask[*kmsg.OffsetCommitResponse](c, m, 7).Topics[0].Partitions {
			if p.ErrorCode != 0 {
				t.Fatal(wire.Code(p.ErrorCode))
			}
		}
	}
	s.w.RunFor(10 * time.Second)
	if n, most := c.bytes(api.OffsetsTopic), int64(5*offsetsRoll/2); n > most {
		t.Errorf("%d bytes are left of about %d, want at most %d", n, commits*50*len(meta), most)
	}
	s.stop()
}
