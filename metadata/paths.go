package metadata

import (
	"errors"
	"strconv"
	"strings"
)

var errNoResource = errors.New("not of the form TYPE:name")

// The paths of Kafka's nodes.
const (
	PathBrokerIDs       = "/brokers/ids"
	PathBrokerSeqID     = "/brokers/seqid"
	PathTopics          = "/brokers/topics"
	PathClusterID       = "/cluster/id"
	PathController      = "/controller"
	PathControllerEpoch = "/controller_epoch"
	PathConfigTopics    = "/config/topics"
	PathConfigBrokers   = "/config/brokers"
	PathConfigChanges   = "/config/changes"
	PathDeleteTopics    = "/admin/delete_topics"
	PathReassign        = "/admin/reassign_partitions"
	PathPreferred       = "/admin/preferred_replica_election"
	PathISRChanges      = "/isr_change_notification"
	PathLogDirEvents    = "/log_dir_event_notification"
	PathProducerIDs     = "/latest_producer_id_block"
	PathFeature         = "/feature"

	// ConfigChangePrefix and LogDirEventPrefix begin the names of sequential nodes.
	ConfigChangePrefix = PathConfigChanges + "/config_change_"
	LogDirEventPrefix  = PathLogDirEvents + "/log_dir_event_"
)

// PersistentPaths are the nodes a broker makes when it starts, in Kafka's order; parents as needed, all without data.
var PersistentPaths = []string{"/consumers", PathBrokerIDs, PathTopics, PathConfigChanges, PathDeleteTopics, PathBrokerSeqID,
	PathISRChanges, PathProducerIDs, PathLogDirEvents, PathConfigTopics, "/config/clients", "/config/users", PathConfigBrokers, "/config/ips"}

// BrokerPath is a broker's registration.
func BrokerPath(id int32) string { return PathBrokerIDs + "/" + strconv.Itoa(int(id)) }

// TopicPath is a topic's node.
func TopicPath(topic string) string { return PathTopics + "/" + topic }

// PartitionsPath is the parent of a topic's partitions.
func PartitionsPath(topic string) string { return TopicPath(topic) + "/partitions" }

// PartitionPath is a partition's node.
func PartitionPath(topic string, partition int32) string {
	return PartitionsPath(topic) + "/" + strconv.Itoa(int(partition))
}

// StatePath is a partition's state.
func StatePath(topic string, partition int32) string {
	return PartitionPath(topic, partition) + "/state"
}

// TopicConfigPath is a topic's configuration.
func TopicConfigPath(topic string) string { return PathConfigTopics + "/" + topic }

// BrokerConfigPath is a broker's dynamic configuration; NoBroker stands for the defaults of all.
func BrokerConfigPath(id int32) string { return "/config/" + BrokerEntity(id) }

// BrokerEntity is a broker's path in a change of configuration.
func BrokerEntity(id int32) string {
	if id == NoBroker {
		return "brokers/" + DefaultEntity
	}
	return "brokers/" + strconv.Itoa(int(id))
}

// TopicEntity is a topic's path in a change of configuration.
func TopicEntity(topic string) string { return "topics/" + topic }

// DeleteTopicPath marks a topic for deletion.
func DeleteTopicPath(topic string) string { return PathDeleteTopics + "/" + topic }

// SequenceNumber is the number at the end of a sequential node's name.
func SequenceNumber(name string) (int64, bool) {
	if len(name) < 10 {
		return 0, false
	}
	n, err := strconv.ParseInt(name[len(name)-10:], 10, 64)
	return n, err == nil
}

// ParseID reads a broker id or partition number that is a node's name.
func ParseID(name string) (int32, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	return int32(n), err == nil && n >= 0 && strconv.Itoa(int(n)) == name
}

// ParentPath is the path above one that is not the root.
func ParentPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func appendNumber(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
