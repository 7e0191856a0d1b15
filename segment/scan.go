package segment

import (
	"fmt"
	"hash/crc32"

	"kring/ring"
	"kring/wire/batch"
)

const (
	scanSmall = 4 << 10 // for a look at a few headers: about what lies between two entries of an index
	scanLarge = 1 << 20 // for reading all
)

// scan walks the batches of a segment file between two positions. It belongs to one task; release it.
type scan struct {
	t    *ring.Task
	f    ring.File
	size int       // of buf
	buf  *ring.Buf // lent at the first read
	mem  []byte    // what lies at from
	from int64
	pos  int64 // of the batch at hand
	end  int64
	head [batch.HeaderSize]byte
}

func newScan(t *ring.Task, f ring.File, pos, end int64, size int) *scan {
	return &scan{t: t, f: f, size: size, pos: pos, end: end}
}

func (sc *scan) release() {
	if sc.buf != nil {
		sc.buf.Release()
		sc.buf, sc.mem = nil, nil
	}
}

// bytes gives n bytes at pos, n at most the buffer's size; fewer at the end of the file. They are valid until the next call.
func (sc *scan) bytes(pos, n int64) ([]byte, error) {
	n = min(n, sc.end-pos)
	if pos < sc.from || pos+n > sc.from+int64(len(sc.mem)) {
		if sc.buf == nil {
			sc.buf = sc.t.Loop().Alloc(sc.size)
		}
		want := min(int64(sc.size), sc.end-pos)
		got, err := sc.t.Read(sc.f, sc.buf.B[:want], pos)
		if err != nil {
			return nil, err
		}
		sc.from, sc.mem = pos, sc.buf.B[:got]
	}
	at := pos - sc.from
	return sc.mem[at:min(at+n, int64(len(sc.mem)))], nil
}

// bad says why the bytes at a position are no batch.
type bad struct {
	pos int64
	why string
}

func (b *bad) Error() string { return fmt.Sprintf("at position %d: %s", b.pos, b.why) }
func (b *bad) Unwrap() error { return ErrMalformed }

// peek gives the header of the batch at pos, nil at the end. The header stays valid until the next peek. *bad says that
// there is no whole batch there.
func (sc *scan) peek() (header, error) {
	if sc.pos >= sc.end {
		return nil, nil
	}
	b, err := sc.bytes(sc.pos, batch.HeaderSize)
	if err != nil {
		return nil, err
	}
	n := copy(sc.head[:], b)
	h := header(sc.head[:n])
	size, err := batch.Next(h)
	switch {
	case err != nil:
		return nil, &bad{sc.pos, err.Error()}
	case sc.pos+int64(size) > sc.end:
		return nil, &bad{sc.pos, fmt.Sprintf("a batch of %d bytes is cut off after %d", size, sc.end-sc.pos)}
	case h.base() < 0 || h.last() < h.base():
		return nil, &bad{sc.pos, fmt.Sprintf("offsets from %d to %d", h.base(), h.last())}
	}
	return h, nil
}

// verify checks the checksum of the batch at hand without holding it whole.
func (sc *scan) verify(h header) error {
	size := h.size()
	table, from, want := castagnoli, int64(batch.BodyStart), h.v2().CRC()
	if !h.isV2() {
		table, from, want = crc32.IEEETable, 16, uint32(h.v2().LeaderEpoch())
	}
	crc := uint32(0)
	for at := from; at < size; {
		b, err := sc.bytes(sc.pos+at, min(size-at, int64(sc.size)))
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return &bad{sc.pos, "the file became shorter"}
		}
		crc = crc32.Update(crc, table, b)
		at += int64(len(b))
	}
	if crc != want {
		return &bad{sc.pos, fmt.Sprintf("checksum %08x is not %08x", crc, want)}
	}
	return nil
}

// control gives the start of the control batch at hand, enough for its marker.
func (sc *scan) control(h header) ([]byte, error) {
	return sc.bytes(sc.pos, min(h.size(), controlBytes))
}

// skip goes on to the next batch.
func (sc *scan) skip(h header) { sc.pos += h.size() }

// locate walks to the first batch whose last offset is at or above o: its header, or nil if there is none before the end.
func (sc *scan) locate(o Offset) (header, error) {
	for {
		h, err := sc.peek()
		if h == nil || err != nil || h.last() >= o {
			return h, err
		}
		sc.skip(h)
	}
}
