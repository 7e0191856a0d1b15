package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	snapshotVersion = 1
	snapshotHeader  = 10
	snapshotEntry   = 46
	snapshotMax     = 1 << 30
)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// encodeSnapshot gives a snapshot file's bytes.
func encodeSnapshot(ps *producers) []byte {
	b := make([]byte, snapshotHeader, snapshotHeader+len(ps.byID)*snapshotEntry)
	binary.BigEndian.PutUint16(b, snapshotVersion)
	binary.BigEndian.PutUint32(b[6:], uint32(len(ps.byID)))
	for _, p := range ps.sorted() {
		last := producerBatch{last: -1, lastSeq: noSequence}
		if p.n > 0 {
			last = p.batches[p.n-1]
		}
		b = binary.BigEndian.AppendUint64(b, uint64(p.id))
		b = binary.BigEndian.AppendUint16(b, uint16(p.epoch))
		b = binary.BigEndian.AppendUint32(b, uint32(last.lastSeq))
		b = binary.BigEndian.AppendUint64(b, uint64(last.last))
		b = binary.BigEndian.AppendUint32(b, uint32(last.delta))
		b = binary.BigEndian.AppendUint64(b, uint64(p.timestamp))
		b = binary.BigEndian.AppendUint32(b, uint32(p.coordinatorEpoch))
		b = binary.BigEndian.AppendUint64(b, uint64(p.txnFirst))
	}
	binary.BigEndian.PutUint32(b[2:], checksum(b[6:]))
	return b
}

// decodeSnapshot reads a snapshot file's bytes; each is called with every producer in the file.
func decodeSnapshot(b []byte, each func(*producer)) error {
	if len(b) < snapshotHeader {
		return fmt.Errorf("%w: snapshot of %d bytes", ErrMalformed, len(b))
	}
	if v := binary.BigEndian.Uint16(b); v != snapshotVersion {
		return fmt.Errorf("%w: snapshot version %d", ErrMalformed, v)
	}
	if crc := binary.BigEndian.Uint32(b[2:]); crc != checksum(b[6:]) {
		return fmt.Errorf("%w: snapshot checksum is wrong", ErrMalformed)
	}
	n := int64(int32(binary.BigEndian.Uint32(b[6:])))
	if n < 0 || n*snapshotEntry != int64(len(b)-snapshotHeader) {
		return fmt.Errorf("%w: snapshot of %d producers in %d bytes", ErrMalformed, n, len(b))
	}
	for b = b[snapshotHeader:]; len(b) > 0; b = b[snapshotEntry:] {
		p := newProducer(int64(binary.BigEndian.Uint64(b)))
		p.epoch = int16(binary.BigEndian.Uint16(b[8:]))
		last := producerBatch{
			lastSeq: int32(binary.BigEndian.Uint32(b[10:])), last: Offset(binary.BigEndian.Uint64(b[14:])),
			delta: int32(binary.BigEndian.Uint32(b[22:])), timestamp: int64(binary.BigEndian.Uint64(b[26:])),
		}
		p.timestamp = last.timestamp
		p.coordinatorEpoch = int32(binary.BigEndian.Uint32(b[34:]))
		p.txnFirst = Offset(binary.BigEndian.Uint64(b[38:]))
		if last.last >= 0 && last.delta >= 0 && last.lastSeq >= 0 {
			p.batches[0], p.n = last, 1
		}
		each(p)
	}
	return nil
}

// load takes a snapshot's producers as the state as of end, without those silent for age ms before now.
func (ps *producers) load(b []byte, end Offset, now, age int64) error {
	fresh := producers{end: end, saved: end}
	beyond := Offset(-1)
	err := decodeSnapshot(b, func(p *producer) {
		beyond = max(beyond, p.txnFirst)
		if p.n > 0 {
			beyond = max(beyond, p.batches[p.n-1].last)
		}
		if p.txnFirst < 0 && now-p.timestamp >= age {
			return
		}
		if fresh.byID == nil {
			fresh.byID = make(map[int64]*producer)
		}
		fresh.byID[p.id] = p
	})
	if err == nil && beyond >= end {
		err = fmt.Errorf("%w: it knows of offset %d, which lies behind it", ErrMalformed, beyond)
	}
	if err != nil {
		return err
	}
	for _, p := range fresh.sorted() {
		if p.txnFirst >= 0 {
			fresh.addOpen(openTxn{producerID: p.id, first: p.txnFirst, last: -1})
		}
	}
	*ps = fresh
	return nil
}
