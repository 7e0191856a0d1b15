package simring

import (
	"errors"
	"fmt"
	"sort"
)

// Check lists what the machine's process still holds: an orderly stop leaves nothing. Buffers and pins, files, locks,
// connections and sockets, operations, timers and unfinished tasks.
func (m *Machine) Check() error {
	p := m.proc
	if p == nil {
		return nil
	}
	var errs []error
	held := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("simring: "+m.name+" still holds "+format, args...))
	}
	for _, l := range p.loops {
		if l.bufs != 0 {
			held("%d buffers, %d bytes, of loop %d", l.bufs, l.lent, l.id)
		}
		l.tasks = running(l.tasks)
		for _, t := range l.tasks {
			if !t.Parked() { // kept for more work, it holds nothing
				held("a %v on loop %d", t, l.id)
			}
		}
		if n := l.wheel.Len(); n != 0 {
			held("%d timers of loop %d", n, l.id)
		}
		if n := len(l.posted); n != 0 {
			held("%d messages for loop %d", n, l.id)
		}
	}
	for _, f := range p.files {
		held("file %s (closed %v, %d uses)", f.name, f.closed, f.busy)
		if len(f.node.pins) > 0 {
			held("%d pinned ranges of %s", len(f.node.pins), f.name)
		}
	}
	for _, e := range p.conns {
		held("connection %s", e.name)
	}
	if len(p.sockets) > 0 {
		held("%d sockets nobody attached", len(p.sockets))
	}
	for _, ln := range m.w.listeners {
		if ln.p == p {
			held("listener %v", ln.addr)
		}
	}
	var ops []string
	for _, q := range p.pending {
		ops = append(ops, q.what+" "+q.name)
	}
	sort.Strings(ops)
	for _, s := range ops {
		held("operation %s", s)
	}
	if len(p.locks) > 0 {
		held("%d locked files", len(p.locks))
	}
	return errors.Join(errs...)
}

// Check is every machine's check.
func (w *World) Check() error {
	var errs []error
	for _, m := range w.machines {
		errs = append(errs, m.Check())
	}
	return errors.Join(errs...)
}
