package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"

	"kring/metadata"
)

// Node is what a store shows of one node. A stat's numbers of changes and times are left out of comparisons with the model.
type Node struct {
	Data string
	Null bool
	Stat metadata.Stat
}

// Dump reads the whole tree but ZooKeeper's own nodes.
func Dump(c *Client) map[string]Node {
	c.T.Helper()
	out := map[string]Node{}
	var walk func(path string)
	walk = func(path string) {
		data, st, err := c.Get(path, false)
		c.must("get "+path, err, nil)
		out[path] = Node{string(data), data == nil, st}
		names, _, err := c.Children(path, false)
		c.must("children of "+path, err, nil)
		for _, n := range names {
			if path != "/" {
				walk(path + "/" + n)
			} else if n != "zookeeper" {
				walk("/" + n)
			}
		}
	}
	walk("/")
	return out
}

// Model is a store as plain as can be: what a node has is counted anew from a list of what happened to it.
type Model struct {
	Nodes map[string]*modelNode
}

type modelNode struct {
	data      []byte
	version   int32
	created   int32
	deleted   int32
	ephemeral bool
}

// NewModel is an empty store.
func NewModel() *Model { return &Model{map[string]*modelNode{"/": {data: []byte{}, deleted: -1}}} }

// Clone is a copy that lives on its own.
func (m *Model) Clone() *Model {
	out := &Model{map[string]*modelNode{}}
	for p, n := range m.Nodes {
		c := *n
		out.Nodes[p] = &c
	}
	return out
}

func up(path string) string {
	if i := strings.LastIndex(path, "/"); i > 0 {
		return path[:i]
	}
	return "/"
}

func (m *Model) children(path string) (names []string) {
	for p := range m.Nodes {
		if p != "/" && up(p) == path {
			names = append(names, p[strings.LastIndex(p, "/")+1:])
		}
	}
	if path == "/" {
		names = append(names, "zookeeper")
	}
	sort.Strings(names)
	return names
}

// Do applies ops to a copy and takes the copy if nothing was refused.
func (m *Model) Do(ops []metadata.Op) ([]string, error) {
	next := m.Clone()
	made := make([]string, len(ops))
	for i, op := range ops {
		p, err := next.one(op)
		if err != nil {
			return nil, err
		}
		made[i] = p
	}
	m.Nodes = next.Nodes
	return made, nil
}

func (m *Model) one(op metadata.Op) (string, error) {
	n := m.Nodes[op.Path]
	if op.Kind == metadata.OpCreate {
		parent := m.Nodes[up(op.Path)]
		if parent == nil {
			return "", metadata.ErrNoNode
		}
		path := op.Path
		if op.Sequential {
			path = fmt.Sprintf("%s%010d", path, parent.created)
		}
		if m.Nodes[path] != nil {
			return "", metadata.ErrNodeExists
		}
		if parent.ephemeral {
			return "", metadata.ErrNoChildrenForEphemerals
		}
		parent.created++
		m.Nodes[path] = &modelNode{data: op.Data, ephemeral: op.Ephemeral}
		return path, nil
	}
	switch {
	case n == nil:
		return "", metadata.ErrNoNode
	case op.Version != -1 && op.Version != n.version:
		return "", metadata.ErrBadVersion
	case op.Kind == metadata.OpSetData:
		n.data = op.Data
		n.version++
	case op.Kind == metadata.OpDelete:
		if len(m.children(op.Path)) > 0 {
			return "", metadata.ErrNotEmpty
		}
		m.Nodes[up(op.Path)].deleted++
		delete(m.Nodes, op.Path)
	}
	return op.Path, nil
}

// EndSession takes the ephemeral nodes away.
func (m *Model) EndSession() {
	for p, n := range m.Nodes {
		if n.ephemeral {
			m.Nodes[up(p)].deleted++
			delete(m.Nodes, p)
		}
	}
}

// Compare tells where a store's tree is not the model's.
func (m *Model) Compare(got map[string]Node) error {
	for p, n := range m.Nodes {
		g, ok := got[p]
		switch {
		case !ok:
			return fmt.Errorf("%s is missing", p)
		case g.Null != (n.data == nil) || g.Data != string(n.data):
			return fmt.Errorf("%s holds %q (null: %v), should hold %q (null: %v)", p, g.Data, g.Null, n.data, n.data == nil)
		case g.Stat.Version != n.version || g.Stat.Cversion != n.created+n.deleted:
			return fmt.Errorf("%s has versions %d, %d, should have %d, %d", p, g.Stat.Version, g.Stat.Cversion, n.version, n.created+n.deleted)
		case (g.Stat.EphemeralOwner != 0) != n.ephemeral:
			return fmt.Errorf("%s: ephemeral owner %d", p, g.Stat.EphemeralOwner)
		}
	}
	if len(got) != len(m.Nodes) {
		return fmt.Errorf("%d nodes, should be %d", len(got), len(m.Nodes))
	}
	return nil
}

// RandomOps draws one to four operations on a few names, most of which can be carried out.
func RandomOps(r *rand.Rand, m *Model) []metadata.Op {
	ops := make([]metadata.Op, 1+max(0, r.IntN(6)-2))
	for i := range ops {
		ops[i] = randomOp(r, m)
	}
	return ops
}

func randomOp(r *rand.Rand, m *Model) metadata.Op {
	path := ""
	for range 1 + r.IntN(3) {
		path += "/" + string(rune('a'+r.IntN(4)))
	}
	var data []byte
	if n := r.IntN(40); n > 4 {
		data = []byte(strings.Repeat(string(rune('A'+r.IntN(26))), n*n))
	} else if n > 1 {
		data = []byte{}
	}
	version := metadata.AnyVersion
	if n := m.Nodes[path]; n != nil && r.IntN(2) == 0 {
		version = n.version + int32(r.IntN(8)/7)
	}
	switch r.IntN(8) {
	case 0:
		return metadata.Op{Kind: metadata.OpCreate, Path: path, Data: data, Sequential: true, Ephemeral: r.IntN(2) == 0}
	case 1:
		return metadata.Op{Kind: metadata.OpCreate, Path: path, Data: data, Ephemeral: r.IntN(3) == 0}
	case 2, 3:
		return metadata.Create(path, data)
	case 4, 5:
		return metadata.SetData(path, data, version)
	case 6:
		return metadata.Check(path, version)
	}
	return metadata.Delete(path, version)
}

// Random does n random things to the store and to a model beside it and compares.
func Random(c *Client, seed uint64, n int) {
	r := rand.New(rand.NewPCG(seed, 7))
	m := NewModel()
	for i := range n {
		if r.IntN(100) == 0 {
			c.W.Reopen(c.T)
			c.listen()
			m.EndSession()
		}
		ops := RandomOps(r, m)
		want, wantErr := m.Do(ops)
		got, err := c.Do(ops...)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			c.T.Fatalf("step %d, seed %d: %+v: got %v, want %v", i, seed, ops, err, wantErr)
		}
		for j := range want {
			if got[j].Path != want[j] {
				c.T.Fatalf("step %d, seed %d: made %s, should be %s", i, seed, got[j].Path, want[j])
			}
		}
		if i%40 == 0 || i == n-1 {
			if err := m.Compare(Dump(c)); err != nil {
				c.T.Fatalf("step %d, seed %d: %v", i, seed, err)
			}
		}
	}
}
