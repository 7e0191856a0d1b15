package simring

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"syscall"
	"time"

	"kring/ring"
)

// file is an open file of one loop.
type file struct {
	l      *loop
	node   *node
	name   string
	how    ring.OpenFlag
	busy   int // operations and sends under way
	closed bool
	gone   bool
	failed bool // a sync has failed
}

// pin is a range of a file that is being sent.
type pin struct {
	n        *node
	from, to int64
}

func (n *node) pin(from, length int64) *pin {
	p := &pin{n, from, from + length}
	n.pins = append(n.pins, p)
	return p
}

func (p *pin) drop() {
	for i, other := range p.n.pins {
		if other == p {
			p.n.pins = append(p.n.pins[:i:i], p.n.pins[i+1:]...)
			return
		}
	}
}

func (n *node) unpin(from, length int64) {
	for _, p := range n.pins {
		if p.from == from && p.to == from+length {
			p.drop()
			return
		}
	}
}

// use asserts that a file may be used.
func (f *file) use(what string) {
	f.l.on(what + " of " + f.name)
	f.mustBeOpen(what)
}

func (f *file) mustBeOpen(what string) {
	if f.closed && !f.l.p.dead {
		panic(fmt.Sprintf("simring: %s of %s after Close", what, f.name))
	}
}

func (f *file) needWrite(what string) {
	if f.how&ring.Write == 0 {
		panic(fmt.Sprintf("simring: %s of %s, which is open for reading only", what, f.name))
	}
}

// op submits an operation on the file.
func (f *file) op(op *ring.Op, what string, d time.Duration, apply func() error, cut func()) {
	f.busy++
	f.l.submit(op, what, f.name, d, func() {
		op.Err = nil
		if err := apply(); err != nil {
			op.Err = pathError(what, f.name, err)
		}
		f.idle()
	}, cut)
}

// idle gives the descriptor back when it was closed and this was the last use.
func (f *file) idle() {
	f.busy--
	f.drop()
}

func (f *file) drop() {
	if !f.closed || f.busy > 0 || f.gone {
		return
	}
	f.gone = true
	f.node.open--
	f.l.p.m.disk.release(f.node)
	for i, other := range f.l.p.files {
		if other == f {
			f.l.p.files = append(f.l.p.files[:i:i], f.l.p.files[i+1:]...)
			return
		}
	}
}

// forget is the end of the process.
func (f *file) forget() {
	if !f.gone {
		f.gone = true
		f.node.open--
		f.node.pins = nil
		f.l.p.m.disk.release(f.node)
	}
}

func (f *file) Close() {
	if f.l.p.dead {
		return
	}
	f.use("Close")
	f.closed = true
	f.drop()
}

func (f *file) Read(b []byte, at int64, op *ring.Op) {
	f.use("Read")
	if f.l.p.dead {
		return
	}
	m := f.l.p.m
	fill(b, poison)
	f.op(op, "read", m.diskDelay(), func() error {
		op.N = 0
		if err := m.fault("read", f.name, m.Faults.Read); err != nil {
			m.w.note(f.l.by, "read", f.name, at, 0, nil, err)
			return err
		}
		if at < int64(len(f.node.data)) {
			op.N = int64(copy(b, f.node.data[at:]))
		}
		m.w.note(f.l.by, "read", f.name, at, op.N, b[:op.N], nil)
		return nil
	}, nil)
}

func (f *file) Through(b []byte, at int64, look func([]byte) int, op *ring.Op) {
	f.use("Through")
	if f.l.p.dead {
		return
	}
	m := f.l.p.m
	fill(b, poison)
	f.op(op, "read", m.diskDelay(), func() error {
		op.N = at
		for n := 0; ; {
			if err := m.fault("read", f.name, m.Faults.Read); err != nil {
				m.w.note(f.l.by, "read", f.name, op.N, 0, nil, err)
				return err
			}
			got := 0
			if from := op.N + int64(n); from < int64(len(f.node.data)) {
				got = copy(b[n:], f.node.data[from:])
			}
			n += got
			used := 0
			if n > 0 {
				used = look(b[:n])
			}
			more := used >= 0
			if !more {
				used = ^used
			}
			op.N += int64(used)
			if !more || used == 0 && (got == 0 || n == len(b)) {
				m.w.note(f.l.by, "read", f.name, at, op.N-at, nil, nil)
				return nil
			}
			n = copy(b, b[used:n])
		}
	}, nil)
}

