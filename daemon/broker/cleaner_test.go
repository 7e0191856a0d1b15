package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring"
	"kring/wire"
	"kring/wire/batch"
)

// keyed is a batch of one record for each pair of key and value; an empty value deletes.
func keyed(pairs ...string) []byte {
	b := batch.NewBuilder(batch.None)
	for i := 0; i < len(pairs); i += 2 {
		value := []byte(pairs[i+1])
		if len(value) == 0 {
			value = nil
		}
		b.Add(1_700_000_000_000, []byte(pairs[i]), value)
	}
	return b.AppendTo(nil)
}

// state reads a partition from its start: the last value of each key, and how many records there were.
func (c *client) state(topic string, partition int32) (last map[string]string, records int) {
	c.t.Helper()
	last = map[string]string{}
	for at := c.fetch(topic, partition, 0, 0).LogStartOffset; ; {
		p := c.fetch(topic, partition, at, 0)
		if p.ErrorCode != 0 {
			c.t.Fatalf("fetch of %s-%d from %d: %v", topic, partition, at, wire.Code(p.ErrorCode))
		}
		was := at
		for rest := p.RecordBatches; ; {
			b, more, err := batch.Whole(rest)
			if err != nil {
				break
			}
			rs, err := batch.Open(b, 64<<20)
			if err != nil {
				c.t.Fatal(err)
			}
			for rs.Next() {
				if rs.Offset >= at {
					records++
					last[string(rs.Key)] = string(rs.Value)
					if rs.Value == nil {
						delete(last, string(rs.Key))
					}
				}
			}
			at, rest = max(at, batch.Header(b).NextOffset()), more
		}
		if at == was {
			return last, records
		}
	}
}

// write puts count values under few keys and notes the last one of each in want.
func (c *client) write(topic string, partition int32, count int, want map[string]string) {
	c.t.Helper()
	for i := range count {
		k, v := fmt.Sprint("key ", i%7), fmt.Sprint(len(want), " value ", i, strings.Repeat(".", 100))
		if i%7 == 6 && i > count/2 {
			v = ""
		}
		want[k] = v
		if v == "" {
			delete(want, k)
		}
		if _, code := c.produce(topic, partition, 1, keyed(k, v)); code != wire.None {
			c.t.Fatal(code)
		}
	}
}

const quickCleaner = "log.cleaner.backoff.ms=50"

var compacted = []string{"cleanup.policy=compact", "segment.bytes=2000", "min.cleanable.dirty.ratio=0.01"}

// TestCompactedTopicStaysSmall writes a few keys over and over.
func TestCompactedTopicStaysSmall(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		p.start(quickCleaner)
		c := connect(t, p)
		if code := c.createTopic("compacted", 3, compacted...); code != wire.None {
			t.Fatal(code)
		}
		want := make([]map[string]string, 3)
		for round := range 2 {
			for i := range want {
				want[i] = map[string]string{}
				c.write("compacted", int32(i), 200, want[i])
			}
			for i := range want {
				var records int
				small := func() bool {
					var got map[string]string
					got, records = c.state("compacted", int32(i))
					if !maps.Equal(got, want[i]) {
						t.Fatalf("round %d, partition %d: %v, want %v", round, i, got, want[i])
					}
					return records < 40
				}
				if !eventually(small) {
					t.Errorf("round %d, partition %d: %d records of 7 keys", round, i, records)
				}
			}
			c.close()
			p.stop()
			p.start(quickCleaner)
			c = connect(t, p)
			for i := range want {
				if got, _ := c.state("compacted", int32(i)); !maps.Equal(got, want[i]) {
					t.Fatalf("after a restart, partition %d: %v, want %v", i, got, want[i])
				}
			}
		}
		c.close()
	})
}

