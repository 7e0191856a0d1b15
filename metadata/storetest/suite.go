package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"kring/metadata"
)

// World runs one store under test. Its functions are called by the test, from outside the store's loop.
type World struct {
	// Do runs fn on the store's loop and returns when it has returned.
	Do func(fn func())
	// Until lets the world go on until cond, which it calls on the loop, holds.
	Until func(t testing.TB, cond func() bool)
	// Store is the store as now opened.
	Store func() metadata.Store
	// Reopen ends the session and opens the same store in a new one.
	Reopen func(t testing.TB)
}

// Client asks a store and waits for each answer.
type Client struct {
	T      testing.TB
	W      *World
	Events []metadata.Event
}

// NewClient listens to the store's events.
func NewClient(t testing.TB, w *World) *Client {
	c := &Client{T: t, W: w}
	c.listen()
	return c
}

func (c *Client) listen() {
	c.W.Do(func() { c.W.Store().Events(func(e metadata.Event) { c.Events = append(c.Events, e) }) })
}

// Do is Store.Do.
func (c *Client) Do(ops ...metadata.Op) (results []metadata.Result, err error) {
	c.T.Helper()
	answered := false
	c.W.Do(func() {
		inside := true
		c.W.Store().Do(ops, func(r []metadata.Result, e error) {
			if inside || answered {
				c.T.Error("an answer came inside the call, or twice")
			}
			results, err, answered = r, e, true
		})
		inside = false
	})
	c.W.Until(c.T, func() bool { return answered })
	return results, err
}

// Get is Store.Get.
func (c *Client) Get(path string, watch bool) (data []byte, st metadata.Stat, err error) {
	c.T.Helper()
	answered := false
	c.W.Do(func() {
		c.W.Store().Get(path, watch, func(d []byte, s metadata.Stat, e error) { data, st, err, answered = d, s, e, true })
	})
	c.W.Until(c.T, func() bool { return answered })
	return data, st, err
}

// Exists is Store.Exists.
func (c *Client) Exists(path string, watch bool) (st metadata.Stat, err error) {
	c.T.Helper()
	answered := false
	c.W.Do(func() {
		c.W.Store().Exists(path, watch, func(s metadata.Stat, e error) { st, err, answered = s, e, true })
	})
	c.W.Until(c.T, func() bool { return answered })
	return st, err
}

// Children is Store.Children.
func (c *Client) Children(path string, watch bool) (names []string, st metadata.Stat, err error) {
	c.T.Helper()
	answered := false
	c.W.Do(func() {
		c.W.Store().Children(path, watch, func(n []string, s metadata.Stat, e error) { names, st, err, answered = n, s, e, true })
	})
	c.W.Until(c.T, func() bool { return answered })
	return names, st, err
}

// must fails the test unless err is want (nil or one of metadata's).
func (c *Client) must(what string, err, want error) {
	c.T.Helper()
	if want == nil && err != nil || !errors.Is(err, want) {
		c.T.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

func (c *Client) take() []metadata.Event {
	e := c.Events
	c.Events = nil
	return e
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}

// Run is the suite. open makes an empty store.
func Run(t *testing.T, open func(t *testing.T) *World) {
	for _, test := range []struct {
		name string
		run  func(c *Client)
	}{
		{"data and versions", dataAndVersions},
		{"root and reserved nodes", rootAndReserved},
		{"refusals in order", refusals},
		{"paths", paths},
		{"sequential names", sequential},
		{"multi", multi},
		{"ephemeral nodes", ephemeral},
		{"watches", watches},
		{"watches of a multi", multiWatches},
		{"event before answer", eventFirst},
		{"answers in order", answersInOrder},
		{"reopened", reopened},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(NewClient(t, open(t))) })
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("random operations ", seed), func(t *testing.T) { Random(NewClient(t, open(t)), seed, 400) })
	}
}

