package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// benchProduce is a Produce request for so many partitions of one topic.
func benchProduce(partitions, size int) []byte {
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.Acks, q.TimeoutMillis = 9, -1, 30000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = "orders"
	for i := range partitions {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), make([]byte, size)
		t.Partitions = append(t.Partitions, p)
	}
	q.Topics = append(q.Topics, t)
	return q.AppendTo(nil)
}

func benchFetch(topics, partitions int) []byte {
	r := random{rand.New(rand.NewPCG(9, 9))}
	q := kmsg.NewPtrFetchRequest()
	q.Version = 13
	for range topics {
		t := kmsg.NewFetchRequestTopic()
		t.TopicID = r.id()
		for i := range partitions {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.PartitionMaxBytes = int32(i), r.i64(), 1<<20
			t.Partitions = append(t.Partitions, p)
		}
		q.Topics = append(q.Topics, t)
	}
	return q.AppendTo(nil)
}

// answerProduce parses and answers, as a handler does.
func answerProduce(p *ProduceRequest, a *ProduceAnswer, dst, body []byte) []byte {
	if err := p.Parse(9, body); err != nil {
		panic(err)
	}
	a.Begin(AppendResponseHeader(append(dst, 0, 0, 0, 0), Produce, 9, 1), 9, p.Topics)
	for it := p.Iter(); it.NextTopic(); {
		a.Topic(it.Topic, it.Count)
		for it.NextPartition() {
			out := ProducePartition{Partition: it.Partition, BaseOffset: 1 << 40, LogAppendTime: -1}
			a.Partition(&out)
		}
	}
	b := a.End(0, nil)
	PutFrameSize(b, 0)
	return b
}

func answerFetch(f *FetchRequest, a *FetchAnswer, dst []byte, cuts []Cut, body []byte) []byte {
	if err := f.Parse(13, body); err != nil {
		panic(err)
	}
	a.Begin(AppendResponseHeader(append(dst, 0, 0, 0, 0), Fetch, 13, 1), cuts, 13, FetchHead{Topics: f.Topics})
	for it := f.Iter(); it.NextTopic(); {
		a.Topic(it.Topic, it.TopicID, it.Count)
		for it.NextPartition() {
			out := FetchPartition{Partition: it.Partition, HighWatermark: it.Offset + 10, LastStable: it.Offset + 10, RecordBytes: 1000}
			a.Partition(&out)
		}
	}
	b := a.End(nil)
	PutFrameSize(b, a.RecordBytes)
	return b
}

func TestHotPathAllocatesNothing(t *testing.T) {
	produce, fetch := benchProduce(3, 1000), benchFetch(2, 10)
	frame := append(AppendRequestHeader(nil, &RequestHeader{Key: Fetch, Version: 13, ClientID: []byte("c")}), fetch...)
	var p ProduceRequest
	var pa ProduceAnswer
	var f FetchRequest
	var fa FetchAnswer
	dst, cuts := make([]byte, 0, 1<<16), make([]Cut, 0, 100)
	if n := testing.AllocsPerRun(100, func() {
		answerProduce(&p, &pa, dst, produce)
		if _, _, err := ParseRequestHeader(frame); err != nil {
			t.Fatal(err)
		}
		answerFetch(&f, &fa, dst, cuts, fetch)
	}); n != 0 {
		t.Error(n, "allocations")
	}
	if len(fa.Cuts) != 20 {
		t.Error(len(fa.Cuts))
	}
}

func BenchmarkProduceOnePartition(b *testing.B)      { benchmarkProduce(b, 1, 1024) }
func BenchmarkProduceHundredPartitions(b *testing.B) { benchmarkProduce(b, 100, 1024) }

func benchmarkProduce(b *testing.B, partitions, size int) {
	body := benchProduce(partitions, size)
	var p ProduceRequest
	var a ProduceAnswer
	dst := make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		answerProduce(&p, &a, dst, body)
	}
}

func BenchmarkFetchOnePartition(b *testing.B)       { benchmarkFetch(b, 1, 1) }
func BenchmarkFetchThousandPartitions(b *testing.B) { benchmarkFetch(b, 10, 100) }

func benchmarkFetch(b *testing.B, topics, partitions int) {
	body := benchFetch(topics, partitions)
	var f FetchRequest
	var a FetchAnswer
	dst, cuts := make([]byte, 0, 1<<18), make([]Cut, 0, topics*partitions)
	b.ReportAllocs()
	for b.Loop() {
		answerFetch(&f, &a, dst, cuts, body)
	}
}

func BenchmarkHeader(b *testing.B) {
	h := AppendRequestHeader(nil, &RequestHeader{Key: Produce, Version: 9, ClientID: []byte("producer-1")})
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ParseRequestHeader(h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeMetadata(b *testing.B) {
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	for range 10 {
		name := "some-topic"
		q.Topics = append(q.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	body := q.AppendTo(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRequest(Metadata, 12, body); err != nil {
			b.Fatal(err)
		}
	}
}
