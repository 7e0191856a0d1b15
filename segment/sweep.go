package segment

import (
	"encoding/binary"

	"kring/ring"
	"kring/wire/batch"
)

const (
	sweepPiece = 256 << 10 // fits a processor's cache: what was read is there when its checksum is made
	sweepMost  = 8 << 20   // a larger batch is read by the scan
	sweepHeads = 1 << 20   // bytes of headers that are brought back at a time
	sweepBytes = 64 << 20  // and of batches: until then the loop does not know how far the helper is
)

// sweep goes through a segment's file on a helper, which finds the whole batches and checks them, and brings back their headers: the
// log's loop has only what follows from them to do.
type sweep struct {
	check    bool
	progress *Progress
	buf      *ring.Buf
	heads    []byte // of each batch: u16 length, its header, and a control batch's marker
	at       int    // those before it are used
}

func (w *sweep) release() {
	if w.buf != nil {
		w.buf.Release()
	}
}

// next gives the next batch's header, and what a control batch begins with; nil if what stands at the scan's position has to be looked at
// by the scan itself, since it is no whole batch or a very large one.
func (w *sweep) next(sc *scan) (header, error) {
	if w.at == len(w.heads) && sc.pos < sc.end {
		if err := w.fill(sc); err != nil {
			return nil, err
		}
	}
	if w.at == len(w.heads) {
		return nil, nil
	}
	n := int(binary.BigEndian.Uint16(w.heads[w.at:]))
	h := header(w.heads[w.at+2 : w.at+2+n])
	w.at += 2 + n
	return h, nil
}

func (w *sweep) fill(sc *scan) error {
	w.heads, w.at = w.heads[:0], 0
	err := w.through(sc, min(sweepPiece, sc.end-sc.pos))
	if err != nil || len(w.heads) > 0 {
		return err
	}
	h, err := sc.peek()
	if err != nil || h == nil || h.size() <= int64(len(w.buf.B)) || h.size() > sweepMost {
		return nil
	}
	return w.through(sc, h.size())
}

// through has a helper look at what follows the scan's position, by means of size bytes at least.
func (w *sweep) through(sc *scan, size int64) error {
	if w.buf == nil || int64(len(w.buf.B)) < size {
		w.release()
		w.buf = sc.t.Loop().Alloc(int(size))
	}
	buf := w.buf
	buf.Retain() // the helper may outlive this task
	op := &ring.Op{}
	var wake func()
	op.Done = func(*ring.Op) {
		buf.Release()
		wake()
	}
	left, done := sc.end-sc.pos, int64(0)
	sc.t.Suspend(func(resume func()) {
		wake = resume
		sc.f.Through(buf.B, sc.pos, func(b []byte) int {
			if done >= sweepBytes {
				return -1
			}
			n := w.look(b[:min(int64(len(b)), left-done)])
			done += int64(max(n, 0))
			return n
		}, op)
	})
	w.progress.Bytes += max(op.N-sc.pos, 0)
	if op.Err == nil && w.progress.GivenUp {
		return ErrGivenUp
	}
	return op.Err
}

// look notes the whole batches at the start of b and says how long they are; -1 if it is at its end for now.
func (w *sweep) look(b []byte) (n int) {
	for len(b) > n && len(w.heads) < sweepHeads {
		one, _, err := batch.Whole(b[n:])
		if err != nil || w.check && batch.Verify(one) != nil {
			break
		}
		h := header(one)
		keep := min(len(one), batch.HeaderSize)
		if h.isV2() && h.v2().Control() {
			keep = min(len(one), controlBytes)
		}
		w.heads = binary.BigEndian.AppendUint16(w.heads, uint16(keep))
		w.heads = append(w.heads, one[:keep]...)
		n += len(one)
	}
	if len(w.heads) >= sweepHeads && n == 0 {
		return -1
	}
	return n
}
