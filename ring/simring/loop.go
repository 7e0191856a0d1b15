package simring

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"time"

	"kring/ring"
)

// loop is a simulated loop. It turns when a completion, a message or a timer is at hand; several may be, and a turn takes some
// or all of them.
type loop struct {
	w  *World
	p  *process
	id int
	by string // machine/index, for the story

	inbox   []func()
	turnEnd []*ring.Op
	turnAt  time.Duration
	turnSet bool
	turnGen uint64

	wheel    *ring.Wheel
	posted   map[*ring.Message]bool
	arrivals map[*loop]time.Duration // latest arrival of a message per poster: keeps their order
	busy     map[*ring.Op]bool       // at the turn's end or done but not yet told

	lent  int64
	bufs  int
	tasks []task
	rand  *rand.Rand
}

var _ ring.Loop = (*loop)(nil)

func newLoop(p *process, id int) *loop {
	w := p.m.w
	return &loop{
		w: w, p: p, id: id, by: fmt.Sprint(p.m.name, "/", id),
		wheel: ring.NewWheel(w.now), posted: map[*ring.Message]bool{},
		arrivals: map[*loop]time.Duration{}, busy: map[*ring.Op]bool{},
		rand: rand.New(rand.NewPCG(w.world.Uint64(), uint64(id))),
	}
}

// on asserts that the loop's own turn is under way. A dead loop is let through: its tasks are being unwound.
func (l *loop) on(what string) {
	if l.w.running != l && !l.p.dead {
		who := "the world"
		if l.w.running != nil {
			who = l.w.running.by
		}
		panic(fmt.Sprintf("simring: %s of loop %s was called on %s", what, l.by, who))
	}
}

// ready puts a completion at hand.
func (l *loop) ready(fn func()) {
	if l.p.dead {
		return
	}
	l.inbox = append(l.inbox, fn)
	l.turnBy(l.w.now + l.w.delay(20*time.Microsecond))
}

// turnBy makes sure a turn begins at or before t.
func (l *loop) turnBy(t time.Duration) {
	if l.p.dead || l.turnSet && l.turnAt <= t {
		return
	}
	l.turnGen++
	gen := l.turnGen
	l.turnSet, l.turnAt = true, t
	l.w.at(t, func() {
		if l.turnGen == gen && !l.p.dead {
			l.turn()
		}
	})
}

func (l *loop) turn() {
	w := l.w
	l.turnSet = false
	w.running = l
	l.wheel.Advance(w.now)
	n := len(l.inbox)
	if n > 1 && w.world.IntN(4) == 0 {
		n = 1 + w.world.IntN(n)
	}
	batch := l.inbox[:n:n]
	l.inbox = append([]func(){}, l.inbox[n:]...)
	for _, fn := range batch {
		fn()
	}
	for i := 0; i < len(l.turnEnd); i++ {
		op := l.turnEnd[i]
		delete(l.busy, op)
		op.Done(op)
	}
	l.turnEnd = l.turnEnd[:0]
	w.running = nil
	if len(l.inbox) > 0 {
		l.turnBy(w.now + w.delay(20*time.Microsecond))
	}
	if d, ok := l.wheel.Next(); ok {
		l.turnBy(w.now + d + w.delay(20*time.Microsecond))
	}
}

func (l *loop) ID() int          { return l.id }
func (l *loop) InUse() int64     { return l.lent }
func (l *loop) Rand() *rand.Rand { return l.rand }

func (l *loop) Post(m *ring.Message) {
	w := l.w
	if l.p.dead {
		return
	}
	if l.posted[m] {
		panic("simring: a message was posted again before it was run")
	}
	l.posted[m] = true
	from := w.running
	at := max(l.arrivals[from], w.now+w.delay(30*time.Microsecond))
	l.arrivals[from] = at
	w.at(at, func() {
		l.ready(func() {
			delete(l.posted, m)
			m.Run(m)
		})
	})
}

func (l *loop) AtTurnEnd(op *ring.Op) {
	l.on("AtTurnEnd")
	if l.p.dead {
		return
	}
	l.hold(op)
	l.turnEnd = append(l.turnEnd, op)
}

// hold asserts that an op is not under way already.
func (l *loop) hold(op *ring.Op) {
	if l.busy[op] || l.p.pending[op] != nil {
		panic("simring: an op was submitted again before it was done")
	}
	l.busy[op] = true
}

// done tells the loop of an op's end in a coming turn; the caller has held it.
func (l *loop) done(op *ring.Op) {
	l.ready(func() {
		delete(l.busy, op)
		op.Done(op)
	})
}

func (l *loop) Offload(work func(), op *ring.Op) {
	l.on("Offload")
	if l.p.dead {
		return
	}
	l.submit(op, "offload", "", l.w.delay(200*time.Microsecond), func() { op.Err = nil; work() }, nil)
}

// submit has an operation happen after d and its op done in a turn after that.
func (l *loop) submit(op *ring.Op, what, name string, d time.Duration, apply, cut func()) {
	if l.p.dead {
		return
	}
	l.hold(op)
	l.w.nextSeq++
	q := &pending{seq: l.w.nextSeq, what: what, name: name, apply: apply, cut: cut}
	l.p.pending[op] = q
	l.w.at(l.w.now+d, func() {
		if l.p.dead {
			return
		}
		delete(l.p.pending, op)
		apply()
		l.done(op)
	})
}

// released memory shows this.
const poison = 0xDB

func (l *loop) Alloc(n int) *ring.Buf {
	l.on("Alloc")
	size := n
	if l.w.world.IntN(2) == 0 {
		size = n + l.w.world.IntN(64)
	}
	mem := make([]byte, size)
	fill(mem, 0xA5)
	l.lent += int64(size)
	l.bufs++
	return ring.NewBuf(mem, func(b *ring.Buf) {
		l.on("Buf.Release")
		fill(b.B, poison)
		l.lent -= int64(size)
		l.bufs--
	})
}

func fill(b []byte, with byte) {
	if len(b) == 0 {
		return
	}
	b[0] = with
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// task is a task and where it was begun.
type task struct {
	*ring.Task
	at uintptr
}

func (t task) String() string {
	frame, _ := runtime.CallersFrames([]uintptr{t.at}).Next()
	return fmt.Sprintf("task of %s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line)
}

// Started keeps a task, to unwind it when the process ends.
func (l *loop) Started(t *ring.Task) {
	if len(l.tasks) >= 64 && len(l.tasks)&(len(l.tasks)-1) == 0 {
		l.tasks = running(l.tasks)
	}
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	l.tasks = append(l.tasks, task{t, pc[0]})
}

func running(tasks []task) []task {
	keep := tasks[:0]
	for _, t := range tasks {
		if !t.Finished() {
			keep = append(keep, t)
		}
	}
	clear(tasks[len(keep):])
	return keep
}

// unwind stops the tasks of a dead loop and forgets everything.
func (l *loop) unwind() {
	l.w.running = nil
	for len(l.tasks) > 0 { // what one does on its way out may begin another
		t := l.tasks[len(l.tasks)-1]
		l.tasks = l.tasks[:len(l.tasks)-1]
		t.Stop()
	}
	l.tasks, l.inbox, l.turnEnd = nil, nil, nil
}
