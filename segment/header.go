package segment

import (
	"encoding/binary"
	"hash/crc32"

	"kring/wire/batch"
)

const (
	noTimestamp = batch.NoTimestamp
	noSequence  = -1
	noEpoch     = -1
	maxRelative = 1<<31 - 1
	// oldHeader is how much of a magic 1 batch is looked at: up to its timestamp.
	oldHeader = 26
	// controlBytes is what recovery keeps of a control batch: an end marker is 78 bytes long, 81 after compaction.
	controlBytes = 256
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is what the log has to know of a batch, of any magic. batch.PrefixSize bytes must be there, and need() for the rest.
type header []byte

func (h header) v2() batch.Header { return batch.Header(h) }
func (h header) base() Offset     { return Offset(h.v2().BaseOffset()) }
func (h header) size() int64      { return h.v2().Size() }
func (h header) isV2() bool       { return h.v2().Magic() == 2 }

// need is how many bytes of the batch the methods below look at.
func (h header) need() int {
	switch h.v2().Magic() {
	case 2:
		return batch.HeaderSize
	case 1:
		return oldHeader
	}
	return batch.PrefixSize
}

// last is the offset of the batch's last record; an old wrapper message carries that itself.
func (h header) last() Offset {
	if !h.isV2() {
		return h.base()
	}
	return Offset(h.v2().LastOffset())
}

// maxTime is the largest timestamp in ms, noTimestamp for magic 0.
func (h header) maxTime() int64 {
	switch h.v2().Magic() {
	case 2:
		return h.v2().MaxTimestamp()
	case 1:
		return int64(binary.BigEndian.Uint64(h[18:]))
	}
	return noTimestamp
}

// leaderEpoch is noEpoch for old magics, whose bytes there are a checksum.
func (h header) leaderEpoch() int32 {
	if !h.isV2() {
		return noEpoch
	}
	return h.v2().LeaderEpoch()
}

func (h header) hasProducer() bool { return h.isV2() && h.v2().HasProducer() }

// endMarker reads the one record of a control batch: abort or commit, and the coordinator's epoch. b is the batch; ok is
// false if it holds no such record.
func endMarker(b []byte) (commit bool, coordinatorEpoch int32, ok bool) {
	if len(b) < batch.HeaderSize {
		return false, 0, false
	}
	p := b[batch.HeaderSize:]
	varint := func() int64 {
		v, n := binary.Varint(p)
		if n <= 0 {
			p = nil
			return -1
		}
		p = p[n:]
		return v
	}
	varint() // length
	if len(p) < 1 {
		return false, 0, false
	}
	p = p[1:] // attributes
	varint()  // timestamp delta
	varint()  // offset delta
	n := varint()
	if n < 4 || int64(len(p)) < n {
		return false, 0, false
	}
	kind := int16(binary.BigEndian.Uint16(p[2:]))
	p = p[n:]
	n = varint()
	if n < 6 || int64(len(p)) < n || (kind != 0 && kind != 1) {
		return false, 0, false
	}
	return kind == 1, int32(binary.BigEndian.Uint32(p[2:])), true
}
