package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

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
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	f := findFiles(names)
	if len(f.logs)+len(f.snapshots) == 0 {
		return fmt.Errorf("no metadata store: %w", fs.ErrNotExist)
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
		if p != "/zookeeper" && !strings.HasPrefix(p, "/zookeeper/") {
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
	// The log comes first: a snapshot without one is taken for damage, a log without a snapshot before it too.
	log, err := createLog(t, dir, tr.zxid)
	if err != nil {
		return err
	}
	log.Close()
	return t.WriteFile(dir, fileName(tr.zxid, snapshotSuffix), encodeSnapshot(tr.capture(), tr.zxid, tr.session))
}

func importTree(r io.Reader) (*tree, error) {
	var in exported
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return nil, fmt.Errorf("exported tree cannot be read: %w", err)
	}
	slices.SortFunc(in.Nodes, func(a, b exportedNode) int { return strings.Compare(a.Path, b.Path) })
	tr := newTree()
	for _, n := range in.Nodes {
		rec := &record{czxid: metadata.Zxid(n.Czxid), mzxid: metadata.Zxid(n.Mzxid), pzxid: metadata.Zxid(n.Pzxid),
			ctime: n.Ctime, mtime: n.Mtime, version: n.Version, aversion: n.Aversion, owner: metadata.SessionID(n.Owner)}
		if n.Data != nil {
			rec.data = []byte(*n.Data)
		}
		rec.created = (n.Cversion + n.Children) / 2
		tr.zxid = max(tr.zxid, rec.czxid, rec.mzxid, rec.pzxid)
		tr.session = max(tr.session, rec.owner)
		if err := checkPath(n.Path); err != nil {
			return nil, fmt.Errorf("node %q: %w", n.Path, err)
		}
		if slices.Contains(special, n.Path) {
			tr.nodes[n.Path].rec = rec
			continue
		}
		if err := tr.load(n.Path, rec); err != nil {
			return nil, err
		}
	}
	if len(in.Nodes) == 0 || in.Nodes[0].Path != "/" {
		return nil, errors.New("exported tree has no root")
	}
	return tr, nil
}
