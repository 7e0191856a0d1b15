package api

import (
	"kring/replication"
	"kring/wire"
)

// place says on which loop a partition lives that a request names, or why it cannot be asked.
func (c *Context) place(topic string, index int32) (loop int, code wire.Code) {
	t := c.Image().Topic(topic)
	if t == nil || index < 0 || int(index) >= len(t.Partitions) {
		return 0, wire.UnknownTopicOrPartition
	}
	here := c.topics[topic]
	if here == nil {
		return 0, wire.NotLeaderOrFollower
	}
	return c.LoopOf(here, index), wire.None
}

// leader finds the partition on its own loop and checks the leader epoch the client believes in.
func (c *Context) leader(topic string, index, epoch int32) (*replication.Partition, error) {
	t := c.topics[topic]
	if t == nil || t.Partition(index) == nil {
		return nil, t.absent(index)
	}
	p := t.Partition(index)
	return p, p.Check(epoch)
}

// named is a partition a request names; a map of them finds those named twice.
type named struct {
	topic string
	index int32
}
