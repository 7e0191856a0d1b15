// Package sim runs a whole broker on a simulated machine (ring/simring), breaks the machine on purpose, and checks what clients
// were promised. One seed gives a story: the workload, the faults and the world's delays come from independent streams of
// it, and the same seed gives the same story, byte for byte.
//
//	go test ./sim                             a fixed set of seeds, with 1, 2 and 4 loops
//	SEEDS=400 SEED=1000 go test ./sim         as many from there on
//	SEED=42 go test ./sim -run TestStory -v   one story, told line by line
//
// # Faults we promise to survive
//
//   - kill -9 at any moment, also while starting or stopping: nothing acknowledged is lost, nothing a consumer has read is
//     taken back.
//   - Power loss at any moment, with torn, lost and half-named files: on a topic with flush.messages=1 nothing acknowledged
//     is lost. On any topic what is left is a prefix of what was there: offsets stay dense, bytes stay equal, a consumer that
//     comes back sees the same records at the same offsets below the end. What the store acknowledged (topics, their ids,
//     producer ids) is never lost.
//   - A failed write or sync of a log, or a log dir in which nothing works any more: every partition in that log dir answers
//     KAFKA_STORAGE_ERROR until the next start, and never lies; the other log dir goes on. A failed one of the store, or in the log dir
//     it lies in: the broker stops rather than guess.
//   - A failed sync, then a restart of the process alone, then a power loss, if the process lived a moment longer than the sync: it
//     leaves word in the log dir, and the next one does not trust the page cache.
//   - A full disk: appends are refused, nothing is lost, and the broker goes on by itself when there is space again.
//   - A failed read: an error or a closed connection, never other bytes.
//   - Connections lost anywhere, mid-frame too, with everything on its way; clients that reconnect and send again: an
//     idempotent producer's batch is there once, in order. (Several of its batches unanswered across a restart may be refused
//     as out of order: the producer snapshot holds the last batch only, as Kafka's does.)
//   - Any bytes on the port: an error or a close for who sent them, nothing for the others.
//   - Slow disks, slow links, jumps of the wall clock.
//
// After the faults stop, every producer gets everything acknowledged and every consumer reaches the end; the broker then stops
// in order, holds nothing (buffers, files, pins, timers), and finds the same records when it starts again.
//
// # Faults we do not promise to survive
//
//   - A synced sector that changes by itself is found by checksums, not repaired.
//   - Two processes on one directory: the lock is trusted.
package sim
