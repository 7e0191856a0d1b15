package controller

import (
	"fmt"
	"strings"

	"kring/metadata"
	"kring/ring"
)

// batch gathers what the broker is to be told of one event, as Kafka batches its requests: LeaderAndIsr first, then
// UpdateMetadata, then StopReplica.
type batch struct {
	c          *Controller
	everything bool // the brokers and the controller too
	leads      []*partition
	fresh      map[*partition]bool
	named      map[*partition]bool
	topics     []*topic
	touched    map[*topic]bool
	removed    []string
	stops      []stop
}

type stop struct {
	p      *partition
	delete bool
}

func (c *Controller) newBatch() *batch {
	return &batch{c: c, fresh: map[*partition]bool{}, named: map[*partition]bool{}, touched: map[*topic]bool{}}
}

// touch has the picture show a topic as it will be when the batch is sent.
func (b *batch) touch(x *topic) {
	if !b.touched[x] {
		b.touched[x] = true
		b.topics = append(b.topics, x)
	}
}

// lead tells our broker of a partition's state.
func (b *batch) lead(p *partition, isNew bool) {
	b.touch(p.topic)
	if !b.named[p] {
		b.named[p] = true
		b.leads = append(b.leads, p)
	}
	if isNew {
		b.fresh[p] = true
	}
}

// remove takes a topic out of the picture.
func (b *batch) remove(x *topic) { b.removed = append(b.removed, x.name) }

// stop tells our broker to stop a replica, if it is ours.
func (b *batch) stop(p *partition, replica int32, remove bool) {
	if replica == b.c.self {
		b.stops = append(b.stops, stop{p, remove})
	}
}

// send queues the batch, with the states as they are now.
func (b *batch) send() {
	c := b.c
	var leads []LeaderState
	var led []*partition
	for _, p := range b.leads {
		if p.node.Leader == c.self && p.written {
			leads = append(leads, LeaderState{Topic: p.topic.name, ID: p.topic.id, Partition: p.number,
				State: c.ctx.pictureOf(p), New: b.fresh[p]})
			led = append(led, p)
		}
	}
	pictures := make([]*metadata.Topic, len(b.topics))
	for i, x := range b.topics {
		c.checkTopic(x.name, x)
		pictures[i] = c.ctx.picture(x)
	}
	stops := make([]StopReplica, len(b.stops))
	for i, s := range b.stops {
		stops[i] = StopReplica{Topic: s.p.topic.name, ID: s.p.topic.id, Partition: s.p.number, Delete: s.delete,
			LeaderEpoch: s.p.node.LeaderEpoch}
		if s.p.topic.deleting {
			stops[i].LeaderEpoch = EpochDuringDelete
		}
	}
	var brokers []*metadata.Broker
	epoch := c.ctx.epoch
	if b.everything {
		brokers = c.ctx.brokers
	}
	removed, asked := b.removed, b.stops
	if len(leads)+len(pictures)+len(stops)+len(removed) == 0 && !b.everything {
		return
	}
	c.sender.run(func(t *ring.Task) {
		configs := c.topicConfigs(t, pictures)
		for i := range leads {
			leads[i].Config = configs[leads[i].Topic]
		}
		c.tellLeaders(t, leads, led)
		c.show(pictures, configs, removed, brokers, epoch)
		c.tellStops(t, stops, asked)
	})
}

func (c *Controller) tellLeaders(t *ring.Task, leads []LeaderState, led []*partition) {
	if len(leads) == 0 || c.o.BecomeLeader == nil {
		return
	}
	var errs []error
	await(t, func(done func()) {
		c.o.BecomeLeader(leads, func(e []error) { errs = e; done() })
	})
	var failed []*partition
	var first error
	for i, err := range errs {
		if err == nil {
			continue
		}
		c.log.Debug("a replica cannot lead", "topic", leads[i].Topic, "partition", leads[i].Partition, "error", err)
		if failed = append(failed, led[i]); first == nil {
			first = err
		}
		if leads[i].New {
			c.waits.refuse(leads[i].Topic, cannotBeMade(leads[i].Partition, err))
		}
	}
	if len(failed) > 0 {
		c.log.Error("replicas cannot lead: their logs are offline", "partitions", len(failed), "names", examples(failed), "error", first)
		c.ifActive("LeaderAndIsrResponse", func(t *ring.Task) error { return c.replicasFailed(t, failed) })
	}
}

// cannotBeMade is the answer to who asked for a partition whose log cannot be made.
func cannotBeMade(partition int32, err error) error {
	m := fmt.Sprintf("Partition %d is there, but its log cannot be made: %v", partition, err)
	if ring.NoSpace(err) {
		m += "; it is made as soon as there is room"
	}
	return &Error{StorageError, m}
}

