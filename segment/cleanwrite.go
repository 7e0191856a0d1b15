package segment

import (
	"fmt"

	"kring/ring"
	"kring/wire/batch"
)

// cleanWriter writes what is left of a group, a buffer at a time, while a helper fills another one.
type cleanWriter struct {
	k    *cleaning
	s    *segment
	bufs [2]*ring.Buf
	room int    // how much is gathered before it is written
	out  []byte // being gathered; it begins in bufs[0], and is the helper's while one reads
	full []byte // to be written; it begins in bufs[1]
	busy bool   // it is being written
}

func newCleanWriter(k *cleaning, size int) cleanWriter {
	w := cleanWriter{k: k, room: size / 2}
	for i := range w.bufs {
		w.bufs[i] = k.l.loop.Alloc(size)
	}
	return w
}

// begin goes to a new segment.
func (w *cleanWriter) begin(s *segment) {
	w.s, w.out, w.full = s, w.bufs[0].B[:0], nil
}

// turn has what was gathered written next; what was before is written.
func (w *cleanWriter) turn() {
	w.bufs[0], w.bufs[1] = w.bufs[1], w.bufs[0]
	w.full, w.out = w.out, w.bufs[0].B[:0]
}

// end writes what is left.
func (w *cleanWriter) end() error {
	if err := w.flush(); err != nil {
		return err
	}
	w.turn()
	return w.flush()
}

// flush writes what is full and notes its batches in the indexes.
func (w *cleanWriter) flush() error {
	k, s, out := w.k, w.s, w.full
	w.full = nil
	if err := k.stopped(); err != nil || len(out) == 0 {
		return err
	}
	if s.size+int64(len(out)) > maxRelative {
		return fmt.Errorf("%s: what is left of its group does not fit into one segment", s.path(logSuffix))
	}
	for at := 0; at < len(out); { // in bites, as each may be written on the loop's own time, within the turn that asks
		if at > 0 {
			k.t.Sleep(0)
		}
		n := min(len(out)-at, writeMost)
		w.busy = true
		err := k.t.Write(s.file, out[at:at+n], s.size+int64(at))
		w.busy = false
		if err != nil {
			return k.failed("writing", err)
		}
		at += n
		if err := k.stopped(); err != nil {
			return err
		}
	}
	for rest := out; len(rest) > 0; {
		b, after, err := batch.Whole(rest)
		if err != nil {
			k.l.broken(10, "a cleaned batch: %v", err)
		}
		rest = after
		if header(b).last()-s.base > maxRelative {
			return fmt.Errorf("%s: offset %d is too far from its group's first", s.path(logSuffix), header(b).last())
		}
		s.noteBatch(header(b), k.l.conf.IndexIntervalBytes)
	}
	s.written = s.size
	k.c.stats.WrittenBytes += int64(len(out))
	return k.pay(len(out))
}

const writeMost = 256 << 10

func (w *cleanWriter) release() {
	for _, b := range w.bufs {
		b.Release()
	}
}
