package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sayOpen names the partitions that were read to their end for who reads what is committed, while more lies behind an open transaction.
func sayOpen(out io.Writer, topic string, goals map[int32]*goal, mine func(int32) bool) {
	for _, p := range slices.Sorted(maps.Keys(goals)) {
		if g := goals[p]; g.all > g.end && g.next >= g.end && mine(p) {
			fmt.Fprintf(out, "%s-%d: stopped at %d of %d: a transaction is open\n", topic, p, g.end, g.all)
		}
	}
}

// everyPartition is for who reads all there are goals for.
func everyPartition(int32) bool { return true }

// stopped says why a partition cannot be read on at an offset. The client library knows a batch whose checksum is wrong by its words alone.
func (c *consuming) stopped(ctx context.Context, cl *kgo.Client, topic string, partition int32, at int64, err error) error {
	about := fmt.Sprintf("%s-%d", topic, partition)
	if isKafka(err) || !strings.Contains(err.Error(), "encoded crc") {
		return explain(about, err, "")
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	first, next := batchAt(ctx, cl, topic, partition, at)
	way := fmt.Sprintf("-o %d reads on", next)
	if c.group.name != "" {
		way = fmt.Sprintf("kring groups reset-offsets %s --topic %s:%d --to-offset %d --execute passes it", c.group.name, topic, partition, next)
	}
	return fmt.Errorf("%s: the batch at offset %d is damaged; kring log verify on the broker's log dir shows it, "+
		"kring log repair takes it out, %s", about, first, way)
}

// The places of what a batch says of its offsets, of format 2.
const (
	deltaAt   = 23
	headBytes = 61
)

// batchAt asks for the first batch that ends at or behind an offset, and reads its offsets from its head, damaged though it may be: its
// first, and that behind its last. What makes no sense is taken for a batch of one record.
func batchAt(ctx context.Context, cl *kgo.Client, topic string, partition int32, at int64) (first, next int64) {
	topics, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err != nil {
		return at, at + 1
	}
	m := kmsg.NewPtrFetchRequest()
	m.MaxWaitMillis, m.MinBytes, m.MaxBytes = int32(time.Second.Milliseconds()), 1, 1<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, topics[topic].ID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, at, 1<<20
	t.Partitions = append(t.Partitions, p)
	m.Topics = append(m.Topics, t)
	answer, err := cl.Broker(int(topics[topic].Partitions[partition].Leader)).Request(ctx, m)
	if err != nil {
		return at, at + 1
	}
	for _, t := range answer.(*kmsg.FetchResponse).Topics {
		for _, p := range t.Partitions {
			if b := p.RecordBatches; len(b) >= headBytes {
				first = int64(binary.BigEndian.Uint64(b))
				next = first + int64(int32(binary.BigEndian.Uint32(b[deltaAt:]))) + 1
				if next > at && next <= p.HighWatermark && first <= next-1 && first >= 0 {
					return first, next
				}
			}
		}
	}
	return at, at + 1
}
