package ring

import "time"

// Stats are a loop's counters since it began; read them on the loop.
type Stats struct {
	Turns, Enters, Sleeps    uint64 // a sleep is an enter that gave the processor away
	Submissions, Completions uint64
	Posts, Wakes, Offloads   uint64
	RingWakes                uint64 // of other loops, by this one's ring
	Accepted, Connections    uint64
	ReceivedBytes, SentBytes uint64
	DirectReceives           uint64 // into the frame's own buffer
	NoBuffers                uint64 // ENOBUFS: a receive ended for want of memory
	Sends, Sendfiles         uint64
	SendfileBytes            uint64
	ReadAheads               uint64 // ranges that were not in the page cache
	BrokenReads              uint64 // linked reads that fell short
	Writes, RingWrites       uint64
	// Punts are the writes the kernel would have had to wait for, and so were left to the ring; they are RingWrites too.
	Punts uint64
	// HandOffs are the operations that the kernel always gives to its worker threads: syncing, allocating, truncating, renaming,
	// removing, making. A RingWrite may be given to them as well.
	HandOffs        uint64
	WrittenBytes    uint64
	SlowWrites      uint64 // on the loop's thread, over 1 ms
	SlowestWrite    time.Duration
	WriteOuts       uint64
	InUse, Resident int64 // bytes lent; bytes lent or kept at hand
}

// Stats are the counters as of now.
func (l *loop) Stats() Stats {
	s := l.stats
	s.Enters, s.Submissions, s.Wakes = l.r.enters, l.r.submitted, l.in.wakes.Load()
	s.InUse, s.Resident = l.InUse(), l.slab.inUse+l.slab.warm
	return s
}

// StatsOf are the counters of a loop of a Kernel; zero for one of another world. Call it on the loop.
func StatsOf(l Loop) Stats {
	if k, ok := l.(*loop); ok {
		return k.Stats()
	}
	return Stats{}
}
