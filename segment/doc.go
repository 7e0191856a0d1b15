// Package segment keeps the log of one partition in Apache Kafka's own files, and the log directory they live in. It
// appends batches, finds them again by offset, time and leader epoch, and recovers them after a crash. It knows offsets
// and bytes, not leaders, followers or high watermarks: what may be read is told to it.
//
// A Log and everything it holds belong to the loop it was opened on. Nothing here blocks and nothing is locked.
//
// Promises:
//   - durable <= written <= end. Bytes below written are on file and readable, below durable they survive a power cut.
//   - Record bytes are never decoded on the way in or out; offsets are stamped in place, outside the batch's checksum.
//   - Bytes once readable are not overwritten; files are open while a Range pins them.
//   - A failed write or sync takes the log offline for ever. Neither is tried again, and the log dir can be marked (suspect.go), so that
//     a restart trusts nothing that only the page cache has. A full disk alone is survived:
//     what was not written is taken back, and reads go on.
//   - After an unclean stop a prefix of what was appended is there, and all of what was durable.
//   - Cleaning keeps the last record of each key, offsets, and what producers and transactions need; at any moment a crash leaves
//     the originals or the cleaned segment, and readers the files they have.
//
// Files of a partition, named by 20 digits of the first offset:
//
//	.log        record batches, one after the other
//	.index      8 bytes an entry:  i32 offset - base | i32 position
//	.timeindex  12 bytes an entry: i64 largest timestamp so far | i32 offset - base
//	.txnindex   34 bytes an entry: i16 0 | i64 producer | i64 first | i64 last | i64 last stable offset
//	.snapshot   i16 1 | u32 CRC-32C of the rest | i32 n | n * 46 bytes of producer state
//
// What is believed about disks: a completed write is in the page cache, and any part of it, in sectors, may survive a power
// cut before the next sync or not; a sync covers what was written when it was asked for; a failed one leaves the file in a state
// nobody knows. Names are durable once their directory was synced. So a segment whose bytes are durable is not finished
// before its size, its indexes and its name are; until then the recovery point lies inside it, and a start reads it again.
//
// Indexes of the newest segment live in memory and reach their files when the segment is rolled or closed: after a crash
// they are rebuilt from the batches, which have to be read anyway. Files of finished segments that are missing or wrong are made anew
// when somebody needs them, or behind a start, and replaced by renaming (mend.go).
//
// Room: blocks are reserved ahead of the data without changing the file's size (room.go); preallocate=true sets the size, as
// Kafka does; a log that syncs each append writes zeros ahead, so that a sync changes no metadata. All of it is cut off when
// the segment is rolled or cleanly closed, for Kafka takes an existing file's whole size for data.
//
// What a torn write cannot explain is damage (damage.go): bytes that are no batch in a log that was closed cleanly, or below the recovery
// point, or in front of whole batches (behind.go). They are copied into a file ending in .damaged before they are cut off, or stay where
// they are. Verify (verify*.go) finds damage without a loop, by reading alone; Repair takes it out. Segments that are gone are told of
// by the traces they leave (missing.go).
//
// Cleaning (clean*.go) makes of neighbouring segments a new one, whose files end in .cleaned until they are durable and in .swap
// until the originals are gone; the originals end in .deleted until nobody waits for them any more. When to clean is decided elsewhere.
//
// Not here: which log is cleaned when, who may read how far, leaders and followers.
package segment
