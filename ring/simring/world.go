package simring

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// Options shape a world; the zero value is a friendly one.
type Options struct {
	// Log gets one line per event, in columns; nil: none.
	Log io.Writer
	// Epoch is the wall clock at the start in Unix ms; 0: a fixed moment.
	Epoch int64
	// DiskDelay and NetDelay are the usual longest delays of one disk operation and of one piece of a stream; 0: 300 us, 400 us.
	DiskDelay, NetDelay time.Duration
}

// World is the simulated world; it is used by one goroutine.
type World struct {
	o       Options
	seed    uint64
	now     time.Duration
	queue   events
	nextSeq uint64
	steps   uint64

	world    *rand.Rand // delays, cuts, interleaving
	faults   *rand.Rand // what fails, and how
	workload *rand.Rand // what tests ask for

	machines  []*Machine
	listeners []*listener
	nextID    uint64
	clients   int
	running   *loop // the loop whose turn it is; nil: the world or the test
	trace     trace
}

// New makes a world out of a seed.
func New(seed uint64, o Options) *World {
	if o.Epoch == 0 {
		o.Epoch = 1_700_000_000_000
	}
	if o.DiskDelay == 0 {
		o.DiskDelay = 300 * time.Microsecond
	}
	if o.NetDelay == 0 {
		o.NetDelay = 400 * time.Microsecond
	}
	w := &World{o: o, seed: seed}
	w.world = rand.New(rand.NewPCG(seed, 0x776f726c64))
	w.faults = rand.New(rand.NewPCG(seed, 0x6661756c7473))
	w.workload = rand.New(rand.NewPCG(seed, 0x776f726b))
	w.trace.log = o.Log
	return w
}

// Seed is what the world was made of.
func (w *World) Seed() uint64 { return w.seed }

// Now is the virtual time since the start.
func (w *World) Now() time.Duration { return w.now }

// Steps is the number of events that have happened.
func (w *World) Steps() uint64 { return w.steps }

// Rand is the workload's stream of random numbers.
func (w *World) Rand() *rand.Rand { return w.workload }

// FaultRand is the faults' stream, for tests that choose faults themselves.
func (w *World) FaultRand() *rand.Rand { return w.faults }

// After runs fn in the world (on no loop) after d.
func (w *World) After(d time.Duration, fn func()) { w.at(w.now+d, fn) }

// Step lets the next event happen; false if there is none.
func (w *World) Step() bool {
	if len(w.queue) == 0 {
		return false
	}
	e := w.queue.pop()
	w.now = e.at
	w.steps++
	e.fn()
	return true
}

// Run steps until the condition holds; false if nothing is left to happen. The condition is asked after every event.
func (w *World) Run(until func() bool) bool {
	for !until() {
		if !w.Step() {
			return until()
		}
	}
	return true
}

// RunFor lets d pass.
func (w *World) RunFor(d time.Duration) {
	done := false
	w.After(d, func() { done = true })
	w.Run(func() bool { return done })
}

// RunUntil is Run within limit of virtual time; the error names what was waited for.
func (w *World) RunUntil(what string, limit time.Duration, until func() bool) error {
	deadline, late := w.now+limit, false
	w.After(limit, func() { late = true })
	if w.Run(func() bool { return late || until() }) && until() {
		return nil
	}
	return fmt.Errorf("simring: seed %d: %s did not come within %v (now %v)", w.seed, what, limit, deadline)
}

// delay draws a delay up to limit, seldom a much longer one.
func (w *World) delay(limit time.Duration) time.Duration {
	d := time.Duration(w.world.Int64N(int64(limit) + 1))
	if w.world.IntN(64) == 0 {
		d *= 20
	}
	return d
}

func (w *World) id() uint64 {
	w.nextID++
	return w.nextID
}

type event struct {
	at  time.Duration
	seq uint64
	fn  func()
}

func (w *World) at(t time.Duration, fn func()) {
	w.nextSeq++
	w.queue.push(event{t, w.nextSeq, fn})
}

// events is a heap ordered by time, then by sequence.
type events []event

func (h events) before(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h *events) push(e event) {
	*h = append(*h, e)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			break
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

func (h *events) pop() event {
	q := *h
	top, last := q[0], len(q)-1
	q[0], q[last] = q[last], event{}
	q = q[:last]
	*h = q
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.before(child, least) {
				least = child
			}
		}
		if least == i {
			return top
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
