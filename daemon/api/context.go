package api

import (
	"iter"
	"log/slog"
	"maps"
	"sync/atomic"

	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/replication"
	"kring/replication/controller"
	"kring/ring"
)

// Node is what all loops see of this broker. The plain fields are set before the first request.
type Node struct {
	// ID is broker.id.
	ID        int32
	ClusterID string
	// LogDirs are the log dirs' paths, in the order of log.dirs.
	LogDirs []string
	// Contexts are the loops' own, by loop id.
	Contexts []*Context
	// PartitionsMost is how many partitions one request may create.
	PartitionsMost int64
	// Controller is used on loop 0 only: see Context.Control.
	Controller *controller.Controller
	Log        *slog.Logger
	// Levels is the level of the log: what DescribeConfigs and IncrementalAlterConfigs call the root logger; nil if there is none.
	Levels Levels

	offline atomic.Pointer[[]string]
	noRoom  atomic.Pointer[NoRoom]
	image   atomic.Pointer[metadata.Image]
	config  atomic.Pointer[config.Config]
	groups  nodeGroups
}

// Levels has a level of a log by Kafka's name of it, until it is set again or the process ends. Any loop calls it.
type Levels interface {
	Level() string
	SetLevel(string)
}

// Offline are the log dirs that are offline until the next start.
func (n *Node) Offline() []string {
	if p := n.offline.Load(); p != nil {
		return *p
	}
	return nil
}

// SetOffline publishes them.
func (n *Node) SetOffline(dirs []string) { n.offline.Store(&dirs) }

// NoRoom are the partitions that are offline because their logs could not be opened or made for want of room, until there is some.
type NoRoom struct {
	Partitions   int
	Dirs, Causes []string // the log dirs they lie in, and what was said of one in each
}

// NoRoom is nil if there are none.
func (n *Node) NoRoom() *NoRoom { return n.noRoom.Load() }

// SetNoRoom publishes them.
func (n *Node) SetNoRoom(r *NoRoom) { n.noRoom.Store(r) }

// Image is the latest picture of the cluster.
func (n *Node) Image() *metadata.Image { return n.image.Load() }

// SetImage publishes a picture.
func (n *Node) SetImage(m *metadata.Image) {
	n.groups.see(m)
	n.image.Store(m)
}

// Config is the broker's settings in force.
func (n *Node) Config() *config.Config { return n.config.Load() }

// SetConfig publishes settings.
func (n *Node) SetConfig(c *config.Config) { n.config.Store(c) }

// Context is one loop's side of the broker, as handlers see it.
type Context struct {
	*Node
	Loop   ring.Loop
	Server *server.Server
	// Host is shared by the partitions of this loop.
	Host *replication.Host

	table  *apis
	topics map[string]*Topic
	byID   map[[16]byte]*Topic
	data   dataState
	groups groupsState
}

// Topic is what one loop knows of a topic this broker has replicas of. Every loop has its own.
type Topic struct {
	Name string
	ID   [16]byte
	// Partitions is indexed by partition number; nil where there is no replica here, or it lives on another loop.
	Partitions []*replication.Partition
	offline    map[int32]bool // partitions this broker should lead, and whose log could not be opened
	hash       uint32
	bytes      TopicFigures
}

// Partition is the replica of a partition on this loop, nil if it is elsewhere or nowhere.
func (t *Topic) Partition(i int32) *replication.Partition {
	if i < 0 || int(i) >= len(t.Partitions) {
		return nil
	}
	return t.Partitions[i]
}

// SetOffline notes, on a partition's loop, whether there is no replica to ask because its log could not be opened.
func (t *Topic) SetOffline(i int32, offline bool) {
	if !offline {
		delete(t.offline, i)
		return
	}
	if t.offline == nil {
		t.offline = map[int32]bool{}
	}
	t.offline[i] = true
}

// Offline is how many partitions of this loop SetOffline has noted.
func (t *Topic) Offline() int { return len(t.offline) }

// absent is why a partition's loop has no replica of it to ask; t may be nil.
func (t *Topic) absent(i int32) error {
	if t != nil && t.offline[i] {
		return replication.ErrOffline
	}
	return replication.ErrNotLeader
}

// NewContext makes the context of one loop; the owner appends it to n.Contexts.
func NewContext(n *Node, loop ring.Loop) *Context {
	c := &Context{Node: n, Loop: loop, table: table, Host: replication.NewHost(loop), topics: map[string]*Topic{}, byID: map[[16]byte]*Topic{}}
	c.data.start(c)
	return c
}

// Topic finds a topic by name, nil if this broker has no replica of it. It does not allocate.
func (c *Context) Topic(name []byte) *Topic { return c.topics[string(name)] }

// Topics are those this broker has replicas of, in no order: nothing may come to depend on it.
func (c *Context) Topics() iter.Seq[*Topic] { return maps.Values(c.topics) }

// TopicByID finds a topic by id, nil if this broker has no replica of it.
func (c *Context) TopicByID(id [16]byte) *Topic { return c.byID[id] }

// AddTopic makes a topic known, with room for count partitions; it is called on every loop, and again when there are more
// partitions.
func (c *Context) AddTopic(name string, id [16]byte, count int) *Topic {
	t := c.topics[name]
	if t != nil && t.ID != id {
		c.RemoveTopic(name)
		t = nil
	}
	if t == nil {
		t = &Topic{Name: name, ID: id, hash: HashTopic(name)}
		c.topics[name] = t
		if id != ([16]byte{}) {
			c.byID[id] = t
		}
	}
	for len(t.Partitions) < count {
		t.Partitions = append(t.Partitions, nil)
	}
	return t
}

// RemoveTopic forgets a topic.
func (c *Context) RemoveTopic(name string) {
	t := c.topics[name]
	if t == nil {
		return
	}
	delete(c.topics, name)
	if c.byID[t.ID] == t {
		delete(c.byID, t.ID)
	}
}

// LoopOf is the index of the loop on which a partition lives: fixed by name, number and count of loops.
func (c *Context) LoopOf(t *Topic, partition int32) int {
	return int((t.hash + uint32(partition)) % uint32(len(c.Contexts)))
}

// HashTopic is the topic's share of the choice of loop (FNV-1a).
func HashTopic(name string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(name); i++ {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// errand is a function on its way to another loop: for what is rare.
type errand struct {
	ring.Message
	fn func()
}

// On runs fn on c's loop, which the caller (on from's loop) may be on already: then at once.
func (c *Context) On(from *Context, fn func()) {
	if c == from {
		fn()
		return
	}
	e := &errand{fn: fn}
	e.Run, e.From = func(*ring.Message) { e.fn() }, from.Loop
	c.Loop.Post(&e.Message)
}

// Control runs begin on the controller's loop. begin must call finish, now or later, with what is then to run here.
func (c *Context) Control(begin func(k *controller.Controller, finish func(func()))) {
	home := c.Contexts[0]
	home.On(c, func() { begin(c.Controller, func(fn func()) { c.On(home, fn) }) })
}
