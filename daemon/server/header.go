package server

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// flexibleFrom is, for each API key, the first version with tagged fields; controlledShutdown is the one API whose first
// version has no client id in its header.
var flexibleFrom [keys]int16

const controlledShutdown = 7

func init() {
	for k := range flexibleFrom {
		flexibleFrom[k] = 1<<15 - 1
		r := kmsg.RequestForKey(int16(k))
		if r == nil {
			continue
		}
		for v := int16(0); v <= r.MaxVersion(); v++ {
			if r.SetVersion(v); r.IsFlexible() {
				flexibleFrom[k] = v
				break
			}
		}
	}
}

// parse reads the request header, versions 0 to 2, and leaves the rest in Body. A header of an unknown key cannot be read
// whole: BadKey.
func (r *Request) parse(frame []byte) Reason {
	if len(frame) < 8 {
		return BadHeader
	}
	r.Key = int16(binary.BigEndian.Uint16(frame))
	r.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	r.Correlation = int32(binary.BigEndian.Uint32(frame[4:]))
	r.Flexible, r.ClientID, r.Body = false, nil, frame[8:]
	if r.Key < 0 || r.Key >= keys {
		return BadKey
	}
	if r.Version < 0 {
		return BadVersion
	}
	r.Flexible = r.Version >= flexibleFrom[r.Key]
	if r.Key == controlledShutdown && r.Version == 0 {
		return 0
	}
	if len(r.Body) < 2 {
		return BadHeader
	}
	n := int(int16(binary.BigEndian.Uint16(r.Body)))
	r.Body = r.Body[2:]
	if n > len(r.Body) {
		return BadHeader
	}
	if n >= 0 {
		r.ClientID, r.Body = r.Body[:n:n], r.Body[n:]
	}
	if r.Flexible && !r.skipTags() {
		return BadHeader
	}
	return 0
}

// skipTags passes over the header's tagged fields: none is known.
func (r *Request) skipTags() bool {
	b := r.Body
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return false
	}
	b = b[n:]
	for range count {
		_, n := binary.Uvarint(b)
		if n <= 0 {
			return false
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return false
		}
		b = b[n+int(size):]
	}
	r.Body = b
	return true
}
