package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"kring/metadata"
	"kring/ring"
)

// rotateAt is how long a log gets before a snapshot is taken, if the last snapshot was not longer.
const rotateAt = 4 << 20

// A full disk passes: changes wait for room, as long as they are not too many, and the log has some in reserve, so that a broker can
// stop and start beside a full disk.
const (
	fullRetry   = time.Second
	fullPending = 1 << 20 // bytes of changes that may wait for room
	reserve     = 512 << 10
)

// Store is a metadata.Store whose only client is this process. It belongs to the loop it was opened on.
//
// Every call takes effect on the tree at once and is answered once all changes before it are durable.
type Store struct {
	loop    ring.Loop
	dir     string
	tree    *tree
	events  func(metadata.Event)
	data    map[string]struct{} // armed data watches
	child   map[string]struct{} // armed child watches
	answers []answer

	log     ring.File
	logSize int64
	// asked, writing and synced number the changes: applied, handed to the file, durable. asked >= writing >= synced.
	asked, writing, synced uint64
	writingZxid            metadata.Zxid
	syncedZxid             metadata.Zxid
	pending, spare         []byte // a frame under construction; a buffer for the next one
	inWrite                []byte
	bufs                   [1][]byte

	turn, write, sync ring.Op
	marking           ring.Op
	armed             bool // turn is asked for
	busy              bool // a write, a sync or a change of log is under way
	snapshotting      bool
	rotateAt          int64
	snapshotErr       error

	full  bool // the last write found no room; again repeats it
	again ring.Timer
	told  *slog.Logger // may be nil

	fenced error // set for good when a write or sync has failed
	closed bool
	idle   func() // wakes Close
}

var _ metadata.Store = (*Store)(nil)

// answer is a callback that waits for the changes up to need.
type answer struct {
	need uint64
	give func(failed error)
}

func newStore(loop ring.Loop, dir string, tr *tree) *Store {
	s := &Store{loop: loop, dir: dir, tree: tr, rotateAt: rotateAt,
		data: map[string]struct{}{}, child: map[string]struct{}{}}
	s.turn.Done = func(*ring.Op) {
		s.armed = false
		s.release()
		s.flush()
	}
	s.write.Done = func(op *ring.Op) { s.wrote(op.Err) }
	s.again.Fire = func(*ring.Timer) { s.log.Write(s.bufs[:], s.logSize, &s.write) }
	s.sync.Done = func(op *ring.Op) { s.hasSynced(op.Err) }
	return s
}

// Do is metadata.Store's.
func (s *Store) Do(ops []metadata.Op, done func([]metadata.Result, error)) {
	err := s.refusing()
	if err == nil && s.full && len(s.pending) > fullPending {
		err = metadata.ErrNoSpace
	}
	if err != nil {
		s.later(func(error) { done(nil, err) })
		return
	}
	results, events, err := s.do(ops)
	s.later(func(failed error) {
		if failed != nil {
			done(nil, failed)
			return
		}
		if s.events != nil {
			for _, e := range events {
				s.events(e)
			}
		}
		done(results, err)
	})
}

// do applies ops to the tree and puts them into the pending frame, or leaves everything as it was.
func (s *Store) do(ops []metadata.Op) ([]metadata.Result, []metadata.Event, error) {
	if len(ops) == 0 {
		return nil, nil, nil
	}
	results := make([]metadata.Result, len(ops))
	changes := make([]change, 0, len(ops))
	var back []undo
	zxid, now := s.tree.zxid+1, s.loop.UnixMilli()
	for i := range ops {
		c, err := s.tree.prepare(&ops[i])
		if err == nil && c.kind != metadata.OpCheck {
			c.data = slices.Clone(c.data)
			back, err = s.tree.apply(&c, zxid, now, back)
			changes = append(changes, c)
		}
		if err != nil {
			s.tree.rollback(back)
			for j := range results {
				results[j] = metadata.Result{}
				if j > i {
					results[j].Err = metadata.ErrRolledBack
				}
			}
			err = &metadata.OpError{Op: ops[i].Kind.String(), Path: ops[i].Path, Err: err}
			results[i].Err = err
			return results, nil, err
		}
		results[i].Path = c.path
		if n := s.tree.nodes[c.path]; n != nil {
			results[i].Stat = n.stat()
		}
	}
	if len(changes) == 0 {
		return results, nil, nil
	}
	s.tree.zxid = zxid
	s.put(zxid, now, changes)
	return results, s.fire(changes), nil
}

