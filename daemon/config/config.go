package config

import (
	"net/netip"
	"time"
)

// Config is the broker's settings, immutable. Durations of 0 or below keep Kafka's meaning where one is documented.
type Config struct {
	// BrokerID is broker.id; -1 asks for a generated one.
	BrokerID int32
	// MaxReservedBrokerID is reserved.broker.max.id: generated ids begin above it.
	MaxReservedBrokerID int32
	// Rack is broker.rack, "" if not set.
	Rack string
	// LogDirs are log.dirs (or log.dir), in order; the first keeps the embedded store.
	LogDirs []string
	// Listeners are what we bind, Advertised what clients are told, one for each listener of the same name at most.
	Listeners, Advertised []Listener
	// InterBroker is the name of the listener brokers use among themselves.
	InterBroker string

	// Loops is kring.loops: number of loops, 0 for our own choice.
	Loops int
	// WritePath is kring.write.path: auto, ring or pwrite.
	WritePath string

	// LogLevel is kring.log.level, LogFormat kring.log.format.
	LogLevel, LogFormat string
	// MetricsAddress is kring.metrics.address, "" for none; MetricsPartitions is kring.metrics.partitions.max.
	MetricsAddress    string
	MetricsPartitions int

	// RequestMax is socket.request.max.bytes, QueuedBytes queued.max.request.bytes (-1: none).
	RequestMax  int32
	QueuedBytes int64
	// SendBuffer is socket.send.buffer.bytes, ReceiveBuffer socket.receive.buffer.bytes; -1 for the kernel's own.
	SendBuffer, ReceiveBuffer int32
	// MaxConnections is max.connections, MaxConnectionsPerIP max.connections.per.ip with exceptions by address.
	MaxConnections      int32
	MaxConnectionsPerIP int32
	ConnectionsByIP     map[netip.Addr]int32
	// ConnectionsMaxIdle is connections.max.idle.ms; below 0: for ever.
	ConnectionsMaxIdle time.Duration

	// FetchMaxBytes is fetch.max.bytes; FetchSessions is max.incremental.fetch.session.cache.slots.
	FetchMaxBytes int32
	FetchSessions int32
	// AutoCreateTopics is auto.create.topics.enable, DeleteTopics delete.topic.enable.
	AutoCreateTopics  bool
	DeleteTopics      bool
	NumPartitions     int32
	ReplicationFactor int16
	// TransactionsPartitions is the partitions of the topic of transactions when it is created.
	TransactionsPartitions int32
	// Groups is about the group coordinator.
	Groups Groups

	// RecoveryThreads is num.recovery.threads.per.data.dir.
	RecoveryThreads int
	// RetentionCheckInterval is log.retention.check.interval.ms, FileDeleteDelay log.segment.delete.delay.ms.
	RetentionCheckInterval time.Duration
	FileDeleteDelay        time.Duration
	// The intervals of the checkpoints: log.flush.offset.checkpoint.interval.ms,
	// log.flush.start.offset.checkpoint.interval.ms, replica.high.watermark.checkpoint.interval.ms.
	RecoveryPointInterval time.Duration
	LogStartInterval      time.Duration
	HighWatermarkInterval time.Duration
	// ProducerIDExpiration is producer.id.expiration.ms.
	ProducerIDExpiration time.Duration
	// ProducerCheckInterval is producer.id.expiration.check.interval.ms.
	ProducerCheckInterval time.Duration
	// VerifyTransactions is transaction.partition.verification.enable.
	VerifyTransactions bool
	// RequestTimeout is request.timeout.ms.
	RequestTimeout time.Duration

	// CleanerEnabled is log.cleaner.enable; the other fields are the log.cleaner.* key of their name.
	CleanerEnabled        bool
	CleanerThreads        int
	CleanerBackoff        time.Duration
	CleanerDedupeBytes    int64   // dedupe.buffer.size, for all threads
	CleanerLoadFactor     float64 // io.buffer.load.factor
	CleanerBufferBytes    int     // io.buffer.size, for all threads
	CleanerBytesPerSecond float64 // io.max.bytes.per.second, for all threads

	layers *layers
}

// Listener is one entry of listeners or advertised.listeners; Protocol is PLAINTEXT.
type Listener struct {
	Name     string
	Protocol string
	Host     string // "" binds every address
	Port     int32
}

// Topic is the settings of one topic that act, with the broker's as defaults.
type Topic struct {
	SegmentBytes                              int32
	SegmentMs, SegmentJitterMs                int64
	SegmentIndexBytes, IndexIntervalBytes     int32
	RetentionMs, RetentionBytes               int64 // -1: without limit
	FlushMessages, FlushMs                    int64 // math.MaxInt64: never
	MaxMessageBytes                           int32
	MinInSyncReplicas                         int32
	Preallocate                               bool
	LogAppendTime                             bool
	Compact, Delete                           bool
	DeleteRetentionMs                         int64
	MinCleanableRatio                         float64 // min.cleanable.dirty.ratio
	MinCompactionLagMs, MaxCompactionLagMs    int64
	FileDeleteDelayMs                         int64
	TimestampBeforeMaxMs, TimestampAfterMaxMs int64
}

// Warning is one line for the operator about one key.
type Warning struct{ Key, Text string }

// Load reads file ("" for none), then overrides ("key=value", later ones win), over the defaults. The error is *Malformed,
// *Unsupported, or one about reading the file.
func Load(file string, overrides []string) (*Config, []Warning, error) {
	return load(file, overrides)
}

// With is c with the dynamic settings of this broker and of every broker (the default entity) laid over it. c stays as it is.
// Entries that are not valid are left out and named.
func (c *Config) With(broker, all map[string]string) (*Config, []error) { return c.with(broker, all) }

// Reload is c with those settings of a file read anew that may change while the broker runs; changed names them, fixed those that
// differ and wait for the next start. c stays as it is.
func (c *Config) Reload(read *Config) (next *Config, changed, fixed []string, err error) {
	return c.reload(read)
}

// Topic is a topic's settings from its overrides and c; an override that is not valid counts as absent.
func (c *Config) Topic(overrides map[string]string) Topic { return c.topic(overrides) }

// CheckTopic validates the complete overrides of a topic as Kafka does when it is created or altered: every key known, every
// value valid, and those that depend on each other in order.
func (c *Config) CheckTopic(overrides map[string]string) error { return c.checkTopic(overrides) }

// DescribeTopic is what DescribeConfigs says of a topic with these overrides, in order of name.
func (c *Config) DescribeTopic(overrides map[string]string) []Entry {
	return c.describeTopic(overrides)
}

// DescribeBroker is what DescribeConfigs says of this broker, in order of name.
func (c *Config) DescribeBroker() []Entry { return c.describeBroker() }

// DescribeDefaults is what DescribeConfigs says of the dynamic settings of every broker (the empty resource name).
func (c *Config) DescribeDefaults() []Entry { return c.describeDefaults() }

// CheckBroker validates the complete dynamic settings of a broker (all=false) or of every broker (all=true), as an alter asks for.
func (c *Config) CheckBroker(settings map[string]string, all bool) error {
	return c.checkBroker(settings, all)
}
