package controller

import "fmt"

// check holds the controller to what must always be true after an event; a breach is our own fault and ends the process.
func (c *Controller) check() {
	if c.active && c.ctx == nil { // 1: the active controller has a picture of its own
		panic("controller: in office without a context")
	}
	if c.ctx == nil {
		return
	}
	for name, x := range c.ctx.topics {
		c.checkTopic(name, x)
	}
}

// checkTopic is check of one topic; a topic is held to it whenever the broker is told of it.
func (c *Controller) checkTopic(name string, x *topic) {
	if x.name != name || x.id.IsZero() { // 2: a topic is kept under its name, and has an id
		panic(fmt.Sprintf("controller: topic %q under name %q, id %s", x.name, name, x.id))
	}
	if x.left < 0 || x.stopping && !x.deleting { // 3: no more replicas are deleted than were asked for
		panic(fmt.Sprintf("controller: topic %q: deletion of %d replicas is open", name, x.left))
	}
	for i, p := range x.partitions {
		if p.topic != x || p.number != int32(i) { // 4: partitions are in the place of their number
			panic(fmt.Sprintf("controller: partition %d of topic %q in place %d", p.number, name, i))
		}
		if p.state == online && !p.written { // 5: an online partition has a state in the store
			panic(fmt.Sprintf("controller: partition %s-%d is online without a state", name, i))
		}
	}
}
