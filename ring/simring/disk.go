package simring

import (
	"path"
	"strings"
	"syscall"
	"time"

	"kring/ring"
)

// diskOp submits an operation on a name: the fault, if any, is drawn when it happens.
func (l *loop) diskOp(op *ring.Op, what, name string, chance *float64, do func() error) {
	l.on(what)
	if l.p.dead {
		return
	}
	m := l.p.m
	l.submit(op, what, name, m.diskDelay(), func() {
		op.N, op.File, op.Entries = 0, nil, nil
		p := 0.0
		if chance != nil {
			p = *chance
		}
		err := m.fault(what, name, p)
		if err == nil {
			err = do()
		}
		op.Err = nil
		if err != nil {
			op.Err = pathError(what, name, err)
		}
		l.w.note(l.by, what, name, 0, op.N, nil, op.Err)
	}, nil)
}

func (m *Machine) diskDelay() time.Duration {
	d := 5*time.Microsecond + m.w.delay(m.w.o.DiskDelay)
	if m.Faults.Slow > 0 && m.w.faults.Float64() < m.Faults.Slow {
		d *= 100
	}
	return d
}

func (l *loop) Open(name string, how ring.OpenFlag, op *ring.Op) {
	m := l.p.m
	l.diskOp(op, "open", name, &m.Faults.Open, func() error {
		dir, base, err := m.disk.parent(name)
		if err != nil {
			return err
		}
		n := dir.names[base]
		switch {
		case n == nil && how&ring.Create == 0:
			return syscall.ENOENT
		case n != nil && how&ring.Exclusive != 0 && how&ring.Create != 0:
			return syscall.EEXIST
		case n != nil && n.dir:
			return syscall.EISDIR
		case n != nil && n.special:
			return ring.ErrNotRegular
		case n == nil:
			n = &node{dirty: map[int64]uint64{}, put: map[int64]uint64{}, modMilli: m.unixMilli()}
			m.disk.create(dir, base, n)
		case how&ring.Cut != 0:
			n.cut(0)
			n.modMilli = m.unixMilli()
		}
		n.open++
		f := &file{l: l, node: n, name: name, how: how}
		l.p.files = append(l.p.files, f)
		op.File = f
		return nil
	})
}

func (l *loop) Rename(from, to string, op *ring.Op) {
	m := l.p.m
	l.diskOp(op, "rename", from+" -> "+to, &m.Faults.Names, func() error {
		dirFrom, a, err := m.disk.parent(from)
		if err != nil {
			return err
		}
		dirTo, b, err := m.disk.parent(to)
		if err != nil {
			return err
		}
		n, old := dirFrom.names[a], dirTo.names[b]
		switch {
		case n == nil:
			return syscall.ENOENT
		case n == old:
			return nil
		case old != nil && old.dir && (!n.dir || len(old.names) > 0):
			return syscall.ENOTEMPTY
		case old != nil && !old.dir && n.dir:
			return syscall.ENOTDIR
		}
		n.links++ // it must not be forgotten between the two names
		m.disk.set(&change{dirs: []*node{dirFrom, dirTo}, names: []string{a, b}, nodes: []*node{nil, n}})
		n.links--
		return nil
	})
}

func (l *loop) Remove(name string, op *ring.Op) {
	m := l.p.m
	l.diskOp(op, "remove", name, &m.Faults.Names, func() error {
		dir, base, err := m.disk.parent(name)
		if err != nil {
			return err
		}
		n := dir.names[base]
		if n == nil {
			return syscall.ENOENT
		}
		if n.dir && len(n.names) > 0 {
			return syscall.ENOTEMPTY
		}
		m.disk.set(&change{dirs: []*node{dir}, names: []string{base}, nodes: []*node{nil}})
		return nil
	})
}

func (l *loop) MakeDir(name string, op *ring.Op) {
	m := l.p.m
	l.diskOp(op, "mkdir", name, &m.Faults.Names, func() error { return m.disk.makeDirs(name) })
}

func (d *disk) makeDirs(name string) error {
	n := d.root
	for _, e := range elements(name) {
		next := n.names[e]
		if next == nil {
			next = newDir()
			d.create(n, e, next)
		}
		if n = next; !n.dir {
			return syscall.ENOTDIR
		}
	}
	return nil
}

func (l *loop) List(name string, op *ring.Op) {
	m := l.p.m
	l.diskOp(op, "list", name, &m.Faults.Read, func() error {
		n, err := m.disk.find(name)
		if err != nil {
			return err
		}
		if !n.dir {
			return syscall.ENOTDIR
		}
		for _, e := range sortedNames(n.names) {
			c := n.names[e]
			op.Entries = append(op.Entries, ring.Entry{Name: e, Dir: c.dir, Special: c.special, Size: int64(len(c.data)),
				ModTime: time.UnixMilli(c.modMilli)})
		}
		op.N = int64(len(op.Entries))
		return nil
	})
}

