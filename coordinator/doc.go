// Package coordinator decides about consumer groups: who is a member, which generation it is, what is assigned to whom, and
// which offsets are committed. It is the classic protocol of Kafka 3.9 in ZooKeeper mode (KIP-345, KIP-389, KIP-394, KIP-429 as far
// as it is the broker's, KIP-814), with retention after KIP-211.
//
// It is not for assigning partitions (a member does), nor for reading subscriptions but for the names of topics, nor for topics,
// connections or versions of requests (daemon/api). It sees no disk: what must last is written to a Journal, which is a partition of
// __consumer_offsets or a test's list, and read back by Replay.
//
// A Shard is the groups of one such partition and belongs to one loop. It is pure: time comes in with each call, randomness with
// NewShard, and the same calls make the same answers and the same records. It is unloaded, loading in an epoch (the partition's leader
// epoch), or serving; while it loads, requests are answered ErrLoading, but a Sync, whose rebalance is lost, with ErrRebalancing, and a
// Heartbeat well, as Kafka does for clients that know no better.
//
//	         Join                    all joined, or time is up          assignment written
//	Empty ---------> Preparing    ------------------> Completing     ------------------> Stable
//	  ^              Rebalance  <-----------------    Rebalance                            |
//	  +---------------- | ^       a member joins, leaves or falls silent                   |
//	   nobody is left     +----------------------------------------------------------------+
//
// Offsets. What the shard holds is the fold of the journal: a commit is seen once the journal has answered, and of two records the one
// that stands later counts, in memory as on replay. A tombstone likewise acts when it is written, on what stands before it. So a
// restart at any time shows what was shown before. Transactional commits are staged by producer until its marker.
//
// Time. A session, and the end of a phase, is a timer in one heap. A timer's place may be early, never late: a heartbeat moves the
// deadline and touches nothing else.
//
// Records (all integers big-endian; a string has its length as i16 before it, bytes as i32; null is length -1):
//
//	key of an offset   i16 1 (0 is read), group string, topic string, partition i32
//	its value          i16 3, offset i64, leader epoch i32, metadata string, commit time i64
//	                   i16 1 where the client said how long to keep it: without leader epoch, with the time of expiry i64 at the end
//	key of a group     i16 2, group string
//	its value          i16 3, protocol type string, generation i32, protocol and leader null or string, time of the state i64, members i32 x
//	                   (id string, instance id null or string, client id, host string, rebalance, session timeout i32, subscription,
//	                   assignment bytes)
//
// Values 0 to 4 are read. A group is written when its assignment is there, before it is given out; when it has become empty; and when a
// static member has a new id. Times are milliseconds since 1970. Records of __transaction_state are only read, to be
// printed (transactionlog.go).
//
// Promises:
//   - Every request is answered exactly once, and never while the shard is in the middle of something: whoever is answered may call it.
//   - A generation is given out under one assignment, of one leader, which was in the journal before.
//   - Generations of a group only rise while the shard serves it; a fenced member id stays fenced.
//   - A committed offset does not go back, but by a client that commits a lower one, by deletion, or by expiry.
//   - Any bytes may stand in the journal: what is not understood is passed over and told.
//   - Heartbeat, Fetch and Commit of known offsets without metadata allocate nothing; an offset takes about 60 bytes (go test -bench .
//     ./coordinator).
package coordinator
