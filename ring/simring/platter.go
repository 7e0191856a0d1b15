package simring

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
)

// sector is the piece of a file that a power loss keeps, loses or tears by itself.
const sector = 512

// write puts bytes into the page cache. What someone is sending must not change.
func (n *node) write(b []byte, at int64) {
	end := at + int64(len(b))
	for _, p := range n.pins {
		if from, to := max(at, p.from), min(end, p.to, int64(len(n.data))); from < to &&
			!bytes.Equal(n.data[from:to], b[from-at:to-at]) {
			panic(fmt.Sprintf("simring: bytes %d to %d of a file were overwritten while they were being sent", from, to))
		}
	}
	n.grow(end)
	copy(n.data[at:], b)
	n.touch(at, end)
}

// grow makes the file at least size long; new bytes are zeros. Its content is not moved under a reader's feet: a
// slice handed to a send keeps the old bytes.
func (n *node) grow(size int64) {
	old := int64(len(n.data))
	if size <= old {
		return
	}
	if size > int64(cap(n.data)) {
		more := make([]byte, size, max(size, 2*old))
		copy(more, n.data)
		n.data = more
		return
	}
	n.data = n.data[:size]
	clear(n.data[old:])
}

func (n *node) touch(from, to int64) {
	n.writes++
	for s := from / sector; s*sector < to; s++ {
		n.dirty[s] = n.writes
	}
}

// cut sets the size, and gives back what was reserved behind it.
func (n *node) cut(size int64) {
	old := int64(len(n.data))
	for _, p := range n.pins {
		if p.to > size && p.from < old {
			panic(fmt.Sprintf("simring: a file was cut to %d while bytes %d to %d were being sent", size, p.from, p.to))
		}
	}
	if size > old {
		n.grow(size)
		n.touch(old, size)
	} else {
		n.data = append([]byte(nil), n.data[:size]...)
		n.writes++
		n.cuts++
		for s := size / sector; s*sector < old; s++ {
			n.dirty[s] = n.writes
		}
	}
	n.reserved = min(n.reserved, size)
}

// snapshot is what a sync that starts now makes durable.
type snapshot struct {
	writes  uint64
	size    int64
	cuts    uint64
	sectors []int64
	numbers []uint64 // of the writes that dirtied the sectors
	content [][]byte
}

func (n *node) dirtySectors() []int64 {
	list := make([]int64, 0, len(n.dirty))
	for s := range n.dirty {
		list = append(list, s)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list
}

func (n *node) snapshot() snapshot {
	s := snapshot{writes: n.writes, size: int64(len(n.data)), cuts: n.cuts, sectors: n.dirtySectors()}
	for _, at := range s.sectors {
		s.numbers = append(s.numbers, n.dirty[at])
		s.content = append(s.content, append([]byte(nil), n.sectorOf(n.data, at)...))
	}
	return s
}

// sectorOf is a sector's bytes in content, short or empty at its end.
func (n *node) sectorOf(content []byte, at int64) []byte {
	from := min(at*sector, int64(len(content)))
	return content[from:min(from+sector, int64(len(content)))]
}

// commit puts a snapshot on the platter, but for what has got there in a newer version meanwhile.
func (n *node) commit(s snapshot) {
	if s.size > int64(len(n.synced)) || s.cuts > n.cutsSynced {
		n.synced, n.cutsSynced = resize(n.synced, s.size), s.cuts
	}
	for i, at := range s.sectors {
		if len(s.content[i]) > 0 && s.numbers[i] > n.put[at] {
			copy(n.synced[at*sector:], s.content[i])
			n.put[at] = s.numbers[i]
		}
		if n.dirty[at] <= s.writes {
			delete(n.dirty, at)
		}
	}
}

// abandon is what a failed sync does: the pages look clean and are not on the platter.
func (n *node) abandon(s snapshot) {
	n.poisoned = true
	for _, at := range s.sectors {
		if n.dirty[at] <= s.writes {
			delete(n.dirty, at)
		}
	}
}

func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// writeBack puts some dirty sectors on the platter, as the kernel does when it likes; the size follows. It leaves a file alone
// whose last cut is not durable.
func (n *node) writeBack(r *rand.Rand) {
	if n.cuts > n.cutsSynced {
		return
	}
	for _, s := range n.dirtySectors() {
		now := n.sectorOf(n.data, s)
		if r.IntN(2) == 0 || len(now) == 0 {
			continue
		}
		n.synced = resize(n.synced, max(int64(len(n.synced)), s*sector+int64(len(now))))
		copy(n.synced[s*sector:], now)
		n.put[s] = n.dirty[s]
		delete(n.dirty, s)
	}
}

// powerLoss leaves of the file what a machine finds when it comes up again.
func (n *node) powerLoss(r *rand.Rand) {
	durable, now := int64(len(n.synced)), int64(len(n.data))
	size := durable
	switch low, high := min(durable, now), max(durable, now); {
	case n.poisoned && len(n.dirty) == 0:
	case r.IntN(3) == 0:
		size = now
	case r.IntN(2) == 0 && high > low:
		size = low + r.Int64N(high-low+1)
	}
	out := resize(append([]byte(nil), n.synced...), size)
	for _, s := range n.dirtySectors() {
		fresh, old := n.sectorOf(n.data, s), n.sectorOf(out, s)
		length := min(len(fresh), len(old))
		switch r.IntN(5) {
		case 0, 1:
			copy(old, fresh[:length])
		case 2:
			copy(old, fresh[:r.IntN(length+1)])
		}
	}
	n.data, n.synced = out, append([]byte(nil), out...)
	n.dirty, n.put, n.pins, n.poisoned, n.cuts, n.cutsSynced = map[int64]uint64{}, map[int64]uint64{}, nil, false, 0, 0
	n.reserved = min(n.reserved, blocks(size))
}

// powerLoss leaves of the disk what a machine finds when it comes up again.
func (d *disk) powerLoss(w *World) {
	cut := map[*node]bool{}
	for _, c := range d.journal {
		lost := w.faults.IntN(3) == 0
		for _, dir := range c.dirs {
			lost = lost || cut[dir]
		}
		if !lost {
			c.commit()
			continue
		}
		for _, dir := range c.dirs {
			cut[dir] = true
		}
	}
	d.journal, d.nodes = nil, nil
	d.restore(d.root, w.faults)
	d.digest("", d.root, w)
}

// restore makes what is durable what is there.
func (d *disk) restore(n *node, r *rand.Rand) {
	n.links, n.open = 1, 0
	if n != d.root {
		d.nodes = append(d.nodes, n)
	}
	if !n.dir {
		n.powerLoss(r)
		return
	}
	n.names = map[string]*node{}
	for _, name := range sortedNames(n.durable) {
		n.names[name] = n.durable[name]
		d.restore(n.durable[name], r)
	}
}

// digest puts the whole disk into the trace.
func (d *disk) digest(at string, n *node, w *World) {
	for _, name := range sortedNames(n.names) {
		c := n.names[name]
		if c.dir {
			d.digest(at+"/"+name, c, w)
			continue
		}
		w.note("disk", "left", at+"/"+name, 0, int64(len(c.data)), c.data, nil)
	}
}
