package api

import (
	"strconv"

	"kring/metadata"
	"kring/replication/controller"
)

// The broker's own topics.
const (
	OffsetsTopic      = "__consumer_offsets"
	TransactionsTopic = "__transaction_state"
)

// internal says whether a topic is one of the broker's own.
func internal(name string) bool { return name == OffsetsTopic || name == TransactionsTopic }

// autoCreate creates a topic with the broker's defaults, or with what an internal topic needs.
func autoCreate(n *Node, k *controller.Controller, name string, done func(error)) {
	conf := n.Config()
	count, replicas := conf.NumPartitions, conf.ReplicationFactor
	var own metadata.Config
	switch name {
	case OffsetsTopic:
		g := &conf.Groups
		count, replicas = g.Partitions, g.ReplicationFactor
		if g.Fewer {
			replicas = min(replicas, int16(max(len(n.Image().Brokers()), 1)))
		}
		own = metadata.Config{{Name: "compression.type", Value: "producer"}, {Name: "cleanup.policy", Value: "compact"},
			{Name: "segment.bytes", Value: strconv.Itoa(int(g.SegmentBytes))}}
	case TransactionsTopic:
		count = conf.TransactionsPartitions
		own = metadata.Config{{Name: "compression.type", Value: "uncompressed"}, {Name: "cleanup.policy", Value: "compact"},
			{Name: "min.insync.replicas", Value: "2"}, {Name: "segment.bytes", Value: "104857600"},
			{Name: "unclean.leader.election.enable", Value: "false"}}
	}
	k.AutoCreate(name, count, replicas, own, done)
}
