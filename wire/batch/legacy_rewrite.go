package batch

import (
	"encoding/binary"
	"hash/crc32"
)

// AppendLegacy appends what compaction leaves of a compressed message m of magic 0 or 1: the records kept of those in it, at least one,
// in their order. Its offset becomes that of the last of them, and its timestamp the largest.
func AppendLegacy(dst []byte, m Legacy, kept []Record, c *Codecs) []byte {
	magic, base := m[16], int64(0)
	if magic == 1 {
		base = kept[0].Offset // inside, offsets count from the first
	}
	newest := NoTimestamp
	var inner []byte
	for i := range kept {
		r := &kept[i]
		newest = max(newest, r.Timestamp)
		inner = appendMessage(inner, r.Offset-base, magic, m[17]&logAppendTimeBit, r.Timestamp, r.Key, r.Value)
	}
	if m.LogAppendTime() {
		newest = m.Timestamp()
	}
	return appendMessage(dst, kept[len(kept)-1].Offset, magic, m[17], newest, nil, c.Compress(nil, m.Codec(), inner))
}

// appendMessage appends one message.
func appendMessage(dst []byte, offset int64, magic, attributes byte, timestamp int64, key, value []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(offset))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, magic, attributes)
	if magic == 1 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(timestamp))
	}
	dst = appendLegacyBytes(appendLegacyBytes(dst, key), value)
	m := dst[start:]
	binary.BigEndian.PutUint32(m[8:], uint32(len(m)-12))
	binary.BigEndian.PutUint32(m[12:], crc32.ChecksumIEEE(m[16:]))
	return dst
}

func appendLegacyBytes(dst, b []byte) []byte {
	if b == nil {
		return append(dst, 0xff, 0xff, 0xff, 0xff)
	}
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
}
