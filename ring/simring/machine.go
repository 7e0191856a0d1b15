package simring

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"time"

	"kring/ring"
)

// Machine is one host: an address, a disk that outlives crashes, and at most one process.
type Machine struct {
	// Faults may be changed at any time.
	Faults Faults

	w    *World
	name string
	ip   netip.Addr
	disk *disk
	proc *process
	skew time.Duration
	port uint16
}

// process is one life of a machine's program.
type process struct {
	m       *Machine
	loops   []*loop
	dead    bool
	sockets map[ring.Socket]*endpoint // accepted, not attached
	conns   []*endpoint
	files   []*file
	locks   map[string]bool
	pending map[*ring.Op]*pending // disk operations and offloads under way
}

// pending is a disk operation the kernel has and has not answered.
type pending struct {
	seq  uint64
	what string
	name string
	// apply does it, at its time or (crash) because the kernel had got that far; cut is the crash's: do part of it.
	apply func()
	cut   func()
}

// Machine adds a machine; its address is 10.0.0.k and its name resolves to it.
func (w *World) Machine(name string) *Machine {
	m := &Machine{w: w, name: name, ip: netip.AddrFrom4([4]byte{10, 0, 0, byte(len(w.machines) + 1)}), disk: newDisk(), port: 40000}
	w.machines = append(w.machines, m)
	return m
}

// Name is the machine's name.
func (m *Machine) Name() string { return m.name }

// Addr is the machine's address.
func (m *Machine) Addr() netip.Addr { return m.ip }

// Running reports whether a process runs.
func (m *Machine) Running() bool { return m.proc != nil }

// Loops starts a process of n loops. They turn when the world steps.
func (m *Machine) Loops(n int) []ring.Loop {
	if m.proc != nil {
		panic("simring: " + m.name + " runs already")
	}
	p := &process{m: m, sockets: map[ring.Socket]*endpoint{}, locks: map[string]bool{}, pending: map[*ring.Op]*pending{}}
	m.proc = p
	loops := make([]ring.Loop, n)
	for i := range n {
		l := newLoop(p, i)
		p.loops = append(p.loops, l)
		loops[i] = l
	}
	m.w.note(m.name, "boot", fmt.Sprint(n, " loops"), 0, 0, nil, nil)
	return loops
}

// Start is Loops, and main runs on loop 0 in its first turn.
func (m *Machine) Start(n int, main func(loops []ring.Loop)) []ring.Loop {
	loops := m.Loops(n)
	m.Do(loops[0], func() { main(loops) })
	return loops
}

// Do runs fn on a loop of this machine, in a turn of its own choosing.
func (m *Machine) Do(l ring.Loop, fn func()) {
	own := l.(*loop)
	m.w.at(m.w.now+m.w.delay(20*time.Microsecond), func() { own.ready(fn) })
}

// SkewClock moves the machine's wall clock.
func (m *Machine) SkewClock(d time.Duration) { m.skew += d }

// Kill ends the process as kill -9 does: its memory is gone, what it wrote is in the page cache.
func (m *Machine) Kill() {
	m.w.note(m.name, "KILL", "", 0, 0, nil, nil)
	m.end()
}

// Crash is a power loss: the process ends, and the disk keeps what was synced and some of what was not.
func (m *Machine) Crash() {
	m.w.note(m.name, "CRASH", "", 0, 0, nil, nil)
	m.end()
	m.disk.powerLoss(m.w)
}

// Exit ends a process that has stopped in order; what it still holds is the error.
func (m *Machine) Exit() error {
	err := m.Check()
	m.w.note(m.name, "exit", "", 0, 0, nil, err)
	m.end()
	return err
}

// end ends the process: disk operations under way happen wholly, in part or not at all, connections are reset, tasks unwound.
func (m *Machine) end() {
	p := m.proc
	if p == nil {
		return
	}
	w := m.w
	left := make([]*pending, 0, len(p.pending))
	for _, q := range p.pending {
		left = append(left, q)
	}
	sort.Slice(left, func(i, j int) bool { return left[i].seq < left[j].seq })
	for _, q := range left {
		switch w.faults.IntN(3) {
		case 0:
			q.apply()
		case 1:
			if q.cut != nil {
				q.cut()
			}
		}
	}
	p.dead, m.proc = true, nil
	keep := w.listeners[:0]
	for _, ln := range w.listeners {
		if ln.p != p {
			keep = append(keep, ln)
		} else {
			ln.shut()
		}
	}
	w.listeners = keep
	for _, e := range slices.Clone(p.conns) {
		e.vanish()
	}
	for _, f := range p.files {
		f.forget()
	}
	for _, l := range p.loops {
		l.unwind()
	}
}
