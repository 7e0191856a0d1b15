// Package ring is the only door to the kernel: network, disk and clock, driven through io_uring. It holds the only system
// calls, threads and unsafe code of the broker.
//
// It is not for deciding anything: it knows no Kafka, no record and no offset. It knows connections, files, times and memory.
//
// # Two worlds
//
// The rooms above see Loop and nothing else. A Kernel's loops are the real world; simring's are a seeded one. Both count
// time by the same Wheel and hand over what was received by the same Assembler.
//
// # Who owns what
//
// A loop is a goroutine locked to a thread, with one ring made on that thread. Its connections, files, timers and buffers
// belong to it, and all of their methods are called on it. Other threads reach it by Post alone: a stack without a lock, and
// a write to an eventfd only when the loop sleeps. What would block (listing, truncating on old kernels, freeing a removed
// file's blocks, reading ahead) is done by a few helper goroutines.
//
// The rooms own their Ops, Timers and Messages. A loop never allocates for one, and calls Done never inside the call that
// asked for it but later in the same turn or a later one.
//
// # A turn
//
//	completions -> posts -> timers -> (turn-end list -> what is done -> sends) until there is no more -> one enter
//
// The enter submits all that the turn has asked for and waits: first by a raw system call with a time-out of about 2 ms,
// which keeps the processor and costs no hand-off to Go's scheduler, then, when nothing came, by an ordinary one, so that an
// idle loop costs nothing. The collector is not held up by the raw wait, since Go's preemption signal ends it; where that is
// switched off (GODEBUG=asyncpreemptoff=1) New refuses.
//
// # Memory the kernel touches
//
// What submission entries point to besides payload - vectors, message headers, names, times - lies outside the Go heap, in
// an arena that is used anew after each enter: the kernel has read all of it by then (IORING_FEAT_SUBMIT_STABLE). Payload
// may lie on the Go heap. Heap objects do not move, so it is enough that they stay reachable until the completion: from the
// op's slot, or from the connection whose queue they are in. It may not lie on a goroutine's stack; a slice that is passed
// through Loop's interfaces never does. A completion's user_data is a slot and its generation, never a pointer, so that a
// late completion finds a changed generation and is not looked at.
//
// # Paths
//
//	receive   multishot into pieces of 16 KiB; a frame that lacks 16 KiB or more straight into its own buffer
//	send      one send for all that is queued; ranges up to 16 KiB are read by linked reads before it,
//	          larger ones by sendfile, whose absent pages a helper reads first
//	write     by pwritev2 on the loop's thread; where the log dir's file system can say that it would have to wait (XFS), the
//	          ring does what it would have to wait for; where it cannot (ext4), dirty bytes are kept few by early write-out
//	the rest  by the ring
//
// # Promises
//
// Partial transfers, EINTR, EAGAIN, ENOBUFS, short writes and broken links end here. Memory for what a peer announces is lent
// as the bytes arrive. Memory that is not needed for some seconds is given back. A loop that has lent all it may stops
// receiving until some comes back, and the peers see full windows. A panic on a loop ends the process.
package ring
