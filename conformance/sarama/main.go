// The program uses Sarama as its documentation shows and prints a line for each step: client BOOTSTRAP PREFIX.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

// prefix is of all topics and groups.
var (
	bootstrap, prefix string
	admin             sarama.ClusterAdmin
)

var codecs = []struct {
	name  string
	codec sarama.CompressionCodec
}{
	{"none", sarama.CompressionNone}, {"gzip", sarama.CompressionGZIP}, {"snappy", sarama.CompressionSnappy},
	{"lz4", sarama.CompressionLZ4}, {"zstd", sarama.CompressionZSTD},
}

var ackses = []struct {
	name string
	acks sarama.RequiredAcks
}{{"0", sarama.NoResponse}, {"1", sarama.WaitForLocal}, {"all", sarama.WaitForAll}}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client BOOTSTRAP PREFIX")
		os.Exit(2)
	}
	bootstrap, prefix = os.Args[1], os.Args[2]
	var err error
	if admin, err = sarama.NewClusterAdmin([]string{bootstrap}, config()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
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
	step("idempotence", func() (any, error) { return idempotence(prefix + "-idempotence") })
	step("headers, null and empty", func() (any, error) { return headers(prefix + "-headers") })
	step("list offsets", func() (any, error) { return offsets(prefix + "-offsets") })
	step("list offsets, max timestamp", func() (any, error) { return maxTimestamp(prefix + "-offsets") })
	step("configs and partitions", func() (any, error) { return configs(prefix + "-configs") })
	groups(prefix + "-group-")
	step("delete topic", func() (any, error) { return deleteTopic(topic) })
}

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.V3_9_0_0
	c.ClientID = "conformance"
	c.Admin.Timeout, c.Net.ReadTimeout = time.Minute, 90*time.Second
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	return c
}

// code is the name of a Kafka error; the texts are Sarama's own.
func code(err error) string {
	var k sarama.KError
	switch {
	case err == nil:
		return "no error"
	case errors.As(err, &k):
		return fmt.Sprintf("%d %s", int16(k), k)
	}
	return err.Error()
}

func create(topic string, partitions int32) error {
	return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
}

// described is what there is of a topic; a deleted one gives an error.
func described(topic string) (*sarama.TopicMetadata, error) {
	d, err := admin.DescribeTopics([]string{topic})
	if err != nil {
		return nil, err
	}
	if d[0].Err != sarama.ErrNoError {
		return nil, d[0].Err
	}
	return d[0], nil
}

func createTopic(topic string) (any, error) {
	if err := create(topic, partitions); err != nil {
		return nil, err
	}
	d, err := described(topic)
	if err != nil {
		return nil, err
	}
	var again *sarama.TopicError
	if !errors.As(create(topic, 1), &again) {
		return nil, errors.New("a topic that exists was created again")
	}
	return map[string]string{"again": code(again.Err)}, same("partitions", len(d.Partitions), partitions)
}

func deleteTopic(topic string) (any, error) {
	if err := admin.DeleteTopic(topic); err != nil {
		return nil, err
	}
	err := until("the topic is gone", func() (bool, error) {
		all, err := admin.ListTopics()
		_, there := all[topic]
		return !there, err
	})
	return map[string]string{"again": code(admin.DeleteTopic(topic))}, err
}
