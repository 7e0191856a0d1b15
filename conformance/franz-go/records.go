package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// send produces the records and waits for each answer.
func send(topic string, records []*kgo.Record, opts ...kgo.Opt) error {
	p, err := client(append([]kgo.Opt{kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner())}, opts...)...)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.ProduceSync(ctx, records...).FirstErr()
}

func produce(topic, codec, acks string, opts ...kgo.Opt) (any, error) {
	if acks != "all" {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	var records []*kgo.Record
	for i := range 40 {
		records = append(records, &kgo.Record{Partition: int32(i % partitions), Key: fmt.Append(nil, "k", i), Value: value(codec, acks, i)})
	}
	return map[string]int{"records": len(records)}, send(topic, records, append(opts, kgo.ProducerLinger(20*time.Millisecond))...)
}

// read reads all partitions from their start to their end.
func read(topic string, opts ...kgo.Opt) (all []*kgo.Record, err error) {
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	want := 0
	ends.Each(func(e kadm.ListedOffset) {
		s, _ := starts.Lookup(e.Topic, e.Partition)
		want += int(e.Offset - s.Offset)
	})
	c, err := client(append(opts, kgo.ConsumeTopics(topic))...)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for len(all) < want {
		f := c.PollFetches(ctx)
		if err := f.Err(); err != nil {
			return nil, fmt.Errorf("read %d of %d records: %w", len(all), want, err)
		}
		all = append(all, f.Records()...)
	}
	return all, nil
}

func consume(topic string, want int) (any, error) {
	records, err := read(topic, kgo.FetchMaxPartitionBytes(10000), kgo.FetchMaxBytes(20000))
	if err != nil {
		return nil, err
	}
	var r reading
	for _, x := range records {
		if err := r.record(x.Partition, x.Offset, x.Key, x.Value); err != nil {
			return nil, err
		}
	}
	return map[string]int{"records": len(r.seen)}, same("records", len(r.seen), want)
}

// idempotence sends many small batches, several requests under way: each record once, in order.
func idempotence(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	var records []*kgo.Record
	for i := range 1000 {
		records = append(records, kgo.StringRecord(fmt.Sprint("record ", i)))
	}
	if err := send(topic, records, kgo.ProducerBatchMaxBytes(600)); err != nil {
		return nil, err
	}
	got, err := read(topic)
	if err != nil {
		return nil, err
	}
	for i, r := range got {
		if string(r.Value) != fmt.Sprint("record ", i) || r.Offset != int64(i) || r.ProducerID < 0 {
			return nil, fmt.Errorf("record %d: %q at %d of producer %d", i, r.Value, r.Offset, r.ProducerID)
		}
	}
	return map[string]int{"records": len(got)}, same("records", len(got), len(records))
}

func headers(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	hs := []kgo.RecordHeader{{Key: "null"}, {Key: "empty", Value: []byte{}}, {Key: "binary", Value: binary()}, {Key: "twice", Value: []byte("1")},
		{Key: "twice", Value: []byte("2")}, {Key: "", Value: []byte("no name")}, {Key: "ключ", Value: []byte("значение")}}
	var records []*kgo.Record
	for _, k := range [][]byte{nil, {}, binary()} {
		for _, v := range [][]byte{nil, {}, binary()} {
			r := &kgo.Record{Key: k, Value: v}
			if len(records)%2 == 0 {
				r.Headers = hs
			}
			records = append(records, r)
		}
	}
	for _, c := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		var again []*kgo.Record
		for _, r := range records {
			again = append(again, &kgo.Record{Key: r.Key, Value: r.Value, Headers: r.Headers})
		}
		if err := send(topic, again, kgo.ProducerBatchCompression(c)); err != nil {
			return nil, err
		}
	}
	got, err := read(topic)
	if err != nil {
		return nil, err
	}
	words := func(r *kgo.Record) string {
		return fmt.Sprintf("%#v %#v %#v", r.Key, r.Value, append([]kgo.RecordHeader{}, r.Headers...))
	}
	for i, r := range got {
		if err := same(fmt.Sprint("record ", i), words(r), words(records[i%len(records)])); err != nil {
			return nil, err
		}
	}
	return map[string]int{"records": len(got), "headers": len(hs)}, same("records", len(got), 2*len(records))
}