func dataAndVersions(c *Client) {
	r, err := c.Do(metadata.Create("/a", nil))
	c.must("create", err, nil)
	st := r[0].Stat
	equal(c.T, "path", r[0].Path, "/a")
	if st.Czxid == 0 || st.Czxid != st.Mzxid || st.Czxid != st.Pzxid || st.Ctime == 0 || st.Ctime != st.Mtime {
		c.T.Fatalf("stat of a new node: %+v", st)
	}
	data, _, err := c.Get("/a", false)
	c.must("get", err, nil)
	if data != nil {
		c.T.Fatalf("no data became %q", data)
	}
	r, err = c.Do(metadata.SetData("/a", []byte{}, 0))
	c.must("set", err, nil)
	equal(c.T, "version", r[0].Stat.Version, int32(1))
	if r[0].Stat.Mzxid <= st.Mzxid || r[0].Stat.Czxid != st.Czxid {
		c.T.Fatalf("stat after a change: %+v", r[0].Stat)
	}
	if data, _, _ = c.Get("/a", false); data == nil || len(data) != 0 {
		c.T.Fatalf("empty data became %v", data)
	}
	_, err = c.Do(metadata.SetData("/a", []byte("x"), 0))
	c.must("set with an old version", err, metadata.ErrBadVersion)
	_, err = c.Do(metadata.SetData("/a", []byte("x"), metadata.AnyVersion))
	c.must("set without version", err, nil)
	_, err = c.Do(metadata.Create("/a/b", []byte("b")), metadata.Create("/a/c", []byte("c")))
	c.must("create children", err, nil)
	_, err = c.Do(metadata.Delete("/a/b", 0))
	c.must("delete", err, nil)
	names, st, err := c.Children("/a", false)
	c.must("children", err, nil)
	equal(c.T, "children", names, []string{"c"})
	if st.Version != 2 || st.Cversion != 3 || st.NumChildren != 1 || st.DataLength != 1 || st.Pzxid <= st.Mzxid {
		c.T.Fatalf("stat of the parent: %+v", st)
	}
	_, err = c.Do(metadata.Create("/a/b", nil))
	c.must("create again", err, nil)
	if st, _ := c.Exists("/a/b", false); st.Version != 0 {
		c.T.Fatalf("a node made again: %+v", st)
	}
}

func rootAndReserved(c *Client) {
	data, st, err := c.Get("/", false)
	c.must("get root", err, nil)
	if data == nil || len(data) != 0 || st.Version != 0 || st.Cversion != -1 || st.NumChildren != 1 {
		c.T.Fatalf("root: %q %+v", data, st)
	}
	names, _, _ := c.Children("/", false)
	equal(c.T, "root's children", names, []string{"zookeeper"})
	names, _, _ = c.Children("/zookeeper", false)
	equal(c.T, "reserved", names, []string{"config", "quota"})
	for _, p := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		_, err = c.Do(metadata.Delete(p, metadata.AnyVersion))
		c.must("delete "+p, err, metadata.ErrBadArguments)
	}
	_, err = c.Do(metadata.Create("/b", nil), metadata.Create("/c", nil))
	c.must("create", err, nil)
	if st, _ = c.Exists("/", false); st.Cversion != 1 || st.NumChildren != 3 {
		c.T.Fatalf("root: %+v", st)
	}
}

func refusals(c *Client) {
	_, err := c.Do(metadata.Create("/x/y", nil))
	c.must("create without parent", err, metadata.ErrNoNode)
	_, err = c.Do(metadata.SetData("/x", nil, -1))
	c.must("set nothing", err, metadata.ErrNoNode)
	_, err = c.Do(metadata.Delete("/x", -1))
	c.must("delete nothing", err, metadata.ErrNoNode)
	_, err = c.Do(metadata.Check("/x", -1))
	c.must("check nothing", err, metadata.ErrNoNode)
	_, _, err = c.Get("/x", false)
	c.must("get nothing", err, metadata.ErrNoNode)
	_, _, err = c.Children("/x", true)
	c.must("children of nothing", err, metadata.ErrNoNode)
	_, err = c.Exists("/x", false)
	c.must("exists", err, metadata.ErrNoNode)
	_, err = c.Do(metadata.Create("/x", nil))
	c.must("create", err, nil)
	_, err = c.Do(metadata.Create("/x", nil))
	c.must("create twice", err, metadata.ErrNodeExists)
	_, err = c.Do(metadata.Create("/x/y", nil))
	c.must("create child", err, nil)
	_, err = c.Do(metadata.Delete("/x", 7))
	c.must("delete with version and children", err, metadata.ErrBadVersion)
	_, err = c.Do(metadata.Delete("/x", 0))
	c.must("delete with children", err, metadata.ErrNotEmpty)
	_, err = c.Do(metadata.CreateEphemeral("/e", nil))
	c.must("create ephemeral", err, nil)
	_, err = c.Do(metadata.Create("/e/f", nil))
	c.must("child of an ephemeral node", err, metadata.ErrNoChildrenForEphemerals)
	if metadata.OutcomeOf(err) != metadata.Refused {
		c.T.Fatal("a refusal is not taken for one")
	}
}