// examples are the names of the first of many partitions, for one line of the log.
func examples(parts []*partition) string {
	var names []string
	for _, p := range parts[:min(len(parts), examplesMost)] {
		names = append(names, fmt.Sprintf("%s-%d", p.topic.name, p.number))
	}
	if len(parts) > examplesMost {
		names = append(names, "and others")
	}
	return strings.Join(names, " ")
}

const examplesMost = 10

func (c *Controller) tellStops(t *ring.Task, stops []StopReplica, asked []stop) {
	if len(stops) == 0 {
		return
	}
	var errs []error
	if c.o.StopReplicas != nil {
		await(t, func(done func()) {
			c.o.StopReplicas(stops, func(e []error) { errs = e; done() })
		})
	}
	var deleted []*partition
	var failed []*partition
	var first error
	for i, s := range asked {
		switch {
		case !s.delete:
		case i < len(errs) && errs[i] != nil:
			c.log.Debug("a replica cannot be deleted", "topic", stops[i].Topic, "partition", stops[i].Partition, "error", errs[i])
			if failed = append(failed, s.p); first == nil {
				first = errs[i]
			}
		default:
			deleted = append(deleted, s.p)
		}
	}
	if len(failed) > 0 {
		c.log.Error("replicas cannot be deleted", "partitions", len(failed), "names", examples(failed), "error", first)
	}
	if len(deleted)+len(failed) > 0 {
		c.ifActive("TopicDeletionStopReplicaResponse", func(t *ring.Task) error { return c.replicasDeleted(t, deleted, failed) })
	}
}

// topicConfigs gives the configurations of topics: those of the picture, or for new ones the store's.
func (c *Controller) topicConfigs(t *ring.Task, pictures []*metadata.Topic) map[string]metadata.Config {
	configs := make(map[string]metadata.Config, len(pictures))
	var names, paths []string
	for _, x := range pictures {
		if old := c.image.Topic(x.Name); old != nil && old.ID == x.ID {
			configs[x.Name] = old.Config
			continue
		}
		names = append(names, x.Name)
		paths = append(paths, metadata.TopicConfigPath(x.Name))
		c.loading[x.Name] = true
	}
	for i, g := range c.store.getAll(t, paths, false) {
		node, err := metadata.DecodeConfig(g.data)
		if g.err != nil && !is(g.err, metadata.ErrNoNode) {
			err = g.err
		}
		if err != nil {
			c.log.Error("topic's configuration cannot be read; the defaults apply", "topic", names[i], "error", err)
		}
		configs[names[i]] = node.Config
	}
	return configs
}

// show puts topics into the picture, and brokers with the controller if there are any.
func (c *Controller) show(pictures []*metadata.Topic, configs map[string]metadata.Config, removed []string,
	brokers []*metadata.Broker, epoch metadata.ControllerEpoch) {
	changed := make([]string, 0, len(pictures)+len(removed))
	c.publish(func(e *metadata.Edit) {
		for _, x := range pictures {
			// What was set since the configuration was read is in the picture already.
			if old := e.Topic(x.Name); old != nil && old.ID == x.ID {
				x.Config = old.Config
			} else {
				x.Config = configs[x.Name]
			}
			e.SetTopic(x)
			changed = append(changed, x.Name)
		}
		for _, name := range removed {
			e.RemoveTopic(name)
			changed = append(changed, name)
		}
		if brokers != nil {
			for _, b := range brokers {
				e.SetBroker(b)
			}
			e.Cluster(c.clusterID)
			e.Controller(c.self, epoch)
		}
	}, func() []string { return changed })
	for _, x := range pictures {
		delete(c.loading, x.Name)
		if c.reloaded[x.Name] {
			delete(c.reloaded, x.Name)
			c.config.run(func(t *ring.Task) { c.reloadConfig(t, metadata.TopicEntity(x.Name)) })
		}
	}
}

// publish makes the next picture, shows it, and lets those go on who wait for the topics it changes.
func (c *Controller) publish(change func(*metadata.Edit), changed func() []string) {
	e := c.image.Edit()
	change(e)
	c.image = e.Image()
	if c.o.OnImage != nil {
		c.o.OnImage(c.image)
	}
	if changed != nil {
		c.waits.look(c.image, changed())
	}
}

// replicasFailed is what follows when our broker cannot serve replicas because their log dir is offline: elections where
// they led, then they leave the ISR.
func (c *Controller) replicasFailed(t *ring.Task, parts []*partition) error {
	b := c.newBatch()
	var led []*partition
	for _, p := range parts {
		if p.topic.deleting || c.ctx.topics[p.topic.name] != p.topic {
			continue
		}
		p.failed = append(p.failed, c.self)
		p.state = offline
		led = append(led, p)
		b.touch(p.topic)
	}
	if err := c.electLeaders(t, led, b); err != nil {
		return err
	}
	b.send()
	b = c.newBatch()
	if err := c.replicasOffline(t, led, c.self, b); err != nil {
		return err
	}
	b.send()
	return nil
}
