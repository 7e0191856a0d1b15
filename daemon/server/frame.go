package server

import "encoding/binary"

// apiVersions is the one API whose answer always has the oldest header.
const apiVersions = 18

// responseHeaderMost is size, correlation id and an empty tag section.
const responseHeaderMost = 9

// messageRoom is lent for answers of unknown size.
const messageRoom = 1000

// partsKept bounds what a pooled request keeps of a large answer's parts.
const partsKept = 1024

// keys is the count of API keys counted apart; others share.
const keys = 128

// cut finds how much of data is whole frames, and how many bytes the next one needs from there on to be whole. bad is set
// where a size is no size.
func (s *Server) cut(data []byte) (whole, need int, bad Reason) {
	for {
		rest := data[whole:]
		if len(rest) < 4 {
			return whole, min(len(rest), 1) * 4, 0
		}
		size := int32(binary.BigEndian.Uint32(rest))
		if size < 0 || int(size) > s.o.RequestBytes {
			return whole, 0, BadSize
		}
		if len(rest) < 4+int(size) {
			return whole, 4 + int(size), 0
		}
		whole += 4 + int(size)
	}
}

// cutFrame takes the first of a row of whole frames.
func cutFrame(data []byte) (frame, rest []byte) {
	n := 4 + int(binary.BigEndian.Uint32(data))
	return data[4:n:n], data[n:]
}
