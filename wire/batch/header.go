package batch

import (
	"encoding/binary"
	"hash/crc32"
)

// Sizes of the format in bytes.
const (
	// HeaderSize is what a magic 2 batch has before its records.
	HeaderSize = 61
	// LogOverhead is what the length field does not count: base offset and itself.
	LogOverhead = 12
	// PrefixSize is what all magics share: enough to know size and magic.
	PrefixSize = 17
	// BodyStart is where the CRC begins to cover.
	BodyStart = 21
)

// NoTimestamp marks a record or batch without a timestamp.
const NoTimestamp int64 = -1

// NoProducer is the producer id of a batch that is not idempotent.
const NoProducer int64 = -1

// Codec is the compression of a batch's records.
type Codec uint8

// The codecs, by Kafka's numbers.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String is Kafka's name of the codec.
func (c Codec) String() string {
	if int(c) < len(codecNames) {
		return codecNames[c]
	}
	return "unknown"
}

// CodecByName finds a codec by Kafka's name.
func CodecByName(name string) (Codec, bool) {
	for i, n := range codecNames {
		if n == name {
			return Codec(i), true
		}
	}
	return None, false
}

// The bits of the attributes; Kafka reads only the low byte.
const (
	codecMask         = 0x07
	logAppendTimeBit  = 0x08
	transactionalBit  = 0x10
	controlBit        = 0x20
	deleteHorizonBit  = 0x40
	attributesKnown   = codecMask | logAppendTimeBit | transactionalBit | controlBit
	magicNow          = 2
	legacySizeV0      = 14 // what the length field counts at least, magic 0
	legacySizeV1      = 22
	legacyTotalMin    = LogOverhead + legacySizeV0
	fieldsAfterLength = 6
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is a view over a magic 2 batch (or at least its first 61 bytes). Base offset, size and magic may be asked of any
// magic, given 17 bytes.
type Header []byte

// BaseOffset is the offset of the first record, 0 as a producer sends it.
func (h Header) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(h)) }

// Size is the batch's whole size in bytes, as its length field says; int64 as a hostile length field may be near 2^31.
func (h Header) Size() int64 { return int64(int32(binary.BigEndian.Uint32(h[8:]))) + LogOverhead }

// LeaderEpoch is the epoch of the leader that appended the batch.
func (h Header) LeaderEpoch() int32 { return int32(binary.BigEndian.Uint32(h[12:])) }

// Magic is the format's version.
func (h Header) Magic() int8 { return int8(h[16]) }

// CRC is the stored checksum.
func (h Header) CRC() uint32 { return binary.BigEndian.Uint32(h[17:]) }

// Attributes is the whole field; the methods below read its bits.
func (h Header) Attributes() int16 { return int16(binary.BigEndian.Uint16(h[21:])) }

// Codec is the compression of the records; a number over Zstd means nothing.
func (h Header) Codec() Codec { return Codec(h[22] & codecMask) }

// LogAppendTime says that the records' time is MaxTimestamp, set by the broker.
func (h Header) LogAppendTime() bool { return h[22]&logAppendTimeBit != 0 }

// Transactional says that the batch belongs to a transaction.
func (h Header) Transactional() bool { return h[22]&transactionalBit != 0 }

// Control says that the record is a marker for brokers and clients, not data.
func (h Header) Control() bool { return h[22]&controlBit != 0 }

// DeleteHorizon says that BaseTimestamp is the time from which compaction may drop the batch's tombstones.
func (h Header) DeleteHorizon() bool { return h[22]&deleteHorizonBit != 0 }

// LastOffsetDelta is the last record's offset less BaseOffset; it stays when compaction removes records.
func (h Header) LastOffsetDelta() int32 { return int32(binary.BigEndian.Uint32(h[23:])) }

// LastOffset is the offset of the last record.
func (h Header) LastOffset() int64 { return h.BaseOffset() + int64(h.LastOffsetDelta()) }

// NextOffset is the offset after the last record's.
func (h Header) NextOffset() int64 { return h.LastOffset() + 1 }

// BaseTimestamp is what the records' timestamp deltas count from (Unix ms), or the delete horizon.
func (h Header) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(h[27:])) }

// MaxTimestamp is the largest timestamp of the records, or the time of the append.
func (h Header) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(h[35:])) }

// ProducerID is -1 for a batch that is not idempotent.
func (h Header) ProducerID() int64 { return int64(binary.BigEndian.Uint64(h[43:])) }

// HasProducer says that the batch has a producer id.
func (h Header) HasProducer() bool { return h.ProducerID() > NoProducer }

// ProducerEpoch fences older incarnations of the producer.
func (h Header) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(h[51:])) }

// BaseSequence is the producer's number of the first record.
func (h Header) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(h[53:])) }

// LastSequence is the producer's number of the last record; after 2^31-1 comes 0. It is -1 without a producer.
func (h Header) LastSequence() int32 {
	if h.BaseSequence() < 0 {
		return -1
	}
	return AddSequence(h.BaseSequence(), h.LastOffsetDelta())
}

// AddSequence counts on from a sequence, over the wrap from 2^31-1 to 0.
func AddSequence(sequence, n int32) int32 {
	return int32((int64(sequence) + int64(n)) & 0x7fffffff)
}

// Count is the number of records; 0 in a batch compaction has emptied.
func (h Header) Count() int32 { return int32(binary.BigEndian.Uint32(h[57:])) }

// Sum computes the checksum of a whole magic 2 batch; h ends where the batch ends.
func (h Header) Sum() uint32 { return crc32.Checksum(h[BodyStart:], castagnoli) }

// Valid says whether a whole magic 2 batch is what its CRC says.
func (h Header) Valid() bool { return len(h) >= HeaderSize && h.CRC() == h.Sum() }

// Stamp writes what the leader decides: base offset and leader epoch, which the CRC does not cover.
func Stamp(b []byte, baseOffset int64, leaderEpoch int32) {
	binary.BigEndian.PutUint64(b, uint64(baseOffset))
	binary.BigEndian.PutUint32(b[12:], uint32(leaderEpoch))
}

// StampAppendTime makes a whole batch LogAppendTime: timestamp type, maxTimestamp (Unix ms) and a new CRC.
func StampAppendTime(b []byte, ms int64) { stampTime(b, true, ms) }

// StampCreateTime writes the true largest timestamp where the header does not have it; see Info.Restamp.
func StampCreateTime(b []byte, maxTimestamp int64) { stampTime(b, false, maxTimestamp) }

// stampTime does nothing if the batch is so already, as its CRC costs the most. Like Kafka it forgets attribute bits it does
// not know.
func stampTime(b []byte, appendTime bool, ms int64) {
	h := Header(b)
	if h.LogAppendTime() == appendTime && h.MaxTimestamp() == ms {
		return
	}
	bits := uint16(b[22]) & (attributesKnown &^ logAppendTimeBit)
	if appendTime {
		bits |= logAppendTimeBit
	}
	binary.BigEndian.PutUint16(b[21:], bits)
	binary.BigEndian.PutUint64(b[35:], uint64(ms))
	binary.BigEndian.PutUint32(b[17:], h.Sum())
}
