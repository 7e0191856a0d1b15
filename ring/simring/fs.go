package simring

import (
	"io/fs"
	"path"
	"sort"
	"strings"
	"syscall"
)

const errIO = syscall.EIO

// disk is a file system: names, and nodes that names point to. Names are changed at once in memory; the journal holds the
// changes a power loss may undo.
type disk struct {
	root     *node
	capacity int64 // 0: endless
	nodes    []*node
	journal  []*change
}

// node is a file or a directory.
type node struct {
	dir        bool
	names      map[string]*node // of a directory, now
	durable    map[string]*node // of a directory, after a power loss
	data       []byte           // of a file, as read now
	synced     []byte           // of a file, as on the platter
	dirty      map[int64]uint64 // sectors changed since, with the number of the write
	put        map[int64]uint64 // sectors on the platter, with the number of the write that is there
	cuts       uint64           // how often it was cut, and how often as far as the platter knows
	cutsSynced uint64
	writes     uint64
	reserved   int64 // blocks allocated up to here
	modMilli   int64
	links      int
	open       int
	pins       []*pin
	poisoned   bool // a sync has failed
	special    bool // a pipe
}

// change is one change of names that is not durable yet: in dirs[i], names[i] points to nodes[i] (nil: nothing).
type change struct {
	dirs  []*node
	names []string
	nodes []*node
}

func newDir() *node {
	return &node{dir: true, names: map[string]*node{}, durable: map[string]*node{}}
}

func newDisk() *disk { return &disk{root: newDir()} }

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func elements(name string) []string {
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	if clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

// find walks to a node; nil with ENOENT or ENOTDIR.
func (d *disk) find(name string) (*node, error) {
	n := d.root
	for _, e := range elements(name) {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		if n = n.names[e]; n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}

// parent finds the directory of a name and the name in it.
func (d *disk) parent(name string) (*node, string, error) {
	e := elements(name)
	if len(e) == 0 {
		return nil, "", syscall.EINVAL
	}
	n, err := d.find(strings.Join(e[:len(e)-1], "/"))
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	return n, e[len(e)-1], err
}

// set makes a name point to a node, now, and notes it in the journal.
func (d *disk) set(c *change) {
	for i, dir := range c.dirs {
		if old := dir.names[c.names[i]]; old != nil {
			old.links--
			d.release(old)
		}
		if n := c.nodes[i]; n != nil {
			n.links++
			dir.names[c.names[i]] = n
		} else {
			delete(dir.names, c.names[i])
		}
	}
	d.journal = append(d.journal, c)
}

// syncDir makes a directory's names durable: those changes of it, and what they took along in other directories.
func (d *disk) syncDir(dir *node) {
	keep := d.journal[:0]
	for _, c := range d.journal {
		touches := false
		for _, x := range c.dirs {
			touches = touches || x == dir
		}
		if touches {
			c.commit()
		} else {
			keep = append(keep, c)
		}
	}
	clear(d.journal[len(keep):])
	d.journal = keep
}

func (c *change) commit() {
	for i, dir := range c.dirs {
		if c.nodes[i] != nil {
			dir.durable[c.names[i]] = c.nodes[i]
		} else {
			delete(dir.durable, c.names[i])
		}
	}
}

func (d *disk) create(dir *node, name string, n *node) {
	d.nodes = append(d.nodes, n)
	d.set(&change{dirs: []*node{dir}, names: []string{name}, nodes: []*node{n}})
}

// release forgets a file that no name and no process holds; its blocks are free.
func (d *disk) release(n *node) {
	if n.links > 0 || n.open > 0 {
		return
	}
	for i, other := range d.nodes {
		if other == n {
			d.nodes = append(d.nodes[:i:i], d.nodes[i+1:]...)
			return
		}
	}
}

const block = 4096

func blocks(n int64) int64 { return (n + block - 1) / block * block }

func (n *node) used() int64 { return blocks(max(int64(len(n.data)), n.reserved)) }

// free is the space left.
func (d *disk) free() int64 {
	if d.capacity == 0 {
		return endless
	}
	left := d.capacity
	for _, n := range d.nodes {
		left -= n.used()
	}
	return max(left, 0)
}

// endless is what a disk without a capacity says it has.
const endless = 1 << 40

func (d *disk) size() int64 {
	if d.capacity == 0 {
		return endless
	}
	return d.capacity
}

func sortedNames(m map[string]*node) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