func (s *Store) put(zxid metadata.Zxid, now int64, changes []change) {
	if len(s.pending) == 0 {
		s.pending = beginFrame(s.pending)
	}
	s.pending = appendTxn(s.pending, zxid, now, s.tree.session, changes)
	s.asked++
}

// fire disarms the watches that changes set off and gives their events, in ZooKeeper's order.
func (s *Store) fire(changes []change) (events []metadata.Event) {
	trip := func(watches map[string]struct{}, path string, e metadata.EventType) bool {
		if _, ok := watches[path]; !ok {
			return false
		}
		delete(watches, path)
		events = append(events, metadata.Event{Type: e, Path: path})
		return true
	}
	for i := range changes {
		path := changes[i].path
		parent, _ := parentOf(path)
		switch changes[i].kind {
		case metadata.OpCreate:
			trip(s.data, path, metadata.NodeCreated)
			trip(s.child, parent, metadata.NodeChildrenChanged)
		case metadata.OpSetData:
			trip(s.data, path, metadata.NodeDataChanged)
		case metadata.OpDelete:
			if trip(s.data, path, metadata.NodeDeleted) {
				delete(s.child, path)
			} else {
				trip(s.child, path, metadata.NodeDeleted)
			}
			trip(s.child, parent, metadata.NodeChildrenChanged)
		}
	}
	return events
}

// Get is metadata.Store's.
func (s *Store) Get(path string, watch bool, done func([]byte, metadata.Stat, error)) {
	n, err := s.read("getData", path)
	if err != nil {
		s.later(func(error) { done(nil, metadata.Stat{}, err) })
		return
	}
	if watch {
		s.data[path] = struct{}{}
	}
	data, st := slices.Clone(n.rec.data), n.stat()
	s.later(func(failed error) {
		if failed != nil {
			data, st = nil, metadata.Stat{}
		}
		done(data, st, failed)
	})
}

// Exists is metadata.Store's.
func (s *Store) Exists(path string, watch bool, done func(metadata.Stat, error)) {
	n, err := s.read("exists", path)
	var st metadata.Stat
	if err == nil {
		st = n.stat()
	}
	if watch && s.refusing() == nil && checkPath(path) == nil {
		s.data[path] = struct{}{}
	}
	s.later(func(failed error) {
		if failed != nil {
			st, err = metadata.Stat{}, failed
		}
		done(st, err)
	})
}

// Children is metadata.Store's.
func (s *Store) Children(path string, watch bool, done func([]string, metadata.Stat, error)) {
	n, err := s.read("getChildren", path)
	if err != nil {
		s.later(func(error) { done(nil, metadata.Stat{}, err) })
		return
	}
	if watch {
		s.child[path] = struct{}{}
	}
	names, st := slices.Clone(n.children), n.stat()
	s.later(func(failed error) {
		if failed != nil {
			names, st = nil, metadata.Stat{}
		}
		done(names, st, failed)
	})
}

func (s *Store) read(op, path string) (*node, error) {
	err := s.refusing()
	if err == nil {
		err = checkPath(path)
	}
	n := s.tree.nodes[path]
	if err == nil && n == nil {
		err = metadata.ErrNoNode
	}
	if err != nil {
		return nil, &metadata.OpError{Op: op, Path: path, Err: err}
	}
	return n, nil
}

func (s *Store) refusing() error {
	switch {
	case s.fenced != nil:
		return s.fenced
	case s.closed:
		return metadata.ErrClosed
	}
	return nil
}

// Events is metadata.Store's.
func (s *Store) Events(fn func(metadata.Event)) { s.events = fn }

// Session is metadata.Store's.
func (s *Store) Session() metadata.SessionID { return s.tree.session }

// later queues an answer behind all changes asked for so far.
func (s *Store) later(give func(failed error)) {
	s.answers = append(s.answers, answer{s.asked, give})
	s.kick()
}

func (s *Store) kick() {
	if !s.armed {
		s.armed = true
		s.loop.AtTurnEnd(&s.turn)
	}
}

