package ring

import (
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	rawWait    = 2 * time.Millisecond // waiting that keeps the processor; it must outlast the usual gap between requests
	turnRounds = 64                   // rounds of work a turn does before it looks at the kernel again
	trimEvery  = 5 * time.Second
	trimMost   = 1024

	workersMost = 32 // kernel threads of a ring, of each kind
)

// loop is one thread and its ring.
type loop struct {
	k   *Kernel
	id  int
	log *slog.Logger

	thread atomic.Int64 // its id
	r      *uring
	ops    [256]bool

	wheel     *Wheel
	start     time.Time
	now       time.Duration
	unixMilli int64
	wroteAt   time.Duration // end of the last write on this thread

	dirtyBytes int64 // written and not yet on its way to the disk

	slots    []slot
	freeSlot uint32
	live     int // slots in use
	helping  int // ops at the helpers

	ready, turnEnd opQueue
	dirty          []*conn // have something to send
	spareDirty     []*conn
	starved        []*conn // wait for memory or pieces
	spare          []*conn // storage for the next list of them
	favour         Timer   // set: one of them went on beyond the limit just now
	favoured       bool
	favourite      *conn // goes on until its frame is whole, while far too much is lent
	conns          *conn // all, linked
	listeners      []*listener

	in        inbox
	eventBuf  []byte
	slab      slab
	pieces    pieces
	maxMemory int64
	rng       *rand.Rand

	// Arguments of system calls made at once.
	offset      [1]int64
	sample      [1]unix.Iovec
	statRange   cachestatRange
	statResult  cachestat
	noCachestat bool

	trimmer  Timer
	stopping bool // run ends with this turn
	shutting bool // it has ended
	stats    Stats
}

// opQueue is a first-in-first-out list of ops.
type opQueue struct{ head, tail *Op }

func (q *opQueue) push(op *Op) {
	op.next = nil
	if q.tail == nil {
		q.head = op
	} else {
		q.tail.next = op
	}
	q.tail = op
}

// runAll calls Done of what is queued now.
func (q *opQueue) runAll() {
	op := q.head
	q.head, q.tail = nil, nil
	for op != nil {
		next := op.next
		op.next = nil
		op.Done(op)
		op = next
	}
}

// finish makes op done later in this turn.
func (l *loop) finish(op *Op, n int64, err error) {
	op.N, op.Err = n, err
	l.ready.push(op)
}

// finishPath is finish with what the kernel said about a name.
func (l *loop) finishPath(op *Op, n int64, what, name string, e unix.Errno) {
	if e == 0 {
		l.finish(op, n, nil)
		return
	}
	var err error = e
	if e == unix.ECANCELED {
		err = ErrCanceled // by shut alone
	}
	l.finish(op, n, &fs.PathError{Op: what, Path: name, Err: err})
}

func (l *loop) ID() int                         { return l.id }
func (l *loop) AtTurnEnd(op *Op)                { l.turnEnd.push(op) }
func (l *loop) Rand() *rand.Rand                { return l.rng }
func (l *loop) Now() time.Duration              { return l.now }
func (l *loop) UnixMilli() int64                { return l.unixMilli }
func (l *loop) Cancel(t *Timer)                 { l.wheel.Cancel(t) }
func (l *loop) InUse() int64                    { return l.slab.inUse - int64(l.pieces.free())*pieceSize }
func (l *loop) After(d time.Duration, t *Timer) { l.wheel.After(d, t) }

// Alloc lends a buffer.
func (l *loop) Alloc(n int) *Buf {
	if !l.trimmer.set {
		l.wheel.After(trimEvery, &l.trimmer)
	}
	return l.slab.alloc(n)
}

// clock reads the time of the turn.
func (l *loop) clock() {
	t := time.Now()
	l.now, l.unixMilli = t.Sub(l.start), t.UnixMilli()
	if l.wheel != nil {
		l.wheel.now = l.now // timers set before the wheel is advanced count from here
	}
}

