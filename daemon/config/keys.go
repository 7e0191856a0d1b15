package config

import (
	"slices"
	"strings"
)

// Scope says where a broker key may be changed while the broker runs.
type Scope uint8

const (
	readOnly    Scope = iota
	perBroker         // one broker at a time
	clusterWide       // one broker, or all by the default entity
)

type state uint8

const (
	idle    state = iota // known, not acting yet: a warning if it is set to something
	acts                 // does what Kafka does with it
	refused              // known, and ignoring it would lose data or open access
	moot                 // known, and there is nothing here that it could set: a warning that says why
	hidden  state = 4    // bit: internal in Kafka, not shown by DescribeConfigs
)

const null = "\x00" // no default

// Key is what is known of one broker key. The facts are Kafka 3.9's (see testdata/README.md).
type Key struct {
	Name    string
	Type    Type
	Default string // null: not set
	Allowed rule
	Dynamic Scope
	state   state
	Doc     string // what it does if it acts; why not if it is refused or moot
}

// Why the refused keys are refused.
const (
	noKRaft     = "KRaft is not supported: Kring keeps cluster state as Kafka did before it; remove the key to run on the embedded store"
	noZooKeeper = "the store in ZooKeeper is not built yet; empty the key to run on the embedded store, which kring store import fills"
	noPolicy    = "a policy class written in Java cannot run here, and ignoring it would let through what it forbids"
	noAccess    = "access control is not built yet, and ignoring it would open the broker to everybody"
	noTier      = "tiered storage is not built, and records only the remote tier holds would be missing"
)

// Why the moot keys are moot.
const (
	noThreads  = "kring.loops takes the place of Kafka's threads and their queues"
	noReporter = "kring.metrics.address takes the place of Kafka's reporters and their samples"
	noQuorum   = "it belongs to KRaft"
	noPurging  = "what waits is let go of at once when it is done"
)

// ownPrefix begins every key that Kafka does not have.
const ownPrefix = "kring."

var ownKeys = []Key{
	{"kring.log.format", String, "text", oneOf("text", "json"), readOnly, acts,
		"How lines of the log are written: for people (text), or as one JSON object each (json)."},
	{"kring.log.level", String, "info", oneOf("debug", "info", "warn", "error"), clusterWide, acts,
		"The least level that is logged: debug, info, warn or error."},
	{"kring.loops", Int, "0", between(0, 256), readOnly, acts,
		"Loops, each one thread with one ring; 0 chooses by the number of processors."},
	{"kring.metrics.address", String, "", anything, readOnly, acts,
		"Where numbers (/metrics, in Prometheus's text format) and health (/health) are served over HTTP: host:port; empty for nowhere."},
	{"kring.metrics.partitions.max", Int, "10000", atLeast(0), readOnly, acts,
		"The most partitions, topics and committed offsets with numbers of their own; of more there are only totals."},
	{"kring.write.path", String, "auto", oneOf("auto", "ring", "pwrite"), readOnly, acts,
		"How records reach the disk: by the ring (ring), by pwritev2 on the loop's thread (pwrite), or as probed for each directory (auto)."},
}

// dynamicOnly are keys Kafka takes as dynamic broker settings only (kafka.server.DynamicConfig).
var dynamicOnly = []Key{
	{"follower.replication.throttled.rate", Long, "9223372036854775807", atLeast(0), clusterWide, idle, ""},
	{"leader.replication.throttled.rate", Long, "9223372036854775807", atLeast(0), clusterWide, idle, ""},
	{"replica.alter.log.dirs.io.max.bytes.per.second", Long, "9223372036854775807", atLeast(0), clusterWide, idle, ""},
}

// BrokerKeys are all keys of server.properties, in order of name.
var BrokerKeys = sorted(networkKeys, logKeys, clusterKeys, coordinatorKeys, securityKeys, laterKeys, ownKeys)

func sorted(groups ...[]Key) []Key {
	all := slices.Concat(groups...)
	slices.SortFunc(all, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// LookupBroker finds a broker key; nil if there is none of that name.
func LookupBroker(name string) *Key {
	i, found := slices.BinarySearchFunc(BrokerKeys, name, func(k Key, n string) int { return strings.Compare(k.Name, n) })
	if !found {
		return nil
	}
	return &BrokerKeys[i]
}

// Acts reports whether the key does anything here.
func (k *Key) Acts() bool { return k.state&^hidden == acts }

func (k *Key) refused() bool { return k.state&^hidden == refused }

func (k *Key) moot() bool { return k.state&^hidden == moot }

func (k *Key) sensitive() bool { return k.Type == Password }

// Listed reports whether DescribeConfigs shows the key.
func (k *Key) Listed() bool { return k.state&hidden == 0 }
