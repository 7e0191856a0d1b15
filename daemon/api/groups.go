package api

import (
	"iter"
	"math"
	"sync/atomic"
	"time"

	"kring/coordinator"
	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/replication"
	"kring/ring"
)

// groupsState is what a loop keeps of groups: those whose partition of the offsets' topic lives on it, and requests about them.
type groupsState struct {
	shards      []*GroupShard // by partition; nil where there was no need of one yet
	first, last *groupCall    // done here, to be sent home
	sending     bool

	heartbeats *heartbeating
	commits    *committing
}

// GroupShard is the groups of one partition of the offsets' topic, with their journal and their clock. It belongs to the loop on
// which the partition lives. Settle must follow what is called on it from outside.
type GroupShard struct {
	*coordinator.Shard
	// Partition is the number of the partition.
	Partition int32

	c       *Context
	journal journal
	timer   ring.Timer
	due     time.Duration
	armed   bool
	failed  bool
}

// GroupShard is the groups of a partition that lives on this loop; it is made, unloaded, when it is first asked for.
func (c *Context) GroupShard(partition int32) *GroupShard {
	s := &c.groups
	for int(partition) >= len(s.shards) {
		s.shards = append(s.shards, nil)
	}
	g := s.shards[partition]
	if g == nil {
		g = &GroupShard{c: c, Partition: partition}
		g.journal.start(g)
		g.timer.Fire = func(*ring.Timer) { g.tick() }
		g.Shard = coordinator.NewShard(partition, GroupConfig(c.Config()), &g.journal, c.Loop.Rand())
		g.Observe = g.tell
		s.shards[partition] = g
	}
	return g
}

// GroupShards are those of this loop that were asked for, by partition.
func (c *Context) GroupShards() iter.Seq[*GroupShard] {
	return func(yield func(*GroupShard) bool) {
		for _, g := range c.groups.shards {
			if g != nil && !yield(g) {
				return
			}
		}
	}
}

// GroupConfig is the broker's settings as the coordinator takes them.
func GroupConfig(c *config.Config) *coordinator.Config {
	g := &c.Groups
	return &coordinator.Config{MinSession: millis(g.MinSessionMs), MaxSession: millis(g.MaxSessionMs), InitialDelay: millis(g.InitialDelayMs),
		MaxSize: int(g.MaxSize), MetadataMax: int(g.MetadataMax), Retention: g.Retention}
}

// nodeGroups is what all loops see of groups.
type nodeGroups struct {
	// partitions is the number of the topic's partitions when it was first seen, 0 while there is none: a group must not move when
	// the topic grows.
	partitions atomic.Int32
	creating   atomic.Bool
	failed     atomic.Int32     // partitions whose groups could not be loaded
	id         metadata.TopicID // loop 0's, as told, when last it was logged that the topic cannot be made
	told       time.Duration
}

// see looks at the offsets' topic in a new picture.
func (n *nodeGroups) see(m *metadata.Image) {
	switch t := m.Topic(OffsetsTopic); {
	case t == nil:
		n.partitions.Store(0)
	case n.partitions.Load() == 0 || t.ID != n.id:
		n.id = t.ID
		n.partitions.Store(int32(len(t.Partitions)))
	}
}

// OffsetsPartitions is how many partitions groups are spread over: those of the topic as it was first seen, or will be made.
func (n *Node) OffsetsPartitions() int32 {
	if count := n.groups.partitions.Load(); count > 0 {
		return count
	}
	return n.Config().Groups.Partitions
}

// Lead lets the groups write to the partition, which this broker leads; a shard that loads or serves already goes on. It is true
// if the groups are to be loaded first.
func (g *GroupShard) Lead(p *replication.Partition) (load bool) {
	g.journal.part = p
	g.setFailed(false)
	load = g.BeginLoad(p.LeaderEpoch())
	g.settle()
	return load
}

// Fail ends a load that cannot go on: nobody serves the groups of this partition until it is led anew.
func (g *GroupShard) Fail(epoch int32) {
	g.Resign(epoch)
	g.setFailed(true)
}

func (g *GroupShard) setFailed(failed bool) {
	switch count := &g.c.Node.groups.failed; {
	case failed && !g.failed:
		count.Add(1)
	case g.failed && !failed:
		count.Add(-1)
	}
	g.failed = failed
}

// Failed says whether the groups could not be loaded.
func (g *GroupShard) Failed() bool { return g.failed }

