package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kring/metadata"
	"kring/ring"
)

// saved is a node as a snapshot holds it.
type saved struct {
	path string
	rec  *record
}

// capture takes the tree as it is now; the records do not change any more.
func (t *tree) capture() []saved {
	nodes := make([]saved, 0, len(t.nodes))
	for path, n := range t.nodes {
		nodes = append(nodes, saved{path, n.rec})
	}
	return nodes
}

// snapshotChunk is how much of a snapshot is one frame.
const snapshotChunk = 1 << 20

// encodeSnapshot writes nodes, which it sorts, as a snapshot file.
func encodeSnapshot(nodes []saved, zxid metadata.Zxid, session metadata.SessionID) []byte {
	slices.SortFunc(nodes, func(a, b saved) int { return strings.Compare(a.path, b.path) })
	b := appendHeader(nil, snapshotMagic, zxid)
	from := len(b)
	b = beginFrame(b)
	for _, n := range nodes {
		b = appendNode(b, n)
		if len(b)-from >= snapshotChunk {
			endFrame(b[from:], int64(from), frameMark)
			from = len(b)
			b = beginFrame(b)
		}
	}
	endFrame(b[from:], int64(from), frameMark)
	from = len(b)
	b = beginFrame(b)
	b = binary.BigEndian.AppendUint32(b, uint32(len(nodes)))
	b = binary.BigEndian.AppendUint64(b, uint64(session))
	endFrame(b[from:], int64(from), endMark)
	return b
}

func appendNode(b []byte, n saved) []byte {
	r := n.rec
	b = appendBytes(b, []byte(n.path))
	b = appendBytes(b, r.data)
	for _, v := range [...]int64{int64(r.czxid), int64(r.mzxid), int64(r.pzxid), r.ctime, r.mtime, int64(r.owner)} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range [...]int32{r.version, r.created, r.aversion} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// decodeSnapshot reads a whole snapshot; at is where it went wrong.
func decodeSnapshot(b []byte) (tr *tree, at int64, err error) {
	zxid, err := readHeader(b, snapshotMagic)
	if err != nil {
		return nil, 0, err
	}
	tr = &tree{nodes: map[string]*node{}, ephemerals: map[string]struct{}{}, zxid: zxid}
	at = headerSize
	for {
		mark, payload, err := readFrame(b[at:], at)
		if err != nil {
			return nil, at, err
		}
		r := reader{b: payload}
		if mark == endMark {
			count, session := r.u32(), metadata.SessionID(r.i64())
			if r.bad || len(r.b) > 0 || int(count) != len(tr.nodes) || int(at)+frameHead+len(payload) != len(b) {
				return nil, at, fmt.Errorf("its end does not fit: %d nodes said, %d there", count, len(tr.nodes))
			}
			tr.session = session
			return tr, at, checkSpecial(tr)
		}
		for len(r.b) > 0 {
			if err := tr.loadNode(&r); err != nil {
				return nil, at, err
			}
		}
		at += int64(frameHead + len(payload))
	}
}

func checkSpecial(tr *tree) error {
	for _, p := range special {
		if tr.nodes[p] == nil {
			return fmt.Errorf("node %s is missing", p)
		}
	}
	return nil
}

func (t *tree) loadNode(r *reader) error {
	path, rec := string(r.bytes()), &record{}
	rec.data = r.bytes()
	rec.czxid, rec.mzxid, rec.pzxid = metadata.Zxid(r.i64()), metadata.Zxid(r.i64()), metadata.Zxid(r.i64())
	rec.ctime, rec.mtime, rec.owner = r.i64(), r.i64(), metadata.SessionID(r.i64())
	rec.version, rec.created, rec.aversion = int32(r.u32()), int32(r.u32()), int32(r.u32())
	if r.bad {
		return errors.New("a node is incomplete")
	}
	if err := checkPath(path); err != nil {
		return fmt.Errorf("node %q: %w", path, err)
	}
	return t.load(path, rec)
}

// load puts a node with all it holds into the tree, parents first.
func (t *tree) load(path string, rec *record) error {
	if t.nodes[path] != nil {
		return fmt.Errorf("node %s comes twice", path)
	}
	if path != "/" {
		parent, name := parentOf(path)
		up := t.nodes[parent]
		if up == nil {
			return fmt.Errorf("node %s comes without its parent", path)
		}
		t.link(up, name)
	}
	t.nodes[path] = &node{rec: rec}
	if rec.owner != 0 {
		t.ephemerals[path] = struct{}{}
	}
	return nil
}

// rotate begins a new log and takes a snapshot of the tree beside it. What goes wrong with it leaves the old files in use.
func (s *Store) rotate() {
	s.busy, s.snapshotting = true, true
	ring.Go(s.loop, func(t *ring.Task) {
		s.snapshotErr = s.takeSnapshot(t)
		s.snapshotting = false
		if s.snapshotErr != nil {
			s.rotateAt += rotateAt
		}
		s.kick()
		s.wakeIdle()
	})
}

func (s *Store) takeSnapshot(t *ring.Task) error {
	base := s.syncedZxid
	log, err := createLog(t, s.dir, base)
	if err != nil {
		s.busy = false
		s.kick()
		return err
	}
	s.log.Close()
	s.log, s.logSize = log, headerSize
	s.busy = false
	// What is not durable yet goes into the new log as well; replay knows by its zxid that the snapshot holds it.
	nodes, zxid, session := s.tree.capture(), s.tree.zxid, s.tree.session
	s.kick()
	var b []byte
	t.Wait(func(op *ring.Op) { s.loop.Offload(func() { b = encodeSnapshot(nodes, zxid, session) }, op) })
	if err := t.WriteFile(s.dir, fileName(zxid, snapshotSuffix), b); err != nil {
		return err
	}
	s.rotateAt = max(rotateAt, int64(len(b)))
	return s.prune(t, base, zxid)
}

// prune removes what the snapshot of zxid, with the log behind base, makes superfluous.
func (s *Store) prune(t *ring.Task, base, zxid metadata.Zxid) error {
	entries, err := t.List(s.dir)
	if err != nil {
		return err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	f := findFiles(names)
	for _, z := range f.snapshots {
		if z < zxid {
			if err := t.Remove(s.dir + "/" + fileName(z, snapshotSuffix)); err != nil {
				return err
			}
		}
	}
	for _, z := range f.logs {
		if z < base {
			if err := t.Remove(s.dir + "/" + fileName(z, logSuffix)); err != nil {
				return err
			}
		}
	}
	return nil
}

// SnapshotErr is why the last snapshot could not be taken; the store works on with a longer log.
func (s *Store) SnapshotErr() error { return s.snapshotErr }
