package controller

import (
	"slices"
	"strings"

	"kring/metadata"
)

// context is what the active controller knows. It is lost with the office.
type context struct {
	epoch        metadata.ControllerEpoch
	epochVersion int32 // data version of /controller_epoch: our writes are checked against it

	brokers []*metadata.Broker // live ones, by id
	topics  map[string]*topic
}

// topic is a topic under control.
type topic struct {
	name       string
	id         metadata.TopicID
	partitions []*partition // by number, from 0 without gaps
	deleting   bool         // marked in /admin/delete_topics
	stopping   bool         // its deletion has begun
	left       int          // replicas whose deletion was not answered yet
	halted     bool         // a replica could not be deleted; tried again when a broker starts
}

// partitionState is a state of Kafka's partition state machine.
type partitionState uint8

const (
	nonExistent partitionState = iota
	newPartition
	online
	offline
)

// partition is a partition under control.
type partition struct {
	topic    *topic
	number   int32
	replicas []int32
	state    partitionState
	node     metadata.StateNode
	epoch    metadata.PartitionEpoch // data version of the state node
	written  bool                    // the state node exists
	damaged  bool                    // it does, but cannot be read: the partition stays offline
	failed   []int32                 // replicas on failed log dirs
}

func newContext(epoch metadata.ControllerEpoch, version int32) *context {
	return &context{epoch: epoch, epochVersion: version, topics: map[string]*topic{}}
}

// fenced puts a check before op, so that it is only applied while we are the controller.
func (x *context) fenced(op metadata.Op) []metadata.Op {
	return []metadata.Op{metadata.Check(metadata.PathControllerEpoch, x.epochVersion), op}
}

// verdict is the error of a fenced operation: errMoved if the check failed.
func (x *context) verdict(a answer) error {
	if a.err != nil && len(a.results) > 0 && a.results[0].Err != nil {
		return errMoved
	}
	return a.err
}

func (x *context) live(id int32) bool {
	_, ok := slices.BinarySearchFunc(x.brokers, id, func(b *metadata.Broker, id int32) int { return int(b.ID) - int(id) })
	return ok
}

// liveFor tells which brokers can lead a partition: those that are live and whose log dir has not failed.
func (x *context) liveFor(p *partition) func(int32) bool {
	return func(id int32) bool { return x.live(id) && !slices.Contains(p.failed, id) }
}

// sorted are the topics in order of names.
func (x *context) sorted() []*topic {
	out := make([]*topic, 0, len(x.topics))
	for _, t := range x.topics {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *topic) int { return strings.Compare(a.name, b.name) })
	return out
}

// picture is a topic as the brokers are told of it; its configuration is put in when it is published.
func (x *context) picture(t *topic) *metadata.Topic {
	out := &metadata.Topic{Name: t.name, ID: t.id, Partitions: make([]metadata.Partition, len(t.partitions))}
	for i, p := range t.partitions {
		out.Partitions[i] = x.pictureOf(p)
	}
	return out
}

func (x *context) pictureOf(p *partition) metadata.Partition {
	out := metadata.Partition{Leader: metadata.NoLeader, Replicas: p.replicas, ControllerEpoch: x.epoch}
	if p.written {
		out.Leader, out.LeaderEpoch, out.PartitionEpoch = p.node.Leader, p.node.LeaderEpoch, p.epoch
		out.ControllerEpoch, out.Recovering, out.ISR = p.node.ControllerEpoch, p.node.Recovering, p.node.ISR
	}
	live := x.liveFor(p)
	for _, r := range p.replicas {
		if !live(r) {
			out.Offline = append(out.Offline, r)
		}
	}
	return out
}