// GroupsFailed is of how many partitions of the offsets' topic the groups could not be loaded.
func (n *Node) GroupsFailed() int { return int(n.groups.failed.Load()) }

// Resign ends the groups' service in an epoch: all who wait are answered.
func (g *GroupShard) Resign(epoch int32) {
	g.setFailed(false)
	g.Unload(epoch)
	if !g.Serving() && !g.Loading(epoch) {
		g.journal.part = nil
	}
	g.settle()
}

// Drop is Resign for a partition that is removed or closed: whatever epoch comes next is new.
func (g *GroupShard) Drop() {
	g.Resign(math.MaxInt32)
	if s := &g.c.groups; s.shards[g.Partition] == g {
		s.shards[g.Partition] = nil
	}
}

// Settle sets the clock of the groups anew and sends the answers there are on their way.
func (g *GroupShard) Settle() { g.settle() }

func (g *GroupShard) settle() {
	switch due, ok := g.Next(); {
	case ok && (!g.armed || due != g.due):
		g.armed, g.due = true, due
		g.c.Loop.After(max(due-g.c.Loop.Now(), 0), &g.timer)
	case !ok && g.armed:
		g.armed = false
		g.c.Loop.Cancel(&g.timer)
	}
	g.c.sendHome()
}

// tell logs a step of a group: what lasts for everybody, the rest for who looks closely.
func (g *GroupShard) tell(e coordinator.Event) {
	log := g.c.Log
	switch {
	case log == nil:
	case e.State == coordinator.Stable:
		log.Info("group is stable", "group", e.Group, "generation", e.Generation, "members", e.Members, "leader", e.Leader,
			"reason", e.Reason)
	case e.State == coordinator.Empty:
		log.Info("group has no members", "group", e.Group, "generation", e.Generation, "reason", e.Reason)
	default:
		log.Debug("group rebalances", "group", e.Group, "state", e.State, "generation", e.Generation, "members", e.Members, "reason", e.Reason)
	}
}

func (g *GroupShard) tick() {
	g.armed = false
	g.Tick(g.c.now())
	g.settle()
}

// now is the time of this turn.
func (c *Context) now() coordinator.Now {
	return coordinator.Now{Mono: c.Loop.Now(), UnixMilli: c.Loop.UnixMilli()}
}

// groupCall is a request, or a part of one, that concerns one group: it travels to the loop of the group and back.
type groupCall struct {
	ring.Message
	home, on  *Context
	r         *server.Request
	partition int32
	// ask is called on the group's loop and leads to done, once, there. answer is called at home.
	ask    func(*GroupShard)
	answer func()

	there, back func(*ring.Message)
	next        *groupCall // done, not sent home
}

// start prepares a call for any number of journeys from home.
func (k *groupCall) start(home *Context, ask func(*GroupShard), answer func()) {
	k.home, k.ask, k.answer = home, ask, answer
	k.there = func(*ring.Message) { k.arrive() }
	k.back = func(*ring.Message) { k.answer() }
}

// send takes the call to the loop of its group.
func (k *groupCall) send(group string) {
	c := k.home
	k.partition = coordinator.PartitionOf(group, c.OffsetsPartitions())
	k.on = c.Contexts[int((offsetsHash+uint32(k.partition))%uint32(len(c.Contexts)))]
	if k.on == c {
		k.arrive()
		return
	}
	k.Run, k.From = k.there, c.Loop
	k.on.Loop.Post(&k.Message)
}

var offsetsHash = HashTopic(OffsetsTopic)

func (k *groupCall) arrive() {
	g := k.on.GroupShard(k.partition)
	k.ask(g)
	g.settle()
}

// done is called on the group's loop. The answer leaves when the shard is at rest: at home it may bring the next request.
func (k *groupCall) done() {
	s := &k.on.groups
	if s.last == nil {
		s.first = k
	} else {
		s.last.next = k
	}
	s.last = k
}

// sendHome sends the calls that are done back to where they came from.
func (c *Context) sendHome() {
	s := &c.groups
	if s.sending {
		return
	}
	s.sending = true
	for s.first != nil {
		k := s.first
		if s.first = k.next; s.first == nil {
			s.last = nil
		}
		if k.next = nil; k.home == c {
			k.answer()
			continue
		}
		k.Run, k.From = k.back, c.Loop
		k.home.Loop.Post(&k.Message)
	}
	s.sending = false
}
