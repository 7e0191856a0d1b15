package trees

import (
	"errors"
	"os"
	"sort"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"kring/metadata"
	"kring/metadata/storetest"

	"kring/conformance/stage"
)

// realStore is a ZooKeeper session as a metadata.Store, good enough to hold the suite against the real thing: calls are made one
// after the other by a goroutine, answers and events wait in a queue until the test takes them.
type realStore struct {
	conn    *zk.Conn
	calls   chan func()
	events  func(metadata.Event)
	mu      sync.Mutex
	ready   []func()
	arrived chan struct{}
}

func (s *realStore) post(fn func()) {
	s.mu.Lock()
	s.ready = append(s.ready, fn)
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

func (s *realStore) event(e zk.Event) {
	kinds := map[zk.EventType]metadata.EventType{zk.EventNodeCreated: metadata.NodeCreated, zk.EventNodeDeleted: metadata.NodeDeleted,
		zk.EventNodeDataChanged: metadata.NodeDataChanged, zk.EventNodeChildrenChanged: metadata.NodeChildrenChanged}
	if kind, ok := kinds[e.Type]; ok {
		s.post(func() {
			if s.events != nil {
				s.events(metadata.Event{Type: kind, Path: e.Path})
			}
		})
	}
}

func dial(t testing.TB, port string) *realStore {
	t.Helper()
	s := &realStore{calls: make(chan func(), 1024), arrived: make(chan struct{}, 1)}
	conn, states, err := zk.Connect([]string{"127.0.0.1:" + port}, 10*time.Second, zk.WithLogger(quiet{}), zk.WithEventCallback(s.event))
	if err != nil {
		t.Fatal(err)
	}
	s.conn = conn
	for e := range states {
		if e.State == zk.StateHasSession {
			break
		}
	}
	go func() {
		for call := range s.calls {
			call()
		}
	}()
	return s
}

func (s *realStore) close() {
	close(s.calls)
	s.conn.Close()
}

var known = []struct{ theirs, ours error }{
	{zk.ErrNoNode, metadata.ErrNoNode}, {zk.ErrNodeExists, metadata.ErrNodeExists}, {zk.ErrBadVersion, metadata.ErrBadVersion},
	{zk.ErrNotEmpty, metadata.ErrNotEmpty}, {zk.ErrNoChildrenForEphemerals, metadata.ErrNoChildrenForEphemerals},
	{zk.ErrBadArguments, metadata.ErrBadArguments}, {zk.ErrInvalidPath, metadata.ErrBadArguments},
}

func ours(err error) error {
	for _, k := range known {
		if errors.Is(err, k.theirs) {
			return k.ours
		}
	}
	return err
}

func statOf(st *zk.Stat) (out metadata.Stat) {
	if st == nil {
		return out
	}
	return metadata.Stat{Czxid: metadata.Zxid(st.Czxid), Mzxid: metadata.Zxid(st.Mzxid), Pzxid: metadata.Zxid(st.Pzxid), Ctime: st.Ctime, Mtime: st.Mtime,
		Version: st.Version, Cversion: st.Cversion, Aversion: st.Aversion, EphemeralOwner: metadata.SessionID(st.EphemeralOwner),
		DataLength: st.DataLength, NumChildren: st.NumChildren}
}

func (s *realStore) Do(ops []metadata.Op, done func([]metadata.Result, error)) {
	s.calls <- func() {
		results, err := s.do(ops)
		s.post(func() { done(results, err) })
	}
}

// do is a multi. The answer to a create has no stat in it, so it is asked for; nobody else writes here.
func (s *realStore) do(ops []metadata.Op) ([]metadata.Result, error) {
	acl := zk.WorldACL(zk.PermAll)
	var req []any
	for _, op := range ops {
		var flags int32
		if op.Ephemeral {
			flags |= zk.FlagEphemeral
		}
		if op.Sequential {
			flags |= zk.FlagSequence
		}
		switch op.Kind {
		case metadata.OpCreate:
			req = append(req, &zk.CreateRequest{Path: op.Path, Data: op.Data, Acl: acl, Flags: flags})
		case metadata.OpSetData:
			req = append(req, &zk.SetDataRequest{Path: op.Path, Data: op.Data, Version: op.Version})
		case metadata.OpDelete:
			req = append(req, &zk.DeleteRequest{Path: op.Path, Version: op.Version})
		case metadata.OpCheck:
			req = append(req, &zk.CheckVersionRequest{Path: op.Path, Version: op.Version})
		}
	}
	answers, err := s.conn.Multi(req...)
	results := make([]metadata.Result, len(ops))
	if err != nil || len(answers) != len(ops) {
		failed := ours(err)
		for i := range results {
			if i < len(answers) && answers[i].Error != nil {
				results[i].Err = ours(answers[i].Error)
			}
		}
		return rolledBack(results, failed), failed
	}
	for i, op := range ops {
		results[i].Path = op.Path
		switch op.Kind {
		case metadata.OpCreate:
			results[i].Path = answers[i].String
			if _, st, err := s.conn.Exists(answers[i].String); err == nil && len(ops) == 1 {
				results[i].Stat = statOf(st)
			} else if err == nil {
				full := statOf(st)
				results[i].Stat = metadata.Stat{Czxid: full.Czxid, EphemeralOwner: full.EphemeralOwner}
			}
		case metadata.OpSetData:
			results[i].Stat = statOf(answers[i].Stat)
		}
	}
	return results, nil
}

// rolledBack gives the operations behind the refused one the error they have with us.
func rolledBack(results []metadata.Result, failed error) []metadata.Result {
	found := false
	for i := range results {
		switch {
		case found:
			results[i].Err = metadata.ErrRolledBack
		case results[i].Err != nil && errors.Is(results[i].Err, failed):
			found = true
		default:
			results[i].Err = nil
		}
	}
	return results
}

func (s *realStore) Get(path string, watch bool, done func([]byte, metadata.Stat, error)) {
	s.calls <- func() {
		var data []byte
		var st *zk.Stat
		var err error
		if watch {
			data, st, _, err = s.conn.GetW(path)
		} else {
			data, st, err = s.conn.Get(path)
		}
		s.post(func() { done(data, statOf(st), ours(err)) })
	}
}

func (s *realStore) Exists(path string, watch bool, done func(metadata.Stat, error)) {
	s.calls <- func() {
		var ok bool
		var st *zk.Stat
		var err error
		if watch {
			ok, st, _, err = s.conn.ExistsW(path)
		} else {
			ok, st, err = s.conn.Exists(path)
		}
		if err == nil && !ok {
			st, err = nil, zk.ErrNoNode
		}
		s.post(func() { done(statOf(st), ours(err)) })
	}
}

func (s *realStore) Children(path string, watch bool, done func([]string, metadata.Stat, error)) {
	s.calls <- func() {
		var names []string
		var st *zk.Stat
		var err error
		if watch {
			names, st, _, err = s.conn.ChildrenW(path)
		} else {
			names, st, err = s.conn.Children(path)
		}
		sort.Strings(names)
		s.post(func() { done(names, statOf(st), ours(err)) })
	}
}

func (s *realStore) Events(fn func(metadata.Event)) { s.events = fn }

func (s *realStore) Session() metadata.SessionID { return metadata.SessionID(s.conn.SessionID()) }

// TestSuiteOnZooKeeper: what storetest asks of a store is what a real ZooKeeper does.
func TestSuiteOnZooKeeper(t *testing.T) {
	if os.Getenv("KRING_PEERS_TEST") == "" {
		t.Skip("needs a real ZooKeeper; make conformance sets KRING_PEERS_TEST")
	}
	storetest.Run(t, func(t *testing.T) *storetest.World {
		dir, port := t.TempDir(), stage.FreePort(t)
		stage.Peers(t, nil, "zk", dir, "clientPort="+port)
		t.Cleanup(func() { stage.End(t, dir, syscall.SIGKILL, patience) })
		s := dial(t, port)
		t.Cleanup(func() { s.close() })
		return &storetest.World{
			Do:    func(fn func()) { fn() },
			Store: func() metadata.Store { return s },
			Reopen: func(t testing.TB) {
				s.close()
				s = dial(t, port)
			},
			Until: func(t testing.TB, cond func() bool) {
				t.Helper()
				late := time.After(patience)
				for !cond() {
					s.mu.Lock()
					ready := s.ready
					s.ready = nil
					s.mu.Unlock()
					for _, fn := range ready {
						fn()
					}
					if len(ready) > 0 {
						continue
					}
					select {
					case <-s.arrived:
					case <-late:
						t.Fatal("no answer")
					}
				}
			},
		}
	})
}
