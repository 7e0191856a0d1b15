package controller

import (
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
	var begin []*topic
	for _, x := range c.ctx.sorted() {
		if x.deleting && !x.stopping {
			begin = append(begin, x)
		}
	}
	if err := c.beginDeletions(t, begin); err != nil {
		return err
	}
	var complete []*topic
	for _, x := range c.ctx.sorted() {
		if x.stopping && x.left == 0 && !x.halted {
			complete = append(complete, x)
		}
	}
	return c.completeDeletions(t, complete)
}

// beginDeletions takes topics out of the picture, their replicas offline (which rewrites every state once per replica, as Kafka
// does), and has them deleted. A replica on a broker that is not there halts the deletion of its topic.
func (c *Controller) beginDeletions(t *ring.Task, topics []*topic) error {
	if len(topics) == 0 {
		return nil
	}
	b := c.newBatch()
	byReplica := map[int32][]*partition{}
	for _, x := range topics {
		b.remove(x)
		x.halted = false
		for _, p := range x.partitions {
			p.state = offline
			for _, r := range p.replicas {
				if c.ctx.live(r) {
					byReplica[r] = append(byReplica[r], p)
					continue
				}
				c.log.Warn("topic cannot be deleted while a broker with a replica of it is away", "topic", x.name, "broker", r)
				x.halted = true
			}
		}
	}
	b.send()
	deletions := c.newBatch()
	for _, broker := range c.ctx.brokers {
		parts := byReplica[broker.ID]
		if err := c.replicasOffline(t, parts, broker.ID, deletions); err != nil {
			return err
		}
		for _, p := range parts {
			deletions.stop(p, broker.ID, true)
		}
	}
	for _, x := range topics {
		x.stopping = true
	}
	for _, p := range byReplica[c.self] {
		p.topic.left++
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

// completeDeletions removes topics' nodes from below, then their configurations, then the markers, each checked against the
// controller's epoch.
func (c *Controller) completeDeletions(t *ring.Task, topics []*topic) error {
	if len(topics) == 0 {
		return nil
	}
	var roots, rest []string
	for _, x := range topics {
		roots = append(roots, metadata.TopicPath(x.name))
		rest = append(rest, metadata.TopicConfigPath(x.name), metadata.DeleteTopicPath(x.name))
	}
	if err := c.deleteTrees(t, roots); err != nil {
		return err
	}
	if err := c.deleteTrees(t, rest); err != nil {
		return err
	}
	for _, x := range topics {
		delete(c.ctx.topics, x.name)
		c.log.Info("topic deleted", "topic", x.name, "id", x.id)
	}
	return nil
}

// deleteTrees removes nodes and all below them, one tree after the other, children first; one that is gone is no error.
func (c *Controller) deleteTrees(t *ring.Task, roots []string) error {
	below := make([][]string, len(roots)) // each tree's paths, from the root down
	level, owner := roots, make([]int, len(roots))
	for i := range owner {
		owner[i] = i
	}
	for len(level) > 0 {
		var next []string
		var nextOwner []int
		names := c.childrenAll(t, level)
		for i, p := range level {
			below[owner[i]] = append(below[owner[i]], p)
			if names[i].err != nil && !is(names[i].err, metadata.ErrNoNode) {
				return names[i].err
			}
			for _, name := range names[i].names {
				next, nextOwner = append(next, p+"/"+name), append(nextOwner, owner[i])
			}
		}
		level, owner = next, nextOwner
	}
	var multis [][]metadata.Op
	for _, tree := range below {
		for i := len(tree) - 1; i >= 0; i-- {
			multis = append(multis, c.ctx.fenced(metadata.Delete(tree[i], metadata.AnyVersion)))
		}
	}
	// The store applies them in the order they are asked for.
	for _, a := range c.store.doAll(t, multis) {
		if err := c.ctx.verdict(a); err != nil && !is(err, metadata.ErrNoNode) {
			return err
		}
	}
	return nil
}

type listed struct {
	names []string
	err   error
}

func (c *Controller) childrenAll(t *ring.Task, paths []string) []listed {
	out := make([]listed, len(paths))
	each(t, len(paths), func(i int, done func(error)) {
		c.o.Store.Children(paths[i], false, func(names []string, _ metadata.Stat, err error) {
			out[i] = listed{names, err}
			done(err)
		})
	})
	return out
}