// offsets asks for them by time; the latest time is not the last record's.
func offsets(topic string) (any, error) {
	if err := create(topic, 2); err != nil {
		return nil, err
	}
	base := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	for _, s := range []int{0, 1, 4, 3, 2} {
		r := &kgo.Record{Value: fmt.Append(nil, "at ", s), Timestamp: base.Add(time.Duration(s) * time.Second)}
		if err := send(topic, []*kgo.Record{r}); err != nil {
			return nil, err
		}
	}
	out := map[string]string{}
	put := func(name string, l kadm.ListedOffsets, err error) error {
		if err == nil {
			err = l.Error()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var words []string
		for p := range int32(2) {
			o, _ := l.Lookup(topic, p)
			at := "none"
			if o.Timestamp >= 0 {
				at = fmt.Sprint(o.Timestamp - base.UnixMilli())
			}
			words = append(words, fmt.Sprintf("%d at %s epoch %d", o.Offset, at, o.LeaderEpoch))
		}
		out[name] = strings.Join(words, ", ")
		return nil
	}
	for _, ask := range []struct {
		name string
		list func() (kadm.ListedOffsets, error)
	}{
		{"earliest", func() (kadm.ListedOffsets, error) { return admin.ListStartOffsets(ctx, topic) }},
		{"latest", func() (kadm.ListedOffsets, error) { return admin.ListEndOffsets(ctx, topic) }},
		{"committed", func() (kadm.ListedOffsets, error) { return admin.ListCommittedOffsets(ctx, topic) }},
		{"max timestamp", func() (kadm.ListedOffsets, error) { return admin.ListMaxTimestampOffsets(ctx, topic) }},
		{"0", func() (kadm.ListedOffsets, error) { return admin.ListOffsetsAfterMilli(ctx, base.UnixMilli(), topic) }},
		{"1.5", func() (kadm.ListedOffsets, error) {
			return admin.ListOffsetsAfterMilli(ctx, base.UnixMilli()+1500, topic)
		}},
		{"4", func() (kadm.ListedOffsets, error) {
			return admin.ListOffsetsAfterMilli(ctx, base.UnixMilli()+4000, topic)
		}},
		{"5", func() (kadm.ListedOffsets, error) {
			return admin.ListOffsetsAfterMilli(ctx, base.UnixMilli()+5000, topic)
		}},
	} {
		l, err := ask.list()
		if err := put(ask.name, l, err); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func configs(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	set := "2000"
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &set}}, topic)
	if err == nil {
		err = altered[0].Err
	}
	if err != nil {
		return nil, err
	}
	described, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := until("the limit acts", func() (bool, error) {
		err := send(topic, []*kgo.Record{{Value: make([]byte, 5000)}}, kgo.ProducerBatchCompression(kgo.NoCompression()))
		out["too large"] = code(err)
		return err != nil, nil
	}); err != nil {
		return nil, err
	}
	for _, c := range described[0].Configs {
		if c.Key == "max.message.bytes" {
			out["value"] = fmt.Sprint(c.MaybeValue(), " ", c.Source)
		}
	}
	grown, err := admin.UpdatePartitions(ctx, 3, topic)
	if err == nil {
		err = grown[topic].Err
	}
	if err != nil {
		return nil, err
	}
	if err := until("three partitions", func() (bool, error) {
		d, err := admin.ListTopics(ctx, topic)
		return len(d[topic].Partitions) == 3, err
	}); err != nil {
		return nil, err
	}
	for i := range 10 {
		if err := send(topic, []*kgo.Record{{Value: fmt.Append(nil, "record ", i)}}); err != nil {
			return nil, err
		}
	}
	var before kadm.Offsets
	before.AddOffset(topic, 0, 7, -1)
	deleted, err := admin.DeleteRecords(ctx, before)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return nil, err
	}
	left, err := read(topic)
	if err != nil || len(left) == 0 {
		return nil, fmt.Errorf("%d records after delete records: %w", len(left), err)
	}
	var at []int64
	for _, r := range left {
		at = append(at, r.Offset)
	}
	out["first after delete records"] = at[0]
	return out, err
}
