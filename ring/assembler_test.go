package ring

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// frames is a receiver of length-prefixed frames.
type frames struct {
	got    [][]byte
	limit  int // frames per call; 0: all
	keep   []*Buf
	views  [][]byte
	retain bool
	pause  func() bool
}

func (f *frames) Received(data []byte, b *Buf) (consumed, need int) {
	for n := 0; ; n++ {
		rest := data[consumed:]
		if len(rest) < 4 {
			return consumed, 4
		}
		size := 4 + int(binary.BigEndian.Uint32(rest))
		if len(rest) < size {
			return consumed, size
		}
		if f.limit > 0 && n == f.limit {
			return consumed, size
		}
		f.got = append(f.got, bytes.Clone(rest[4:size]))
		if f.retain {
			b.Retain()
			f.keep, f.views = append(f.keep, b), append(f.views, rest[4:size])
		}
		consumed += size
		if f.pause != nil && f.pause() {
			return consumed, 4
		}
	}
}

func (f *frames) Closed(error) {}

func TestAssemblerGivesFramesWholeInWhateverPieces(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		lent := 0
		alloc := func(n int) *Buf {
			lent++
			return NewBuf(make([]byte, n+r.IntN(100)), func(*Buf) { lent-- })
		}
		a := &Assembler{Alloc: alloc}
		f := &frames{limit: r.IntN(3), retain: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			f.pause = func() bool { on := r.IntN(4) == 0; a.Hold(on); return on }
		}
		var stream []byte
		var want [][]byte
		for range 30 {
			p := make([]byte, r.IntN(3000))
			if r.IntN(20) == 0 {
				p = make([]byte, r.IntN(2<<20))
			}
			for i := range p {
				p[i] = byte(r.Uint32())
			}
			want = append(want, p)
			stream = binary.BigEndian.AppendUint32(stream, uint32(len(p)))
			stream = append(stream, p...)
		}
		for len(stream) > 0 {
			n := min(len(stream), 1+r.IntN(16<<10))
			if miss := a.Missing(); miss > 0 && r.IntN(2) == 0 {
				space, b := a.Space()
				if len(space) == 0 || len(space) > miss {
					t.Fatalf("space of %d where %d are missing", len(space), miss)
				}
				b.Retain()
				n = copy(space[:1+r.IntN(len(space))], stream)
				a.Got(f, n)
				b.Release()
			} else {
				b := alloc(16 << 10)
				at := r.IntN(50)
				n = copy(b.B[at:], stream[:n])
				a.Feed(f, b, at, at+n)
				b.Release()
			}
			stream = stream[n:]
			if a.hold && r.IntN(2) == 0 {
				a.Hold(false)
				a.Deliver(f)
			}
		}
		for a.hold {
			a.Hold(false)
			a.Deliver(f)
		}
		if len(f.got) != len(want) {
			t.Fatalf("seed %d: %d frames, want %d", seed, len(f.got), len(want))
		}
		for i := range want {
			if !bytes.Equal(f.got[i], want[i]) || f.retain && !bytes.Equal(f.views[i], want[i]) {
				t.Fatalf("seed %d: frame %d differs", seed, i)
			}
		}
		for _, b := range f.keep {
			b.Release()
		}
		a.Drop()
		if lent != 0 {
			t.Fatalf("seed %d: %d buffers never returned", seed, lent)
		}
	}
}

func TestAssemblerBelievesNoClaimedLength(t *testing.T) {
	most := 0
	a := &Assembler{Alloc: func(n int) *Buf { most = max(most, n); return NewBuf(make([]byte, n), func(*Buf) {}) }}
	f := &frames{}
	b := NewBuf(binary.BigEndian.AppendUint32(nil, 100<<20), func(*Buf) {})
	a.Feed(f, b, 0, 4)
	for range 100 {
		space, _ := a.Space()
		a.Got(f, min(len(space), 1000))
	}
	if most > assembleStep {
		t.Errorf("lent %d bytes for a claim of 100 MiB after 100 KB came", most)
	}
}
