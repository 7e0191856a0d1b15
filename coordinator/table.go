package coordinator

// table holds the entries of a group by place. A group may have one offset or a hundred thousand, and there may be a million in all:
// entries stand side by side, and an index of four bytes each finds them once they are more than a few.
type table struct {
	slots []slot
	index []uint32 // by hash, with linear probing: the slot's number from 1; 0: free
}

type slot struct {
	place
	entry
}

// unindexedMax is how many slots are searched one by one.
const unindexedMax = 8

func (k place) hash() uint64 {
	return (uint64(k.topic)<<32 | uint64(uint32(k.partition))) * 0x9e3779b97f4a7c15 >> 32
}

func (t *table) len() int { return len(t.slots) }

// find is the entry of a place, nil if there is none. It is good until the next insert or remove.
func (t *table) find(k place) *entry {
	if t.index == nil {
		for i := range t.slots {
			if t.slots[i].place == k {
				return &t.slots[i].entry
			}
		}
		return nil
	}
	if n := t.index[t.probe(k)]; n > 0 {
		return &t.slots[n-1].entry
	}
	return nil
}

// probe is where in the index the place is, or would be.
func (t *table) probe(k place) int {
	mask := uint64(len(t.index) - 1)
	i := k.hash() & mask
	for t.index[i] > 0 && t.slots[t.index[i]-1].place != k {
		i = (i + 1) & mask
	}
	return int(i)
}

// insert adds a place that is not there.
func (t *table) insert(k place, e entry) *entry {
	if n := len(t.slots); n == cap(t.slots) {
		grown := make([]slot, n, n+max(1, min(n, 8), n/4)) // by a quarter: what is free of the last step is most of what is wasted
		copy(grown, t.slots)
		t.slots = grown
	}
	t.slots = append(t.slots, slot{k, e})
	switch n := len(t.slots); {
	case t.index == nil && n <= unindexedMax:
	case n > len(t.index)/4*3:
		t.reindex()
	default:
		t.index[t.probe(k)] = uint32(n)
	}
	return &t.slots[len(t.slots)-1].entry
}

func (t *table) reindex() {
	t.index = make([]uint32, max(4*unindexedMax, 2*len(t.index)))
	for i := range t.slots {
		t.index[t.probe(t.slots[i].place)] = uint32(i + 1)
	}
}

// remove takes out a place that is there; the last slot moves into its stead.
func (t *table) remove(k place) {
	last := len(t.slots) - 1
	if t.index == nil {
		for i := range t.slots {
			if t.slots[i].place == k {
				t.slots[i] = t.slots[last]
				t.slots = t.slots[:last]
				return
			}
		}
		return
	}
	at := t.probe(k)
	i := int(t.index[at]) - 1
	moved := t.probe(t.slots[last].place)
	t.slots[i] = t.slots[last]
	t.index[moved] = uint32(i + 1)
	t.unindex(at)
	t.slots = t.slots[:last]
	if last == 0 {
		*t = table{}
	}
}

// unindex frees a place of the index, and moves up those behind it that would not be found any longer.
func (t *table) unindex(free int) {
	mask := len(t.index) - 1
	for i := (free + 1) & mask; t.index[i] > 0; i = (i + 1) & mask {
		home := int(t.slots[t.index[i]-1].hash()) & mask
		if (i-home)&mask >= (i-free)&mask {
			t.index[free] = t.index[i]
			free = i
		}
	}
	t.index[free] = 0
}
