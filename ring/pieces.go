package ring

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	pieceSize  = 16 << 10
	pieceCount = 256
	pieceLeast = 16 // that the kernel is given at least
)

type bufRingEntry struct {
	addr uint64
	len  uint32
	bid  uint16
	tail uint16 // of the first entry: the ring's tail
}

type bufReg struct {
	addr    uint64
	entries uint32
	group   uint16
	flags   uint16
	resv    [3]uint64
}

// pieces is the ring of buffers from which the kernel takes one for each thing it receives. A piece that a receiver keeps is
// replaced at once, unless the loop has lent all it may: then the kernel finds none, and that is back-pressure.
//
// The kernel takes them in turn, so that every piece it has is touched again and again. It is given no more than it lately
// took in a turn, with as many in reserve: a quiet loop receives into the same few pages.
type pieces struct {
	entries []bufRingEntry
	bufs    [pieceCount]*Buf
	tail    uint16
	lacking []uint16 // ids without a buffer
	parked  []uint16 // ids with a buffer that the kernel is not given
	given   int      // that the kernel has
	want    int      // that it should have
	taken   int      // in this turn
	most    int      // in any turn since want was last looked at
	changed bool
}

// register makes the ring known as group 0 of r.
func (p *pieces) register(r *uring) unix.Errno {
	mem := mapAnon(pieceCount * int(unsafe.Sizeof(bufRingEntry{})))
	p.entries = unsafe.Slice((*bufRingEntry)(unsafe.Pointer(&mem[0])), pieceCount)
	reg := &bufReg{addr: addr(mem), entries: pieceCount}
	p.want = pieceLeast
	for i := range uint16(pieceCount) {
		p.lacking = append(p.lacking, i)
	}
	return r.register(registerPbufRing, unsafe.Pointer(reg), 1)
}

// give hands id's buffer to the kernel; publish shows it.
func (p *pieces) give(id uint16) {
	e := &p.entries[p.tail%pieceCount]
	e.addr, e.len, e.bid = addr(p.bufs[id].whole), pieceSize, id
	p.tail++
	p.given++
	p.changed = true
}

// take notes that the kernel has received into one.
func (p *pieces) take() {
	p.given--
	p.taken++
}

// endTurn keeps twice of what a turn takes.
func (p *pieces) endTurn() {
	p.most = max(p.most, p.taken)
	if 2*p.taken > p.want {
		p.drained()
	}
	p.taken = 0
}

// drained is called when the kernel found none: it shall have more.
func (p *pieces) drained() { p.want = min(2*p.want, pieceCount) }

// shrink makes the share of the kernel fit what it took since the last call, and frees parked buffers that are not needed. What the
// kernel has beyond its share is parked when it has received into it.
func (p *pieces) shrink() {
	if 4*p.most < p.want {
		p.want = max(p.want/2, pieceLeast)
	}
	p.most = 0
	for len(p.parked) > 0 && p.given+len(p.parked) > p.want {
		id := p.parked[0]
		p.parked = p.parked[1:]
		p.bufs[id].Release()
		p.bufs[id] = nil
		p.lacking = append(p.lacking, id)
	}
}

// publish stores the tail. It shares a word with the first entry's id, so that both are written at once.
func (p *pieces) publish() {
	if p.changed {
		p.changed = false
		word := (*uint32)(unsafe.Pointer(&p.entries[0].bid))
		atomic.StoreUint32(word, uint32(p.tail)<<16|uint32(p.entries[0].bid))
	}
}

// free is how many nobody has received into.
func (p *pieces) free() int { return pieceCount - len(p.lacking) }

// recycle takes back the loop's reference to a piece that was received into and gives one to the kernel anew.
func (l *loop) recycle(id uint16) {
	p := &l.pieces
	p.take()
	b := p.bufs[id]
	switch {
	case b.refs > 1:
		b.Release()
		p.bufs[id] = nil
		p.lacking = append(p.lacking, id)
	case p.given < p.want:
		p.give(id)
	default:
		p.parked = append(p.parked, id)
	}
}

// refill sees to it that the kernel has as many pieces as it should, as far as memory allows.
func (l *loop) refill() {
	p := &l.pieces
	p.endTurn()
	for p.given < p.want && len(p.parked) > 0 {
		p.give(p.parked[len(p.parked)-1])
		p.parked = p.parked[:len(p.parked)-1]
	}
	for p.given < p.want && len(p.lacking) > 0 && l.mayLend() {
		l.refillOne()
	}
	p.publish()
}

func (l *loop) refillOne() {
	p := &l.pieces
	id := p.lacking[len(p.lacking)-1]
	p.lacking = p.lacking[:len(p.lacking)-1]
	p.bufs[id] = l.slab.alloc(pieceSize)
	p.give(id)
}

// mayLend says whether the loop may receive more.
func (l *loop) mayLend() bool { return l.favoured || l.InUse() < l.maxMemory }
