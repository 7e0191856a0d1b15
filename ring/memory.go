package ring

import (
	"math/bits"

	"golang.org/x/sys/unix"
)

const (
	pageSize   = 4096
	slabMost   = 1 << 20   // larger buffers are mapped for one use
	slabChunk  = 256 << 10 // what a class maps at a time, at least
	classSteps = 4         // sizes per doubling
)

// slab lends a loop's buffers: memory outside the Go heap in classes of sizes, each a stack of free buffers. What a class
// has not needed for a while is given back to the system, and faulted in anew when it is.
type slab struct {
	classes [(21 + 1) * classSteps]class
	inUse   int64 // lent, by size of class
	warm    int64 // free, but resident
	free    func(*Buf)
}

type class struct {
	size  int
	stack []*Buf
	low   int // the shortest the stack was since the last trim
	cold  int // so many at the bottom are not resident
}

// classOf is the class of n bytes and its size.
func classOf(n int) (index, size int) {
	if n <= pageSize {
		return 0, pageSize
	}
	e := bits.Len(uint(n - 1))
	base := 1 << (e - 1)
	step := max(base/classSteps, pageSize)
	k := (n - base + step - 1) / step
	return (e-1)*classSteps + k - 1, base + k*step
}

func (s *slab) alloc(n int) *Buf {
	if n > slabMost {
		return s.map1(n)
	}
	i, size := classOf(n)
	c := &s.classes[i]
	if len(c.stack) == 0 {
		s.grow(c, i, size)
	}
	b := c.stack[len(c.stack)-1]
	c.stack = c.stack[:len(c.stack)-1]
	c.low = min(c.low, len(c.stack))
	if len(c.stack) < c.cold {
		c.cold = len(c.stack)
		b.cold = false
	} else {
		s.warm -= int64(size)
	}
	s.inUse += int64(size)
	b.B = b.whole
	b.Reset()
	return b
}

func (s *slab) grow(c *class, index, size int) {
	if s.free == nil {
		s.free = s.put
	}
	c.size = size
	n := max(slabChunk/size, 1)
	mem := mapAnon(n * size)
	for i := range n {
		part := mem[i*size : (i+1)*size : (i+1)*size]
		c.stack = append(c.stack, &Buf{whole: part, free: s.free, class: int16(index), cold: true})
	}
	c.cold = len(c.stack)
}

func (s *slab) put(b *Buf) {
	c := &s.classes[b.class]
	c.stack = append(c.stack, b)
	s.inUse -= int64(c.size)
	s.warm += int64(c.size)
}

func (s *slab) map1(n int) *Buf {
	size := (n + pageSize - 1) &^ (pageSize - 1)
	mem := mapAnon(size)
	s.inUse += int64(size)
	return NewBuf(mem, func(*Buf) {
		s.inUse -= int64(size)
		if err := unix.Munmap(mem); err != nil {
			panic("ring: munmap: " + err.Error())
		}
	})
}

// trim gives back what was not used since the last trim, at most most buffers. True: there is more to come.
func (s *slab) trim(most int) (more bool) {
	for i := range s.classes {
		c := &s.classes[i]
		for c.cold < c.low && most > 0 {
			b := c.stack[c.cold]
			unix.Madvise(b.whole, unix.MADV_DONTNEED)
			b.cold = true
			c.cold++
			s.warm -= int64(c.size)
			most--
		}
		if c.cold < len(c.stack) {
			more = true
		}
		c.low = len(c.stack)
	}
	return more
}
