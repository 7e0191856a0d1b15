package segment

import (
	"encoding/binary"
	"math/bits"
)

// keyHash is SipHash-2-4 with 128 bits (Aumasson and Bernstein): who does not know its key cannot make two keys of records
// that collide, which would have the cleaner drop the older one's value.
type keyHash struct{ k0, k1 uint64 }

type sipState struct{ v0, v1, v2, v3 uint64 }

func (s *sipState) round() {
	s.v0 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
	s.v0 = bits.RotateLeft64(s.v0, 32)
	s.v2 += s.v3
	s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
	s.v0 += s.v3
	s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
	s.v2 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
	s.v2 = bits.RotateLeft64(s.v2, 32)
}

func (s *sipState) take(m uint64) {
	s.v3 ^= m
	s.round()
	s.round()
	s.v0 ^= m
}

// sum hashes b.
func (k keyHash) sum(b []byte) (lo, hi uint64) {
	s := sipState{k.k0 ^ 0x736f6d6570736575, k.k1 ^ 0x646f72616e646f6d ^ 0xee, k.k0 ^ 0x6c7967656e657261, k.k1 ^ 0x7465646279746573}
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		s.take(binary.LittleEndian.Uint64(b))
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	s.take(last)
	s.v2 ^= 0xee
	for range 4 {
		s.round()
	}
	lo = s.v0 ^ s.v1 ^ s.v2 ^ s.v3
	s.v1 ^= 0xdd
	for range 4 {
		s.round()
	}
	return lo, s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}