func paths(c *Client) {
	for _, p := range []string{"", "a", "/a/", "//", "/a//b", "/./a", "/a/..", "/a\x00", "/a\x1f", "/a\x7f", "/a\ue000", "/a\ufff0"} {
		_, err := c.Do(metadata.Create(p, nil))
		if err == nil || metadata.OutcomeOf(err) != metadata.Refused {
			c.T.Fatalf("path %q: %v", p, err)
		}
	}
	for _, p := range []string{"/<default>", "/ä b", "/...", "/a.b", "/%2B"} {
		_, err := c.Do(metadata.Create(p, nil))
		c.must("create "+p, err, nil)
	}
}

func sequential(c *Client) {
	_, err := c.Do(metadata.Create("/q", nil), metadata.Create("/q/other", nil))
	c.must("create", err, nil)
	r, err := c.Do(metadata.CreateSequential("/q/n_", nil), metadata.CreateSequential("/q/", nil))
	c.must("create sequential", err, nil)
	equal(c.T, "first", r[0].Path, "/q/n_0000000001")
	equal(c.T, "second", r[1].Path, "/q/0000000002")
	_, err = c.Do(metadata.Delete("/q/n_0000000001", -1))
	c.must("delete", err, nil)
	r, _ = c.Do(metadata.CreateSequential("/q/n_", nil))
	equal(c.T, "numbers are not used twice", r[0].Path, "/q/n_0000000003")
	c.W.Reopen(c.T)
	c.listen()
	r, _ = c.Do(metadata.CreateSequential("/q/n_", nil))
	equal(c.T, "nor after reopening", r[0].Path, "/q/n_0000000004")
}

func multi(c *Client) {
	r, err := c.Do(metadata.Create("/m", []byte("0")), metadata.SetData("/m", []byte("1"), 0), metadata.Check("/m", 1),
		metadata.Create("/m/a", nil), metadata.Delete("/m/a", 0))
	c.must("multi", err, nil)
	if r[0].Stat.Version != 0 || r[1].Stat.Version != 1 || r[0].Stat.Czxid != r[1].Stat.Mzxid {
		c.T.Fatalf("results: %+v", r)
	}
	_, before, _ := c.Get("/m", false)
	if before.Cversion != 2 || before.Pzxid != before.Czxid {
		c.T.Fatalf("stat: %+v", before)
	}
	r, err = c.Do(metadata.SetData("/m", []byte("2"), -1), metadata.Create("/m/b", nil), metadata.Delete("/m/b", 0),
		metadata.Delete("/gone", -1), metadata.Create("/m/c", nil))
	c.must("refused multi", err, metadata.ErrNoNode)
	if len(r) != 5 || r[0].Err != nil || r[2].Err != nil || !errors.Is(r[3].Err, metadata.ErrNoNode) ||
		!errors.Is(r[4].Err, metadata.ErrRolledBack) {
		c.T.Fatalf("results of a refused multi: %+v", r)
	}
	data, after, _ := c.Get("/m", false)
	equal(c.T, "data after a refused multi", string(data), "1")
	equal(c.T, "stat after a refused multi", after, before)
	_, err = c.Do(metadata.Check("/m", 5), metadata.SetData("/m", nil, -1))
	c.must("check", err, metadata.ErrBadVersion)
}

func ephemeral(c *Client) {
	_, err := c.Do(metadata.CreateEphemeral("/e1", []byte("x")), metadata.SetData("/e1", []byte("y"), 0))
	c.must("create", err, nil)
	st, err := c.Exists("/e1", false)
	c.must("exists", err, nil)
	equal(c.T, "owner", st.EphemeralOwner, c.W.Store().Session())
	old := st
	c.W.Reopen(c.T)
	c.listen()
	_, err = c.Exists("/e1", false)
	c.must("after the session", err, metadata.ErrNoNode)
	r, err := c.Do(metadata.CreateEphemeral("/e1", nil))
	c.must("create again", err, nil)
	if st = r[0].Stat; st.Czxid <= old.Czxid || st.EphemeralOwner == old.EphemeralOwner {
		c.T.Fatalf("of the new session %+v, of the old %+v", st, old)
	}
}

