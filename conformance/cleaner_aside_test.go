package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kring/conformance/stage"
)

// sizeOf is the bytes of a topic's logs.
func sizeOf(t *testing.T, dir, topic string) (n int64) {
	t.Helper()
	list, err := filepath.Glob(dir + "/" + topic + "-*/*.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// TestOneBadLogDoesNotStopTheCleaner damages closed segments of two compacted topics, empties a third by DeleteRecords, and keeps writing:
// the bad ones are named and left alone, everything else, the offsets of groups too, stays small and right.
func TestOneBadLogDoesNotStopTheCleaner(t *testing.T) {
	metrics := stage.FreeAddr(t)
	settings := []string{"log.cleaner.backoff.ms=100", "log.segment.delete.delay.ms=100", "offsets.topic.num.partitions=1",
		"offsets.topic.segment.bytes=100000", "kring.metrics.address=" + metrics, "log.retention.check.interval.ms=500"}
	b := start(t, 2, append(settings, "log.cleaner.enable=false")...)
	data := b.dir + "/data"
	compacted := []string{"cleanup.policy=compact", "segment.bytes=20000", "min.cleanable.dirty.ratio=0.01"}
	for _, topic := range []string{"t1", "t2", "t3"} {
		b.create(topic, 1, compacted...)
	}
	b.create("t4", 1, "cleanup.policy=compact,delete", "segment.bytes=20000", "min.cleanable.dirty.ratio=0.01")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	var cl *kgo.Client
	last := map[string]string{}
	number := 0
	write := func(n int, topics ...string) {
		t.Helper()
		for range n {
			number++
			for _, topic := range topics {
				key := fmt.Sprint("key-", number%7)
				value := fmt.Sprintf("%d %s", number, strings.Repeat("v", 800))
				r := &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}
				if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
					t.Fatalf("%s: %v", topic, err)
				}
				last[topic+" "+key] = value
			}
		}
	}
	connect := func() {
		cl = b.client(kgo.DisableIdempotentWrite(), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	}
	connect()
	write(120, "t1", "t2", "t3", "t4")
	c := b.dial()
	findCoordinator(t, c, "g")
	offset := int64(0)
	commit := func() {
		if code, err := commitOnce(c, "g", "t3", 0, offset+1); err != nil {
			t.Fatal(err)
		} else if code == 0 {
			offset++
		}
	}
	within(t, 10*time.Second, "a commit", func() bool { commit(); return offset > 0 })
	b.stop(syscall.SIGTERM)
	closed := func(topic string) string {
		list, err := filepath.Glob(data + "/" + topic + "-0/*.log")
		if sort.Strings(list); err != nil || len(list) < 4 {
			t.Fatalf("%v, %v", list, err)
		}
		return list[1]
	}
	content, err := os.ReadFile(closed("t1"))
	if err == nil {
		for i := 3000; i < 3100; i++ {
			content[i] ^= 0x55
		}
		err = os.WriteFile(closed("t1"), content, 0o644)
	}
	if err == nil {
		err = os.Truncate(closed("t2"), 9_999)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.args {
		b.args[i] = strings.Replace(b.args[i], "log.cleaner.enable=false", "log.cleaner.enable=true", 1)
	}
	b.run()
	connect()
	c = b.dial()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, "t4")
	if err == nil {
		_, err = kadm.NewClient(cl).DeleteRecords(ctx, ends.Offsets())
	}
	if err != nil {
		t.Fatal(err)
	}
	for round := range 12 {
		write(60, "t1", "t3", "t4")
		for range 400 {
			commit()
		}
		if round > 3 {
			for _, x := range []struct {
				topic string
				most  int64
			}{{"t3", 160_000}, {"t4", 160_000}, {"__consumer_offsets", 600_000}} {
				within(t, 20*time.Second, x.topic+" is cleaned", func() bool { return sizeOf(t, data, x.topic) < x.most })
			}
		}
	}
	text := page(t, metrics, "/metrics")
	if !strings.Contains(text, "\nkring_cleaner_uncleanable_partitions 2\n") {
		t.Errorf("the metric does not say that two logs cannot be cleaned: %s", lineWith(text, "\nkring_cleaner_uncleanable"))
	}
	for _, topic := range []string{"t1", "t2"} {
		if !strings.Contains(b.log.String(), "log cannot be cleaned and is set aside until the next start; it is served as before\" topic="+topic) &&
			!strings.Contains(b.log.String(), "log cannot be cleaned and is set aside until the next start; it is served as before topic="+topic) {
			t.Errorf("the log does not name %s", topic)
		}
	}
	for _, topic := range []string{"t3", "t4"} {
		for key, value := range latest(t, b, topic) {
			if want := last[topic+" "+key]; value != want {
				t.Errorf("%s: %s is %.20q, want %.20q", topic, key, value, want)
			}
		}
	}
	if got, err := fetchOffsets(c, "g", "t3", 1); err != nil || got.Topics[0].Partitions[0].Offset != offset {
		t.Errorf("the group committed %d and has %+v, %v", offset, got, err)
	}
}

func lineWith(text, what string) string {
	_, rest, _ := strings.Cut(text, what)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// latest is the last value of each key.
func latest(t *testing.T, b *broker, topic string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := b.client()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	cl = b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	all := map[string]string{}
	for at := int64(0); at < end.Offset; {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		f.EachRecord(func(r *kgo.Record) { all[string(r.Key)], at = string(r.Value), r.Offset+1 })
	}
	if len(all) != 7 {
		t.Errorf("%s has %d keys, 7 were written", topic, len(all))
	}
	return all
}
