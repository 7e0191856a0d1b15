package api

import (
	"log/slog"

	"kring/daemon/server"
	"kring/ring"
)

// Node is what all loops see of this broker.
type Node struct {
	// ID is broker.id.
	ID        int32
	ClusterID string
	Contexts  []*Context
	Log       *slog.Logger
	// To come with the rooms they are from: Image() *metadata.Image, Config *config.Config, Admin (controller, loop 0).
}

// Context is one loop's side of the broker, as handlers see it.
type Context struct {
	*Node
	Loop   ring.Loop
	Server *server.Server

	topics map[string]*Topic
	byID   map[[16]byte]*Topic
	data   dataState
}

// Topic is what one loop knows of a topic. Every loop has its own Topic for each topic this broker has partitions of.
type Topic struct {
	Name string
	ID   [16]byte
	hash uint32
	// Partitions is indexed by partition number; nil where the partition is not here, or lives on another loop. To come:
	// Partitions []*replication.Partition
}

// NewContext makes the context of one loop.
func NewContext(n *Node, loop ring.Loop) *Context {
	c := &Context{Node: n, Loop: loop, topics: map[string]*Topic{}, byID: map[[16]byte]*Topic{}}
	c.data.start(c)
	return c
}

// Topic finds a topic by name, nil if this broker has no partition of it. It does not allocate.
func (c *Context) Topic(name []byte) *Topic { return c.topics[string(name)] }

// TopicByID finds a topic by id, nil if this broker has no partition of it.
func (c *Context) TopicByID(id [16]byte) *Topic { return c.byID[id] }

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

// Dispatch is what a server calls for each request of this loop.
func (c *Context) Dispatch(r *server.Request) { dispatch(c, r) }
