package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// produceAs sends a batch in a version of Produce.
func (r raw) produceAs(version int16, topic string, batch []byte) int16 {
	r.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, -1, 3000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch
	req.Topics = append(req.Topics, kmsg.ProduceRequestTopic{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{p}})
	return must[*kmsg.ProduceResponse](r.t, r.c, req).Topics[0].Partitions[0].ErrorCode
}

// fetchAs fetches partition 0 in a version of Fetch.
func (r raw) fetchAs(version int16, topic string, offset int64) *kmsg.FetchResponseTopicPartition {
	r.t.Helper()
	f := kmsg.NewPtrFetchRequest()
	f.Version, f.MaxBytes, f.ReplicaID, f.SessionEpoch = version, 1<<20, -1, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = offset, 1<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	f.Topics = append(f.Topics, t)
	return &must[*kmsg.FetchResponse](r.t, r.c, f).Topics[0].Partitions[0]
}

// offsetsIn counts the batches of an answer and whether one of them is zstd.
func offsetsIn(b []byte) (batches int, zstd bool) {
	for one := cutBatch(&b); one != nil; one = cutBatch(&b) {
		batches++
		zstd = zstd || one[22]&7 == 4
	}
	return batches, zstd
}

// TestZstdForThoseWhoCannotReadIt: Produce before 7 and Fetch before 10 do not know zstd (KIP-110). An old fetch gets what lies before the
// first such batch, then an error, never nothing.
func TestZstdForThoseWhoCannotReadIt(t *testing.T) {
	everyLoops(t, func(t *testing.T, loops int) {
		b := start(t, loops)
		for _, topic := range []string{"plain", "zstd", "mixed", "asked"} {
			b.create(topic, 1)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		cl := b.client(kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.DisableIdempotentWrite())
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "zstd", Value: make([]byte, 5000)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		r := raw{t, b.dial()}
		batch := r.fetchAs(10, "zstd", 0).RecordBatches
		if n, zstd := offsetsIn(batch); n != 1 || !zstd {
			t.Fatalf("%d batches, zstd: %v", n, zstd)
		}
		refused := kerr.UnsupportedCompressionType.Code
		for v := int16(3); v <= 9; v++ {
			want := refused
			if v >= 7 {
				want = 0
			}
			if code := r.produceAs(v, "plain", batch); code != want {
				t.Errorf("Produce %d with zstd: code %d, want %d", v, code, want)
			}
		}
		for range 3 {
			if code := r.produceAs(8, "mixed", recordBatch([]byte("k"), []byte("plain"))); code != 0 {
				t.Fatal(code)
			}
		}
		for range 2 {
			if code := r.produceAs(8, "mixed", batch); code != 0 {
				t.Fatal(code)
			}
		}
		r.produceAs(8, "mixed", recordBatch([]byte("k"), []byte("behind")))
		for v := int16(4); v <= 12; v++ {
			old := v < 10
			whole, rest, behind := r.fetchAs(v, "mixed", 0), r.fetchAs(v, "mixed", 3), r.fetchAs(v, "mixed", 5)
			n, zstd := offsetsIn(whole.RecordBatches)
			switch {
			case old && (whole.ErrorCode != 0 || n != 3 || zstd):
				t.Errorf("Fetch %d from 0: code %d, %d batches, zstd %v; want the 3 before", v, whole.ErrorCode, n, zstd)
			case !old && (whole.ErrorCode != 0 || n != 6):
				t.Errorf("Fetch %d from 0: code %d, %d batches, want 6", v, whole.ErrorCode, n)
			}
			want := map[bool]int16{true: refused}[old]
			if rest.ErrorCode != want || old && len(rest.RecordBatches) > 0 {
				t.Errorf("Fetch %d from the first zstd batch: code %d with %d bytes, want %d", v, rest.ErrorCode, len(rest.RecordBatches), want)
			}
			if n, _ := offsetsIn(behind.RecordBatches); behind.ErrorCode != 0 || n != 1 {
				t.Errorf("Fetch %d from behind: code %d, %d batches", v, behind.ErrorCode, n)
			}
		}
		// What a topic says it is compressed with counts, too: an old client cannot read what it does not know.
		zstd := "zstd"
		alter, err := kadm.NewClient(cl).AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "compression.type", Value: &zstd}}, "asked")
		if err != nil || alter[0].Err != nil {
			t.Fatal(err, alter)
		}
		if code := r.produceAs(8, "asked", recordBatch([]byte("k"), []byte("v"))); code != 0 {
			t.Fatal(code)
		}
		for v := int16(4); v <= 12; v++ {
			if got := r.fetchAs(v, "asked", 0); got.ErrorCode == 0 && len(got.RecordBatches) == 0 {
				t.Errorf("Fetch %d of a topic with compression.type=zstd: nothing, and no error", v)
			}
		}
	})
}
