package ring

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// inbox is where other threads leave what is for a loop: two stacks without locks, turned round by the loop.
type inbox struct {
	messages atomic.Pointer[Message]
	ops      atomic.Pointer[Op]
	asleep   atomic.Bool
	event    int // eventfd, read by the ring
	wakes    atomic.Uint64
}

// one is what an eventfd is written with.
var one = []byte{1, 0, 0, 0, 0, 0, 0, 0}

func (b *inbox) empty() bool { return b.messages.Load() == nil && b.ops.Load() == nil }

// claim is true for the one who is to wake the loop.
func (b *inbox) claim() bool {
	if b.asleep.Load() && b.asleep.CompareAndSwap(true, false) {
		b.wakes.Add(1)
		return true
	}
	return false
}

// kick wakes the loop by its eventfd.
func (b *inbox) kick() {
	for {
		if _, err := unix.Write(b.event, one); err != unix.EINTR {
			return
		}
	}
}

// wakeBy has from's ring send a completion to l's. It speaks up only if it fails, and then wakeFailed kicks.
func (l *loop) wakeBy(from *loop) {
	from.stats.RingWakes++
	e := from.r.next()
	e.op, e.fd, e.flags, e.user = opMsgRing, int32(l.r.fd), sqeCQESkipSuccess, tagWake<<tagShift|uint64(l.id)<<32
}

func (l *loop) wakeFailed(c cqe) {
	l.k.own[uint32(c.user>>32)&genMask].in.kick()
}

// Post runs m.Run on this loop.
func (l *loop) Post(m *Message) {
	from, ok := m.From.(*loop) // m may be on its way back as soon as it is in the inbox
	for {
		m.next = l.in.messages.Load()
		if l.in.messages.CompareAndSwap(m.next, m) {
			break
		}
	}
	if !l.in.claim() {
		return
	}
	if ok && from.k == l.k && from.ops[opMsgRing] && from != l {
		l.wakeBy(from)
		return
	}
	l.in.kick()
}

// postOp is how a helper brings back an op.
func (l *loop) postOp(op *Op) {
	for {
		op.next = l.in.ops.Load()
		if l.in.ops.CompareAndSwap(op.next, op) {
			break
		}
	}
	if l.in.claim() {
		l.in.kick()
	}
}

// posts runs what was left.
func (l *loop) posts() {
	var ops *Op
	for op := l.in.ops.Swap(nil); op != nil; {
		next := op.next
		op.next, ops, op = ops, op, next
	}
	for ops != nil {
		op := ops
		ops, op.next = op.next, nil
		l.helping--
		op.Done(op)
	}
	var list *Message
	for m := l.in.messages.Swap(nil); m != nil; {
		next := m.next
		m.next, list, m = list, m, next
	}
	for list != nil {
		m := list
		list, m.next = m.next, nil
		l.stats.Posts++
		m.Run(m)
	}
}

// helpers are the goroutines for what would block a loop: a few, started when there is work, ended when there is none.
type helpers struct {
	mu      sync.Mutex
	queue   []job
	running int
	most    int

	crashing func() // may be nil
}

// job is op.work for a loop, or work that nobody waits for.
type job struct {
	loop *loop
	op   *Op
	work func()
}

func (h *helpers) do(j job) {
	h.mu.Lock()
	h.queue = append(h.queue, j)
	start := h.running < h.most
	if start {
		h.running++
	}
	h.mu.Unlock()
	if start {
		go h.guard(h.run)
	}
}

// guard runs fn and speaks up if it panics.
func (h *helpers) guard(fn func()) {
	whole := false
	defer func() {
		if !whole && h.crashing != nil {
			h.crashing()
		}
	}()
	fn()
	whole = true
}

func (h *helpers) run() {
	for {
		h.mu.Lock()
		if len(h.queue) == 0 {
			h.running--
			h.mu.Unlock()
			return
		}
		j := h.queue[0]
		h.queue[0] = job{}
		h.queue = h.queue[1:]
		h.mu.Unlock()
		if j.op == nil {
			j.work()
			continue
		}
		work := j.op.work
		j.op.work = nil
		work()
		j.loop.postOp(j.op)
	}
}

// Offload runs work on a helper, then op.Done here.
func (l *loop) Offload(work func(), op *Op) {
	op.work = work
	l.helping++
	l.stats.Offloads++
	l.k.helpers.do(job{loop: l, op: op})
}
