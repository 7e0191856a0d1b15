package ring

// Memory runs ahead of the bytes that came by at most assembleStep or assembleGrowth times as many: a length a peer merely
// claims costs no more.
const (
	assembleStep   = 256 << 10
	assembleGrowth = 4
)

// keepSmall is the rest a connection may hold up to which it is copied out of the piece it came in, so that the piece is free.
const keepSmall = 1 << 10

// Assembler keeps the bytes of a connection that its Receiver has not consumed yet, contiguous, and calls it when it has as
// many as it asked for. Both worlds use it. The zero value with Alloc set is ready.
type Assembler struct {
	// Alloc lends memory, as Loop.Alloc.
	Alloc func(n int) *Buf

	buf      *Buf // nil: nothing held
	from, to int  // what is held, in buf.B
	asked    int  // what Received returned last as need
	need     int  // bytes to hold before Received is called
	hold     bool
	inside   bool
	dropped  bool
}

// Feed adds b.B[from:to]; nothing else may use the rest of b behind to. The caller keeps its reference.
func (a *Assembler) Feed(r Receiver, b *Buf, from, to int) {
	if a.dropped || from == to {
		return
	}
	if a.buf == nil {
		b.Retain()
		a.buf, a.from, a.to = b, from, to
	} else {
		a.room(to - from)
		a.to += copy(a.buf.B[a.to:], b.B[from:to])
	}
	a.Deliver(r)
	a.settle(b)
}

// Deliver calls the receiver while it has bytes enough; Feed and Got do it themselves.
func (a *Assembler) Deliver(r Receiver) {
	if a.inside {
		return
	}
	a.inside = true
	defer func() { a.inside = false }()
	for a.buf != nil && !a.hold && a.to > a.from && a.to-a.from >= a.need {
		b := a.buf
		b.Retain()
		consumed, need := r.Received(b.B[a.from:a.to:a.to], b)
		if a.dropped {
			b.Release()
			return
		}
		if consumed < 0 || consumed > a.to-a.from || need < 0 {
			panic("ring: a receiver consumed what it was not given")
		}
		a.from += consumed
		rest := a.to - a.from
		a.asked, a.need = need, need
		if rest == 0 {
			a.buf = nil
			b.Release()
		} else if need == 0 || consumed == 0 && need <= rest {
			a.need = rest + 1
		}
		b.Release()
	}
}

// Hold stops calling the receiver (true) or lets it go on (false); the caller then calls Deliver, from outside the receiver.
func (a *Assembler) Hold(on bool) {
	if a.hold && !on && a.buf != nil && a.asked <= a.to-a.from {
		a.need = a.asked
	}
	a.hold = on
}

// Held is the number of bytes kept.
func (a *Assembler) Held() int { return a.to - a.from }

// Missing is the number of bytes that must come before the receiver is called, when it has named one; else 0.
func (a *Assembler) Missing() int {
	if a.asked == 0 {
		return 0
	}
	return max(a.need-a.Held(), 0)
}

// Space is memory for bytes that Missing says must come, at most as many and at least one, to be received straight into;
// Got tells how many came. b is the memory it lies in; the caller retains it while the kernel may write there.
func (a *Assembler) Space() (space []byte, b *Buf) {
	free := 0
	if a.buf != nil {
		free = len(a.buf.B) - a.to
	}
	if free == 0 || free < a.Missing() && len(a.buf.B) < min(a.need, assembleStep) {
		a.move(a.target())
	}
	end := min(len(a.buf.B), a.from+a.need)
	return a.buf.B[a.to:end], a.buf
}

// Got adds n bytes that were put into the last Space.
func (a *Assembler) Got(r Receiver, n int) {
	if a.dropped || n == 0 {
		return
	}
	a.to += n
	a.Deliver(r)
}

// Drop gives up what is held; nothing is delivered from now on.
func (a *Assembler) Drop() {
	a.dropped = true
	if a.buf != nil {
		a.buf.Release()
		a.buf, a.from, a.to = nil, 0, 0
	}
}

// room makes n bytes fit behind what is held. It lends what is needed, but no more than a step beyond what has come.
func (a *Assembler) room(n int) {
	have := a.Held()
	if a.buf != nil && a.to+n <= len(a.buf.B) {
		return
	}
	a.move(max(have+n, a.target()))
}

// target is how much memory what has come justifies.
func (a *Assembler) target() int { return min(a.need, max(assembleStep, assembleGrowth*a.Held())) }

// settle frees the piece b when only a small rest lies in it.
func (a *Assembler) settle(b *Buf) {
	if a.buf == b && a.Held() <= keepSmall {
		a.move(max(2*keepSmall, min(a.need, assembleStep)))
	}
}

func (a *Assembler) move(size int) {
	old, have := a.buf, a.Held()
	a.buf = a.Alloc(size)
	if old != nil {
		copy(a.buf.B, old.B[a.from:a.to])
		old.Release()
	}
	a.from, a.to = 0, have
}
