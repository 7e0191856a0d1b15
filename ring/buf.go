package ring

// Buf is a counted piece of memory lent by a loop. Only its own loop may touch the count.
type Buf struct {
	// B is the whole piece.
	B    []byte
	refs int32
	free func(*Buf)

	// whole, class and cold belong to the slab of the loop that lends it.
	whole []byte
	class int16
	cold  bool
}

// NewBuf wraps memory with one reference; free is called when the last one goes.
func NewBuf(b []byte, free func(*Buf)) *Buf { return &Buf{B: b, refs: 1, free: free} }

// Reset makes a returned buffer ready to be lent again, with one reference.
func (b *Buf) Reset() { b.refs = 1 }

// Retain adds a reference.
func (b *Buf) Retain() { b.refs++ }

// Release drops a reference; the last one returns the memory.
func (b *Buf) Release() {
	b.refs--
	if b.refs == 0 {
		b.free(b)
	} else if b.refs < 0 {
		panic("ring: buffer released more often than retained")
	}
}
