package batch

import "encoding/binary"

// RecordHeader is a header to be encoded; a nil Value is null.
type RecordHeader struct {
	Key   string
	Value []byte
}

// Builder encodes records into a magic 2 batch, as a client does. It is for tools, the load generator and tests.
type Builder struct {
	BaseOffset    int64
	LeaderEpoch   int32
	Codec         Codec
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	Transactional bool
	Control       bool
	LogAppendTime bool

	base, max int64
	count     int32
	delta     int32 // of the last record
	records   []byte
	body      []byte
	codecs    Codecs
}

// NewBuilder makes a builder of plain batches: no producer id, no leader epoch (-1).
func NewBuilder(c Codec) *Builder {
	return &Builder{LeaderEpoch: -1, Codec: c, ProducerID: NoProducer, ProducerEpoch: -1, BaseSequence: -1}
}

// Reset forgets the records and keeps the rest.
func (b *Builder) Reset() { b.records, b.count, b.delta = b.records[:0], 0, 0 }

// Count is the number of records so far; Len what they take uncompressed.
func (b *Builder) Count() int { return int(b.count) }

// Len is what the records take so far, uncompressed.
func (b *Builder) Len() int { return len(b.records) }

// Add appends a record with the next offset. Nil key or value are null.
func (b *Builder) Add(timestamp int64, key, value []byte, headers ...RecordHeader) {
	delta := b.delta + 1
	if b.count == 0 {
		delta = 0
	}
	b.AddAt(delta, timestamp, key, value, headers...)
}

// AddAt is Add with the offset delta given: for batches with gaps, as compaction leaves them, and for bad ones.
func (b *Builder) AddAt(delta int32, timestamp int64, key, value []byte, headers ...RecordHeader) {
	if b.count == 0 {
		b.base, b.max = timestamp, timestamp
	}
	b.max = max(b.max, timestamp)
	body := append(b.body[:0], 0)
	body = binary.AppendVarint(body, timestamp-b.base)
	body = binary.AppendVarint(body, int64(delta))
	body = appendField(body, key)
	body = appendField(body, value)
	body = binary.AppendVarint(body, int64(len(headers)))
	for _, h := range headers {
		body = binary.AppendVarint(body, int64(len(h.Key)))
		body = append(body, h.Key...)
		body = appendField(body, h.Value)
	}
	b.records = binary.AppendVarint(b.records, int64(len(body)))
	b.records = append(b.records, body...)
	b.body, b.delta = body, delta
	b.count++
}

func appendField(dst, v []byte) []byte {
	if v == nil {
		return append(dst, 1) // -1
	}
	return append(binary.AppendVarint(dst, int64(len(v))), v...)
}

// AppendTo appends the batch to dst.
func (b *Builder) AppendTo(dst []byte) []byte {
	start := len(dst)
	var head [HeaderSize]byte
	dst = append(dst, head[:]...)
	dst = b.codecs.Compress(dst, b.Codec, b.records)
	h := dst[start:]
	binary.BigEndian.PutUint64(h, uint64(b.BaseOffset))
	binary.BigEndian.PutUint32(h[12:], uint32(b.LeaderEpoch))
	h[16] = magicNow
	h[22] = byte(b.Codec) | bit(b.LogAppendTime, logAppendTimeBit) | bit(b.Transactional, transactionalBit) | bit(b.Control, controlBit)
	binary.BigEndian.PutUint32(h[23:], uint32(b.delta))
	binary.BigEndian.PutUint64(h[27:], uint64(b.base))
	binary.BigEndian.PutUint64(h[35:], uint64(b.max))
	binary.BigEndian.PutUint64(h[43:], uint64(b.ProducerID))
	binary.BigEndian.PutUint16(h[51:], uint16(b.ProducerEpoch))
	binary.BigEndian.PutUint32(h[53:], uint32(b.BaseSequence))
	binary.BigEndian.PutUint32(h[57:], uint32(b.count))
	Seal(h)
	return dst
}

// Seal writes the length and the CRC of a whole batch whose other fields were set or changed.
func Seal(b []byte) {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-LogOverhead))
	binary.BigEndian.PutUint32(b[17:], Header(b).Sum())
}

func bit(on bool, mask byte) byte {
	if on {
		return mask
	}
	return 0
}
