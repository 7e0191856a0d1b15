package ring

import (
	"sync"
	"testing"
)

// A quiet loop receives into the same few pieces, one that is asked by many at once has more, and gives them back after.
func TestPiecesFollowTheLoad(t *testing.T) {
	k := onLoops(t, 1, Options{})
	l := k.Loops()[0].(*loop)
	a := serve(t, k, func(l Loop, s Socket) { attachEcho(l, s) })
	have := func() (n int) {
		on(t, l, func(*Task) {
			for _, b := range l.pieces.bufs {
				if b != nil {
					n++
				}
			}
		})
		return n
	}
	c := dial(t, a)
	defer c.Close()
	if err := ask(c, 1, []int{100, 2000, 300, 10, 4000}); err != nil {
		t.Fatal(err)
	}
	if n := have(); n > 2*pieceLeast {
		t.Errorf("%d pieces for one connection", n)
	}
	var wg sync.WaitGroup
	gate := make(chan bool)
	for i := range uint64(10 * pieceLeast) {
		c := dial(t, a)
		wg.Go(func() {
			defer c.Close()
			<-gate
			if err := ask(c, i, []int{100, 12000, 9000, 8000}); err != nil {
				t.Error(i, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	on(t, l, func(*Task) {
		for range 10 {
			l.pieces.shrink()
		}
		if p := &l.pieces; p.want != pieceLeast {
			t.Errorf("the kernel shall have %d pieces though nobody sends", p.want)
		}
	})
	// The kernel cannot be asked for what it has: it is not given again what it has received into.
	for i := range uint64(pieceCount) {
		if err := ask(c, i, []int{100}); err != nil {
			t.Fatal(err)
		}
	}
	on(t, l, func(*Task) { l.pieces.shrink() })
	if n := have(); n > 2*pieceLeast {
		t.Errorf("%d pieces are kept", n)
	}
}

// What the kernel is given grows with what a turn takes, before it finds none.
func TestPiecesGrowWithATurn(t *testing.T) {
	p := pieces{want: pieceLeast}
	p.taken = pieceLeast/2 + 1
	p.endTurn()
	if p.want != 2*pieceLeast || p.most != pieceLeast/2+1 || p.taken != 0 {
		t.Errorf("want %d, most %d, taken %d", p.want, p.most, p.taken)
	}
	p.shrink()
	if p.want != 2*pieceLeast {
		t.Errorf("want %d: what was taken lately does not fit twice", p.want)
	}
	for range 10 {
		p.drained()
	}
	if p.want != pieceCount {
		t.Errorf("want %d of %d", p.want, pieceCount)
	}
}
