package controller

import (
	"slices"

	"kring/metadata"
	"kring/ring"
)

// bringOnline makes partitions Online: new ones get their first state, offline ones an election.
func (c *Controller) bringOnline(t *ring.Task, parts []*partition) error {
	var fresh, leaderless []*partition
	for _, p := range parts {
		if p.state == newPartition && !p.written && !p.damaged {
			fresh = append(fresh, p)
		} else if p.written {
			leaderless = append(leaderless, p)
		}
	}
	b := c.newBatch()
	if err := c.initialize(t, fresh, b); err != nil {
		return err
	}
	if err := c.electLeaders(t, leaderless, b); err != nil {
		return err
	}
	b.send()
	return nil
}

// initialize writes the nodes of new partitions as Kafka does: first the topics' parents, then the partitions, then the
// states, each checked against the controller's epoch.
func (c *Controller) initialize(t *ring.Task, parts []*partition, b *batch) error {
	var ready, waiting []*partition
	for _, p := range parts {
		b.touch(p.topic)
		node, ok := firstState(p.replicas, c.ctx.liveFor(p), c.ctx.epoch)
		if !ok {
			c.log.Debug("no replica is live, the partition waits", "topic", p.topic.name, "partition", p.number, "replicas", p.replicas)
			waiting = append(waiting, p)
			continue
		}
		p.node = node
		ready = append(ready, p)
	}
	if len(waiting) > 0 {
		c.log.Warn("no replica is live, partitions wait", "partitions", len(waiting), "names", examples(waiting))
	}
	var parents, nodes, states [][]metadata.Op
	for i, p := range ready {
		if i == 0 || ready[i-1].topic != p.topic {
			parents = append(parents, c.ctx.fenced(metadata.Create(metadata.PartitionsPath(p.topic.name), nil)))
		}
		nodes = append(nodes, c.ctx.fenced(metadata.Create(metadata.PartitionPath(p.topic.name, p.number), nil)))
		states = append(states, c.ctx.fenced(metadata.Create(metadata.StatePath(p.topic.name, p.number), p.node.Encode())))
	}
	for _, multis := range [][][]metadata.Op{parents, nodes} {
		for _, a := range c.store.doAll(t, multis) {
			if err := c.ctx.verdict(a); is(err, errMoved) {
				return err
			} else if err != nil && !is(err, metadata.ErrNodeExists) && !is(err, metadata.ErrNoNode) {
				return err
			}
		}
	}
	for i, a := range c.store.doAll(t, states) {
		p := ready[i]
		err := c.ctx.verdict(a)
		if is(err, metadata.ErrNodeExists) {
			err = c.createdBefore(t, p)
		}
		switch {
		case is(err, metadata.ErrNoNode):
			continue // the topic was removed under our hands
		case err != nil:
			return err
		case p.damaged:
			continue
		}
		p.written, p.state = true, online
		b.lead(p, true)
	}
	return nil
}

// createdBefore takes a state node that was there already for ours if it says what we wanted to write: our first try, whose
// answer was lost. Otherwise its content counts.
func (c *Controller) createdBefore(t *ring.Task, p *partition) error {
	data, st, err := c.store.get(t, metadata.StatePath(p.topic.name, p.number), false)
	if err != nil {
		return err
	}
	return c.takeState(p, got{data, st, nil})
}

// electLeaders runs the election for partitions whose leader is gone.
func (c *Controller) electLeaders(t *ring.Task, parts []*partition, b *batch) error {
	for _, p := range parts {
		b.touch(p.topic)
	}
	unclean, err := c.uncleanAllowed(t, parts)
	if err != nil {
		return err
	}
	var offline []*partition
	defer func() {
		if len(offline) > 0 {
			c.log.Warn("no replica can lead, partitions stay offline", "partitions", len(offline), "names", examples(offline))
		}
	}()
	return c.writeStates(t, parts, func(p *partition) (metadata.StateNode, bool) {
		next, ok := electOffline(p.node, p.replicas, c.ctx.liveFor(p), unclean[p.topic.name], c.ctx.epoch)
		if !ok {
			c.log.Debug("no replica can lead, the partition stays offline", "topic", p.topic.name, "partition", p.number,
				"replicas", p.replicas, "isr", p.node.ISR)
			offline = append(offline, p)
		}
		return next, ok
	}, func(p *partition) {
		p.state = online
		b.lead(p, false)
	})
}

// uncleanAllowed reads the topics' unclean.leader.election.enable where an election would need it.
func (c *Controller) uncleanAllowed(t *ring.Task, parts []*partition) (map[string]bool, error) {
	allowed := map[string]bool{}
	for _, p := range parts {
		if _, known := allowed[p.topic.name]; known {
			continue
		}
		if _, ok := electOffline(p.node, p.replicas, c.ctx.liveFor(p), false, 0); ok {
			continue
		}
		config, err := c.readConfig(t, metadata.TopicConfigPath(p.topic.name))
		if err != nil {
			c.log.Error("topic's configuration cannot be read", "topic", p.topic.name, "error", err)
		}
		value, set := config.Get("unclean.leader.election.enable")
		allowed[p.topic.name] = set && value == "true" || !set && c.o.UncleanElection
	}
	return allowed, nil
}

