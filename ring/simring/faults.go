package simring

import (
	"path"
	"strings"
)

// Faults are the chances, per operation, that a machine's kernel refuses one. They are drawn from the faults' stream.
type Faults struct {
	// Write, Sync, Read, Open (create included) and Names (rename, remove, SyncDir) answer EIO.
	Write, Sync, Read, Open, Names float64
	// Slow makes a disk operation take a hundred times as long.
	Slow float64
	// Drop resets a connection instead of carrying a piece of its stream.
	Drop float64
	// Only limits Write, Sync, Read, Open and Names to files it likes; nil: all.
	Only func(name string) bool
	// Saw, if set, is told of each operation on a disk, by its name as FailNext has it.
	Saw func(what, name string)

	next []*oneFault
}

// oneFault is a scheduled failure.
type oneFault struct {
	what, pattern string
	skip, times   int
	err           error
}

// FailNext makes the next times operations what ("write", "sync", "read", "open", "rename", "remove", "syncdir", "allocate",
// "truncate") on files whose path contains or whose base matches pattern fail with err, after letting skip of them pass.
func (m *Machine) FailNext(what, pattern string, skip, times int, err error) {
	m.Faults.next = append(m.Faults.next, &oneFault{what, pattern, skip, times, err})
}

// fault decides whether an operation fails.
func (m *Machine) fault(what, name string, chance float64) error {
	if m.Faults.Saw != nil {
		m.Faults.Saw(what, name)
	}
	for _, f := range m.Faults.next {
		if f.what != what || f.times == 0 {
			continue
		}
		if ok, _ := path.Match(f.pattern, path.Base(name)); !ok && !strings.Contains(name, f.pattern) {
			continue
		}
		if f.skip > 0 {
			f.skip--
			continue
		}
		f.times--
		return f.err
	}
	if chance <= 0 || m.Faults.Only != nil && !m.Faults.Only(name) {
		return nil
	}
	if m.w.faults.Float64() < chance {
		return errIO
	}
	return nil
}

// CalmDown takes every fault away.
func (m *Machine) CalmDown() { m.Faults = Faults{} }
