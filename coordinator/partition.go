package coordinator

import "math"

// PartitionOf is the partition of the offsets topic that holds a group: the absolute value of Java's hash of its id, modulo the
// topic's partitions. The hash runs over UTF-16 code units; the absolute value of the smallest int is 0.
func PartitionOf(group string, partitions int32) int32 {
	var h int32
	for _, r := range group {
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xd800 + r>>10
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	switch {
	case h == math.MinInt32:
		h = 0
	case h < 0:
		h = -h
	}
	return h % partitions
}
