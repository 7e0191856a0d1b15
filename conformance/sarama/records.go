package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// send produces the messages and waits for each answer.
func send(c *sarama.Config, messages []*sarama.ProducerMessage) error {
	p, err := sarama.NewSyncProducer([]string{bootstrap}, c)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.SendMessages(messages)
}

func produce(topic, name, acksName string, codec sarama.CompressionCodec, acks sarama.RequiredAcks) (any, error) {
	c := config()
	c.Producer.Compression, c.Producer.RequiredAcks, c.Producer.Flush.Messages, c.Producer.Flush.Frequency = codec, acks, 20, 20*time.Millisecond
	var messages []*sarama.ProducerMessage
	for i := range 40 {
		messages = append(messages, &sarama.ProducerMessage{Topic: topic, Partition: int32(i % partitions),
			Key: sarama.StringEncoder(fmt.Sprint("k", i)), Value: sarama.ByteEncoder(value(name, acksName, i))})
	}
	return map[string]int{"records": len(messages)}, send(c, messages)
}

// read reads all partitions from their start to their end, one after the other.
func read(topic string, c *sarama.Config) (all []*sarama.ConsumerMessage, err error) {
	cl, err := sarama.NewClient([]string{bootstrap}, c)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	consumer, err := sarama.NewConsumerFromClient(cl)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	list, err := cl.Partitions(topic)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		end, err := cl.GetOffset(topic, p, sarama.OffsetNewest)
		if err != nil {
			return nil, err
		}
		from, err := cl.GetOffset(topic, p, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		pc, err := consumer.ConsumePartition(topic, p, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		late := time.After(wait)
		for next := from; next < end; {
			select {
			case m := <-pc.Messages():
				all = append(all, m)
				next = m.Offset + 1
			case <-late:
				return nil, fmt.Errorf("partition %d: waited %v for offset %d of %d", p, wait, next, end)
			}
		}
		if err := pc.Close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func consume(topic string, want int) (any, error) {
	c := config()
	c.Consumer.Fetch.Default, c.Consumer.Fetch.Min = 10000, 1
	messages, err := read(topic, c)
	if err != nil {
		return nil, err
	}
	var r reading
	for _, m := range messages {
		if err := r.record(m.Partition, m.Offset, m.Key, m.Value); err != nil {
			return nil, err
		}
	}
	return map[string]int{"records": len(r.seen)}, same("records", len(r.seen), want)
}

// idempotence sends many small batches: each record once, in order. Sarama allows one request under way then.
func idempotence(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	c := config()
	c.Producer.Idempotent, c.Producer.RequiredAcks, c.Net.MaxOpenRequests, c.Producer.Flush.MaxMessages = true, sarama.WaitForAll, 1, 5
	var messages []*sarama.ProducerMessage
	for i := range 1000 {
		messages = append(messages, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint("record ", i))})
	}
	if err := send(c, messages); err != nil {
		return nil, err
	}
	got, err := read(topic, config())
	if err != nil {
		return nil, err
	}
	for i, m := range got {
		if string(m.Value) != fmt.Sprint("record ", i) || m.Offset != int64(i) {
			return nil, fmt.Errorf("record %d: %q at %d", i, m.Value, m.Offset)
		}
	}
	return map[string]int{"records": len(got)}, same("records", len(got), len(messages))
}

func headers(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	hs := []sarama.RecordHeader{{Key: []byte("null")}, {Key: []byte("empty"), Value: []byte{}}, {Key: []byte("binary"), Value: binary()},
		{Key: []byte("twice"), Value: []byte("1")}, {Key: []byte("twice"), Value: []byte("2")}, {Key: []byte{}, Value: []byte("no name")},
		{Key: []byte("ключ"), Value: []byte("значение")}}
	var want []string
	words := func(key, value []byte, headers []sarama.RecordHeader) string {
		return fmt.Sprintf("%#v %#v %#v", key, value, append([]sarama.RecordHeader{}, headers...))
	}
	encoder := func(b []byte) sarama.Encoder {
		if b == nil {
			return nil
		}
		return sarama.ByteEncoder(b)
	}
	for _, codec := range []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionZSTD} {
		c := config()
		c.Producer.Compression = codec
		var messages []*sarama.ProducerMessage
		for _, k := range [][]byte{nil, {}, binary()} {
			for _, v := range [][]byte{nil, {}, binary()} {
				m := &sarama.ProducerMessage{Topic: topic, Key: encoder(k), Value: encoder(v)}
				if len(messages)%2 == 0 {
					m.Headers = hs
				}
				messages = append(messages, m)
				want = append(want, words(k, v, m.Headers))
			}
		}
		if err := send(c, messages); err != nil {
			return nil, err
		}
	}
	got, err := read(topic, config())
	if err != nil {
		return nil, err
	}
	for i, m := range got {
		var headers []sarama.RecordHeader
		for _, h := range m.Headers {
			headers = append(headers, *h)
		}
		if err := same(fmt.Sprint("record ", i), words(m.Key, m.Value, headers), want[i]); err != nil {
			return nil, err
		}
	}
	return map[string]int{"records": len(got), "headers": len(hs)}, same("records", len(got), len(want))
}

