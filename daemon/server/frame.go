package server

import "kring/wire"

// responseHeaderMost is size, correlation id and an empty tag section.
const responseHeaderMost = 9

// messageRoom is lent for answers of unknown size.
const messageRoom = 1000

// partsKept bounds what a pooled request keeps of a large answer's parts.
const partsKept = 1024

// keys is the count of API keys.
const keys = int(wire.KeyMax) + 1

// cut finds how much of data is whole frames, and how many bytes the next one needs from there on to be whole. bad is set
// where a size is no size.
func (s *Server) cut(data []byte) (whole, need int, bad Reason) {
	for {
		rest := data[whole:]
		if len(rest) < wire.SizeLength {
			return whole, min(len(rest), 1) * wire.SizeLength, 0
		}
		size, err := wire.FrameSize(rest, s.o.RequestBytes)
		if err != nil {
			return whole, 0, BadSize
		}
		if len(rest) < wire.SizeLength+size {
			return whole, wire.SizeLength + size, 0
		}
		whole += wire.SizeLength + size
	}
}

// cutFrame takes the first of a row of whole frames.
func cutFrame(data []byte) (frame, rest []byte) {
	size, _ := wire.FrameSize(data, len(data))
	n := wire.SizeLength + size
	return data[wire.SizeLength:n:n], data[n:]
}
