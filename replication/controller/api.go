package controller

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"kring/metadata"
	"kring/ring"
)

// Options is what a Controller needs to know and whom it tells. All functions are called on Loop.
type Options struct {
	Loop  ring.Loop
	Store metadata.Store
	Log   *slog.Logger
	// Rand draws topic ids, the cluster id and the start of replica assignments; Loop.Rand() if nil.
	Rand *rand.Rand

	// ReservedBrokerMaxID is reserved.broker.max.id: ids given by the store begin above it. 0 stands for 1000.
	ReservedBrokerMaxID int32
	// DeleteTopics is delete.topic.enable.
	DeleteTopics bool
	// NumPartitions and ReplicationFactor are num.partitions and default.replication.factor.
	NumPartitions     int32
	ReplicationFactor int16
	// UncleanElection is the broker's unclean.leader.election.enable; a topic's own setting goes before it.
	UncleanElection bool

	// Configs knows which settings there are.
	Configs ConfigRules

	// BecomeLeader is the broker's part of LeaderAndIsr. done gets an error (or nil) for each part, in order: a replica
	// with an error is offline.
	BecomeLeader func(parts []LeaderState, done func(errs []error))
	// StopReplicas is the broker's part of StopReplica.
	StopReplicas func(parts []StopReplica, done func(errs []error))
	// OnImage is told of each new picture of the cluster, after BecomeLeader is done for what it names.
	OnImage func(*metadata.Image)
	// OnTopicConfig is told, after OnImage, of a topic in the picture whose configuration has changed.
	OnTopicConfig func(topic string, c metadata.Config)
	// OnBrokerConfig is told, after OnImage, of dynamic configuration of a broker (metadata.NoBroker: of all) that was read at the
	// start, if there is any, or has changed.
	OnBrokerConfig func(id int32, c metadata.Config)
	// OnFenced is called once when the store refuses for good or our session is lost: the broker must stop.
	OnFenced func(error)
}

// ConfigRules is what the controller must know of settings; nil functions allow everything.
type ConfigRules struct {
	// CheckTopic says what is wrong with a topic's whole configuration.
	CheckTopic func(c metadata.Config) error
	// CheckBroker says what is wrong with the dynamic configuration of a broker (metadata.NoBroker: of all).
	CheckBroker func(id int32, c metadata.Config) error
	// TopicDefault and BrokerDefault are the values that Append and Subtract begin with where nothing is set. list is false
	// for a setting that is no list.
	TopicDefault  func(name string) (value string, list bool)
	BrokerDefault func(name string) (value string, list bool)
}

// Registration is how the broker presents itself in the cluster.
type Registration struct {
	ID        int32 // -1: one is drawn from the store
	Endpoints []metadata.Endpoint
	Rack      string
}

// LeaderState is what a LeaderAndIsr request says about one partition to this broker.
type LeaderState struct {
	Topic     string
	ID        metadata.TopicID
	Partition int32
	State     metadata.Partition
	Config    metadata.Config // the topic's
	New       bool            // the partition was just created
}

// StopReplica is what a StopReplica request says about one partition.
type StopReplica struct {
	Topic     string
	ID        metadata.TopicID
	Partition int32
	Delete    bool // remove the log too
	// LeaderEpoch is the epoch of the decision; -2 (EpochDuringDelete) when the topic is being deleted.
	LeaderEpoch metadata.LeaderEpoch
}

// EpochDuringDelete is the leader epoch in a StopReplica for a topic that is being deleted.
const EpochDuringDelete metadata.LeaderEpoch = -2

// Unset stands for "the broker's default" in CreateTopic.
const Unset = -1

// CreateTopic asks for a topic.
type CreateTopic struct {
	Name              string
	Partitions        int32 // Unset: num.partitions, or as many as Assignment names
	ReplicationFactor int16 // Unset: default.replication.factor, or as many as Assignment names
	Assignment        []Assigned
	Configs           []ConfigValue
}

// Assigned is the replicas of one partition, the preferred leader first.
type Assigned struct {
	Partition int32
	Replicas  []int32
}

// ConfigValue is a setting as asked for; Value nil is null.
type ConfigValue struct {
	Name  string
	Value *string
}

// CreatedTopic is what became of a CreateTopic.
type CreatedTopic struct {
	Name              string
	Err               error // *Error
	ID                metadata.TopicID
	Partitions        int32
	ReplicationFactor int16
	Config            metadata.Config // as set, without defaults
}

// DeleteTopic names a topic to be deleted: by Name, or where that is empty by ID.
type DeleteTopic struct {
	Name string
	ID   metadata.TopicID
}

// DeletedTopic is what became of a DeleteTopic, with what the request named; a topic found by its id has its Name too.
type DeletedTopic struct {
	Name string
	ID   metadata.TopicID
	Err  error // *Error
}

// CreatePartitions asks for a topic to have Count partitions.
type CreatePartitions struct {
	Topic string
	Count int32
	// Assignment holds the replicas of each new partition; nil for the usual placement.
	Assignment [][]int32
}

// ResourceKind is what a configuration belongs to.
type ResourceKind uint8

// The resources with a configuration here.
const (
	TopicResource ResourceKind = iota + 1
	BrokerResource
)

// ConfigOpKind is what IncrementalAlterConfigs does with a setting (KIP-339).
type ConfigOpKind uint8

// The operations, numbered as in the protocol.
const (
	ConfigSet ConfigOpKind = iota
	ConfigDelete
	ConfigAppend
	ConfigSubtract
)

// ConfigOp is one operation on one setting.
type ConfigOp struct {
	Kind  ConfigOpKind
	Name  string
	Value *string
}

// AlterConfig changes the configuration of one resource.
type AlterConfig struct {
	Resource ResourceKind
	Topic    string // of a topic
	Broker   int32  // of a broker; metadata.NoBroker: of all
	Ops      []ConfigOp
	// Replace makes it a legacy AlterConfigs: what Ops (all ConfigSet) do not name is unset.
	Replace bool
}

// Call is how long a request may take and whether it is only to be checked.
type Call struct {
	Timeout      time.Duration
	ValidateOnly bool
}