// open makes what belongs to the loop's own thread.
func (l *loop) open() error {
	r, err := openURing(ringEntries, ringCompletions, l.k.ringFlags)
	if err != nil {
		return refusedSetup(err)
	}
	l.r = r
	l.ops = r.supports()
	// Ops the kernel hands to workers get a few threads, not one each. A kernel that cannot say so uses its own limits.
	r.register(registerIOWQMaxWorker, unsafe.Pointer(&[2]uint32{workersMost, workersMost}), 2)
	if e := l.pieces.register(r); e != 0 {
		return &Refused{"io_uring provided buffer ring", e.Error(), "run a kernel of 6.1 or later", e}
	}
	if l.in.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return &Refused{"eventfd", err.Error(), "raise LimitNOFILE", err}
	}
	l.eventBuf = mapAnon(pageSize)
	l.clock()
	l.wheel = NewWheel(l.now)
	l.trimmer.Fire = func(t *Timer) {
		l.pieces.shrink()
		if l.slab.trim(trimMost) || l.pieces.want > pieceLeast {
			l.wheel.After(trimEvery, t)
		}
	}
	l.favour.Fire = func(*Timer) {}
	l.newSlot() // slot 0 is nobody's: completions with its number are not looked at
	l.slots[0].kind = kindIgnored
	l.refill()
	l.armEvent()
	return nil
}

// turn does everything there is to do once, then enters the kernel.
func (l *loop) turn() {
	l.stats.Turns++
	l.clock()
	l.completions()
	l.posts()
	l.wheel.Advance(l.now)
	for range turnRounds {
		for round := 0; round < turnRounds && (l.ready.head != nil || l.turnEnd.head != nil); round++ {
			l.turnEnd.runAll()
			l.ready.runAll()
		}
		if len(l.dirty) == 0 {
			break
		}
		l.pumpAll()
	}
	l.feedStarved()
	l.refill()
	if checkTurns {
		l.check()
	}
	l.enter()
}

// enter submits, and waits if there is nothing else to do.
func (l *loop) enter() {
	r := l.r
	if l.ready.head != nil || l.turnEnd.head != nil || len(l.dirty) > 0 || r.pending() > 0 || l.stopping && !l.shutting {
		if r.waiting() > 0 || r.pending() == 0 || r.overflown() {
			l.entered(r.enter(0, 0))
		}
		return
	}
	l.in.asleep.Store(true)
	defer l.in.asleep.Store(false)
	if !l.in.empty() {
		l.entered(r.enter(0, 0))
		return
	}
	next, timed := l.wheel.Next()
	if timed {
		// Next counts from the start of the turn.
		next = max(next-(time.Since(l.start)-l.now), 0)
	}
	wait := rawWait
	if timed && next < wait {
		wait = next
	}
	e := r.enter(1, int64(wait))
	if e != unix.ETIME {
		l.entered(e)
		return
	}
	if timed && next <= wait || r.pending() > 0 || r.waiting() > 0 {
		return
	}
	l.stats.Sleeps++
	ns := int64(-1)
	if timed {
		ns = int64(next - wait)
	}
	l.entered(r.sleep(ns))
}

// entered looks at what an enter said.
func (l *loop) entered(e unix.Errno) {
	switch e {
	case 0, unix.EINTR, unix.EBUSY, unix.EAGAIN, unix.ETIME:
	default:
		panic("ring: io_uring_enter: " + e.Error())
	}
}

// completions handles those at hand, each once; what they cause comes with the next turn.
func (l *loop) completions() {
	r := l.r
	for n := r.pending(); n > 0; n-- {
		c := r.cqes[*r.cqHead&r.cqMask]
		r.seen()
		l.stats.Completions++
		i := uint32(c.user)
		if i == 0 || int(i) >= len(l.slots) || l.slots[i].gen != uint32(c.user>>32)&genMask {
			if c.flags&cqeBuffer != 0 {
				l.recycle(uint16(c.flags >> cqeBufferShift))
			}
			if i == 0 && c.res < 0 && c.user>>tagShift == tagWake {
				l.wakeFailed(c)
			}
			continue
		}
		l.complete(i, c)
	}
}
