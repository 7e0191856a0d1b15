package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// history is what a partition holds: what was read of it once must be read ever after.
type history struct {
	b       *broker
	topic   string
	first   int64
	records []string // from offset first on
	times   []int64
	batches []int64 // the first offset of each record's batch
	rng     *rand.Rand
	ms      int64
	codec   int
}

func newHistory(b *broker, topic string) *history {
	return &history{b: b, topic: topic, rng: rand.New(rand.NewPCG(1, 2)), ms: 1_700_000_000_000}
}

// write appends n batches of a few records each, whose times do not fall, each with the next codec.
func (h *history) write(t *testing.T, n, valueMost int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var clients []*kgo.Client
	for _, name := range codecNames {
		cl := h.b.client(kgo.ProducerBatchCompression(codecs[name]), kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic(h.topic))
		defer cl.Close()
		clients = append(clients, cl)
	}
	for range n {
		h.codec++
		var records []*kgo.Record
		for range 1 + h.rng.IntN(9) {
			h.ms += int64(h.rng.IntN(20))
			v := make([]byte, 1+h.rng.IntN(valueMost))
			for i := range v {
				v[i] = byte(h.rng.Uint32())
			}
			records = append(records, &kgo.Record{Value: v, Timestamp: time.UnixMilli(h.ms)})
		}
		if err := clients[h.codec%len(clients)].ProduceSync(ctx, records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// read reads the partition from its first offset on. What was read before must be the same.
func (h *history) read(t *testing.T, when string) {
	t.Helper()
	r := raw{t, h.b.dial()}
	defer r.c.Close()
	was := *h
	h.records, h.times, h.batches = nil, nil, nil
	for next := h.first; ; {
		got, code, err := r.fetch(h.topic, 0, next, 1<<20)
		if err != nil || code != 0 {
			t.Fatalf("%s: reading %s at %d: code %d, %v", when, h.topic, next, code, err)
		}
		if len(got) == 0 {
			break
		}
		for one := cutBatch(&got); one != nil; one = cutBatch(&got) {
			base := int64(binary.BigEndian.Uint64(one))
			if base != next {
				t.Fatalf("%s: offset %d of %s where %d was due", when, base, h.topic, next)
			}
			for _, text := range recordsOf(t, one) {
				ms, err := strconv.ParseInt(strings.Fields(text)[1], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				h.records, h.times, h.batches = append(h.records, text), append(h.times, ms), append(h.batches, base)
				next++
			}
		}
	}
	if n := len(was.records); n > len(h.records) || !slices.Equal(was.records, h.records[:n]) || !slices.Equal(was.batches, h.batches[:n]) {
		t.Fatalf("%s: %d records of %s are not what they were (%d)", when, len(h.records), h.topic, n)
	}
}

// find asks for the first offset of each batch, for some inside of batches, and for times: every answer follows from what was read.
func (h *history) find(t *testing.T, when string) {
	t.Helper()
	r := raw{t, h.b.dial()}
	defer r.c.Close()
	for i := range h.records {
		if h.batches[i] != h.first+int64(i) && h.rng.IntN(8) > 0 {
			continue
		}
		o := h.first + int64(i)
		got, code, err := r.fetch(h.topic, 0, o, 1)
		if one := cutBatch(&got); err != nil || code != 0 || one == nil || int64(binary.BigEndian.Uint64(one)) != h.batches[i] {
			t.Fatalf("%s: offset %d of %s lies in the batch at %d: code %d, %d bytes, %v", when, o, h.topic, h.batches[i], code, len(got), err)
		}
	}
	low, high := h.times[0], h.times[len(h.times)-1]
	for range 100 {
		ms := low - 5 + h.rng.Int64N(high-low+10)
		m := kmsg.NewPtrListOffsetsRequest()
		m.Version, m.ReplicaID = 5, -1
		m.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: h.topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: -1, Timestamp: ms}}}}
		resp, err := ask[*kmsg.ListOffsetsResponse](r.c, m)
		if err != nil {
			t.Fatal(err)
		}
		want, at := int64(-1), int64(-1)
		if i := sort.Search(len(h.times), func(i int) bool { return h.times[i] >= ms }); i < len(h.times) {
			want, at = h.first+int64(i), h.times[i]
		}
		if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || p.Offset != want || p.Timestamp != at {
			t.Fatalf("%s: time %d of %s is at offset %d (%d), not %d (%d), code %d", when, ms, h.topic, want, at, p.Offset, p.Timestamp, p.ErrorCode)
		}
	}
}

