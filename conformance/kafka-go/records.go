package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// send writes the messages and waits for the answers. A message's WriterData is its partition, if it has one.
func send(topic string, codec kafka.Compression, acks kafka.RequiredAcks, messages ...kafka.Message) error {
	w := writer(topic)
	w.Compression, w.RequiredAcks = codec, acks
	return errors.Join(w.WriteMessages(ctx, messages...), w.Close())
}

func writer(topic string) *kafka.Writer {
	return &kafka.Writer{
		Addr: kafka.TCP(bootstrap), Topic: topic, BatchSize: 20, BatchTimeout: 5 * time.Millisecond, RequiredAcks: kafka.RequireAll,
		Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int {
			p, _ := m.WriterData.(int)
			return p
		}),
	}
}

func produce(topic, codec, acks string, c kafka.Compression, a kafka.RequiredAcks) (any, error) {
	var messages []kafka.Message
	for i := range 40 {
		messages = append(messages, kafka.Message{WriterData: i % partitions, Key: fmt.Append(nil, "k", i), Value: value(codec, acks, i)})
	}
	return map[string]int{"records": len(messages)}, send(topic, c, a, messages...)
}

// list asks for offsets of the first partitions at one time.
func list(topic string, partitions int, at int64) (map[int]kafka.PartitionOffsets, error) {
	var ask []kafka.OffsetRequest
	for p := range partitions {
		ask = append(ask, kafka.OffsetRequest{Partition: p, Timestamp: at})
	}
	r, err := admin.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: ask}})
	if err != nil {
		return nil, err
	}
	got := map[int]kafka.PartitionOffsets{}
	for _, p := range r.Topics[topic] {
		if p.Error != nil {
			return nil, p.Error
		}
		got[p.Partition] = p
	}
	return got, nil
}

