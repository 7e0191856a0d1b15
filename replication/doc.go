// Package replication is one replica of one partition: who leads it, in which epoch, how far it is replicated, and who waits
// for that.
//
// It decides what Kafka's Partition decides: whether a produce may be appended (leader, minimum in-sync replicas), when it is
// acknowledged (written; or below the high watermark for acks=all), what a reader may see (up to the high watermark, the last
// stable offset, or the end), which leader epochs are refused. It does not know requests, sessions or codes (daemon/api), nor
// files (segment), nor who should lead (replication/controller).
//
// leader.go is pure: facts in, decisions out. partition.go, append.go and read.go are its hands: they call the log and the
// clock and answer those who wait.
//
// Ownership. A Host and all its partitions belong to one loop. An Append belongs to the partition from Append until Done; a
// Wait from Host.Park until Fire or Cancel. Lists are intrusive: nothing is allocated for a waiter.
//
// Promises:
//   - logStart <= highWatermark <= end; the high watermark does not fall while one leader epoch lasts.
//   - An Append is answered once. With acks=all it is answered without error only when its last offset is below the high
//     watermark; losing the leadership answers it with ErrNotLeader at once.
//   - A batch that has been answered with an error before it was appended is not in the log; one answered with ErrTimedOut or
//     ErrNotEnoughReplicasAfterAppend is.
//   - A Wait fires at the end of a turn, once, when bytes enough have become readable or its partition changed its state.
package replication