// release gives the answers whose changes are durable; what the callbacks ask for waits for the next turn.
func (s *Store) release() {
	n := 0
	for n < len(s.answers) && (s.fenced != nil || s.answers[n].need <= s.synced) {
		n++
	}
	if n == 0 {
		return
	}
	ready := s.answers[:n:n]
	s.answers = append([]answer(nil), s.answers[n:]...)
	for i := range ready {
		var failed error
		if ready[i].need > s.synced {
			failed = s.fenced
		}
		ready[i].give(failed)
	}
}

// flush writes the pending frame unless one is on its way.
func (s *Store) flush() {
	if s.busy || s.fenced != nil || len(s.pending) == 0 {
		return
	}
	s.busy = true
	endFrame(s.pending, s.logSize, frameMark)
	s.inWrite, s.pending, s.spare = s.pending, s.spare[:0], nil
	s.writing, s.writingZxid = s.asked, s.tree.zxid
	s.bufs[0] = s.inWrite
	s.log.Write(s.bufs[:], s.logSize, &s.write)
}

// wrote goes on with a sync. A write that found no room is repeated from its place until there is some: what it may have left there
// was never durable, and nobody has been answered.
func (s *Store) wrote(err error) {
	switch {
	case s.fenced != nil: // closed beside a full disk
	case err == nil:
		if s.full && s.told != nil {
			s.told.Info("there is room again for the cluster's state", "dir", s.dir)
		}
		s.full = false
		s.log.Sync(&s.sync)
	case ring.NoSpace(err) && !s.closed:
		if !s.full && s.told != nil {
			s.told.Warn("no room for the cluster's state: changes of it, a start's among them, wait until there is some", "dir", s.dir, "cause", err)
		}
		s.full = true
		s.loop.After(fullRetry, &s.again)
	default:
		s.fence("write", err)
	}
}

func (s *Store) hasSynced(err error) {
	if err != nil {
		s.fence("sync", err)
		return
	}
	s.busy = false
	s.logSize += int64(len(s.inWrite))
	s.inWrite, s.spare = nil, s.inWrite[:0]
	s.synced, s.syncedZxid = s.writing, s.writingZxid
	s.release()
	s.check()
	switch {
	case len(s.pending) > 0 && !(s.logSize >= s.rotateAt && !s.snapshotting):
		s.kick()
	case s.logSize >= s.rotateAt && !s.snapshotting && !s.closed:
		s.rotate()
	case s.closed && len(s.pending) > 0:
		s.kick()
	}
	s.wakeIdle()
}

func (s *Store) wakeIdle() {
	if s.idle != nil && !s.busy && !s.snapshotting && (len(s.pending) == 0 || s.fenced != nil) {
		wake := s.idle
		s.idle = nil
		wake()
	}
}

// fence refuses everything from now on: what the file holds is unknown, and writing on could hide a loss.
func (s *Store) fence(what string, err error) {
	s.fenced = fmt.Errorf("%w: %s of the log: %w", metadata.ErrFenced, what, err)
	if err != metadata.ErrNoSpace {
		s.mark(&s.marking)
	}
	s.busy = false
	s.release()
	if s.events != nil {
		s.events(metadata.Event{Type: metadata.Expired})
	}
	s.wakeIdle()
}

// Close ends the session, so that ephemeral nodes go, waits until all is durable and closes the files.
func (s *Store) Close(t *ring.Task) error {
	if s.closed {
		return nil
	}
	s.closed = true
	if s.full {
		s.loop.Cancel(&s.again)
		s.fence("write", metadata.ErrNoSpace)
	}
	if stale := s.tree.stale(); s.fenced == nil && len(stale) > 0 {
		zxid, now := s.tree.zxid+1, s.loop.UnixMilli()
		for i := range stale {
			if _, err := s.tree.apply(&stale[i], zxid, now, nil); err != nil {
				panic("embedded: an ephemeral node cannot be removed: " + err.Error())
			}
		}
		s.tree.zxid = zxid
		s.put(zxid, now, stale)
		s.kick()
	}
	if s.busy || s.snapshotting || s.armed || (len(s.pending) > 0 && s.fenced == nil) {
		s.kick()
		t.Suspend(func(wake func()) { s.idle = wake })
	}
	s.log.Close()
	if s.fenced != nil && !errors.Is(s.fenced, metadata.ErrNoSpace) { // it may be on its way; then this comes behind it
		if f, err := t.Open(s.dir+"/"+failedName, ring.Write|ring.Create); err == nil {
			f.Close()
		}
	}
	return s.fenced
}
