package embedded

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kring/metadata"
	"kring/ring"
)

// Node is a node with all that the store keeps of it.
type Node struct {
	Path string
	Data []byte // nil: no data
	Stat metadata.Stat
}

// ReadFiles reads the tree of a store that no broker has open, but for ZooKeeper's own nodes, in the order of paths. It changes nothing;
// fs.ErrNotExist says that there is no store.
func ReadFiles(dir fs.FS) ([]Node, error) {
	f, err := filesIn(dir)
	if err != nil {
		return nil, err
	}
	tr, _, err := load(&f, func(name string) ([]byte, error) { return fs.ReadFile(dir, name) })
	if err != nil {
		return nil, err
	}
	var nodes []Node
	for path, n := range tr.nodes {
		if !own(path) {
			nodes = append(nodes, Node{path, n.rec.data, n.stat()})
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Path, b.Path) })
	return nodes, nil
}

// own tells ZooKeeper's own nodes.
func own(path string) bool { return path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") }

func filesIn(dir fs.FS) (files, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return files{}, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if special := e.Type()&fs.ModeType&^fs.ModeSymlink != 0; special && IsFile(e.Name()) {
			return files{}, &DamageError{e.Name(), 0, "it is no regular file"} // a pipe would be waited for
		}
		names = append(names, e.Name())
	}
	f := findFiles(names)
	begun, err := f.onlyBegun(func(name string) ([]byte, error) { return fs.ReadFile(dir, name) })
	if err == nil && (begun || len(f.logs)+len(f.snapshots) == 0) {
		err = fmt.Errorf("no metadata store: %w", fs.ErrNotExist)
	}
	return f, err
}

// onlyBegun tells the leftover of a writeTree that did not come to its snapshot.
func (f *files) onlyBegun(read func(string) ([]byte, error)) (bool, error) {
	if len(f.snapshots) > 0 || len(f.logs) != 1 || f.logs[0] == 0 {
		return false, nil
	}
	b, err := read(fileName(f.logs[0], logSuffix))
	return len(b) <= headerSize, err
}

// Replace makes a store of nodes in dir, in the place of one that is there: a crash leaves either of them whole. Versions, times and
// numbers of children ever created are kept; what is ephemeral is gone with the next opening. Zxids go on behind both stores' last.
func Replace(t *ring.Task, dir string, nodes []Node) error {
	entries, err := t.List(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if !e.Dir && IsFile(e.Name) && !strings.HasSuffix(e.Name, damagedSuffix) {
			names = append(names, e.Name)
		}
	}
	tr, err := treeOf(nodes)
	if err != nil {
		return err
	}
	f, read := findFiles(names), func(name string) ([]byte, error) { return t.ReadFile(dir+"/"+name, maxFile) }
	begun, err := f.onlyBegun(read)
	if err != nil {
		return err
	}
	if !begun && len(f.logs)+len(f.snapshots) > 0 {
		old, _, err := load(&f, read)
		if err != nil {
			return in(dir, err)
		}
		tr.zxid, tr.session = max(tr.zxid, old.zxid+1), max(tr.session, old.session)
	}
	if err := writeTree(t, dir, tr); err != nil {
		return err
	}
	for _, name := range names {
		if name == fileName(tr.zxid, logSuffix) { // begun anew
			continue
		}
		if err := t.Remove(dir + "/" + name); err != nil {
			return err
		}
	}
	return t.SyncDir(dir)
}

// writeTree makes a log and a snapshot that come behind whatever is in dir. The log comes first: a snapshot without one is taken for
// damage; a log that holds nothing is passed over until the snapshot is there.
func writeTree(t *ring.Task, dir string, tr *tree) error {
	log, err := createLog(t, dir, tr.zxid)
	if err != nil {
		return err
	}
	log.Close()
	return t.WriteFile(dir, fileName(tr.zxid, snapshotSuffix), encodeSnapshot(tr.capture(), tr.zxid, tr.session))
}

// treeOf builds a tree of nodes, which come in any order.
func treeOf(nodes []Node) (*tree, error) {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return strings.Compare(a.Path, b.Path) })
	tr := newTree()
	for _, n := range nodes {
		st := n.Stat
		rec := &record{data: n.Data, czxid: st.Czxid, mzxid: st.Mzxid, pzxid: st.Pzxid, ctime: st.Ctime, mtime: st.Mtime,
			version: st.Version, created: (st.Cversion + st.NumChildren) / 2, aversion: st.Aversion, owner: st.EphemeralOwner}
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
	return tr, nil
}
