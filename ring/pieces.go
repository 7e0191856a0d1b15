package ring

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	pieceSize  = 16 << 10
	pieceCount = 256
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
type pieces struct {
	entries []bufRingEntry
	bufs    [pieceCount]*Buf
	tail    uint16
	lacking []uint16 // ids without a buffer
	changed bool
}

// register makes the ring known as group 0 of r.
func (p *pieces) register(r *uring) unix.Errno {
	mem := mapAnon(pieceCount * int(unsafe.Sizeof(bufRingEntry{})))
	p.entries = unsafe.Slice((*bufRingEntry)(unsafe.Pointer(&mem[0])), pieceCount)
	reg := &bufReg{addr: addr(mem), entries: pieceCount}
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
	p.changed = true
}

// publish stores the tail. It shares a word with the first entry's id, so that both are written at once.
func (p *pieces) publish() {
	if p.changed {
		p.changed = false
		word := (*uint32)(unsafe.Pointer(&p.entries[0].bid))
		atomic.StoreUint32(word, uint32(p.tail)<<16|uint32(p.entries[0].bid))
	}
}

// available is how many the kernel has.
func (p *pieces) available() int { return pieceCount - len(p.lacking) }

// recycle takes back the loop's reference to a piece that was received into and gives one to the kernel anew.
func (l *loop) recycle(id uint16) {
	b := l.pieces.bufs[id]
	if b.refs == 1 {
		l.pieces.give(id)
		return
	}
	b.Release()
	l.pieces.bufs[id] = nil
	l.pieces.lacking = append(l.pieces.lacking, id)
}

// refill replaces the pieces that receivers keep, as far as memory allows.
func (l *loop) refill() {
	for len(l.pieces.lacking) > 0 && l.mayLend() {
		l.refillOne()
	}
	l.pieces.publish()
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