func watches(c *Client) {
	_, err := c.Exists("/w", true)
	c.must("exists", err, metadata.ErrNoNode)
	c.Do(metadata.Create("/w", nil))
	c.Do(metadata.SetData("/w", nil, -1))
	equal(c.T, "created", c.take(), []metadata.Event{{Type: metadata.NodeCreated, Path: "/w"}})
	c.Get("/w", true)
	c.Get("/w", true)
	c.Children("/w", true)
	c.Do(metadata.SetData("/w", nil, -1))
	equal(c.T, "changed", c.take(), []metadata.Event{{Type: metadata.NodeDataChanged, Path: "/w"}})
	c.Do(metadata.Create("/w/a", nil))
	c.Do(metadata.Create("/w/b", nil))
	equal(c.T, "children", c.take(), []metadata.Event{{Type: metadata.NodeChildrenChanged, Path: "/w"}})
	c.Children("/w", true)
	c.Get("/w/a", true)
	c.Children("/w/a", true)
	c.Do(metadata.Delete("/w/a", -1))
	equal(c.T, "deleted", c.take(), []metadata.Event{{Type: metadata.NodeDeleted, Path: "/w/a"},
		{Type: metadata.NodeChildrenChanged, Path: "/w"}})
	c.Get("/gone", true)
	c.Children("/gone", true)
	c.Do(metadata.Create("/gone", nil))
	equal(c.T, "a failed get or getChildren arms nothing", len(c.take()), 0)
	c.Children("/w/b", true)
	c.Do(metadata.Delete("/w/b", -1))
	equal(c.T, "child watch of a deleted node", c.take(), []metadata.Event{{Type: metadata.NodeDeleted, Path: "/w/b"}})
	c.Get("/w", true)
	c.Do(metadata.SetData("/w", nil, 77))
	equal(c.T, "a refused change trips nothing", len(c.take()), 0)
}

func multiWatches(c *Client) {
	c.Do(metadata.Create("/w", nil))
	c.Children("/w", true)
	c.Exists("/w/a", true)
	_, err := c.Do(metadata.Create("/w/a", nil), metadata.Delete("/none", -1))
	c.must("refused multi", err, metadata.ErrNoNode)
	equal(c.T, "a refused multi trips nothing", len(c.take()), 0)
	_, err = c.Do(metadata.Create("/w/a", nil), metadata.SetData("/w/a", nil, 0), metadata.Create("/w/b", nil))
	c.must("multi", err, nil)
	equal(c.T, "events", c.take(), []metadata.Event{{Type: metadata.NodeCreated, Path: "/w/a"},
		{Type: metadata.NodeChildrenChanged, Path: "/w"}})
}

func eventFirst(c *Client) {
	c.Do(metadata.Create("/w", nil))
	var order []string
	answered := false
	c.W.Do(func() {
		s := c.W.Store()
		s.Events(func(e metadata.Event) { order = append(order, e.Type.String()) })
		s.Get("/w", true, func([]byte, metadata.Stat, error) { order = append(order, "get") })
		s.Do([]metadata.Op{metadata.SetData("/w", []byte("1"), -1)}, func([]metadata.Result, error) { order = append(order, "set") })
		s.Get("/w", false, func(d []byte, _ metadata.Stat, _ error) { order = append(order, "get "+string(d)); answered = true })
	})
	c.W.Until(c.T, func() bool { return answered })
	equal(c.T, "order", order, []string{"get", "data changed", "set", "get 1"})
}

func answersInOrder(c *Client) {
	var order []int
	c.W.Do(func() {
		s := c.W.Store()
		for i := range 60 {
			n := func() { order = append(order, i) }
			switch i % 3 {
			case 0:
				s.Do([]metadata.Op{metadata.Create(fmt.Sprint("/o", i), nil)}, func([]metadata.Result, error) { n() })
			case 1:
				s.Exists("/none", false, func(metadata.Stat, error) { n() })
			case 2:
				s.Do([]metadata.Op{metadata.Delete("/none", -1)}, func([]metadata.Result, error) { n() })
			}
		}
	})
	c.W.Until(c.T, func() bool { return len(order) == 60 })
	for i, n := range order {
		if i != n {
			c.T.Fatalf("answers came in the order %v", order)
		}
	}
}

func reopened(c *Client) {
	c.Do(metadata.Create("/r", nil), metadata.Create("/r/a", []byte{}), metadata.SetData("/r/a", []byte("v"), -1))
	before := Dump(c)
	c.W.Reopen(c.T)
	c.listen()
	equal(c.T, "tree", Dump(c), before)
	r, err := c.Do(metadata.Create("/r/b", nil))
	c.must("create", err, nil)
	if r[0].Stat.Czxid <= before["/r/a"].Stat.Mzxid {
		c.T.Fatal("a number of a change was used twice")
	}
}
