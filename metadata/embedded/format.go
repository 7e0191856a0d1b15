package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"kring/metadata"
)

// The files begin with 24 bytes: eight of magic, version (4), zxid (8), CRC-32C of the 20 before. All numbers are big-endian.
const (
	logMagic      = "kringlog"
	snapshotMagic = "kringsnp"
	formatVersion = 1
	headerSize    = 24
)

// A frame is a mark (4), the payload's length (4), CRC-32C of the frame's place in the file (8 bytes), mark, length and
// payload (4), and the payload: transactions. A snapshot is frames too; the last one has the end mark and counts the nodes. The
// place is in the checksum so that a frame inside a node's data is never taken for one of the file's.
const (
	frameMark = 0x6b667231
	endMark   = 0x6b666531
	frameHead = 12
	// maxFrame bounds what a length in a file can make us read at once.
	maxFrame = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DamageError is a store file that is not as it was written.
type DamageError struct {
	File   string
	Offset int64
	What   string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("metadata store is damaged: %s at byte %d: %s", e.File, e.Offset, e.What)
}

func appendHeader(b []byte, magic string, zxid metadata.Zxid) []byte {
	from := len(b)
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint32(b, formatVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

func readHeader(b []byte, magic string) (metadata.Zxid, error) {
	switch {
	case len(b) < headerSize:
		return 0, errors.New("header is incomplete")
	case string(b[:8]) != magic:
		return 0, fmt.Errorf("does not begin with %q", magic)
	case binary.BigEndian.Uint32(b[20:]) != crc32.Checksum(b[:20], castagnoli):
		return 0, errors.New("checksum of the header does not match")
	case binary.BigEndian.Uint32(b[8:]) != formatVersion:
		return 0, fmt.Errorf("format version %d; this program reads %d", binary.BigEndian.Uint32(b[8:]), formatVersion)
	}
	return metadata.Zxid(binary.BigEndian.Uint64(b[12:])), nil
}

// beginFrame leaves room for a frame's head; endFrame fills it in, for a frame that will stand at byte at.
func beginFrame(b []byte) []byte { return append(b, make([]byte, frameHead)...) }

func endFrame(frame []byte, at int64, mark uint32) {
	binary.BigEndian.PutUint32(frame, mark)
	binary.BigEndian.PutUint32(frame[4:], uint32(len(frame)-frameHead))
	binary.BigEndian.PutUint32(frame[8:], frameSum(frame, frame[frameHead:], at))
}

func frameSum(head, payload []byte, at int64) uint32 {
	var place [8]byte
	binary.BigEndian.PutUint64(place[:], uint64(at))
	sum := crc32.Update(crc32.Checksum(place[:], castagnoli), castagnoli, head[:8])
	return crc32.Update(sum, castagnoli, payload)
}

// readFrame gives the payload of the frame that b, the file from at on, begins with.
func readFrame(b []byte, at int64) (mark uint32, payload []byte, err error) {
	if len(b) < frameHead {
		return 0, nil, errors.New("frame head is incomplete")
	}
	mark = binary.BigEndian.Uint32(b)
	if mark != frameMark && mark != endMark {
		return 0, nil, errors.New("no frame begins here")
	}
	n := int64(binary.BigEndian.Uint32(b[4:]))
	if n > maxFrame || n > int64(len(b)-frameHead) {
		return 0, nil, fmt.Errorf("frame of %d bytes, %d left", n, len(b)-frameHead)
	}
	payload = b[frameHead : frameHead+n]
	if frameSum(b, payload, at) != binary.BigEndian.Uint32(b[8:]) {
		return 0, nil, errors.New("checksum of a frame does not match")
	}
	return mark, payload, nil
}

// A transaction is zxid (8), time (8), session (8), number of changes (4), and each: kind (1), owner (8), path and data.
func appendTxn(b []byte, zxid metadata.Zxid, now int64, session metadata.SessionID, changes []change) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(zxid))
	b = binary.BigEndian.AppendUint64(b, uint64(now))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	b = binary.BigEndian.AppendUint32(b, uint32(len(changes)))
	for i := range changes {
		c := &changes[i]
		b = append(b, byte(c.kind))
		b = binary.BigEndian.AppendUint64(b, uint64(c.owner))
		b = appendBytes(b, []byte(c.path))
		b = appendBytes(b, c.data)
	}
	return b
}

// appendBytes writes a length (-1 for nil) and the bytes.
func appendBytes(b, v []byte) []byte {
	if v == nil {
		return binary.BigEndian.AppendUint32(b, ^uint32(0))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}

// reader takes a payload apart; after the first shortage everything is zero and bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u8() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if v := r.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (r *reader) i64() int64 {
	if v := r.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// bytes copies, so that the file's memory can go.
func (r *reader) bytes() []byte {
	n := int32(r.u32())
	if n == -1 {
		return nil
	}
	v := r.take(int(n))
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

// replay applies the transactions of a frame to the tree, but for those that the snapshot the tree was read from holds.
func (t *tree) replay(payload []byte, snapshot metadata.Zxid) error {
	r := reader{b: payload}
	for len(r.b) > 0 {
		zxid, now, session := metadata.Zxid(r.i64()), r.i64(), metadata.SessionID(r.i64())
		n := r.u32()
		held := zxid <= snapshot
		if r.bad || !held && (zxid <= t.zxid || session < t.session) {
			return fmt.Errorf("transaction %d of session %d does not follow %d of session %d", zxid, session, t.zxid, t.session)
		}
		if !held {
			t.zxid, t.session = zxid, session
		}
		for range n {
			c := change{kind: metadata.OpKind(r.u8()), owner: metadata.SessionID(r.i64()), path: string(r.bytes()), data: r.bytes()}
			if r.bad {
				return errors.New("transaction is incomplete")
			}
			if err := checkPath(c.path); err != nil || c.kind < metadata.OpCreate || c.kind > metadata.OpDelete {
				return fmt.Errorf("transaction %d has a change of kind %d on path %q", zxid, c.kind, c.path)
			}
			if held {
				continue
			}
			if _, err := t.apply(&c, zxid, now, nil); err != nil {
				return fmt.Errorf("transaction %d cannot be applied: %w", zxid, err)
			}
		}
	}
	return nil
}
