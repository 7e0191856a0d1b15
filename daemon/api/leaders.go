package api

import (
	"kring/metadata"
	"kring/wire"
)

// leaders names the leaders of partitions that are not led here, and where to reach them (KIP-951).
type leaders struct {
	c        *Context
	listener string
	known    bool // the request's version can be told
	nodes    []wire.Node
}

// of is the leader of a partition by the latest picture.
func (l *leaders) of(topic []byte, index int32) wire.Leader {
	if !l.known {
		return wire.Leader{}
	}
	image := l.c.Image()
	t := image.TopicBytes(topic)
	if t == nil || index < 0 || int(index) >= len(t.Partitions) {
		return wire.Leader{ID: metadata.NoLeader, Epoch: -1, Set: true}
	}
	p := &t.Partitions[index]
	leader := wire.Leader{ID: p.Leader, Epoch: int32(p.LeaderEpoch), Set: true}
	for i := range l.nodes {
		if l.nodes[i].ID == leader.ID {
			return leader
		}
	}
	if b := image.Broker(leader.ID); b != nil {
		if e, ok := b.Endpoint(l.listener); ok {
			l.nodes = append(l.nodes, wire.Node{ID: b.ID, Host: e.Host, Port: e.Port, Rack: b.Rack})
		}
	}
	return leader
}
