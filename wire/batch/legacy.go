package batch

import (
	"encoding/binary"
	"hash/crc32"
)

// Legacy is a view over one message of magic 0 or 1 as old logs hold it: whole, sized by Next. A compressed one is a wrapper
// whose value holds, compressed, further messages.
//
//	0 offset i64   8 size i32   12 crc u32 (IEEE, byte 16 to the end)   16 magic i8   17 attributes i8
//	[magic 1: 18 timestamp i64]   key length i32, key   value length i32, value
type Legacy []byte

// Offset is the message's; a wrapper has that of the last message in it.
func (m Legacy) Offset() int64 { return int64(binary.BigEndian.Uint64(m)) }

// Codec is the compression of the value.
func (m Legacy) Codec() Codec { return Codec(m[17] & codecMask) }

// LogAppendTime says that the broker set the timestamp (magic 1).
func (m Legacy) LogAppendTime() bool { return m[16] == 1 && m[17]&logAppendTimeBit != 0 }

// Timestamp is in Unix ms, NoTimestamp for magic 0.
func (m Legacy) Timestamp() int64 {
	if m[16] == 0 {
		return NoTimestamp
	}
	return int64(binary.BigEndian.Uint64(m[18:]))
}

// Valid checks the CRC.
func (m Legacy) Valid() bool {
	return binary.BigEndian.Uint32(m[12:]) == crc32.ChecksumIEEE(m[16:])
}

// Fields gives key and value; null is nil.
func (m Legacy) Fields() (key, value []byte, err error) {
	rest := m[18:]
	if m[16] == 1 {
		rest = m[26:]
	}
	if key, rest, err = legacyBytes(rest); err != nil {
		return nil, nil, err
	}
	if value, rest, err = legacyBytes(rest); err != nil || len(rest) != 0 {
		return nil, nil, ErrRecord
	}
	return key, value, nil
}

func legacyBytes(b []byte) (field, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, ErrRecord
	}
	n := int32(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n < 0 {
		return nil, b, nil
	}
	if int(n) > len(b) {
		return nil, nil, ErrRecord
	}
	return b[:n:n], b[n:], nil
}
