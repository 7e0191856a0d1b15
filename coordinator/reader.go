package coordinator

import "encoding/binary"

// reader takes a record apart. After the first thing that is not there it is bad and gives zeroes; what it gives points into
// the record.
type reader struct {
	rest []byte
	bad  bool
	flex bool // compact strings and arrays, and tagged fields (KIP-482)
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) int16() int16 {
	if b := r.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) uvarint() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > 1<<31 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

// length reads a length, -1 for null; wide ones are of bytes and arrays.
func (r *reader) length(wide bool) int {
	switch {
	case r.flex:
		return r.uvarint() - 1
	case wide:
		return int(r.int32())
	default:
		return int(r.int16())
	}
}

func (r *reader) nullableString() []byte {
	n := r.length(false)
	if n == -1 {
		return nil
	}
	return r.takeString(n)
}

func (r *reader) string() []byte { return r.takeString(r.length(false)) }

// takeString holds the limit of strings, which a compact one could exceed.
func (r *reader) takeString(n int) []byte {
	if n > stringMax {
		n = -1
	}
	return r.take(n)
}

func (r *reader) bytes() []byte { return r.take(r.length(true)) }

func (r *reader) nullableBytes() []byte {
	n := r.length(true)
	if n == -1 {
		return nil
	}
	return r.take(n)
}

// array reads the count of an array whose elements take so many bytes at least.
func (r *reader) array(elementBytes int) int {
	n := r.length(true)
	if n < 0 || n > len(r.rest)/elementBytes {
		r.bad, r.rest = true, nil
		return 0
	}
	return n
}

// tags passes over tagged fields: none is known.
func (r *reader) tags() {
	if !r.flex {
		return
	}
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		r.uvarint()
		r.take(r.uvarint())
	}
}

func (r *reader) nullable() *string {
	b := r.nullableString()
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }
func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }
func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

func appendString(dst []byte, s string) []byte {
	return append(appendInt16(dst, int16(len(s))), s...)
}

func appendNullable(dst []byte, s *string) []byte {
	if s == nil {
		return appendInt16(dst, -1)
	}
	return appendString(dst, *s)
}

func appendBytes(dst, b []byte) []byte {
	return append(appendInt32(dst, int32(len(b))), b...)
}
