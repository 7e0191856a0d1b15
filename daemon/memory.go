package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The broker's buffers lie outside the Go heap, which stays at some megabytes. Go's usual pace (collect when the heap has doubled)
// would collect many times a second at such a size; a fixed factor would waste memory when there are many partitions. So the heap
// may always grow by heapRoom, or by half of what lives, whichever is more.
const (
	heapRoom     = 24 << 20
	heapFraction = 50
	heapLeast    = 4 << 20 // Go lets the heap grow by its percent of this even if less lives
)

// tuneMemory sets the pace of the garbage collector and keeps it fitting: a finalizer runs once after each collection.
func tuneMemory() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(400)
	runtime.SetFinalizer(&pace{}, (*pace).again)
}

type pace struct{ _ [16]byte }

func (p *pace) again() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	debug.SetGCPercent(gcPercent(sample[0].Value.Uint64()))
	runtime.SetFinalizer(p, (*pace).again)
}

func gcPercent(live uint64) int {
	percent := heapRoom * 100 / max(live, heapLeast)
	return int(max(percent, heapFraction))
}
