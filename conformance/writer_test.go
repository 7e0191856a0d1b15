package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// place is where a record lies.
type place struct {
	partition int32
	offset    int64
}

// writer produces one record at a time and remembers what was acknowledged.
type writer struct {
	b         *broker
	cl        *kgo.Client
	topic     string
	partition int32
	n         int
	acked     map[place]string
}

func newWriter(b *broker, topic string) *writer {
	return &writer{b: b, topic: topic, acked: map[place]string{}, cl: b.client(kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0))}
}

func (w *writer) write(size int) error {
	w.n++
	v := fmt.Sprintf("%s %08d %0*d", w.topic, w.n, size, w.n)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := w.cl.ProduceSync(ctx, &kgo.Record{Topic: w.topic, Partition: w.partition, Value: []byte(v)}).First()
	if err == nil {
		w.acked[place{r.Partition, r.Offset}] = v
	}
	return err
}

// check reads the topic: what was acknowledged is there, once and where it was said to be, and offsets have no gap.
func (w *writer) check(when string) {
	w.b.t.Helper()
	got := w.b.values(w.topic)
	for at, v := range w.acked {
		if p := got[at.partition]; at.offset >= int64(len(p)) || p[at.offset] != v {
			w.b.t.Fatalf("%s: the record acknowledged at %v of %s is not there (of %d)", when, at, w.topic, len(p))
		}
	}
	seen := map[string]bool{}
	for _, p := range got {
		for _, v := range p {
			if seen[v] {
				w.b.t.Fatalf("%s: %.20s is there twice", when, v)
			}
			seen[v] = true
		}
	}
}

// values are those of each partition from offset 0 on; it fails where offsets are not dense.
func (b *broker) values(topic string) map[int32][]string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cl := b.client()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	cl.Close()
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		b.t.Fatalf("end offsets of %s: %v", topic, err)
	}
	from, left := map[int32]kgo.Offset{}, int64(0)
	ends.Each(func(o kadm.ListedOffset) {
		from[o.Partition] = kgo.NewOffset().At(0)
		left += o.Offset
	})
	cl = b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchMaxWait(100*time.Millisecond))
	defer cl.Close()
	all := map[int32][]string{}
	for left > 0 {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			b.t.Fatalf("reading %s with %d records to come: %v", topic, left, err)
		}
		f.EachRecord(func(r *kgo.Record) {
			if n := int64(len(all[r.Partition])); r.Offset != n {
				b.t.Fatalf("%s: offset %d where %d was due", topic, r.Offset, n)
			}
			if end, _ := ends.Lookup(topic, r.Partition); r.Offset < end.Offset {
				left--
			}
			all[r.Partition] = append(all[r.Partition], string(r.Value))
		})
	}
	return all
}
