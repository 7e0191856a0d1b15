package segment

import (
	"sort"
)

const (
	recentFirst = 16
	recentMost  = 256
)

// recentBatch is where a batch appended lately lies; in which segment follows from its offset.
type recentBatch struct {
	base     Offset
	position int32
	size     int32
	delta    int32
}

func (r recentBatch) last() Offset { return r.base + Offset(r.delta) }

// recentBatches are the boundaries of the newest batches without a gap between them, so that readers at the tail need no look
// at the disk. It grows while many batches come between two reads and is dropped when the log is idle.
type recentBatches struct {
	ring []recentBatch
	from int // of the oldest
	n    int
}

func (r *recentBatches) at(i int) recentBatch { return r.ring[(r.from+i)&(len(r.ring)-1)] }

func (r *recentBatches) add(b recentBatch) {
	if r.n == len(r.ring) {
		if len(r.ring) == recentMost {
			r.from = (r.from + 1) & (len(r.ring) - 1)
			r.n--
		} else {
			r.grow()
		}
	}
	r.ring[(r.from+r.n)&(len(r.ring)-1)] = b
	r.n++
}

func (r *recentBatches) grow() {
	wide := make([]recentBatch, max(recentFirst, 2*len(r.ring)))
	for i := range r.n {
		wide[i] = r.at(i)
	}
	r.ring, r.from = wide, 0
}

// reach is the index of the first batch whose last offset is at or above o; n if there is none, false if an older batch not
// held here may be it.
func (r *recentBatches) reach(o Offset) (int, bool) {
	if r.n == 0 || o < r.at(0).base {
		return 0, false
	}
	return sort.Search(r.n, func(i int) bool { return r.at(i).last() >= o }), true
}

// fit is the end of the last batch, from index i on and in the same segment, that ends at or below limit.
func (r *recentBatches) fit(i int, limit int64, segEnd Offset) int64 {
	k := i + sort.Search(r.n-i, func(k int) bool {
		b := r.at(i + k)
		return b.base >= segEnd || int64(b.position)+int64(b.size) > limit
	})
	if k == i {
		return int64(r.at(i).position)
	}
	b := r.at(k - 1)
	return int64(b.position) + int64(b.size)
}

// cut forgets batches at or above o.
func (r *recentBatches) cut(o Offset) {
	for r.n > 0 && r.at(r.n-1).last() >= o {
		r.n--
	}
}

// forget drops batches below o.
func (r *recentBatches) forget(o Offset) {
	for r.n > 0 && r.at(0).base < o {
		r.from = (r.from + 1) & (len(r.ring) - 1)
		r.n--
	}
}

func (r *recentBatches) drop() { *r = recentBatches{} }
