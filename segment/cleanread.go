package segment

import (
	"fmt"

	"kring/ring"
	"kring/wire/batch"
)

const (
	// stretchMost is how many bytes a helper goes through before the log's loop hears of it: some ms where they are in memory.
	stretchMost = 16 << 20
	// batchMost bounds what a damaged length may make us lend.
	batchMost = 256 << 20
)

// cleanReader has a helper go through a segment's bytes in order, a stretch at a time. The helper reads a piece and looks at it while
// it is in the processor's cache; the loop is free meanwhile.
type cleanReader struct {
	k   *cleaning
	s   *segment
	pos int64 // up to here all was looked at

	buf *ring.Buf // for a piece
	big *ring.Buf // for a batch that is larger

	largest int // bytes of the largest of these

	busy bool // a stretch is under way; what follows is the helper's until it ends
	look func([]byte) (done int, more bool)
	left int64 // bytes to the end of the segment
	most int64 // after how many the stretch ends
	done int64 // bytes looked at
	all  bool  // look wants no more
	seen int   // bytes that were there at last and not done with
	next int64 // size of the batch that they begin with; 0: too little is there to know
	op   ring.Op
	wake func()
}

func newCleanReader(k *cleaning, size int) *cleanReader {
	r := &cleanReader{k: k, buf: k.l.loop.Alloc(size)}
	r.buf.B = r.buf.B[:size]
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
func (r *cleanReader) begin(s *segment, pos int64) { r.s, r.pos, r.next = s, pos, 0 }

// more says whether there is something to read.
func (r *cleanReader) more() bool { return r.pos < r.s.size }

// start begins a stretch. look, on the helper, is given what was read, and says how many bytes of it, whole batches, it is done with
// and whether it wants more. A stretch ends when it does not, or after a while.
func (r *cleanReader) start(look func([]byte) (done int, more bool)) {
	r.look, r.left, r.most = look, r.s.size-r.pos, r.k.o.Throttle.most(stretchMost)
	b := r.room()
	r.done, r.all, r.seen, r.next, r.busy = 0, false, 0, 0, true
	r.s.file.Through(b, r.pos, r.piece, &r.op)
}

// room is where to read to: there is enough for the next batch, if its size is known and can be true.
func (r *cleanReader) room() []byte {
	large := r.next > int64(len(r.buf.B)) && r.next <= min(r.left, batchMost)
	if r.big != nil && (!large || int64(len(r.big.B)) < r.next) {
		r.dropBig()
	}
	if !large {
		return r.buf.B
	}
	if r.big == nil {
		r.big = r.k.l.loop.Alloc(int(r.next))
		r.largest = max(r.largest, len(r.big.B))
	}
	return r.big.B
}

// piece is the helper's part.
func (r *cleanReader) piece(b []byte) int {
	b = b[:min(int64(len(b)), r.left-r.done)]
	n, more := r.look(b)
	r.done, r.all = r.done+int64(n), !more
	r.seen, r.next = len(b)-n, 0
	if r.seen >= batch.PrefixSize {
		r.next = header(b[n:]).size()
	}
	if r.all || r.done == r.left || n > 0 && r.done >= r.most {
		return ^n
	}
	return n
}

// idle waits until nothing is being read.
func (r *cleanReader) idle() {
	for r.busy {
		r.k.t.Suspend(func(wake func()) { r.wake = wake })
	}
}

// wait waits for the end of the stretch.
func (r *cleanReader) wait() error {
	if r.idle(); r.op.Err != nil {
		return fmt.Errorf("reading %s: %w", r.s.path(logSuffix), r.op.Err)
	}
	r.pos += r.done
	if r.done == 0 && !r.all {
		if err := r.stuck(); err != nil {
			return err
		}
	}
	return r.k.pay(int(r.done))
}

// stuck is why the stretch has come no further; nil if there was no room for the next batch.
func (r *cleanReader) stuck() error {
	room := len(r.buf.B)
	if r.big != nil {
		room = len(r.big.B)
	}
	switch {
	case int64(r.seen) < min(int64(room), r.left):
		return &bad{r.pos + int64(r.seen), "the file has ended"}
	case r.next == 0 || r.next > r.left:
		return &bad{r.pos, "a batch is cut off"}
	case r.next > batchMost:
		return &bad{r.pos, fmt.Sprintf("a batch of %d bytes", r.next)}
	}
	return nil
}

// end leaves the segment.
func (r *cleanReader) end() {
	r.idle()
	r.dropBig()
	r.s = nil
}

func (r *cleanReader) dropBig() {
	if r.big != nil {
		r.big.Release()
		r.big = nil
	}
}

// memory is how many bytes were in use at most.
func (r *cleanReader) memory() int64 { return int64(len(r.buf.B) + r.largest) }

// release gives the memory back; nothing is being read.
func (r *cleanReader) release() {
	r.dropBig()
	r.buf.Release()
}