// TestCleanerNotesHowFarItIs looks for the checkpoint of each log dir, and that a deleted topic leaves it.
func TestCleanerNotesHowFarItIs(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start(quickCleaner, "log.segment.delete.delay.ms=0")
	c := connect(t, s)
	c.createTopic("a", 1, compacted...)
	c.createTopic("b", 1, compacted...)
	c.createTopic("plain", 1, "segment.bytes=2000")
	for _, topic := range []string{"a", "b", "plain"} {
		c.write(topic, 0, 60, map[string]string{})
	}
	s.w.RunFor(5 * time.Second)
	noted := func() string {
		b, err := s.m.ReadFile("/data/cleaner-offset-checkpoint")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := noted(); !strings.HasPrefix(got, "0\n2\na 0 ") || !strings.Contains(got, "\nb 0 ") {
		t.Errorf("%q", got)
	}
	if _, records := c.state("plain", 0); records != 60 {
		t.Errorf("a topic that is not compacted has %d records", records)
	}
	c.deleteTopic("b")
	s.w.RunFor(5 * time.Second)
	if got := noted(); !strings.HasPrefix(got, "0\n1\na 0 ") {
		t.Errorf("after the deletion: %q", got)
	}
	s.stop()
}

func TestNoCleanerCleansNothing(t *testing.T) {
	s := newSim(t, 1, 1)
	s.start(quickCleaner, "log.cleaner.enable=false", "log.retention.check.interval.ms=100")
	c := connect(t, s)
	c.createTopic("a", 1, append(compacted, "cleanup.policy=compact,delete", "retention.ms=1")...)
	c.write("a", 0, 60, map[string]string{})
	s.w.RunFor(time.Minute)
	if _, records := c.state("a", 0); records != 60 {
		t.Errorf("%d records", records)
	}
	s.stop()
}

// TestCompactedAndDeletedTopicDeletes needs the cleaner's clock, not that of retention.
func TestCompactedAndDeletedTopicDeletes(t *testing.T) {
	s := newSim(t, 1, 1)
	s.start(quickCleaner)
	c := connect(t, s)
	c.createTopic("a", 1, "cleanup.policy=compact,delete", "segment.bytes=2000", "retention.ms=1", "min.cleanable.dirty.ratio=1")
	c.write("a", 0, 60, map[string]string{})
	s.w.RunFor(10 * time.Second)
	if got := c.fetch("a", 0, 0, 0); wire.Code(got.ErrorCode) != wire.OffsetOutOfRange || got.LogStartOffset == 0 {
		t.Errorf("%+v", got)
	}
	s.stop()
}

// TestDamagedLogIsSetAside damages a rolled segment: the others are cleaned all the same, and the log is served.
func TestDamagedLogIsSetAside(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("log.cleaner.enable=false")
	c := connect(t, s)
	topics := []string{"bad", "good", "poor"}
	for _, topic := range topics {
		c.createTopic(topic, 1, compacted...)
		c.write(topic, 0, 60, map[string]string{})
	}
	s.w.RunFor(10 * time.Second)
	s.stop()
	for _, topic := range []string{"bad", "poor"} {
		if err := s.m.Damage("/data/"+topic+"-0/00000000000000000000.log", func(b []byte) []byte { b[200] ^= 1; return b }); err != nil {
			t.Fatal(err)
		}
	}
	s.start(quickCleaner, "log.segment.delete.delay.ms=0")
	s.w.RunFor(10 * time.Second)
	s.on(func(_ *ring.Task, b *Broker) {
		if f := b.Cleaner(); f.Aside != 2 || f.AsideBytes <= 0 || f.Running != 0 || f.Cleanings == 0 {
			t.Errorf("%+v", f)
		}
	})
	c = connect(t, s)
	if _, records := c.state("good", 0); records > 40 {
		t.Errorf("the good one has %d records", records)
	}
	c.write("bad", 0, 30, map[string]string{})
	if code := c.deleteTopic("bad"); code != wire.None {
		t.Error(code)
	}
	s.w.RunFor(10 * time.Second)
	s.on(func(_ *ring.Task, b *Broker) {
		if f := b.Cleaner(); f.Aside != 1 {
			t.Errorf("after one was deleted: %+v", f)
		}
	})
	s.stop()
}

// TestFullDiskEndsACleaning leaves no room for a copy, and then makes some.
func TestFullDiskEndsACleaning(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("log.cleaner.enable=false")
	c := connect(t, s)
	want := map[string]string{}
	c.createTopic("a", 1, append(compacted, "segment.bytes=50000")...)
	for i := range 400 {
		k := fmt.Sprint("other ", i)
		want[k] = strings.Repeat(".", 100)
		c.produce("a", 0, 1, keyed(k, want[k]))
	}
	c.write("a", 0, 600, want)
	s.stop()
	used := int64(0)
	for _, name := range s.m.Files("/data") {
		b, _ := s.m.ReadFile(name)
		used += (int64(len(b)) + 4095) &^ 4095
	}
	s.start(quickCleaner)
	s.m.SetCapacity(used + 4*4096)
	s.w.RunFor(20 * time.Second)
	left := func(suffix string) bool {
		return slices.ContainsFunc(s.m.Files("/data"), func(name string) bool { return strings.HasSuffix(name, suffix) })
	}
	c = connect(t, s)
	got, records := c.state("a", 0)
	if !maps.Equal(got, want) || records != 1000 {
		t.Errorf("on a full disk: %d records of %d keys, want %d", records, len(got), len(want))
	}
	s.on(func(_ *ring.Task, b *Broker) {
		if f := b.Cleaner(); f.Aside != 0 || f.Cleanings != 0 {
			t.Errorf("on a full disk: %+v", f)
		}
	})
	s.m.SetCapacity(0)
	s.w.RunFor(2 * time.Minute)
	if got, records := c.state("a", 0); !maps.Equal(got, want) || records > 800 {
		t.Errorf("with room again: %d records of %d keys, want %d", records, len(got), len(want))
	}
	if left(".cleaned") || left(".swap") {
		t.Errorf("something is left over: %v", s.m.Files("/data"))
	}
	s.stop()
}

// TestCleanerTakesNewSettings slows it down and speeds it up while it runs.
func TestCleanerTakesNewSettings(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start(quickCleaner, "log.cleaner.io.max.bytes.per.second=100", "log.cleaner.threads=2")
	c := connect(t, s)
	for _, topic := range []string{"a", "b", "c"} {
		c.createTopic(topic, 1, append(compacted, "segment.bytes=20000")...)
		c.write(topic, 0, 300, map[string]string{})
	}
	s.w.RunFor(10 * time.Second)
	s.on(func(_ *ring.Task, b *Broker) {
		if f := b.Cleaner(); f.Running != 2 || f.Cleanings != 0 {
			t.Errorf("with 100 bytes a second: %+v", f)
		}
	})
	rate := "1000000"
	m := kmsg.NewPtrIncrementalAlterConfigsRequest()
	m.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 4, ResourceName: "",
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "log.cleaner.io.max.bytes.per.second", Value: &rate}}}}
	if r := ask[*kmsg.IncrementalAlterConfigsResponse](c, m, 1).Resources[0]; r.ErrorCode != 0 {
		t.Fatal(wire.Code(r.ErrorCode))
	}
	s.w.RunFor(10 * time.Second)
	s.on(func(_ *ring.Task, b *Broker) {
		if f := b.Cleaner(); f.Running != 0 || f.Cleanings < 3 {
			t.Errorf("with a million: %+v", f)
		}
	})
	s.stop()
}
