package conformance

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// keeper writes records under few keys and knows what must be there.
type keeper struct {
	topic string
	last  map[string]string
	n     int
}

// write appends n records, one batch each.
func (k *keeper) write(t *testing.T, cl *kgo.Client, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range n {
		key, value := fmt.Sprint("key ", k.n%10), fmt.Sprintf("value %d %0200d", k.n, k.n)
		r, err := cl.ProduceSync(ctx, &kgo.Record{Topic: k.topic, Key: []byte(key), Value: []byte(value)}).First()
		if err != nil || r.Offset != int64(k.n) {
			t.Fatalf("%s: record %d is at %d, %v", k.topic, k.n, r.Offset, err)
		}
		k.last[key] = value
		k.n++
	}
}

// check reads the topic to its end: the last value of each key, and every record where nothing is compacted.
func (k *keeper) check(t *testing.T, b *broker, compacted bool, when string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cl := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{k.topic: {0: kgo.NewOffset().At(0)}}), kgo.FetchMaxWait(50*time.Millisecond))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, k.topic)
	if end, _ := ends.Lookup(k.topic, 0); err != nil || end.Offset != int64(k.n) {
		t.Fatalf("%s, %s: ends at %d, want %d: %v", when, k.topic, end.Offset, k.n, err)
	}
	got, records, next := map[string]string{}, 0, int64(0)
	for next < int64(k.n) {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatalf("%s, %s: reading at %d: %v", when, k.topic, next, err)
		}
		f.EachRecord(func(r *kgo.Record) {
			if r.Offset < next {
				t.Fatalf("%s, %s: offset %d after %d", when, k.topic, r.Offset, next-1)
			}
			got[string(r.Key)] = string(r.Value)
			next = r.Offset + 1
			records++
		})
	}
	if !maps.Equal(got, k.last) || !compacted && records != k.n {
		t.Fatalf("%s, %s: %d records of %d; %v, want %v", when, k.topic, records, k.n, got, k.last)
	}
}

// logsOf are the .log files of a topic's partition 0, by offset.
func logsOf(t *testing.T, b *broker, topic string) []string {
	t.Helper()
	list, err := filepath.Glob(b.dir + "/data/" + topic + "-0/*.log")
	if err != nil || len(list) == 0 {
		t.Fatalf("%v %v", list, err)
	}
	slices.Sort(list)
	return list
}

// TestZeroTailsAreNoRecords puts zeros behind what was written: behind the newest .log, as a size that was set ahead and came back
// would, behind its indexes, and behind an older segment. After a stop in order, whose marker stays, and after a kill; with segments
// preallocated and not, compacted and not.
func TestZeroTailsAreNoRecords(t *testing.T) {
	b := start(t, 2, "log.cleaner.backoff.ms=50", "log.segment.delete.delay.ms=100")
	var topics []*keeper
	compacted := map[string]bool{}
	for _, policy := range []string{"delete", "compact"} {
		for _, preallocate := range []string{"false", "true"} {
			k := &keeper{topic: policy + "-" + preallocate, last: map[string]string{}}
			b.create(k.topic, 1, "cleanup.policy="+policy, "preallocate="+preallocate, "segment.bytes=20000", "min.cleanable.dirty.ratio=0.01")
			topics = append(topics, k)
			compacted[k.topic] = policy == "compact"
		}
	}
	write := func(n int) {
		cl := b.client(kgo.DisableIdempotentWrite(), kgo.ProducerLinger(0))
		defer cl.Close()
		for _, k := range topics {
			k.write(t, cl, n)
		}
	}
	write(200)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, tail := range []int64{1, 60, 61, 4096, 1 << 20} {
			when := fmt.Sprintf("%v, %d zeros", sig, tail)
			awaitNoChange(t, b)
			b.stop(sig)
			for _, k := range topics {
				logs := logsOf(t, b, k.topic)
				newest := logs[len(logs)-1]
				extend(t, newest, tail)
				setSize(t, newest[:len(newest)-4]+".index", 10485760)
				setSize(t, newest[:len(newest)-4]+".timeindex", 10485756)
				if len(logs) > 1 && compacted[k.topic] {
					extend(t, logs[0], tail)
				}
			}
			b.run()
			for _, k := range topics {
				k.check(t, b, compacted[k.topic], when)
			}
			write(7)
			for _, k := range topics {
				k.check(t, b, compacted[k.topic], when+", after an append")
			}
		}
	}
	b.stop(syscall.SIGTERM)
	for _, k := range topics {
		logs := logsOf(t, b, k.topic)
		whole(t, logs[len(logs)-1], int64(k.n))
	}
	b.run()
}

// awaitNoChange waits until no segment is on its way in or out.
func awaitNoChange(t *testing.T, b *broker) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		list, err := filepath.Glob(b.dir + "/data/*-0/*")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(list, func(name string) bool {
			return slices.Contains([]string{".deleted", ".cleaned", ".swap"}, filepath.Ext(name))
		}) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("still changing: %v", list)
		}
	}
}

// extend adds n zeros to a file, setSize makes it n bytes long.
func extend(t *testing.T, name string, n int64) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	setSize(t, name, info.Size()+n)
}

func setSize(t *testing.T, name string, n int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err == nil {
		err = f.Truncate(n)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// whole holds that a .log is nothing but batches, the last of which ends before the offset next.
func whole(t *testing.T, name string, next int64) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(-1)
	for rest := content; len(rest) > 0; {
		one := cutBatch(&rest)
		if one == nil {
			t.Fatalf("%s: %d bytes behind offset %d are no batch", name, len(rest), last)
		}
		last = int64(binary.BigEndian.Uint64(one)) + int64(binary.BigEndian.Uint32(one[23:]))
	}
	if last+1 != next {
		t.Errorf("%s ends at %d, want %d", name, last+1, next)
	}
}