// offsets asks for them by time; the latest time is not the last record's.
func offsets(topic string) (any, error) {
	if err := create(topic, 2); err != nil {
		return nil, err
	}
	base := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	for _, s := range []int{0, 1, 4, 3, 2} {
		m := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint("at ", s)), Timestamp: base.Add(time.Duration(s) * time.Second)}
		if err := send(config(), []*sarama.ProducerMessage{m}); err != nil {
			return nil, err
		}
	}
	out := map[string]string{}
	for name, at := range map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest, "0": base.UnixMilli(),
		"1.5": base.UnixMilli() + 1500, "4": base.UnixMilli() + 4000, "5": base.UnixMilli() + 5000} {
		r, err := admin.ListOffsets(map[string]map[int32]int64{topic: {0: at, 1: at}}, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var words []string
		for p := range int32(2) {
			o := r[topic][p]
			if !errors.Is(o.Err, sarama.ErrNoError) {
				return nil, fmt.Errorf("%s: %w", name, o.Err)
			}
			stamp := "none"
			if o.Timestamp >= 0 {
				stamp = fmt.Sprint(o.Timestamp - base.UnixMilli())
			}
			words = append(words, fmt.Sprintf("%d at %s epoch %d", o.Offset, stamp, o.LeaderEpoch))
		}
		out[name] = strings.Join(words, ", ")
	}
	cl, err := sarama.NewClient([]string{bootstrap}, config())
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	at, err := cl.GetOffset(topic, 0, base.UnixMilli()+1500)
	out["consumer 1.5"] = fmt.Sprint(at)
	return out, err
}

// maxTimestamp asks for the offset of the latest time, for which Kafka wants a later version than Sarama sends.
func maxTimestamp(topic string) (any, error) {
	r, err := admin.ListOffsets(map[string]map[int32]int64{topic: {0: -3}}, nil)
	if err != nil {
		return nil, err
	}
	if errors.Is(r[topic][0].Err, sarama.ErrUnsupportedVersion) {
		return nil, unsupported("the version that Sarama sends is too old: " + code(r[topic][0].Err))
	}
	return nil, r[topic][0].Err
}

func configs(topic string) (any, error) {
	if err := create(topic, 1); err != nil {
		return nil, err
	}
	set := "2000"
	if err := admin.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		"max.message.bytes": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &set}}, false); err != nil {
		return nil, err
	}
	entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"max.message.bytes"}})
	if err != nil {
		return nil, err
	}
	large := []*sarama.ProducerMessage{{Topic: topic, Value: sarama.ByteEncoder(make([]byte, 5000))}}
	out := map[string]any{"value": fmt.Sprint(entries[0].Value, " ", entries[0].Source)}
	if err := until("the limit acts", func() (bool, error) {
		errs, failed := send(config(), large).(sarama.ProducerErrors)
		if failed {
			out["too large"] = code(errs[0].Err)
		}
		return failed, nil
	}); err != nil {
		return nil, err
	}
	if err := admin.CreatePartitions(topic, 3, nil, false); err != nil {
		return nil, err
	}
	if err := until("three partitions", func() (bool, error) {
		d, err := described(topic)
		return err == nil && len(d.Partitions) == 3, err
	}); err != nil {
		return nil, err
	}
	for i := range 10 {
		m := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprint("record ", i))}
		if err := send(config(), []*sarama.ProducerMessage{m}); err != nil {
			return nil, err
		}
	}
	if err := admin.DeleteRecords(topic, map[int32]int64{0: 7}); err != nil {
		return nil, err
	}
	left, err := read(topic, config())
	if err != nil || len(left) == 0 {
		return nil, fmt.Errorf("%d records after delete records: %w", len(left), err)
	}
	at := []int{}
	for _, m := range left {
		at = append(at, int(m.Offset))
	}
	sort.Ints(at)
	out["first after delete records"] = at[0]
	return out, err
}
