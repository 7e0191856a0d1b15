// Package simring is ring's door onto a simulated world: one goroutine, virtual time, faults, and everything that happens
// decided by one seed, so that a run that fails can be run again, exactly.
//
// A World holds machines; a Machine holds a disk, which outlives its processes, and an address; a process is a set of loops.
// The world's queue is ordered by time and then by the order of asking, and the delays that fill it come from the seed: so
// do the interleaving of loops, the cuts of byte streams, and what a power loss leaves of a file. Three independent streams are
// drawn from the seed (world, faults, workload): a workload that asks for one number more does not move a fault.
//
// # What is believed about the world
//
//   - Disk: a write lands in the page cache when it completes; one under way at a crash has landed in part. A sync makes
//     durable what had landed when it was asked for. Power loss keeps every synced byte; of each sector (512 bytes) changed since
//     it keeps the new content, the old one, or the beginning of the new and the rest of the old; the size is the durable one,
//     the newest one, or between them, and what was never written shows as zeros. A created, renamed or removed name is
//     durable once its directory was synced; of those that were not, each directory keeps the oldest few, in order.
//   - A failed sync leaves the pages readable and clean: they are lost at the next power loss, and no later sync
//     tells. Calling Sync again on such a file is a bug in the caller, and panics.
//   - kill -9 loses a process's memory and keeps the page cache.
//   - Reserved blocks (Allocate) count against the space and are not seen in the size.
//   - Network: bytes of a connection arrive in order, cut anywhere, late, or not at all (the connection is then reset). The
//     window is finite: a peer that does not read stops the sender.
//
// # What it catches by itself
//
// Calls from the wrong loop; an Op, Timer or Message used twice at once; a released buffer that is read (it is full of 0xDB);
// bytes changed while a write or a send uses them; a range of a file overwritten while it is being sent; a file used
// after Close; a sync after a failed sync. Check lists what a process still holds when it should hold nothing.
//
// # What it is not
//
// No model of speed: delays are there to reorder, not to measure. No Byzantine disk: a sector that was synced and not
// written since does not change.
package simring