func (l *loop) SyncDir(name string, op *ring.Op) {
	m := l.p.m
	l.diskOp(op, "syncdir", name, &m.Faults.Names, func() error {
		n, err := m.disk.find(name)
		if err != nil {
			return err
		}
		if !n.dir {
			return syscall.ENOTDIR
		}
		m.disk.syncDir(n)
		return nil
	})
}

func (l *loop) Space(name string, op *ring.Op) {
	m := l.p.m
	l.diskOp(op, "space", name, nil, func() error {
		_, err := m.disk.find(name)
		op.N, op.Entries = m.disk.free(), []ring.Entry{{Size: m.disk.size()}}
		return err
	})
}

func (l *loop) LockFile(name string) (func(), error) {
	l.on("LockFile")
	p, d := l.p, l.p.m.disk
	key := path.Clean("/" + name)
	if p.locks[key] {
		return nil, pathError("lock", name, syscall.EAGAIN)
	}
	dir, base, err := d.parent(name)
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	if dir.names[base] == nil {
		d.create(dir, base, &node{dirty: map[int64]uint64{}, put: map[int64]uint64{}, modMilli: p.m.unixMilli()})
	}
	p.locks[key] = true
	return func() {
		if !p.locks[key] || p.dead {
			return
		}
		delete(p.locks, key)
		if dir.names[base] != nil {
			d.set(&change{dirs: []*node{dir}, names: []string{base}, nodes: []*node{nil}})
		}
	}, nil
}

// SetCapacity sets the size of the machine's disk; 0: endless.
func (m *Machine) SetCapacity(n int64) { m.disk.capacity = n }

// FreeSpace is what is left of it.
func (m *Machine) FreeSpace() int64 { return m.disk.free() }

// ReadFile reads a file as a process would see it now.
func (m *Machine) ReadFile(name string) ([]byte, error) {
	n, err := m.disk.find(name)
	if err != nil {
		return nil, pathError("read", name, err)
	}
	if n.dir {
		return nil, pathError("read", name, syscall.EISDIR)
	}
	return append([]byte(nil), n.data...), nil
}

// WriteFile puts a file there, durable, with its directories.
func (m *Machine) WriteFile(name string, content []byte) {
	if err := m.disk.makeDirs(path.Dir(path.Clean("/" + name))); err != nil {
		panic(err)
	}
	dir, base, _ := m.disk.parent(name)
	n := dir.names[base]
	if n == nil {
		n = &node{}
		m.disk.create(dir, base, n)
	}
	n.data = append([]byte(nil), content...)
	n.synced = append([]byte(nil), content...)
	n.dirty, n.put, n.modMilli = map[int64]uint64{}, map[int64]uint64{}, m.unixMilli()
	for _, c := range m.disk.journal {
		c.commit()
	}
	m.disk.journal = nil
}

// MakePipe puts a pipe there.
func (m *Machine) MakePipe(name string) {
	m.WriteFile(name, nil)
	dir, base, _ := m.disk.parent(name)
	dir.names[base].special = true
}

// Damage changes a file's bytes behind everyone's back, on the platter too.
func (m *Machine) Damage(name string, change func([]byte) []byte) error {
	content, err := m.ReadFile(name)
	if err == nil {
		m.WriteFile(name, change(content))
	}
	return err
}

// Files lists every file below dir as a process would see it now, sorted.
func (m *Machine) Files(dir string) []string {
	var names []string
	var walk func(at string, n *node)
	walk = func(at string, n *node) {
		for _, e := range sortedNames(n.names) {
			if c := n.names[e]; c.dir {
				walk(at+"/"+e, c)
			} else {
				names = append(names, at+"/"+e)
			}
		}
	}
	if n, err := m.disk.find(dir); err == nil {
		walk(strings.TrimSuffix(path.Clean("/"+dir), "/"), n)
	}
	return names
}

// RemoveAll removes a directory and what is in it behind everyone's back, durably; open files stay readable.
func (m *Machine) RemoveAll(dir string) error {
	parent, base, err := m.disk.parent(dir)
	if err != nil || parent.names[base] == nil {
		return pathError("remove", dir, syscall.ENOENT)
	}
	var clear func(at *node, name string)
	clear = func(at *node, name string) {
		if n := at.names[name]; n.dir {
			for _, e := range sortedNames(n.names) {
				clear(n, e)
			}
		}
		m.disk.set(&change{dirs: []*node{at}, names: []string{name}, nodes: []*node{nil}})
	}
	clear(parent, base)
	for _, c := range m.disk.journal {
		c.commit()
	}
	m.disk.journal = nil
	return nil
}
