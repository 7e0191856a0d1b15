package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"kring/metadata"
	"kring/ring"
)

// exported is a tree as JSON: every node but ZooKeeper's own.
type exported struct {
	Nodes []exportedNode `json:"nodes"`
}

type exportedNode struct {
	Path     string   `json:"path"`
	Data     *string  `json:"data"` // null: no data
	Czxid    int64    `json:"czxid"`
	Mzxid    int64    `json:"mzxid"`
	Pzxid    int64    `json:"pzxid"`
	Ctime    int64    `json:"ctime"`
	Mtime    int64    `json:"mtime"`
	Version  int32    `json:"version"`
	Cversion int32    `json:"cversion"`
	Aversion int32    `json:"aversion"`
	Owner    int64    `json:"ephemeralOwner"`
	Children int32    `json:"numChildren"`
	ACL      []string `json:"acl"`
}

// Export writes the tree as JSON, nodes with data and stats in the order of paths; ZooKeeper's own nodes are left out.
func (s *Store) Export(w io.Writer) error { return s.tree.export(w) }

// ExportFiles does what Export does for a store that no broker has open, or that is at rest; it changes nothing.
func ExportFiles(dir fs.FS, w io.Writer) error {
	f, err := filesIn(dir)
	if err != nil {
		return err
	}
	tr, _, err := load(&f, func(name string) ([]byte, error) { return fs.ReadFile(dir, name) })
	if err != nil {
		return err
	}
	return tr.export(w)
}

func (t *tree) export(w io.Writer) error {
	paths := make([]string, 0, len(t.nodes))
	for p := range t.nodes {
		if !own(p) {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	if _, err := io.WriteString(w, "{\"nodes\":[\n"); err != nil {
		return err
	}
	for i, p := range paths {
		n := t.nodes[p]
		st := n.stat()
		x := exportedNode{p, nil, int64(st.Czxid), int64(st.Mzxid), int64(st.Pzxid), st.Ctime, st.Mtime, st.Version, st.Cversion,
			st.Aversion, int64(st.EphemeralOwner), st.NumChildren, []string{"world:anyone:31"}}
		if n.rec.data != nil {
			text := string(n.rec.data)
			x.Data = &text
		}
		b, err := json.Marshal(x)
		if err != nil {
			return err
		}
		if i > 0 {
			b = append([]byte(",\n"), b...)
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "\n]}\n")
	return err
}

// Import makes a store in dir, which must have none, out of what Export wrote. Ephemeral nodes go, as their sessions are over.
func Import(t *ring.Task, dir string, r io.Reader) error {
	entries, err := t.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if IsFile(e.Name) {
			return fmt.Errorf("%s holds a metadata store already: %s", dir, e.Name)
		}
	}
	tr, err := importTree(r)
	if err != nil {
		return err
	}
	return writeTree(t, dir, tr)
}

func importTree(r io.Reader) (*tree, error) {
	var in exported
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return nil, fmt.Errorf("exported tree cannot be read: %w", err)
	}
	nodes := make([]Node, len(in.Nodes))
	root := false
	for i, n := range in.Nodes {
		nodes[i] = Node{Path: n.Path, Stat: metadata.Stat{Czxid: metadata.Zxid(n.Czxid), Mzxid: metadata.Zxid(n.Mzxid),
			Pzxid: metadata.Zxid(n.Pzxid), Ctime: n.Ctime, Mtime: n.Mtime, Version: n.Version, Cversion: n.Cversion,
			Aversion: n.Aversion, EphemeralOwner: metadata.SessionID(n.Owner), NumChildren: n.Children}}
		if n.Data != nil {
			nodes[i].Data = []byte(*n.Data)
		}
		root = root || n.Path == "/"
	}
	if !root {
		return nil, errors.New("exported tree has no root")
	}
	return treeOf(nodes)
}
