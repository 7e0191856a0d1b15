package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"kring/metadata"
)

// record is what a node holds; it is never changed once it is in the tree, so that a snapshot can be written from the
// records while the tree goes on.
type record struct {
	data                []byte // nil: no data
	czxid, mzxid, pzxid metadata.Zxid
	ctime, mtime        int64
	version             int32
	created             int32 // children ever created here: the next sequence number
	aversion            int32
	owner               metadata.SessionID
}

type node struct {
	rec      *record
	children []string // names, sorted
}

// tree is ZooKeeper's tree of nodes. It knows nothing of files and time.
type tree struct {
	nodes   map[string]*node
	zxid    metadata.Zxid // of the last change
	session metadata.SessionID
	// ephemerals are the paths of the nodes that go with a session.
	ephemerals map[string]struct{}
}

// special paths exist from the start and are not the client's to make or remove.
var special = []string{"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}

func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, ephemerals: map[string]struct{}{}}
	for _, p := range special {
		t.nodes[p] = &node{rec: &record{data: []byte{}}}
	}
	t.nodes["/"].children = []string{"zookeeper"}
	t.nodes["/zookeeper"].children = []string{"config", "quota"}
	return t
}

// stat gives ZooKeeper's Stat: its Cversion counts children created and deleted, which follows from those created.
func (n *node) stat() metadata.Stat {
	r := n.rec
	return metadata.Stat{
		Czxid: r.czxid, Mzxid: r.mzxid, Pzxid: r.pzxid, Ctime: r.ctime, Mtime: r.mtime,
		Version: r.version, Cversion: 2*r.created - int32(len(n.children)), Aversion: r.aversion,
		EphemeralOwner: r.owner, DataLength: int32(len(r.data)), NumChildren: int32(len(n.children)),
	}
}

// parentOf splits a path that checkPath has passed.
func parentOf(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}

// checkPath holds a path to ZooKeeper's rules.
func checkPath(path string) error {
	if path == "" || path[0] != '/' {
		return fmt.Errorf("%w: a path begins with a slash", metadata.ErrBadArguments)
	}
	if path == "/" {
		return nil
	}
	if !utf8.ValidString(path) {
		return fmt.Errorf("%w: path is not UTF-8", metadata.ErrBadArguments)
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("%w: empty or relative name in path", metadata.ErrBadArguments)
		}
		for _, c := range part {
			if c < 0x20 || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0 && c <= 0xffff {
				return fmt.Errorf("%w: character %U in path", metadata.ErrBadArguments, c)
			}
		}
	}
	return nil
}

// change is an operation as it was found to be applicable: what the log keeps.
type change struct {
	kind  metadata.OpKind
	path  string
	data  []byte
	owner metadata.SessionID
}

// prepare checks op against the tree and gives the change it makes; kind OpCheck changes nothing. The order of the checks is
// ZooKeeper's.
func (t *tree) prepare(op *metadata.Op) (change, error) {
	c := change{kind: op.Kind, path: op.Path, data: op.Data}
	switch op.Kind {
	case metadata.OpCreate:
		return t.prepareCreate(op, c)
	case metadata.OpSetData, metadata.OpCheck, metadata.OpDelete:
		if err := checkPath(op.Path); err != nil {
			return c, err
		}
		if op.Kind == metadata.OpDelete && slices.Contains(special, op.Path) {
			return c, metadata.ErrBadArguments
		}
		n := t.nodes[op.Path]
		if n == nil {
			return c, metadata.ErrNoNode
		}
		if op.Version != metadata.AnyVersion && op.Version != n.rec.version {
			return c, metadata.ErrBadVersion
		}
		if op.Kind == metadata.OpDelete && len(n.children) > 0 {
			return c, metadata.ErrNotEmpty
		}
		return c, nil
	}
	return c, metadata.ErrBadArguments
}

