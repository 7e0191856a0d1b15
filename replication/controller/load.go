package controller

import (
	"errors"
	"fmt"
	"slices"

	"kring/metadata"
	"kring/ring"
)

// loadContext reads brokers, topics and states, and watches them.
func (c *Controller) loadContext(t *ring.Task) error {
	brokers, err := c.readBrokers(t, true)
	if err != nil {
		return err
	}
	c.ctx.brokers = brokers
	names, err := c.store.children(t, metadata.PathTopics, true)
	if err != nil {
		return err
	}
	_, err = c.loadTopics(t, names)
	return err
}

// loadTopics reads the named topics into the context, gives ids to those without, reads the states there are, and gives the
// topics that were there, in order.
func (c *Controller) loadTopics(t *ring.Task, names []string) ([]*topic, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = metadata.TopicPath(name)
	}
	var loaded []*topic
	var unnamed [][]metadata.Op
	var unnamedTopics []*topic
	for i, g := range c.store.getAll(t, paths, true) {
		if is(g.err, metadata.ErrNoNode) {
			continue
		}
		if g.err != nil {
			return nil, g.err
		}
		node, err := metadata.DecodeTopic(g.data)
		var replicas [][]int32
		if err == nil {
			replicas, err = assignmentOf(node)
		}
		if err != nil {
			c.log.Error("topic cannot be read and is left alone", "topic", names[i], "error", err)
			continue
		}
		x := &topic{name: names[i], id: node.ID}
		if x.id.IsZero() {
			x.id = metadata.NewTopicID(c.rand)
			node.ID = x.id
			unnamed = append(unnamed, c.ctx.fenced(metadata.SetData(paths[i], node.Encode(), metadata.AnyVersion)))
			unnamedTopics = append(unnamedTopics, x)
		}
		for number, r := range replicas {
			x.partitions = append(x.partitions, &partition{topic: x, number: int32(number), replicas: r})
		}
		c.ctx.topics[x.name] = x
		loaded = append(loaded, x)
	}
	for i, a := range c.store.doAll(t, unnamed) {
		if err := c.ctx.verdict(a); err != nil {
			return nil, fmt.Errorf("giving topic %s an id: %w", unnamedTopics[i].name, err)
		}
	}
	var parts []*partition
	for _, x := range loaded {
		parts = append(parts, x.partitions...)
	}
	return loaded, c.loadStates(t, parts)
}

var errGaps = errors.New("partition numbers do not run from 0 without gaps")

// assignmentOf gives the replicas by partition number.
func assignmentOf(node metadata.TopicNode) ([][]int32, error) {
	out := make([][]int32, len(node.Partitions))
	for _, a := range node.Partitions {
		if int(a.Partition) >= len(out) {
			return nil, errGaps
		}
		out[a.Partition] = a.Replicas
	}
	return out, nil
}

// loadStates reads the state nodes of partitions; one that has none stays unwritten.
func (c *Controller) loadStates(t *ring.Task, parts []*partition) error {
	paths := make([]string, len(parts))
	for i, p := range parts {
		paths[i] = metadata.StatePath(p.topic.name, p.number)
	}
	for i, g := range c.store.getAll(t, paths, false) {
		if is(g.err, metadata.ErrNoNode) {
			continue
		}
		if g.err != nil {
			return g.err
		}
		if err := c.takeState(parts[i], g); err != nil {
			return err
		}
	}
	return nil
}

// takeState takes over what a state node says.
func (c *Controller) takeState(p *partition, g got) error {
	node, err := metadata.DecodeState(g.data)
	if err != nil {
		c.log.Error("partition's state cannot be read; it stays offline", "topic", p.topic.name, "partition", p.number, "error", err)
		p.state, p.damaged = offline, true
		return nil
	}
	if node.ControllerEpoch > c.ctx.epoch {
		return errMoved
	}
	p.node, p.epoch, p.written = node, metadata.PartitionEpoch(g.stat.Version), true
	return nil
}

// startMachines tells the broker of all that it holds, in the old state, and then elects where a leader is missing.
func (c *Controller) startMachines(t *ring.Task) error {
	all := c.ctx.sorted()
	b := c.newBatch()
	b.everything = true
	for _, x := range all {
		b.touch(x)
		for _, p := range x.partitions {
			switch {
			case p.damaged:
				p.state = offline
			case !p.written:
				p.state = newPartition
			case c.ctx.liveFor(p)(p.node.Leader):
				p.state = online
			default:
				p.state = offline
			}
			if p.written && slices.Contains(p.replicas, c.self) {
				b.lead(p, false)
			}
		}
	}
	b.send()
	if err := c.bringOnline(t, c.waiting()); err != nil {
		return err
	}
	return c.tryDeletions(t)
}

// waiting are the partitions without a leader that may get one.
func (c *Controller) waiting() (parts []*partition) {
	for _, x := range c.ctx.sorted() {
		for _, p := range x.partitions {
			if !x.deleting && (p.state == newPartition || p.state == offline) {
				parts = append(parts, p)
			}
		}
	}
	return parts
}
