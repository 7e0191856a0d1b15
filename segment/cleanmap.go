package segment

import (
	"encoding/binary"
	"math/bits"

	"kring/ring"
)

const (
	keyEntry     = 24 // 16 bytes of hash, and the offset plus one: 0 is nobody
	keyPartBits  = 5
	keyParts     = 1 << keyPartBits
	keyPartFirst = (4 << 10) / keyEntry // entries a part begins with
	// keyLoad is how full a part may be before it grows. Only one that cannot grow is filled further, which makes it slow.
	keyLoad = 0.75
)

// keyMap holds the last offset of each key in the part of a log that is being cleaned. Keys are kept as hashes. It is cut into
// parts by the hash, each of which grows by itself, so that growing takes little more memory than what is in use.
//
// Its memory is the loop's, its use a helper's: put says when it is short of memory, supply gets more on the loop, and grow
// takes it into use, again on the helper.
type keyMap struct {
	hash   keyHash
	most   int     // entries a part may have room for
	load   float64 // how full a part of that size may be
	latest Offset  // everything up to here is in the map
	keys   int
	parts  [keyParts]keyPart
	short  *keyPart  // wants more memory
	next   *ring.Buf // gets it
	old    *ring.Buf // has left it

	touched byte // makes touch do something
}

type keyPart struct {
	buf  *ring.Buf
	rows []byte
	n    int
}

// newKeyMap makes a map of at most memory bytes, filled to load at most.
func newKeyMap(loop ring.Loop, memory int64, load float64) *keyMap {
	m := &keyMap{hash: keyHash{loop.Rand().Uint64(), loop.Rand().Uint64()}, load: min(max(load, 0.01), 0.95), latest: -1}
	m.most = int(min(max(memory/keyParts/keyEntry, 4), 1<<26))
	return m
}

// find gives the row where an entry is or is to be put. There is an empty one, as no part is full.
func (p *keyPart) find(lo, hi uint64) []byte {
	room := len(p.rows) / keyEntry
	slot, _ := bits.Mul64(lo, uint64(room))
	for i := int(slot); ; {
		row := p.rows[i*keyEntry : i*keyEntry+keyEntry : i*keyEntry+keyEntry]
		if binary.LittleEndian.Uint64(row[16:]) == 0 ||
			binary.LittleEndian.Uint64(row) == lo && binary.LittleEndian.Uint64(row[8:]) == hi {
			return row
		}
		if i++; i == room {
			i = 0
		}
	}
}

// keyLook is a record that is looked up: the hash of its key if it has one, and what else decides whether it stays.
type keyLook struct {
	lo, hi        uint64
	offset        Offset
	keyed, valued bool
}

// touch has the processor fetch what looks will find. A map is larger than its caches: one after the other, every look would wait for
// memory, and here they wait together.
func (m *keyMap) touch(looks []keyLook) {
	sum := byte(0)
	for i := range looks {
		p := &m.parts[looks[i].hi>>(64-keyPartBits)]
		slot, _ := bits.Mul64(looks[i].lo, uint64(len(p.rows)/keyEntry))
		if at := slot * keyEntry; at+keyEntry <= uint64(len(p.rows)) {
			sum += p.rows[at] + p.rows[at+keyEntry-1]
		}
	}
	m.touched = sum
}

// put notes that the last record of key is at o. It is false if there is no room: for now if the map is short of memory, else
// for good.
func (m *keyMap) put(key []byte, o Offset) bool {
	lo, hi := m.hash.sum(key)
	return m.putHash(lo, hi, o)
}

func (m *keyMap) putHash(lo, hi uint64, o Offset) bool {
	p := &m.parts[hi>>(64-keyPartBits)]
	var row []byte
	if p.rows != nil {
		row = p.find(lo, hi)
	}
	if row == nil || binary.LittleEndian.Uint64(row[16:]) == 0 {
		if !m.fits(p) {
			return false
		}
		binary.LittleEndian.PutUint64(row, lo)
		binary.LittleEndian.PutUint64(row[8:], hi)
		p.n++
		m.keys++
	}
	binary.LittleEndian.PutUint64(row[16:], uint64(o)+1)
	m.latest = o
	return true
}

// fits says whether p takes one more key, and notes if it could grow.
func (m *keyMap) fits(p *keyPart) bool {
	room, load := len(p.rows)/keyEntry, m.load
	if room < m.most {
		load = min(load, keyLoad)
	}
	if float64(p.n+1) <= max(float64(room)*load, 1) && p.n+1 < room {
		return true
	}
	if room < m.most {
		m.short = p
	}
	return false
}

// get is the last offset of key, -1 if it is not in the map.
func (m *keyMap) get(key []byte) Offset {
	lo, hi := m.hash.sum(key)
	return m.getHash(lo, hi)
}

func (m *keyMap) getHash(lo, hi uint64) Offset {
	p := &m.parts[hi>>(64-keyPartBits)]
	if p.rows == nil {
		return -1
	}
	return Offset(binary.LittleEndian.Uint64(p.find(lo, hi)[16:])) - 1
}

// supply gets memory for the part that is short of it, and gives back what another one has left.
func (m *keyMap) supply(loop ring.Loop) {
	if m.old != nil {
		m.old.Release()
		m.old = nil
	}
	if m.short != nil && m.next == nil {
		n := min(max(2*len(m.short.rows)/keyEntry, keyPartFirst), m.most)
		m.next = loop.Alloc(n * keyEntry)
		m.next.B = m.next.B[:n*keyEntry]
	}
}

// grow moves the part that was short of memory into what supply got.
func (m *keyMap) grow() {
	p := m.short
	if p == nil || m.next == nil {
		return
	}
	old := p.rows
	p.rows = m.next.B
	clear(p.rows)
	for ; len(old) > 0; old = old[keyEntry:] {
		if row := old[:keyEntry]; binary.LittleEndian.Uint64(row[16:]) != 0 {
			copy(p.find(binary.LittleEndian.Uint64(row), binary.LittleEndian.Uint64(row[8:])), row)
		}
	}
	m.old, p.buf, m.next, m.short = p.buf, m.next, nil, nil
}

// release gives all memory back.
func (m *keyMap) release() {
	for i := range m.parts {
		if b := m.parts[i].buf; b != nil {
			b.Release()
		}
		m.parts[i] = keyPart{}
	}
	for _, b := range []*ring.Buf{m.next, m.old} {
		if b != nil {
			b.Release()
		}
	}
	m.next, m.old, m.short = nil, nil, nil
}

// memory is how many bytes are in use.
func (m *keyMap) memory() (n int64) {
	for i := range m.parts {
		n += int64(len(m.parts[i].rows))
	}
	return n
}
