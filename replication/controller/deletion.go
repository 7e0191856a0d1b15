package controller

import (
	"slices"

	"kring/metadata"
	"kring/ring"
)

// loadDeletions reads which topics were to be deleted when the last controller ended.
func (c *Controller) loadDeletions(t *ring.Task) error {
	names, err := c.store.children(t, metadata.PathDeleteTopics, true)
	if err != nil {
		return err
	}
	return c.markDeletions(t, names)
}

// deletionsChanged is told of new names in /admin/delete_topics.
func (c *Controller) deletionsChanged(t *ring.Task) error {
	if err := c.loadDeletions(t); err != nil {
		return err
	}
	return c.tryDeletions(t)
}

// markDeletions marks topics for deletion; markers of unknown topics, and all where deletion is disabled, are removed.
func (c *Controller) markDeletions(t *ring.Task, names []string) error {
	var idle [][]metadata.Op
	for _, name := range names {
		x := c.ctx.topics[name]
		if x != nil && c.o.DeleteTopics {
			x.deleting = true
			continue
		}
		idle = append(idle, c.ctx.fenced(metadata.Delete(metadata.DeleteTopicPath(name), metadata.AnyVersion)))
	}
	for _, a := range c.store.doAll(t, idle) {
		if err := c.ctx.verdict(a); err != nil && !is(err, metadata.ErrNoNode) {
			return err
		}
	}
	return nil
}

// tryDeletions begins the deletion of the topics marked for it and ends that of those whose replicas are all gone.
func (c *Controller) tryDeletions(t *ring.Task) error {
	for _, x := range c.ctx.sorted() {
		if !x.deleting {
			continue
		}
		if !x.stopping {
			if err := c.beginDeletion(t, x); err != nil {
				return err
			}
		}
		if x.stopping && x.left == 0 && !x.halted {
			if err := c.completeDeletion(t, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginDeletion takes a topic out of the picture, its replicas offline (which rewrites every state once per replica, as Kafka
// does), and has them deleted. A replica on a broker that is not there halts the deletion.
func (c *Controller) beginDeletion(t *ring.Task, x *topic) error {
	b := c.newBatch()
	b.remove(x)
	b.send()
	var replicas []int32
	for _, p := range x.partitions {
		p.state = offline
		for _, r := range p.replicas {
			if !slices.Contains(replicas, r) {
				replicas = append(replicas, r)
			}
		}
	}
	slices.Sort(replicas)
	x.stopping, x.halted = true, false
	deletions := c.newBatch()
	for _, r := range replicas {
		if !c.ctx.live(r) {
			c.log.Warn("topic cannot be deleted while a broker with a replica of it is away", "topic", x.name, "broker", r)
			x.halted = true
			continue
		}
		var parts []*partition
		for _, p := range x.partitions {
			if slices.Contains(p.replicas, r) {
				parts = append(parts, p)
			}
		}
		if err := c.replicasOffline(t, parts, r, deletions); err != nil {
			x.stopping = false
			return err
		}
		for _, p := range parts {
			deletions.stop(p, r, true)
			if r == c.self {
				x.left++
			}
		}
	}
	deletions.send()
	return nil
}

// replicasDeleted hears which replicas of ours are deleted and which could not be.
func (c *Controller) replicasDeleted(t *ring.Task, deleted, failed []*partition) error {
	for _, p := range failed {
		p.topic.left--
		p.topic.halted = true
	}
	for _, p := range deleted {
		p.topic.left--
		p.state = nonExistent
	}
	return c.tryDeletions(t)
}

// completeDeletion removes a topic's nodes from below, then its configuration, then the marker, each checked against the
// controller's epoch.
func (c *Controller) completeDeletion(t *ring.Task, x *topic) error {
	if err := c.deleteTree(t, metadata.TopicPath(x.name)); err != nil {
		return err
	}
	if err := c.deleteTree(t, metadata.TopicConfigPath(x.name)); err != nil {
		return err
	}
	if err := c.deleteTree(t, metadata.DeleteTopicPath(x.name)); err != nil {
		return err
	}
	delete(c.ctx.topics, x.name)
	c.log.Info("topic deleted", "topic", x.name, "id", x.id)
	return nil
}

// deleteTree removes a node and all below it, children first; one that is gone is no error.
func (c *Controller) deleteTree(t *ring.Task, path string) error {
	var order []string
	level := []string{path}
	for len(level) > 0 {
		order = append(order, level...)
		var next []string
		for _, p := range level {
			names, err := c.store.children(t, p, false)
			if err != nil && !is(err, metadata.ErrNoNode) {
				return err
			}
			for _, name := range names {
				next = append(next, p+"/"+name)
			}
		}
		level = next
	}
	// Deepest first; the store applies them in the order they are asked for.
	slices.Reverse(order)
	multis := make([][]metadata.Op, len(order))
	for i, p := range order {
		multis[i] = c.ctx.fenced(metadata.Delete(p, metadata.AnyVersion))
	}
	for _, a := range c.store.doAll(t, multis) {
		if err := c.ctx.verdict(a); err != nil && !is(err, metadata.ErrNoNode) {
			return err
		}
	}
	return nil
}