// writeStates changes the states of partitions as next says. A state somebody else has changed is read and tried again.
func (c *Controller) writeStates(t *ring.Task, parts []*partition, next func(*partition) (metadata.StateNode, bool),
	written func(*partition)) error {
	for len(parts) > 0 {
		var chosen []*partition
		var nodes []metadata.StateNode
		var multis [][]metadata.Op
		for _, p := range parts {
			node, ok := next(p)
			if !ok {
				continue
			}
			chosen, nodes = append(chosen, p), append(nodes, node)
			path := metadata.StatePath(p.topic.name, p.number)
			multis = append(multis, c.ctx.fenced(metadata.SetData(path, node.Encode(), int32(p.epoch))))
		}
		var again []*partition
		for i, a := range c.store.doAll(t, multis) {
			p := chosen[i]
			err := c.ctx.verdict(a)
			switch {
			case is(err, metadata.ErrBadVersion):
				again = append(again, p)
			case is(err, metadata.ErrNoNode):
				p.written = false
			case err != nil:
				return err
			default:
				p.node, p.epoch = nodes[i], metadata.PartitionEpoch(a.results[1].Stat.Version)
				written(p)
			}
		}
		if err := c.loadStates(t, again); err != nil {
			return err
		}
		parts = again
	}
	return nil
}

// replicasOffline takes replicas of one broker out of service: stopped, out of the ISR, not leading.
func (c *Controller) replicasOffline(t *ring.Task, parts []*partition, replica int32, b *batch) error {
	var inISR []*partition
	for _, p := range parts {
		b.stop(p, replica, false)
		if p.written {
			inISR = append(inISR, p)
		}
	}
	return c.writeStates(t, inISR, func(p *partition) (metadata.StateNode, bool) {
		return withoutReplica(p.node, replica, c.ctx.epoch)
	}, func(p *partition) {
		if !p.topic.deleting {
			b.touch(p.topic)
			b.lead(p, false)
		}
	})
}

// topicsChanged compares the list of topics with what is known: new ones get leaders, those that are gone are forgotten.
func (c *Controller) topicsChanged(t *ring.Task) error {
	names, err := c.store.children(t, metadata.PathTopics, true)
	if err != nil {
		return err
	}
	var added []string
	for _, name := range names {
		if c.ctx.topics[name] == nil {
			added = append(added, name)
		}
	}
	// Names are sorted: whoever is not among them is gone.
	if len(names)-len(added) < len(c.ctx.topics) {
		for _, x := range c.ctx.sorted() {
			if _, there := slices.BinarySearch(names, x.name); !there {
				delete(c.ctx.topics, x.name)
				b := c.newBatch()
				b.remove(x)
				b.send()
			}
		}
	}
	loaded, err := c.loadTopics(t, added)
	if err != nil {
		return err
	}
	var parts []*partition
	for _, x := range loaded {
		for _, p := range x.partitions {
			p.state = newPartition
			if p.written {
				p.state = offline
			}
			parts = append(parts, p)
		}
	}
	return c.bringOnline(t, parts)
}

// partitionsChanged reads a topic's node again: partitions that were added get leaders.
func (c *Controller) partitionsChanged(t *ring.Task, name string) error {
	data, _, err := c.store.get(t, metadata.TopicPath(name), true)
	if is(err, metadata.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	x := c.ctx.topics[name]
	if x == nil {
		return nil
	}
	node, err := metadata.DecodeTopic(data)
	var replicas [][]int32
	if err == nil {
		replicas, err = assignmentOf(node)
	}
	if err != nil {
		c.log.Error("changed topic cannot be read", "topic", name, "error", err)
		return nil
	}
	if len(replicas) <= len(x.partitions) {
		if len(replicas) < len(x.partitions) {
			c.log.Error("a topic cannot lose partitions; the change is ignored", "topic", name,
				"partitions", len(x.partitions), "written", len(replicas))
		}
		return nil
	}
	if x.deleting {
		return c.revertPartitions(t, x, node)
	}
	var added []*partition
	for n := len(x.partitions); n < len(replicas); n++ {
		p := &partition{topic: x, number: int32(n), replicas: replicas[n], state: newPartition}
		x.partitions = append(x.partitions, p)
		added = append(added, p)
	}
	if err := c.loadStates(t, added); err != nil {
		return err
	}
	return c.bringOnline(t, added)
}

// revertPartitions takes back partitions added to a topic that is being deleted.
func (c *Controller) revertPartitions(t *ring.Task, x *topic, node metadata.TopicNode) error {
	c.log.Error("topic is being deleted, partitions added are taken back", "topic", x.name)
	node.Partitions = slices.DeleteFunc(node.Partitions, func(a metadata.Assignment) bool {
		return int(a.Partition) >= len(x.partitions)
	})
	r, err := c.store.do(t, c.ctx.fenced(metadata.SetData(metadata.TopicPath(x.name), node.Encode(), metadata.AnyVersion))...)
	return c.ctx.verdict(answer{r, err})
}