func (f *file) Write(bufs [][]byte, at int64, op *ring.Op) {
	f.use("Write")
	f.needWrite("Write")
	if f.l.p.dead {
		return
	}
	m := f.l.p.m
	sum := sums(bufs)
	f.op(op, "write", m.diskDelay(), func() error {
		content := bytes.Join(bufs, nil)
		if crc32.Checksum(content, castagnoli) != sum {
			panic("simring: bytes were changed while they were being written to " + f.name)
		}
		op.N = int64(len(content))
		err := m.fault("write", f.name, m.Faults.Write)
		if err != nil {
			content = content[:m.w.faults.IntN(len(content)+1)]
		} else if room := m.room(f.node, at); int64(len(content)) > room {
			content, err = content[:room], syscall.ENOSPC
		}
		f.node.write(content, at)
		f.node.modMilli = m.unixMilli()
		if m.w.world.IntN(16) == 0 { // the kernel writes back when it likes
			m.w.After(m.w.delay(20*time.Millisecond), func() { f.node.writeBack(m.w.world) })
		}
		m.w.note(f.l.by, "write", f.name, at, int64(len(content)), content, err)
		return err
	}, func() {
		content := bytes.Join(bufs, nil)
		content = content[:m.w.faults.IntN(len(content)+1)]
		f.node.write(content, at)
		m.w.note(m.name, "cut write", f.name, at, int64(len(content)), content, nil)
	})
}

// room is how many bytes fit into a file from at on.
func (m *Machine) room(n *node, at int64) int64 {
	return max(0, n.used()+m.disk.free()/block*block-at)
}

func sums(bufs [][]byte) uint32 {
	var s uint32
	for _, b := range bufs {
		s = crc32.Update(s, castagnoli, b)
	}
	return s
}

func (f *file) Sync(op *ring.Op) {
	f.use("Sync")
	if f.l.p.dead {
		return
	}
	if f.failed {
		panic("simring: Sync of " + f.name + " was called again after it had failed")
	}
	m := f.l.p.m
	snap := f.node.snapshot()
	f.op(op, "sync", 4*m.diskDelay(), func() error {
		err := m.fault("sync", f.name, m.Faults.Sync)
		if err != nil {
			f.failed = true
			f.node.abandon(snap)
		} else {
			f.node.commit(snap)
		}
		m.w.note(f.l.by, "sync", f.name, 0, int64(len(snap.sectors)), nil, err)
		return err
	}, nil)
}

func (f *file) Allocate(at, n int64, op *ring.Op) {
	f.use("Allocate")
	f.needWrite("Allocate")
	if f.l.p.dead {
		return
	}
	m := f.l.p.m
	f.op(op, "allocate", m.diskDelay(), func() error {
		err := m.fault("allocate", f.name, 0)
		if more := blocks(at+n) - f.node.used(); err == nil && more > m.disk.free() {
			err = syscall.ENOSPC
		}
		if err == nil {
			f.node.reserved = max(f.node.reserved, at+n)
		}
		m.w.note(f.l.by, "allocate", f.name, at, n, nil, err)
		return err
	}, nil)
}

func (f *file) Truncate(size int64, op *ring.Op) {
	f.use("Truncate")
	f.needWrite("Truncate")
	if f.l.p.dead {
		return
	}
	m := f.l.p.m
	f.op(op, "truncate", m.diskDelay(), func() error {
		err := m.fault("truncate", f.name, 0)
		if err == nil {
			f.node.cut(size)
			f.node.modMilli = m.unixMilli()
		}
		m.w.note(f.l.by, "truncate", f.name, 0, size, nil, err)
		return err
	}, nil)
}

func (f *file) Size(op *ring.Op) {
	f.use("Size")
	if f.l.p.dead {
		return
	}
	f.op(op, "size", f.l.p.m.diskDelay(), func() error {
		op.N = int64(len(f.node.data))
		op.Entries = []ring.Entry{{Size: op.N, ModTime: time.UnixMilli(f.node.modMilli)}}
		return nil
	}, nil)
}

func (f *file) SetTime(modMilli int64, op *ring.Op) {
	f.use("SetTime")
	if f.l.p.dead {
		return
	}
	m := f.l.p.m
	f.op(op, "set time", m.diskDelay(), func() error {
		err := m.fault("set time", f.name, 0)
		if err == nil {
			f.node.modMilli = modMilli
		}
		m.w.note(f.l.by, "set time", f.name, 0, modMilli, nil, err)
		return err
	}, nil)
}

func (f *file) WriteOut(at, n int64) {
	f.use("WriteOut")
	if !f.l.p.dead {
		f.node.writeBack(f.l.w.world)
	}
}
