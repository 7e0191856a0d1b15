package controller

import (
	"errors"
	"fmt"
	"slices"

	"kring/metadata"
	"kring/ring"
)

// PartitionName names a partition in a request.
type PartitionName struct {
	Topic     string
	Partition int32
}

// errGone is what a request gets for a partition there is none of.
var errGone = &Error{UnknownPartition, "The partition does not exist."}

// request queues what a client asks the controller to decide, one answer (nil or an *Error) for each of its parts. done comes when
// the broker has been told of what was decided.
func (c *Controller) request(name string, parts int, done func([]error), decide func(t *ring.Task, errs []error) error) {
	errs := make([]error, parts)
	refuse := func(err error) {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
		}
		done(errs)
	}
	if c.closing(func() { refuse(&Error{Kind: NotController}) }) {
		return
	}
	c.events.run(func(t *ring.Task) {
		if !c.Active() {
			refuse(&Error{Kind: NotController})
			return
		}
		err := decide(t, errs)
		c.ended(t, name, err)
		switch {
		case is(err, errMoved):
			refuse(&Error{Kind: NotController})
		case err != nil:
			refuse(storeError(err))
		case c.sender.closed:
			done(errs)
		default:
			c.sender.run(func(*ring.Task) { done(errs) })
		}
	})
}

// under is the partition of that name, nil if there is none.
func (x *context) under(name PartitionName) *partition {
	t := x.topics[name.Topic]
	if t == nil || name.Partition < 0 || int(name.Partition) >= len(t.partitions) {
		return nil
	}
	return t.partitions[name.Partition]
}

// ElectLeaders has the preferred replicas lead or, unclean, any live replica where nobody leads (KIP-183, KIP-460).
func (c *Controller) ElectLeaders(names []PartitionName, unclean bool, done func([]error)) {
	c.request("ReplicaLeaderElection", len(names), done, func(t *ring.Task, errs []error) error {
		none, strategy := PreferredLeaderNotAvailable, "PreferredReplicaPartitionLeaderElectionStrategy"
		if unclean {
			none, strategy = EligibleLeadersNotAvailable, "OfflinePartitionLeaderElectionStrategy(true)"
		}
		var parts []*partition
		at := map[*partition]int{}
		for i, name := range names {
			p := c.ctx.under(name)
			switch {
			case p == nil:
				errs[i] = errGone
			case p.topic.deleting:
				errs[i] = &Error{InvalidTopicName, "The topic is being deleted"}
			case c.needless(p, unclean):
				errs[i] = &Error{Kind: ElectionNotNeeded}
			default:
				errs[i] = &Error{none, fmt.Sprintf("Failed to elect leader for partition %s-%d under strategy %s",
					name.Topic, name.Partition, strategy)}
				if p.written {
					parts, at[p] = append(parts, p), i
				}
			}
		}
		b := c.newBatch()
		err := c.writeStates(t, parts, func(p *partition) (metadata.StateNode, bool) {
			if unclean {
				return electOffline(p.node, p.replicas, c.ctx.liveFor(p), true, c.ctx.epoch)
			}
			return electPreferred(p.node, p.replicas, c.ctx.liveFor(p), c.ctx.epoch)
		}, func(p *partition) {
			p.state, errs[at[p]] = online, nil
			b.lead(p, false)
		})
		b.send()
		return err
	})
}

// needless says that an election would change nothing.
func (c *Controller) needless(p *partition, unclean bool) bool {
	if !p.written {
		return false
	}
	if unclean {
		return c.ctx.live(p.node.Leader)
	}
	return p.node.Leader == p.replicas[0]
}

// Reassignment gives a partition other replicas; none (nil) asks for the end of one that is under way.
type Reassignment struct {
	PartitionName
	Replicas []int32
}

