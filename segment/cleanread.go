package segment

import (
	"fmt"

	"kring/ring"
	"kring/wire/batch"
)

// cleanReader gives a segment's bytes in order and reads the next piece while one is being looked at. What is left of a piece, a batch
// that is cut off, is put in front of the next one: no byte is read twice.
type cleanReader struct {
	k    *cleaning
	s    *segment
	left []byte // not done with
	pos  int64  // its position
	next int64  // of the piece ahead

	size int          // of a piece, and of the room in front of it
	bufs [2]*ring.Buf // of left and of the piece ahead
	big  *ring.Buf    // of a batch for which there is no room in them

	busy bool // the piece ahead is being read
	want int  // its size; 0: none is asked for
	op   ring.Op
	wake func()
}

// batchMost bounds what a damaged length may make us lend.
const batchMost = 256 << 20

func newCleanReader(k *cleaning, size int) *cleanReader {
	r := &cleanReader{k: k, size: size}
	for i := range r.bufs {
		r.bufs[i] = k.l.loop.Alloc(2 * size)
	}
	r.op.Done = func(*ring.Op) {
		r.busy = false
		if wake := r.wake; wake != nil {
			r.wake = nil
			wake()
		}
	}
	return r
}

// begin goes to a position of a segment, whose file is open.
func (r *cleanReader) begin(s *segment, pos int64) {
	r.s, r.left, r.pos, r.next = s, nil, pos, pos
	r.ahead()
}

// ahead reads the next piece, if there is one.
func (r *cleanReader) ahead() {
	r.want = int(min(int64(r.size), r.s.size-r.next))
	if r.want > 0 {
		r.busy = true
		r.s.file.Read(r.bufs[1].B[r.size:r.size+r.want], r.next, &r.op)
	}
}

// idle waits until nothing is being read.
func (r *cleanReader) idle() {
	for r.busy {
		r.k.t.Suspend(func(wake func()) { r.wake = wake })
	}
}

// more adds to what is left, at least up to the end of the batch it begins with; false at the end of the segment.
func (r *cleanReader) more() (bool, error) {
	if size := r.begun(); len(r.left) > r.size || size > int64(len(r.left)+r.size) {
		return true, r.whole(size)
	}
	r.idle()
	if r.want <= 0 {
		if len(r.left) > 0 {
			return false, &bad{r.pos, "a batch is cut off"}
		}
		return false, nil
	}
	if r.op.Err != nil {
		return false, r.failed(r.op.Err)
	}
	n, kept := int(r.op.N), len(r.left)
	if n == 0 {
		return false, &bad{r.next, "the file has ended"}
	}
	b := r.bufs[1].B
	copy(b[r.size-kept:], r.left)
	r.left = b[r.size-kept : r.size+n]
	r.bufs[0], r.bufs[1] = r.bufs[1], r.bufs[0]
	r.next += int64(n)
	r.ahead()
	return true, r.k.pay(n)
}

// begun is the size of the batch that left begins with, 0 if too little is there to know.
func (r *cleanReader) begun() int64 {
	if len(r.left) < batch.PrefixSize {
		return 0
	}
	return header(r.left).size()
}

// whole reads the whole batch that left begins with.
func (r *cleanReader) whole(size int64) error {
	if size <= int64(len(r.left)) || size > r.s.size-r.pos {
		return &bad{r.pos, "a batch is cut off"}
	}
	if size > batchMost {
		return &bad{r.pos, fmt.Sprintf("a batch of %d bytes", size)}
	}
	r.idle() // what was read ahead is read again
	if r.big == nil || int64(len(r.big.B)) < size {
		r.dropBig()
		r.big = r.k.l.loop.Alloc(int(size))
	}
	b := r.big.B[:size]
	have := copy(b, r.left)
	for have < len(b) { // in pieces, as each may be read on the loop's own time, within the turn that asks
		r.k.t.Sleep(0)
		n, err := r.k.t.Read(r.s.file, b[have:min(have+r.size, len(b))], r.pos+int64(have))
		switch {
		case err != nil:
			return r.failed(err)
		case n == 0:
			return &bad{r.pos, "a batch is cut off"}
		}
		have += n
		if err := r.k.pay(n); err != nil {
			return err
		}
	}
	r.left, r.next = b, r.pos+size
	r.ahead()
	return nil
}

func (r *cleanReader) failed(err error) error {
	return fmt.Errorf("reading %s: %w", r.s.path(logSuffix), err)
}

// done says that n bytes were looked at.
func (r *cleanReader) done(n int) {
	r.left, r.pos = r.left[n:], r.pos+int64(n)
}

// end leaves the segment.
func (r *cleanReader) end() {
	r.idle()
	r.s, r.left = nil, nil
	r.dropBig()
}

func (r *cleanReader) dropBig() {
	if r.big != nil {
		r.big.Release()
		r.big = nil
	}
}

// memory is how many bytes are in use.
func (r *cleanReader) memory() int64 {
	n := int64(4 * r.size)
	if r.big != nil {
		n += int64(len(r.big.B))
	}
	return n
}

// release gives the memory back; nothing is being read.
func (r *cleanReader) release() {
	r.dropBig()
	for _, b := range r.bufs {
		b.Release()
	}
}
