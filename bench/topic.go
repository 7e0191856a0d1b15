package bench

import (
	"fmt"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// readyMax bounds the wait for a topic to be made and led.
const readyMax = 3 * time.Minute

// prepare makes the topic if absent and waits until each partition takes a record.
func (o *Options) prepare() error {
	until := time.Now().Add(readyMax)
	if err := o.create(until); err != nil {
		return err
	}
	return o.ready(until)
}

func (o *Options) create(until time.Time) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = createVersion
	req.TimeoutMillis = 60000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic = o.Topic
	t.NumPartitions = int32(o.Partitions)
	t.ReplicationFactor = int16(max(o.Replicas, 1))
	keys := make([]string, 0, len(o.Config))
	for k := range o.Config {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, kmsg.StringPtr(o.Config[k])
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	for {
		err := o.try(req)
		if err == nil || time.Now().After(until) {
			return err
		}
		if c, refused := err.(*codeError); refused && c.code != 41 && c.code != 38 {
			return err // neither "not the controller" nor "too few brokers yet"
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (o *Options) try(req *kmsg.CreateTopicsRequest) error {
	c, err := dial(o.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
		if t.ErrorCode != 0 && t.ErrorCode != 36 { // 36: it exists
			return &codeError{"create topic " + t.Topic, t.ErrorCode}
		}
	}
	return nil
}

func (o *Options) ready(until time.Time) error {
	c, err := dial(o.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	one := *o
	one.Acks, one.Codec = 1, ""
	raw := one.batch(values(1, 8), 0)
	for p := 0; p < o.Partitions; {
		if _, err := c.Write(one.produceFrame(p, raw)); err != nil {
			return err
		}
		b, err := c.answer()
		if err == nil {
			err = produceCode(b)
		}
		switch {
		case err == nil:
			p++
		case notYet(err) && time.Now().Before(until):
			time.Sleep(2 * time.Millisecond)
		default:
			return err
		}
	}
	return nil
}

// Remove deletes the topic; a broker that does not know it is content.
func (o *Options) Remove() error {
	c, err := dial(o.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version = 3
	req.TimeoutMillis = 30000
	req.TopicNames = []string{o.Topic}
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.DeleteTopicsResponse).Topics {
		if t.ErrorCode != 0 && t.ErrorCode != 3 {
			return &codeError{"delete topic " + o.Topic, t.ErrorCode}
		}
	}
	return nil
}

// offset asks for an end of a partition: -1 the latest, -2 the earliest.
func (o *Options) offset(c *conn, partition int, which int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = listVersion
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = o.Topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = int32(partition), which, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	resp, err := c.do(req)
	if err != nil {
		return 0, err
	}
	topics := resp.(*kmsg.ListOffsetsResponse).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("bench: the broker answered ListOffsets for another partition than asked")
	}
	got := topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		return 0, &codeError{fmt.Sprintf("list offsets of %s-%d", o.Topic, partition), got.ErrorCode}
	}
	return got.Offset, nil
}
