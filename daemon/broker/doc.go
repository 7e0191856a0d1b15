// Package broker puts a broker together: settings, log dirs, the store's controller, partitions, servers and listeners, on as
// many loops as it is given; starts it, keeps it up (retention, checkpoints, flushes) and stops it so that nothing is left to
// recover.
//
// It decides nothing about records or requests: those are the rooms' below. It knows which loop a partition lives on, which log
// dir a new one goes to, and in which order things begin and end.
//
// Ownership. A Broker and its controller belong to loop 0. Each loop has a shard: the replicas and the server of that loop,
// touched on it alone. Loop 0 asks shards and waits for all of them; it alone writes the files of the log dirs' roots.
//
// Groups. A loop that becomes the leader of a partition of __consumer_offsets reads it from its start and replays it to the
// coordinator, one partition at a time and a little in each turn; a stop ends the groups before their logs.
//
// Faults. A log dir whose disk fails is offline until the next start, with all that is in it (failure.go); the rest goes on. What there
// is no room for is tried again.
//
// Promises:
//   - Nothing is written before every log dir is locked and every listener bound.
//   - Requests are taken only when every partition the controller gave us is led or known to be offline.
//   - A stop answers what is under way, closes the logs, writes the checkpoints and the clean-stop marker, in this order.
package broker
