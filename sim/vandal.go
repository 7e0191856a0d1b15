package sim

import (
	"encoding/binary"

	"kring/ring/simring"
	"kring/wire"
)

// vandals sends what no client would: any bytes, lengths that lie, requests cut off or with bytes changed, headers of keys and
// versions nobody serves. The broker may close on them or answer; it must go on for the others.
func vandals(s *Story) {
	r := s.w.FaultRand()
	for range 3 + r.IntN(10) {
		c := s.w.Dial("k:" + port)
		c.OnReceive = func([]byte) {}
		var b []byte
		switch r.IntN(5) {
		case 0:
			b = s.noise(1 + r.IntN(3000))
		case 1:
			b = binary.BigEndian.AppendUint32(nil, r.Uint32())
			b = append(b, s.noise(r.IntN(200))...)
		case 2:
			b = s.frame(int16(r.IntN(80)), int16(r.IntN(20)), s.noise(r.IntN(300)))
		case 3:
			b = s.frame(0, int16(3+r.IntN(9)), s.noise(50+r.IntN(300)))
		case 4:
			b = s.frame(1, int16(4+r.IntN(14)), s.noise(30+r.IntN(100)))
		}
		c.Send(b)
		s.leave(c)
	}
}

// leave has a vandal go in one of the ways there are; or it stays until the broker has enough of it.
func (s *Story) leave(c *simring.Client) {
	r := s.w.FaultRand()
	after := s.pause(80_000_000)
	switch r.IntN(4) {
	case 0:
		s.w.After(after, c.Finish)
	case 1:
		s.w.After(after, c.Reset)
	case 2:
		s.w.After(after, c.Close)
	default:
		c.Pause()
		s.w.After(20*after, c.Close)
	}
}

// frame is a request's frame with a sound header before any body.
func (s *Story) frame(key, version int16, body []byte) []byte {
	head := wire.RequestHeader{Key: key, Version: version, CorrelationID: 7, ClientID: []byte("vandal")}
	b := append(wire.AppendRequestHeader(make([]byte, 4), &head), body...)
	wire.PutFrameSize(b, 0)
	return b
}

// noise is bytes that are mostly small, as lengths and counts are.
func (s *Story) noise(n int) []byte {
	r := s.w.FaultRand()
	b := make([]byte, n)
	for i := range b {
		if b[i] = byte(r.IntN(4)); r.IntN(6) == 0 {
			b[i] = byte(r.IntN(256))
		}
	}
	return b
}
