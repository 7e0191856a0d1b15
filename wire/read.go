package wire

import (
	"encoding/binary"
	"math"
)

// reader reads a body front to back. After the first thing that does not fit it is bad and gives zeros.
type reader struct {
	b   []byte
	at  int
	bad bool
}

func (r *reader) left() int { return len(r.b) - r.at }

// span gives the next n bytes. n may be any number from the wire.
func (r *reader) span(n int) []byte {
	if r.bad || n < 0 || n > r.left() {
		r.bad = true
		return nil
	}
	s := r.b[r.at : r.at+n : r.at+n]
	r.at += n
	return s
}

func (r *reader) int8() int8 {
	if s := r.span(1); s != nil {
		return int8(s[0])
	}
	return 0
}

func (r *reader) int16() int16 {
	if s := r.span(2); s != nil {
		return int16(binary.BigEndian.Uint16(s))
	}
	return 0
}

func (r *reader) int32() int32 {
	if s := r.span(4); s != nil {
		return int32(binary.BigEndian.Uint32(s))
	}
	return 0
}

func (r *reader) int64() int64 {
	if s := r.span(8); s != nil {
		return int64(binary.BigEndian.Uint64(s))
	}
	return 0
}

func (r *reader) uuid() (id [16]byte) {
	copy(id[:], r.span(16))
	return id
}

// uvarint reads a number of at most five bytes and 32 bits.
func (r *reader) uvarint() uint32 {
	if !r.bad && r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint32(r.b[r.at-1])
	}
	return r.uvarintSlow()
}

func (r *reader) uvarintSlow() uint32 {
	var v uint32
	for shift := 0; shift <= 28; shift += 7 {
		c := uint8(r.int8())
		v |= uint32(c&0x7f) << shift
		if c < 0x80 && (shift < 28 || c <= 0x0f) {
			return v
		}
	}
	r.bad = true
	return 0
}

// compactLength is a compact length less one: -1 is null. What int32 cannot hold is no length.
func (r *reader) compactLength() int {
	n := int64(r.uvarint()) - 1
	if n > math.MaxInt32 {
		r.bad = true
	}
	return int(n)
}

// stringMax is the longest string, in compact form too.
const stringMax = 1<<15 - 1

// nullableString gives the bytes of a string; ok is false for null. An empty string is empty, not nil.
func (r *reader) nullableString(compact bool) (s []byte, ok bool) {
	var n int
	if compact {
		n = r.compactLength()
	} else {
		n = int(r.int16())
	}
	if n < 0 {
		return nil, false
	}
	if n > stringMax {
		r.bad = true
	}
	s = r.span(n)
	return s, !r.bad
}

// string is nullableString where null is not allowed.
func (r *reader) string(compact bool) []byte {
	s, ok := r.nullableString(compact)
	if !ok {
		r.bad = true
	}
	return s
}

// nullableBytes is nullableString with a four-byte length.
func (r *reader) nullableBytes(compact bool) []byte {
	var n int
	if compact {
		n = r.compactLength()
	} else {
		n = int(r.int32())
	}
	if n < 0 {
		return nil
	}
	return r.span(n)
}

// count reads an array's length; each element takes at least size bytes, so a count over what remains is a lie. Null, which
// no array here may be, is bad too.
func (r *reader) count(compact bool, size int) int {
	var n int
	if compact {
		n = r.compactLength()
	} else {
		n = int(r.int32())
	}
	if r.bad || n < 0 || n > r.left()/size {
		r.bad = true
		return 0
	}
	return n
}

func (r *reader) skipTags() {
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		r.uvarint()
		r.span(int(r.uvarint()))
	}
}