// indexes are the sizes of the indexes of closed segments; entries must increase.
func (h *history) indexes(t *testing.T, when string, killed bool) map[string]int {
	t.Helper()
	sizes := map[string]int{}
	logs := logsOf(t, h.b, h.topic)
	for _, name := range logs[:len(logs)-1] {
		for suffix, width := range map[string]int{".index": 8, ".timeindex": 12} {
			name := strings.TrimSuffix(name, ".log") + suffix
			b, err := os.ReadFile(name)
			if killed && (os.IsNotExist(err) || len(b)%width != 0) {
				continue // it was about to be written
			}
			if err != nil || len(b)%width != 0 {
				t.Fatalf("%s: %s: %d bytes, %v", when, name, len(b), err)
			}
			for at := width; at < len(b); at += width {
				if bytes.Compare(b[at-width:at-width+4], b[at:at+4]) > 0 || bytes.Equal(b[at-width:at], b[at:at+width]) {
					t.Fatalf("%s: %s: the entry at %d does not follow the one before it", when, name, at)
				}
			}
			sizes[name] = len(b)
		}
	}
	return sizes
}

// shift makes a partition of the stopped broker begin at another offset: as if so many records had been there before, and were deleted.
func shift(t *testing.T, b *broker, topic string, by int64) {
	t.Helper()
	dir := b.dir + "/data/" + topic + "-0/"
	logs := logsOf(t, b, topic)
	for _, name := range slices.Backward(logs) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for rest := text; len(rest) > 0; {
			one := cutBatch(&rest)
			binary.BigEndian.PutUint64(one, binary.BigEndian.Uint64(one)+uint64(by))
		}
		base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), ".log"), 10, 64)
		if err == nil {
			err = os.WriteFile(fmt.Sprintf("%s%020d.log", dir, base+by), text, 0o644)
		}
		if err == nil {
			err = os.Remove(name)
		}
		for _, suffix := range []string{".index", ".timeindex"} {
			if err == nil {
				err = os.Rename(strings.TrimSuffix(name, ".log")+suffix, fmt.Sprintf("%s%020d%s", dir, base+by, suffix))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stale, _ := filepath.Glob(dir + "*.snapshot")
	more, _ := filepath.Glob(b.dir + "/data/*-checkpoint")
	for _, name := range append(append(stale, more...), b.dir+"/data/.kafka_cleanshutdown") {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"leader-epoch-checkpoint", fmt.Appendf(nil, "0\n1\n0 %d\n", by), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRestartsChangeNothing starts a broker again and again on many segments, some of whose numbers have a digit more than others, after
// stops in order and kills, with and without writes in between: the answers stay, and the indexes do not grow.
func TestRestartsChangeNothing(t *testing.T) {
	b := start(t, 2, "log.segment.bytes=65536", "log.index.interval.bytes=4096")
	b.create("many", 1)
	b.create("far", 1, "segment.bytes=4096", "index.interval.bytes=500")
	many, far := newHistory(b, "many"), newHistory(b, "far")
	many.write(t, 1000, 4000)
	far.write(t, 100, 300)
	far.read(t, "at first")
	b.stop(syscall.SIGTERM)
	far.first = 9_999_999_990 - int64(len(far.records)/2)
	shift(t, b, "far", far.first)
	far.records, far.times, far.batches = nil, nil, nil
	b.run()
	for _, h := range []*history{many, far} {
		h.read(t, "at first")
	}
	if n := len(logsOf(t, b, "many")); n < 100 {
		t.Fatalf("%d segments are few", n)
	}
	if end := far.first + int64(len(far.records)); end < 10_000_000_000 {
		t.Fatalf("far ends at %d", end)
	}
	before := map[string]int{}
	for i := range 10 {
		sig := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[i%2]
		when := fmt.Sprintf("restart %d, after %v", i+1, sig)
		b.stop(sig)
		for _, h := range []*history{many, far} {
			for name, size := range h.indexes(t, when, sig == syscall.SIGKILL) {
				if was, known := before[name]; known && was != size {
					t.Errorf("%s: %s has %d bytes and had %d", when, name, size, was)
				} else if sig == syscall.SIGTERM {
					before[name] = size
				}
			}
		}
		b.run()
		for _, h := range []*history{many, far} {
			h.read(t, when)
			h.find(t, when)
			if i%3 == 2 {
				h.write(t, 10, 300)
				h.read(t, when+", after writes")
			}
		}
	}
}
