package segment

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// Indexes are kept in memory as the bytes of their files.

const (
	indexEntry = 8
	timeEntry  = 12
	txnEntry   = 34
)

// offsetIndex maps the last offset of a batch to the position where it begins.
type offsetIndex []byte

func (x offsetIndex) len() int { return len(x) / indexEntry }

func (x offsetIndex) at(i int) (relative int32, position int32) {
	e := x[i*indexEntry:]
	return int32(binary.BigEndian.Uint32(e)), int32(binary.BigEndian.Uint32(e[4:]))
}

func (x offsetIndex) add(relative, position int32) offsetIndex {
	x = binary.BigEndian.AppendUint32(x, uint32(relative))
	return binary.BigEndian.AppendUint32(x, uint32(position))
}

// find gives the position of the last entry whose offset is not greater than relative, 0 if there is none.
func (x offsetIndex) find(relative int64) int64 {
	n := sort.Search(x.len(), func(i int) bool { r, _ := x.at(i); return int64(r) > relative })
	if n == 0 {
		return 0
	}
	_, p := x.at(n - 1)
	return int64(p)
}

// cut drops what points at or behind position, or at an offset at or above relative.
func (x offsetIndex) cut(relative int64, position int64) offsetIndex {
	n := sort.Search(x.len(), func(i int) bool { r, p := x.at(i); return int64(r) >= relative || int64(p) >= position })
	return x[:n*indexEntry]
}

// check says whether entries rise strictly and stay inside a log file of size bytes.
func (x offsetIndex) check(size int64) error {
	if len(x)%indexEntry != 0 {
		return fmt.Errorf("%w: length %d is not a multiple of %d", ErrMalformed, len(x), indexEntry)
	}
	lastR, lastP := int32(-1), int32(-1)
	for i := range x.len() {
		r, p := x.at(i)
		if r <= lastR || p <= lastP || int64(p) >= size {
			return fmt.Errorf("%w: entry %d is %d at %d, after %d at %d, in %d bytes", ErrMalformed, i, r, p, lastR, lastP, size)
		}
		lastR, lastP = r, p
	}
	return nil
}

// within says whether the last entry, and so every one, is of an offset below the segment's end; relative is how many offsets it has.
func (x offsetIndex) within(relative int64) error {
	if n := x.len(); n > 0 {
		if r, _ := x.at(n - 1); int64(r) >= relative {
			return fmt.Errorf("%w: the last entry is of offset %d, and the segment has %d", ErrMalformed, r, relative)
		}
	}
	return nil
}

// timeIndex maps the largest timestamp so far to the last offset of the batch that holds it.
type timeIndex []byte

func (x timeIndex) len() int { return len(x) / timeEntry }

func (x timeIndex) at(i int) (ms int64, relative int32) {
	e := x[i*timeEntry:]
	return int64(binary.BigEndian.Uint64(e)), int32(binary.BigEndian.Uint32(e[8:]))
}

// last is the final entry; noTimestamp and 0 if there is none.
func (x timeIndex) last() (ms int64, relative int32) {
	if x.len() == 0 {
		return noTimestamp, 0
	}
	return x.at(x.len() - 1)
}

// add appends an entry if ms is greater than the last one's.
func (x timeIndex) add(ms int64, relative int32) timeIndex {
	if last, _ := x.last(); ms <= last {
		return x
	}
	x = binary.BigEndian.AppendUint64(x, uint64(ms))
	return binary.BigEndian.AppendUint32(x, uint32(relative))
}

// find gives the relative offset of the last entry whose timestamp is not greater than ms, 0 if there is none.
func (x timeIndex) find(ms int64) int32 {
	n := sort.Search(x.len(), func(i int) bool { t, _ := x.at(i); return t > ms })
	if n == 0 {
		return 0
	}
	_, r := x.at(n - 1)
	return r
}

// cut drops entries at offsets at or above relative.
func (x timeIndex) cut(relative int64) timeIndex {
	n := sort.Search(x.len(), func(i int) bool { _, r := x.at(i); return int64(r) >= relative })
	return x[:n*timeEntry]
}

// within is that of an offsetIndex.
func (x timeIndex) within(relative int64) error {
	if _, r := x.last(); x.len() > 0 && int64(r) >= relative {
		return fmt.Errorf("%w: the last entry is of offset %d, and the segment has %d", ErrMalformed, r, relative)
	}
	return nil
}

func (x timeIndex) check() error {
	if len(x)%timeEntry != 0 {
		return fmt.Errorf("%w: length %d is not a multiple of %d", ErrMalformed, len(x), timeEntry)
	}
	lastT, lastR := int64(-1<<63), int32(-1)
	for i := range x.len() {
		t, r := x.at(i)
		if t <= lastT || r < lastR || r < 0 {
			return fmt.Errorf("%w: entry %d is time %d offset %d, after time %d offset %d", ErrMalformed, i, t, r, lastT, lastR)
		}
		lastT, lastR = t, r
	}
	return nil
}

// txnIndex lists aborted transactions in the order of their markers.
type txnIndex []byte

func (x txnIndex) len() int { return len(x) / txnEntry }

func (x txnIndex) at(i int) AbortedTxn {
	e := x[i*txnEntry:]
	return AbortedTxn{
		ProducerID: int64(binary.BigEndian.Uint64(e[2:])), First: Offset(binary.BigEndian.Uint64(e[10:])),
		Last: Offset(binary.BigEndian.Uint64(e[18:])), LastStable: Offset(binary.BigEndian.Uint64(e[26:])),
	}
}

func (x txnIndex) add(a AbortedTxn) txnIndex {
	x = binary.BigEndian.AppendUint16(x, 0)
	x = binary.BigEndian.AppendUint64(x, uint64(a.ProducerID))
	x = binary.BigEndian.AppendUint64(x, uint64(a.First))
	x = binary.BigEndian.AppendUint64(x, uint64(a.Last))
	return binary.BigEndian.AppendUint64(x, uint64(a.LastStable))
}

// cut drops transactions whose marker is at or above o.
func (x txnIndex) cut(o Offset) txnIndex {
	n := sort.Search(x.len(), func(i int) bool { return x.at(i).Last >= o })
	return x[:n*txnEntry]
}

func (x txnIndex) check(base Offset) error {
	if len(x)%txnEntry != 0 {
		return fmt.Errorf("%w: length %d is not a multiple of %d", ErrMalformed, len(x), txnEntry)
	}
	last := base - 1
	for i := range x.len() {
		a := x.at(i)
		if v := binary.BigEndian.Uint16(x[i*txnEntry:]); v != 0 {
			return fmt.Errorf("%w: entry %d has version %d", ErrMalformed, i, v)
		}
		if a.Last <= last || a.First > a.Last || a.First < 0 {
			return fmt.Errorf("%w: entry %d is a transaction from %d to %d after %d", ErrMalformed, i, a.First, a.Last, last)
		}
		last = a.Last
	}
	return nil
}