// read reads the first partitions from their start to their end, one after the other.
func read(topic string, partitions, maxBytes int) (all []kafka.Message, err error) {
	ends, err := list(topic, partitions, kafka.LastOffset)
	if err != nil {
		return nil, err
	}
	for p := range partitions {
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, Partition: p, MinBytes: 1, MaxBytes: maxBytes,
			MaxWait: 500 * time.Millisecond})
		for next := int64(0); next < ends[p].LastOffset; {
			m, err := r.ReadMessage(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
			next = m.Offset + 1
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func consume(topic string, want int) (any, error) {
	messages, err := read(topic, partitions, 10000)
	if err != nil {
		return nil, err
	}
	var r reading
	for _, m := range messages {
		if err := r.record(int32(m.Partition), m.Offset, m.Key, m.Value); err != nil {
			return nil, err
		}
	}
	return map[string]int{"records": len(r.seen)}, same("records", len(r.seen), want)
}

// headers does not tell empty from null: see emptyAndNull.
func headers(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	hs := []kafka.Header{{Key: "null"}, {Key: "empty", Value: []byte{}}, {Key: "binary", Value: binary()}, {Key: "twice", Value: []byte("1")},
		{Key: "twice", Value: []byte("2")}, {Key: "", Value: []byte("no name")}, {Key: "ключ", Value: []byte("значение")}}
	words := func(m kafka.Message) string {
		w := fmt.Sprintf("%x %x", m.Key, m.Value)
		for _, h := range m.Headers {
			w += fmt.Sprintf(" %q=%x", h.Key, h.Value)
		}
		return w
	}
	var messages []kafka.Message
	for _, k := range [][]byte{nil, {}, binary()} {
		for _, v := range [][]byte{nil, {}, binary()} {
			m := kafka.Message{Key: k, Value: v}
			if len(messages)%2 == 0 {
				m.Headers = hs
			}
			messages = append(messages, m)
		}
	}
	for _, codec := range []kafka.Compression{0, kafka.Zstd} {
		if err := send(topic, codec, kafka.RequireAll, messages...); err != nil {
			return nil, err
		}
	}
	got, err := read(topic, 1, 1e6)
	if err != nil {
		return nil, err
	}
	for i, m := range got {
		if err := same(fmt.Sprint("record ", i), words(m), words(messages[i%len(messages)])); err != nil {
			return nil, err
		}
	}
	return map[string]int{"records": len(got), "headers": len(hs)}, same("records", len(got), 2*len(messages))
}

func emptyAndNull(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	empty := []byte{}
	if err := send(topic, 0, kafka.RequireAll, kafka.Message{Key: empty, Value: empty, Headers: []kafka.Header{{Key: "empty", Value: empty}}}); err != nil {
		return nil, err
	}
	got, err := read(topic, 1, 1e6)
	if err != nil {
		return nil, err
	}
	if m := got[0]; m.Key == nil && m.Value == nil && m.Headers[0].Value == nil {
		return nil, unsupported("kafka-go's Reader gives nil for what is empty")
	}
	return nil, nil
}

// offsets asks for them by time; the latest time is not the last record's.
func offsets(topic string) (any, error) {
	if err := create(topic, 2); err != nil {
		return nil, err
	}
	base := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	for _, s := range []int{0, 1, 4, 3, 2} {
		m := kafka.Message{Value: fmt.Append(nil, "at ", s), Time: base.Add(time.Duration(s) * time.Second)}
		if err := send(topic, 0, kafka.RequireAll, m); err != nil {
			return nil, err
		}
	}
	out := map[string]string{}
	for name, at := range map[string]int64{"earliest": kafka.FirstOffset, "latest": kafka.LastOffset, "0": base.UnixMilli(),
		"1.5": base.UnixMilli() + 1500, "4": base.UnixMilli() + 4000, "5": base.UnixMilli() + 5000} {
		got, err := list(topic, 2, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var words []string
		for p := range 2 {
			w := fmt.Sprintf("first %d last %d", got[p].FirstOffset, got[p].LastOffset)
			for o, t := range got[p].Offsets {
				stamp := "none"
				if !t.IsZero() && t.UnixMilli() > 0 {
					stamp = strconv.FormatInt(t.Sub(base).Milliseconds(), 10)
				}
				w = fmt.Sprintf("%d at %s", o, stamp)
			}
			words = append(words, w)
		}
		out[name] = strings.Join(words, ", ")
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, Partition: 0, MinBytes: 1, MaxBytes: 1e6,
		MaxWait: 500 * time.Millisecond})
	defer r.Close()
	if err := r.SetOffsetAt(ctx, base.Add(1500*time.Millisecond)); err != nil {
		return nil, err
	}
	m, err := r.ReadMessage(ctx)
	out["reader 1.5"] = fmt.Sprintf("%d %s", m.Offset, m.Value)
	return out, err
}

func configs(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	altered, err := admin.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "max.message.bytes", Value: "2000", ConfigOperation: kafka.ConfigOperationSet}}}}})
	if err == nil {
		err = altered.Resources[0].Error
	}
	if err != nil {
		return nil, err
	}
	d, err := admin.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"max.message.bytes"}}}})
	if err == nil {
		err = d.Resources[0].Error
	}
	if err != nil {
		return nil, err
	}
	c := d.Resources[0].ConfigEntries[0]
	out := map[string]any{"value": fmt.Sprint(c.ConfigValue, " ", c.ConfigSource)}
	var failed kafka.WriteErrors
	if err := until("the limit acts", func() (bool, error) {
		return errors.As(send(topic, 0, kafka.RequireAll, kafka.Message{Value: make([]byte, 5000)}), &failed), nil
	}); err != nil {
		return nil, err
	}
	out["too large"] = code(failed[0])
	grown, err := admin.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 3}}})
	if err == nil {
		err = grown.Errors[topic]
	}
	if err != nil {
		return nil, err
	}
	return out, until("three partitions", func() (bool, error) {
		t, err := described(topic)
		return len(t.Partitions) == 3, err
	})
}
