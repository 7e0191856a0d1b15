package batch

import "encoding/binary"

// Rewriter makes of a magic 2 batch the one that compaction leaves of it. Offsets, producer, leader epoch, codec and timestamp
// type stay; timestamps are counted anew from the first record kept, or from the delete horizon (KIP-534). It may be used again.
type Rewriter struct {
	h       Header
	base    int64
	max     int64
	count   int32
	horizon bool
	records []byte
}

// Begin begins with what is kept of h. horizon is the delete horizon (Unix ms), NoTimestamp for none.
func (r *Rewriter) Begin(h Header, horizon int64) {
	r.h, r.base, r.max, r.count, r.horizon, r.records = h, horizon, NoTimestamp, 0, horizon != NoTimestamp, r.records[:0]
}

// Keep takes over a record of the batch, in order of offsets.
func (r *Rewriter) Keep(rec *Record) {
	if r.count == 0 && !r.horizon {
		r.base = rec.Timestamp
	}
	r.max = max(r.max, rec.Timestamp)
	var head [2 * binary.MaxVarintLen64]byte
	b := binary.AppendVarint(head[:0], rec.Timestamp-r.base)
	b = binary.AppendVarint(b, rec.Offset-r.h.BaseOffset())
	r.records = binary.AppendVarint(r.records, int64(1+len(b)+len(rec.tail)))
	r.records = append(r.records, 0)
	r.records = append(r.records, b...)
	r.records = append(r.records, rec.tail...)
	r.count++
}

// AppendTo appends the batch to dst. Compressors are c's.
func (r *Rewriter) AppendTo(dst []byte, c *Codecs) []byte {
	start := len(dst)
	dst = append(dst, r.h[:HeaderSize]...)
	dst = c.Compress(dst, r.h.Codec(), r.records)
	h := dst[start:]
	bits := r.h[22]&(codecMask|logAppendTimeBit|transactionalBit|controlBit) | bit(r.horizon, deleteHorizonBit)
	binary.BigEndian.PutUint16(h[21:], uint16(bits))
	binary.BigEndian.PutUint64(h[27:], uint64(r.base))
	binary.BigEndian.PutUint64(h[35:], uint64(r.max))
	binary.BigEndian.PutUint32(h[57:], uint32(r.count))
	Seal(h)
	return dst
}

// AppendEmpty appends what is left of a magic 2 batch that keeps its place, and its producer's sequence number, but no record.
func AppendEmpty(dst []byte, h Header) []byte {
	start := len(dst)
	dst = append(dst, h[:HeaderSize]...)
	e := dst[start:]
	binary.BigEndian.PutUint16(e[21:], uint16(h[22]&(logAppendTimeBit|transactionalBit|controlBit)))
	noTime := NoTimestamp
	binary.BigEndian.PutUint64(e[27:], uint64(noTime))
	binary.BigEndian.PutUint32(e[57:], 0)
	Seal(e)
	return dst
}
