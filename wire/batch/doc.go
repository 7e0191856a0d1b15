// Package batch is a view over Kafka's record batch, the one thing the network and the disk share: it checks what a producer
// sent, stamps what the leader decides into the bytes in place, and walks ranges of batches.
//
// It is not for making sense of records: nothing on the produce or fetch path unpacks one. The Records iterator, Decompress
// and Builder serve the log dump, compaction, the tools and tests.
//
// Format, magic 2 (big-endian; the CRC covers byte 21 to the end, so that base offset and leader epoch can be stamped without
// touching it):
//
//	 0 baseOffset i64         21 attributes i16         43 producerId i64
//	 8 length i32 (from 12)   23 lastOffsetDelta i32    51 producerEpoch i16
//	12 leaderEpoch i32        27 baseTimestamp i64      53 baseSequence i32
//	16 magic i8               35 maxTimestamp i64       57 count i32
//	17 crc32c u32                                       61 records, as a whole compressed
//
// Magic 0 and 1 share the first 17 bytes in so far as offset, length and magic lie at the same place; old logs hold them, and
// Next and Legacy read them. The source of all formats is Kafka's protocol guide (KIP-98, KIP-32, KIP-82).
//
// Ownership: everything here works on the caller's bytes and keeps nothing. Functions are safe on any goroutine; a Builder
// and a Records belong to one user.
//
// Promises:
//   - Any bytes give an answer or an error, never a panic; no length is followed before it was compared with what remains.
//   - Check, the stamps and Next allocate nothing; only a refusal that names records does.
//   - What decompresses is bounded by the limit the caller gives.
package batch
