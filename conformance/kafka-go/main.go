// The program uses segmentio's kafka-go as its documentation shows and prints a line for each step: client BOOTSTRAP PREFIX.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

// prefix is of all topics and groups.
var (
	bootstrap, prefix string
	admin             *kafka.Client
	ctx               = context.Background()
)

var codecs = []struct {
	name  string
	codec kafka.Compression
}{{"none", 0}, {"gzip", kafka.Gzip}, {"snappy", kafka.Snappy}, {"lz4", kafka.Lz4}, {"zstd", kafka.Zstd}}

var ackses = []struct {
	name string
	acks kafka.RequiredAcks
}{{"0", kafka.RequireNone}, {"1", kafka.RequireOne}, {"all", kafka.RequireAll}}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client BOOTSTRAP PREFIX")
		os.Exit(2)
	}
	bootstrap, prefix = os.Args[1], os.Args[2]
	var cancel func()
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	admin = &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: time.Minute}
	topic := prefix + "-main"
	step("create topic", func() (any, error) { return createTopic(topic) })
	n := 0
	for _, c := range codecs {
		for _, a := range ackses {
			step("produce "+c.name+" acks="+a.name, func() (any, error) { return produce(topic, c.name, a.name, c.codec, a.acks) })
			n += 40
		}
	}
	step("consume", func() (any, error) { return consume(topic, n) })
	step("idempotence", func() (any, error) { return nil, unsupported("kafka-go's Writer has no producer id") })
	step("headers, null and empty", func() (any, error) { return headers(prefix + "-headers") })
	step("empty and null told apart", func() (any, error) { return emptyAndNull(prefix + "-empty") })
	step("list offsets", func() (any, error) { return offsets(prefix + "-offsets") })
	step("configs and partitions", func() (any, error) { return configs(prefix + "-configs") })
	step("delete records", func() (any, error) { return nil, unsupported("kafka-go has no DeleteRecords") })
	groups(prefix + "-group-")
	step("delete topic", func() (any, error) { return deleteTopic(topic) })
}

// code is the name of a Kafka error.
func code(err error) string {
	var k kafka.Error
	switch {
	case err == nil:
		return "no error"
	case errors.As(err, &k):
		return fmt.Sprintf("%d %s", int(k), k.Title())
	}
	return err.Error()
}

func create(topic string, partitions int) error {
	r, err := admin.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}}})
	if err == nil {
		err = r.Errors[topic]
	}
	return err
}

// described is what there is of a topic. kafka-go keeps metadata for a while: a new Transport has none yet.
func described(topic string) (kafka.Topic, error) {
	fresh := &kafka.Transport{}
	defer fresh.CloseIdleConnections()
	r, err := (&kafka.Client{Addr: kafka.TCP(bootstrap), Transport: fresh}).Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return kafka.Topic{}, err
	}
	for _, t := range r.Topics {
		if t.Name == topic {
			return t, t.Error
		}
	}
	return kafka.Topic{}, kafka.UnknownTopicOrPartition
}

func createTopic(topic string) (any, error) {
	if err := create(topic, partitions); err != nil {
		return nil, err
	}
	d, err := described(topic)
	if err != nil {
		return nil, err
	}
	return map[string]string{"again": code(create(topic, 1))}, same("partitions", len(d.Partitions), partitions)
}

func deleteTopic(topic string) (any, error) {
	remove := func() error {
		r, err := admin.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		if err == nil {
			err = r.Errors[topic]
		}
		return err
	}
	if err := remove(); err != nil {
		return nil, err
	}
	err := until("the topic is gone", func() (bool, error) {
		_, err := described(topic)
		if errors.Is(err, kafka.UnknownTopicOrPartition) {
			return true, nil
		}
		return false, err
	})
	return map[string]string{"again": code(remove())}, err
}
