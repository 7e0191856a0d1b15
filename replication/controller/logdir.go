package controller

import (
	"slices"

	"kring/metadata"
	"kring/ring"
)

// LogDirFailed tells the cluster that a log dir of this broker has failed: what lives there goes offline as BecomeLeader
// answers with errors for it.
func (c *Controller) LogDirFailed() {
	c.admin.run(func(t *ring.Task) {
		node := metadata.LogDirEventNode{Broker: c.self}
		if _, err := c.store.do(t, metadata.CreateSequential(metadata.LogDirEventPrefix, node.Encode())); err != nil {
			c.log.Error("failure of a log dir cannot be announced", "error", err)
		}
	})
}

// logDirEvents has the brokers that lost a log dir say which of their replicas are still there.
func (c *Controller) logDirEvents(t *ring.Task) error {
	names, err := c.store.children(t, metadata.PathLogDirEvents, true)
	if err != nil {
		return err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = metadata.PathLogDirEvents + "/" + name
	}
	asked := false
	var drops [][]metadata.Op
	for i, g := range c.store.getAll(t, paths, false) {
		if g.err != nil {
			continue
		}
		node, err := metadata.DecodeLogDirEvent(g.data)
		if err != nil {
			c.log.Error("log dir event cannot be read", "path", paths[i], "error", err)
		} else if node.Broker == c.self {
			asked = true
		}
		drops = append(drops, c.ctx.fenced(metadata.Delete(paths[i], metadata.AnyVersion)))
	}
	if asked {
		b := c.newBatch()
		for _, x := range c.ctx.sorted() {
			for _, p := range x.partitions {
				if p.written && !x.deleting && slices.Contains(p.replicas, c.self) {
					b.lead(p, false)
				}
			}
		}
		b.send()
	}
	for _, a := range c.store.doAll(t, drops) {
		if err := c.ctx.verdict(a); err != nil && !is(err, metadata.ErrNoNode) {
			return err
		}
	}
	return nil
}

// ReplicasBack tells that logs of this broker which could not be opened are open: the partitions are led again.
func (c *Controller) ReplicasBack(names []PartitionName) {
	c.ifActive("ReplicasBack", func(t *ring.Task) error {
		var parts []*partition
		for _, n := range names {
			if p := c.ctx.under(n); p != nil && !p.topic.deleting {
				p.failed = slices.DeleteFunc(p.failed, func(id int32) bool { return id == c.self })
				parts = append(parts, p)
			}
		}
		return c.bringOnline(t, parts)
	})
}
