package embedded

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
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
// With keep the old store's files get the ending that is returned, "" if there were none; those of the two last such replacements stay.
func Replace(t *ring.Task, dir string, nodes []Node, keep bool) (aside string, err error) {
	entries, err := t.List(dir)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range entries {
		if !e.Dir && IsFile(e.Name) {
			names = append(names, e.Name)
		}
	}
	tr, err := treeOf(nodes)
	if err != nil {
		return "", err
	}
	f, read := findFiles(names), func(name string) ([]byte, error) { return t.ReadFile(dir+"/"+name, maxFile) }
	olds, useless := f.named(), slices.Clone(f.unfinished)
	begun, err := f.onlyBegun(read)
	if err != nil {
		return "", err
	}
	if f.failed {
		useless = append(useless, failedName)
	}
	if begun {
		olds, useless = nil, append(useless, olds...)
	} else if len(olds) > 0 {
		old, _, err := load(&f, read)
		if err != nil {
			return "", in(dir, err)
		}
		tr.zxid, tr.session = max(tr.zxid, old.zxid+1), max(tr.session, old.session)
	}
	if err := writeTree(t, dir, tr); err != nil {
		return "", err
	}
	fresh := func(name string) bool { return name == fileName(tr.zxid, logSuffix) } // an empty one of that name was begun anew
	if !keep {
		olds, useless = nil, append(useless, olds...)
	}
	if aside, err = putAside(t, dir, slices.DeleteFunc(olds, fresh), names); err != nil {
		return "", err
	}
	for _, name := range slices.DeleteFunc(useless, fresh) {
		if err := t.Remove(dir + "/" + name); err != nil {
			return "", err
		}
	}
	return aside, t.SyncDir(dir)
}

// named are the names of logs and snapshots.
func (f *files) named() (names []string) {
	for _, z := range f.logs {
		names = append(names, fileName(z, logSuffix))
	}
	for _, z := range f.snapshots {
		names = append(names, fileName(z, snapshotSuffix))
	}
	return names
}

const (
	asideSuffix = ".replaced-"
	// replacedMost is how many replaced stores are kept.
	replacedMost = 2
)

// putAside gives a replaced store's files an ending that no opening reads, and removes those of earlier replacements but the last ones. all
// are the names in dir.
func putAside(t *ring.Task, dir string, olds, all []string) (ending string, err error) {
	if len(olds) == 0 {
		return "", nil
	}
	last := uint64(0)
	for _, name := range all {
		n, _ := asideNumber(name)
		last = max(last, n)
	}
	ending = fmt.Sprint(asideSuffix, last+1)
	for _, name := range olds {
		if err := t.Rename(dir+"/"+name, dir+"/"+name+ending); err != nil {
			return "", err
		}
	}
	for _, name := range all {
		if n, is := asideNumber(name); is && n+replacedMost <= last+1 {
			if err := t.Remove(dir + "/" + name); err != nil {
				return "", err
			}
		}
	}
	return ending, nil
}

func asideNumber(name string) (n uint64, is bool) {
	at := strings.LastIndex(name, asideSuffix)
	if at < 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(name[at+len(asideSuffix):], 10, 62)
	return n, err == nil && IsFile(name)
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
