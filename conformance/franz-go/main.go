// The program uses franz-go as its documentation shows and prints a line for each step: client BOOTSTRAP PREFIX.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// prefix is of all topics and groups.
var (
	bootstrap, prefix string
	admin             *kadm.Client
	ctx               = context.Background()
)

var codecs = []struct {
	name  string
	codec kgo.CompressionCodec
}{
	{"none", kgo.NoCompression()}, {"gzip", kgo.GzipCompression()}, {"snappy", kgo.SnappyCompression()},
	{"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()},
}

var ackses = []struct {
	name string
	acks kgo.Acks
}{{"0", kgo.NoAck()}, {"1", kgo.LeaderAck()}, {"all", kgo.AllISRAcks()}}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client BOOTSTRAP PREFIX")
		os.Exit(2)
	}
	bootstrap, prefix = os.Args[1], os.Args[2]
	var cancel func()
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cl, err := client()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	admin = kadm.NewClient(cl)
	admin.SetTimeoutMillis(60000)
	topic := prefix + "-main"
	step("create topic", func() (any, error) { return createTopic(topic) })
	n := 0
	for _, c := range codecs {
		for _, a := range ackses {
			step("produce "+c.name+" acks="+a.name, func() (any, error) {
				return produce(topic, c.name, a.name, kgo.ProducerBatchCompression(c.codec), kgo.RequiredAcks(a.acks))
			})
			n += 40
		}
	}
	step("consume", func() (any, error) { return consume(topic, n) })
	step("idempotence", func() (any, error) { return idempotence(prefix + "-idempotence") })
	step("headers, null and empty", func() (any, error) { return headers(prefix + "-headers") })
	step("list offsets", func() (any, error) { return offsets(prefix + "-offsets") })
	step("configs and partitions", func() (any, error) { return configs(prefix + "-configs") })
	groups(prefix + "-group-")
	step("delete topic", func() (any, error) { return deleteTopic(topic) })
}

func client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap)}, opts...)...)
}

// code is the name of a Kafka error.
func code(err error) string {
	if err == nil {
		return "no error"
	}
	if e, ok := err.(*kerr.Error); ok {
		return e.Message
	}
	return err.Error()
}

func create(topic string, partitions int32) error {
	r, err := admin.CreateTopic(ctx, partitions, 1, nil, topic)
	if err == nil {
		err = r.Err
	}
	return err
}

func createTopic(topic string) (any, error) {
	if err := create(topic, partitions); err != nil {
		return nil, err
	}
	d, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return nil, err
	}
	return map[string]string{"again": code(create(topic, 1))}, same("partitions", len(d[topic].Partitions), partitions)
}

func deleteTopic(topic string) (any, error) {
	remove := func() error {
		r, err := admin.DeleteTopic(ctx, topic)
		if err == nil {
			err = r.Err
		}
		return err
	}
	if err := remove(); err != nil {
		return nil, err
	}
	err := until("the topic is gone", func() (bool, error) {
		d, err := admin.ListTopics(ctx)
		return !d.Has(topic), err
	})
	return map[string]string{"again": code(remove())}, err
}
