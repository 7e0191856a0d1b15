package wire

import (
	"encoding/binary"
	"errors"
)

// SizeLength is the length of a frame's size field, which does not count itself.
const SizeLength = 4

// The refusals of this package; each means that the peer does not speak Kafka as we do, and ends the connection.
var (
	ErrFrameSize = errors.New("frame size is negative or over the limit")
	ErrHeader    = errors.New("malformed request header")
	ErrKey       = errors.New("unknown api key")
	ErrVersion   = errors.New("unsupported api version")
	ErrBody      = errors.New("malformed request body")
	ErrTooMany   = errors.New("request would take too much memory")
)

// FrameSize reads the size of a frame from its first four bytes: the length of what follows them. limit is the largest one
// allowed (socket.request.max.bytes). b must hold four bytes.
func FrameSize(b []byte, limit int) (int, error) {
	n := int32(binary.BigEndian.Uint32(b))
	if n < 0 || int64(n) > int64(limit) {
		return 0, ErrFrameSize
	}
	return int(n), nil
}

// PutFrameSize writes the size of a frame that is whole, or whose other parts hold more bytes.
func PutFrameSize(frame []byte, more int64) {
	binary.BigEndian.PutUint32(frame, uint32(int64(len(frame))-SizeLength+more))
}

// RequestHeader is the header before every request.
type RequestHeader struct {
	Key, Version  int16
	CorrelationID int32
	// ClientID points into the frame; null comes as empty, as Kafka takes it.
	ClientID []byte
	// Flexible says that body and answer have compact lengths and tagged fields.
	Flexible bool
}

// ParseRequestHeader reads the header of a frame (without its size) and gives the length it took: header version 2 for
// flexible versions, 1 for others, 0 for ControlledShutdown 0. The version itself may still be one we do not speak: of
// ApiVersions any must be read, so that it can be answered.
func ParseRequestHeader(b []byte) (h RequestHeader, n int, err error) {
	r := reader{b: b}
	h.Key, h.Version, h.CorrelationID = r.int16(), r.int16(), r.int32()
	if r.bad {
		return h, 0, ErrHeader
	}
	if row(h.Key) == nil {
		return h, 0, ErrKey
	}
	if h.Version < 0 {
		return h, 0, ErrVersion
	}
	h.Flexible = Flexible(h.Key, h.Version)
	if h.Key != ControlledShutdown || h.Version != 0 {
		h.ClientID, _ = r.nullableString(false)
	}
	if h.Flexible {
		r.skipTags()
	}
	if r.bad {
		return h, 0, ErrHeader
	}
	return h, r.at, nil
}

// AppendRequestHeader is the other side, for clients and tests.
func AppendRequestHeader(dst []byte, h *RequestHeader) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.CorrelationID))
	if h.Key == ControlledShutdown && h.Version == 0 {
		return dst
	}
	if h.ClientID == nil {
		dst = append(dst, 0xff, 0xff)
	} else {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(h.ClientID)))
		dst = append(dst, h.ClientID...)
	}
	if Flexible(h.Key, h.Version) {
		dst = append(dst, 0)
	}
	return dst
}

// AppendResponseHeader begins an answer: the correlation id and, for flexible versions, no tags. The answer to ApiVersions
// never has tags there, as its client cannot know yet what we speak (KIP-511).
func AppendResponseHeader(dst []byte, key, version int16, correlationID int32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if key != ApiVersions && Flexible(key, version) {
		dst = append(dst, 0)
	}
	return dst
}

// ResponseHeaderSize is the length of what AppendResponseHeader appends.
func ResponseHeaderSize(key, version int16) int {
	if key != ApiVersions && Flexible(key, version) {
		return 5
	}
	return 4
}