// Reassign changes the replicas of partitions (KIP-455), one after the other. Only what is done at once is done: every replica
// named is live and in sync, so that none is under way afterwards.
func (c *Controller) Reassign(all []Reassignment, done func([]error)) {
	c.request("ApiPartitionReassignment", len(all), done, func(t *ring.Task, errs []error) error {
		for i := range all {
			err := c.reassign(t, &all[i])
			var refused *Error
			if errs[i] = err; err != nil && !errors.As(err, &refused) {
				errs[i] = storeError(err)
				return err
			}
		}
		return nil
	})
}

func (c *Controller) reassign(t *ring.Task, a *Reassignment) error {
	p := c.ctx.under(a.PartitionName)
	if a.Replicas == nil {
		return &Error{NoReassignmentInProgress, "No partition reassignment is in progress."}
	}
	if err := c.checkReassignment(p, a.Replicas); err != nil {
		return err
	}
	gone := keep(p.replicas, func(r int32) bool { return !slices.Contains(a.Replicas, r) })
	if len(gone) > 0 { // a reader of the tree sees it coming
		p.replicas = append(slices.Clone(a.Replicas), gone...)
		if err := c.writeAssignment(t, p.topic, metadata.Assignment{Partition: p.number, Replicas: gone}); err != nil {
			return err
		}
	}
	p.replicas = slices.Clone(a.Replicas)
	b := c.newBatch()
	err := c.writeStates(t, []*partition{p}, func(p *partition) (metadata.StateNode, bool) {
		next := p.node
		next.ControllerEpoch = c.ctx.epoch
		next.LeaderEpoch++
		if !slices.Contains(p.replicas, next.Leader) {
			next.Leader = p.replicas[0] // all of them are live and in sync
		}
		return next, true
	}, func(p *partition) { b.lead(p, false) })
	if err != nil {
		return err
	}
	for _, r := range gone { // never this broker: a cluster of several would have to have the replica removed, too
		if err := c.replicasOffline(t, []*partition{p}, r, b); err != nil {
			return err
		}
	}
	if err := c.writeAssignment(t, p.topic); err != nil {
		return err
	}
	c.log.Info("partition reassigned", "topic", p.topic.name, "partition", p.number, "replicas", p.replicas)
	b.send()
	return nil
}

// writeAssignment writes a topic's node as its partitions are now, with the replicas that are being removed.
func (c *Controller) writeAssignment(t *ring.Task, x *topic, removing ...metadata.Assignment) error {
	node := metadata.TopicNode{ID: x.id, Removing: removing}
	for _, p := range x.partitions {
		node.Partitions = append(node.Partitions, metadata.Assignment{Partition: p.number, Replicas: p.replicas})
	}
	r, err := c.store.do(t, c.ctx.fenced(metadata.SetData(metadata.TopicPath(x.name), node.Encode(), metadata.AnyVersion))...)
	return c.ctx.verdict(answer{r, err})
}

// checkReassignment refuses what Kafka refuses, and what could not be done at once.
func (c *Controller) checkReassignment(p *partition, replicas []int32) error {
	refuse := func(format string, args ...any) error {
		return &Error{InvalidReplicaAssignment, fmt.Sprintf(format, args...)}
	}
	if len(replicas) == 0 {
		return refuse("Empty replica list specified in partition reassignment.")
	}
	for i, r := range replicas {
		if slices.Contains(replicas[:i], r) {
			return refuse("Duplicate replica ids in partition reassignment replica list: %v", replicas)
		}
		if r < 0 {
			return refuse("Invalid broker id in replica list: %v", replicas)
		}
	}
	if away := keep(replicas, func(r int32) bool { return !c.ctx.live(r) }); len(away) > 0 {
		var live []int32
		for _, b := range c.ctx.brokers {
			live = append(live, b.ID)
		}
		return refuse("Replica assignment has brokers that are not alive. Replica list: %v, live broker list: %v", away, live)
	}
	if p == nil || p.topic.deleting {
		return errGone
	}
	if behind := keep(replicas, func(r int32) bool { return !p.written || !slices.Contains(p.node.ISR, r) }); len(behind) > 0 {
		return refuse("Replicas %v are not in sync; moving records to them is not supported", behind)
	}
	return nil
}
