package coordinator

import (
	"math/rand/v2"
	"time"
)

// Now is the time of a call: Mono, the loop's monotonic clock, for sessions and delays; UnixMilli for what is written and for
// retention.
type Now struct {
	Mono      time.Duration
	UnixMilli int64
}

// Config is Kafka's settings of groups.
type Config struct {
	MinSession   time.Duration // group.min.session.timeout.ms
	MaxSession   time.Duration // group.max.session.timeout.ms
	InitialDelay time.Duration // group.initial.rebalance.delay.ms
	MaxSize      int           // group.max.size
	MetadataMax  int           // offset.metadata.max.bytes
	Retention    time.Duration // offsets.retention.minutes
}

// Shard is the groups of one partition of the offsets topic. It belongs to one loop.
type Shard struct {
	partition int32
	config    *Config
	journal   Journal
	rand      *rand.Rand
}

// NewShard makes an unloaded shard. Member ids are drawn from r.
func NewShard(partition int32, c *Config, j Journal, r *rand.Rand) *Shard {
	return &Shard{partition: partition, config: c, journal: j, rand: r}
}

// Configure replaces the settings; c is not changed any more.
func (s *Shard) Configure(c *Config) { s.config = c }

// BeginLoad makes an unloaded shard loading in an epoch (the partition's leader epoch). It is false, and nothing is to be read,
// if a higher epoch was seen or the shard is loading or serving already.
func (s *Shard) BeginLoad(epoch int32) bool { return false }

// Loading says whether the load begun in epoch is still wanted: whoever reads for it asks before each piece.
func (s *Shard) Loading(epoch int32) bool { return false }

// Serving says whether requests are served.
func (s *Shard) Serving() bool { return false }

// Replay applies one record of a data batch. Records must come in the order of their offsets. A record that cannot be
// understood is skipped, and the error says why: nothing needs to be done about it.
func (s *Shard) Replay(e Entry) error { return nil }

// ReplayMarker applies a transaction's end: the control record of a control batch.
func (s *Shard) ReplayMarker(producerID int64, committed bool, offset int64) {}

// Loaded ends the load of epoch: the shard serves, and the sessions of its members begin.
func (s *Shard) Loaded(epoch int32, now Now) {}

// Unload answers all who wait in a group with ErrNotCoordinator and forgets the groups. Nothing happens if a higher epoch was
// seen. Commits under way are answered when the journal answers.
func (s *Shard) Unload(epoch int32) {}

// Next is when Tick is due next; false if never. It is cheap and may be asked after each call.
func (s *Shard) Next() (time.Duration, bool) { return 0, false }

// Tick does what is due: sessions, joins and syncs that are over.
func (s *Shard) Tick(now Now) {}

// Expire forgets offsets that nobody has used for the time of retention, and empty groups without offsets (KIP-211). It is
// called each offsets.retention.check.interval.ms.
func (s *Shard) Expire(now Now) {}

// TopicDeleted forgets all offsets of a topic.
func (s *Shard) TopicDeleted(topic string, now Now) {}

// Join lets a member into its group; it waits until the group's generation begins.
func (s *Shard) Join(j *Join, now Now) {}

// Sync gives a member its assignment; it waits for the leader's.
func (s *Shard) Sync(y *Sync, now Now) {}

// Heartbeat keeps a member's session. It is answered at once; ErrRebalancing asks the member to join again.
func (s *Shard) Heartbeat(h *Heartbeat, now Now) error { return nil }

// Leave lets members go.
func (s *Shard) Leave(l *Leave, now Now) {}

// Commit commits offsets; they are seen by Fetch once the journal has them, in the order of the journal.
func (s *Shard) Commit(c *Commit, now Now) {}

// CompleteTransaction puts a producer's offsets in force, or forgets them, once its marker is in the journal.
func (s *Shard) CompleteTransaction(producerID int64, committed bool) {}

// Fetch visits the committed offsets of the partitions asked for, in that order; nil topics are all that have one, by topic and
// partition. With requireStable offsets with unsettled commits have ErrUnstableOffset. It is answered at once.
func (s *Shard) Fetch(group string, topics []TopicPartitions, requireStable bool, visit func(Committed)) error {
	return nil
}

// DeleteOffsets forgets offsets.
func (s *Shard) DeleteOffsets(d *DeleteOffsets, now Now) {}

// DeleteGroup forgets an empty group with its offsets.
func (s *Shard) DeleteGroup(d *DeleteGroup, now Now) {}

// Describe shows a group. One that does not exist is Dead.
func (s *Shard) Describe(group string) (GroupView, error) { return GroupView{}, nil }

// List visits the groups in one of the states and of one of the types, by name regardless of case; empty lists are no
// condition. While the shard loads, or if it does not serve, it says so and visits none.
func (s *Shard) List(states, types []string, visit func(Listed)) error { return nil }

// Groups is the number of groups; Offsets that of committed offsets.
func (s *Shard) Groups() int { return 0 }

// Offsets is the number of committed offsets.
func (s *Shard) Offsets() int { return 0 }

// VisitOffsets visits all committed offsets, ordered by topic and partition within a group, without allocating for each.
func (s *Shard) VisitOffsets(visit func(group, topic string, partition int32, offset int64)) {}