func (t *tree) prepareCreate(op *metadata.Op, c change) (change, error) {
	checked := op.Path
	if op.Sequential {
		checked += "1"
	}
	if err := checkPath(checked); err != nil {
		return c, err
	}
	if slices.Contains(special, op.Path) {
		// ZooKeeper calls making the root a bad argument too.
		if op.Path == "/" {
			return c, metadata.ErrBadArguments
		}
		return c, metadata.ErrNodeExists
	}
	parent, _ := parentOf(checked)
	up := t.nodes[parent]
	if up == nil {
		return c, metadata.ErrNoNode
	}
	if op.Sequential {
		c.path += sequence(up.rec.created)
	}
	if t.nodes[c.path] != nil {
		return c, metadata.ErrNodeExists
	}
	if up.rec.owner != 0 {
		return c, metadata.ErrNoChildrenForEphemerals
	}
	if op.Ephemeral {
		c.owner = t.session
	}
	return c, nil
}

// sequence is ten digits, as Java's %010d.
func sequence(n int32) string {
	s := strconv.FormatInt(int64(n), 10)
	if n < 0 {
		return "-" + strings.Repeat("0", max(0, 10-len(s))) + s[1:]
	}
	return strings.Repeat("0", max(0, 10-len(s))) + s
}

// undo is how a node was before a change of it; n is nil if it was not there.
type undo struct {
	path string
	rec  *record
}

// apply makes a prepared change under a number and time; undo entries are put behind u. It fails only for a change that
// prepare would refuse, as one read from a damaged log.
func (t *tree) apply(c *change, zxid metadata.Zxid, now int64, u []undo) ([]undo, error) {
	switch c.kind {
	case metadata.OpCreate:
		parent, name := parentOf(c.path)
		up := t.nodes[parent]
		if up == nil || t.nodes[c.path] != nil {
			return u, fmt.Errorf("create %s: parent missing or node present", c.path)
		}
		u = append(u, undo{parent, up.rec}, undo{c.path, nil})
		rec := *up.rec
		rec.created++
		rec.pzxid = zxid
		up.rec = &rec
		t.link(up, name)
		t.nodes[c.path] = &node{rec: &record{data: c.data, czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: now, mtime: now, owner: c.owner}}
		if c.owner != 0 {
			t.ephemerals[c.path] = struct{}{}
		}
	case metadata.OpSetData:
		n := t.nodes[c.path]
		if n == nil {
			return u, fmt.Errorf("setData %s: no such node", c.path)
		}
		u = append(u, undo{c.path, n.rec})
		rec := *n.rec
		rec.data, rec.mzxid, rec.mtime = c.data, zxid, now
		rec.version++
		n.rec = &rec
	case metadata.OpDelete:
		n := t.nodes[c.path]
		if n == nil || len(n.children) > 0 || slices.Contains(special, c.path) {
			return u, fmt.Errorf("delete %s: node missing or not empty", c.path)
		}
		parent, name := parentOf(c.path)
		up := t.nodes[parent]
		u = append(u, undo{parent, up.rec}, undo{c.path, n.rec})
		rec := *up.rec
		rec.pzxid = zxid
		up.rec = &rec
		t.unlink(up, name)
		delete(t.nodes, c.path)
		delete(t.ephemerals, c.path)
	}
	return u, nil
}

func (t *tree) link(up *node, name string) {
	i, found := slices.BinarySearch(up.children, name)
	if !found {
		up.children = slices.Insert(up.children, i, name)
	}
}

func (t *tree) unlink(up *node, name string) {
	if i, found := slices.BinarySearch(up.children, name); found {
		up.children = slices.Delete(up.children, i, i+1)
	}
}

// rollback takes back what the undo entries say, the last first.
func (t *tree) rollback(u []undo) {
	for i := len(u) - 1; i >= 0; i-- {
		e := u[i]
		n := t.nodes[e.path]
		parent, name := parentOf(e.path)
		switch {
		case e.rec == nil:
			delete(t.nodes, e.path)
			delete(t.ephemerals, e.path)
			t.unlink(t.nodes[parent], name)
		case n == nil:
			t.nodes[e.path] = &node{rec: e.rec}
			t.link(t.nodes[parent], name)
			if e.rec.owner != 0 {
				t.ephemerals[e.path] = struct{}{}
			}
		default:
			n.rec = e.rec
		}
	}
}

// stale are the deletions that end all sessions, in order of paths.
func (t *tree) stale() []change {
	paths := make([]string, 0, len(t.ephemerals))
	for p := range t.ephemerals {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	out := make([]change, len(paths))
	for i, p := range paths {
		out[i] = change{kind: metadata.OpDelete, path: p}
	}
	return out
}
