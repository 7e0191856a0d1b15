package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/metadata"
	"kring/metadata/storetest"
	"kring/ring"
)

// text is the whole tree in one string.
func (t *tree) text() string {
	var b strings.Builder
	if err := t.export(&b); err != nil {
		panic(err)
	}
	return b.String()
}

// contents reads all of the store's files.
func (b *bench) contents(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, name := range b.m.Files(dir) {
		base := name[strings.LastIndex(name, "/")+1:]
		data, err := b.m.ReadFile(dir + "/" + base)
		if err != nil {
			t.Fatal(err)
		}
		out[base] = data
	}
	return out
}

// loadFiles reads a store from memory.
func loadFiles(content map[string][]byte) (*tree, error) {
	names := slices.Sorted(maps.Keys(content))
	f := findFiles(names)
	tr, _, err := load(&f, func(name string) ([]byte, error) {
		if b, ok := content[name]; ok {
			return b, nil
		}
		return nil, fs.ErrNotExist
	})
	return tr, err
}

// history is a log with the tree as it was whenever a frame was durable.
type history struct {
	file  string
	log   []byte
	sizes []int
	trees []string
}

func writeHistory(t testing.TB, n int) history {
	t.Helper()
	b := newBench(3)
	w := b.world(t)
	c := storetest.NewClient(t, w)
	var h history
	note := func() { h.sizes, h.trees = append(h.sizes, int(b.store.logSize)), append(h.trees, b.store.tree.text()) }
	note()
	model, r := storetest.NewModel(), b.w.Rand()
	for len(h.sizes) < n {
		ops := storetest.RandomOps(r, model)
		if _, err := model.Do(ops); err != nil {
			continue
		}
		if _, err := c.Do(ops...); err != nil {
			t.Fatal(err)
		}
		if int(b.store.logSize) > h.sizes[len(h.sizes)-1] {
			note()
		}
	}
	for name, data := range b.contents(t) {
		h.file, h.log = name, data
	}
	if len(h.log) != h.sizes[len(h.sizes)-1] {
		t.Fatalf("the log has %d bytes, the store counted %d", len(h.log), h.sizes[len(h.sizes)-1])
	}
	return h
}

// TestCutAtEveryByte: a log cut anywhere, or ending in zeros instead of what was written, gives the state of the last whole frame.
func TestCutAtEveryByte(t *testing.T) {
	h := writeHistory(t, 14)
	for size := headerSize; size <= len(h.log); size++ {
		zeros := append(bytes.Clone(h.log[:size]), make([]byte, 64)...)
		for _, log := range [][]byte{h.log[:size], zeros} {
			want := newTree().text()
			for i, s := range h.sizes {
				if s <= len(log) && bytes.Equal(log[:s], h.log[:s]) {
					want = h.trees[i]
				}
			}
			tr, err := loadFiles(map[string][]byte{h.file: log})
			if err != nil {
				t.Fatalf("cut at %d of %d: %v", size, len(h.log), err)
			}
			if tr.text() != want {
				t.Fatalf("cut at %d of %d: another tree than after the last whole frame", size, len(h.log))
			}
		}
	}
	for size := range headerSize {
		if _, err := loadFiles(map[string][]byte{h.file: h.log[:size]}); err != nil {
			t.Fatalf("a log that was never finished, %d bytes: %v", size, err)
		}
	}
}

// TestDamageAtEveryByte: a changed byte is an error that names file and frame, or lies in the last frame, which is taken for torn.
func TestDamageAtEveryByte(t *testing.T) {
	h := writeHistory(t, 10)
	last := h.sizes[len(h.sizes)-2]
	for at := range h.log {
		log := bytes.Clone(h.log)
		log[at] ^= 0x10
		tr, err := loadFiles(map[string][]byte{h.file: log})
		if at >= last {
			if err != nil || tr.text() != h.trees[len(h.trees)-2] {
				t.Fatalf("byte %d of the last frame: %v", at, err)
			}
			continue
		}
		frame := 0
		for _, s := range append([]int{headerSize}, h.sizes...) {
			if s <= at {
				frame = s
			}
		}
		var damage *DamageError
		if !errors.As(err, &damage) || damage.Offset != int64(frame) || !strings.HasSuffix(damage.File, h.file) {
			t.Fatalf("byte %d, in the frame at %d: %v", at, frame, err)
		}
	}
}

// TestDamagedSnapshot: every changed or missing byte of a snapshot is found.
func TestDamagedSnapshot(t *testing.T) {
	b := newBench(4)
	c := storetest.NewClient(t, b.world(t))
	for i := range 30 {
		if _, err := c.Do(metadata.Create(fmt.Sprint("/n", i), bytes.Repeat([]byte{'x'}, i))); err != nil {
			t.Fatal(err)
		}
	}
	tr := b.store.tree
	good := encodeSnapshot(tr.capture(), tr.zxid, tr.session)
	if back, _, err := decodeSnapshot(good); err != nil || back.text() != tr.text() || back.session != tr.session {
		t.Fatalf("snapshot is not read as written: %v", err)
	}
	for at := range good {
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		if _, _, err := decodeSnapshot(bad); err == nil {
			t.Fatalf("byte %d of a snapshot was changed and nobody saw it", at)
		}
		if _, _, err := decodeSnapshot(good[:at]); err == nil {
			t.Fatalf("a snapshot of %d bytes instead of %d was read", at, len(good))
		}
	}
}

// TestMissingFiles: a hole in the row of files is an error.
func TestMissingFiles(t *testing.T) {
	b := newBench(5)
	c := storetest.NewClient(t, b.world(t))
	before := b.contents(t)
	b.store.rotateAt = 1
	c.Do(metadata.Create("/a", nil))
	b.w.RunFor(time.Second)
	c.Do(metadata.Create("/b", nil))
	after := b.contents(t)
	var log, snapshot string
	for name := range after {
		if strings.HasSuffix(name, logSuffix) {
			log = name
		} else {
			snapshot = name
		}
	}
	if len(after) != 2 || log == "" || snapshot == "" {
		t.Fatalf("no snapshot was taken: %v", slices.Sorted(maps.Keys(after)))
	}
	if tr, err := loadFiles(after); err != nil || tr.nodes["/b"] == nil || tr.nodes["/a"] == nil {
		t.Fatal(err)
	}
	var damage *DamageError
	if _, err := loadFiles(map[string][]byte{log: after[log]}); !errors.As(err, &damage) {
		t.Fatalf("without the snapshot: %v", err)
	}
	if _, err := loadFiles(map[string][]byte{snapshot: after[snapshot]}); !errors.As(err, &damage) {
		t.Fatalf("without the log: %v", err)
	}
	// Before the old files are removed, both are there; the snapshot counts.
	maps.Copy(before, after)
	if tr, err := loadFiles(before); err != nil || tr.nodes["/b"] == nil {
		t.Fatal(err)
	}
}

// TestPowerLoss: whatever a crash leaves, every answered change is there, and of those under way a beginning.
func TestPowerLoss(t *testing.T) {
	for seed := range uint64(40) {
		powerLoss(t, seed)
	}
}

func powerLoss(t *testing.T, seed uint64) {
	b := newBench(seed)
	if err := b.start(t); err != nil {
		t.Fatal(err)
	}
	r := b.w.Rand()
	model := storetest.NewModel()
	for life := range 6 {
		b.store.rotateAt = int64(1 + r.IntN(3000))
		states := []*storetest.Model{model}
		acked := 0
		ops := 5 + r.IntN(60)
		for i := 0; i < ops; {
			// A few changes at once, then some time.
			b.do(t, func() {
				for range 1 + r.IntN(4) {
					next := states[len(states)-1].Clone()
					change := storetest.RandomOps(r, next)
					if _, err := next.Do(change); err != nil {
						continue
					}
					states = append(states, next)
					n := len(states) - 1
					b.store.Do(change, func(_ []metadata.Result, err error) {
						if err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
						acked = n
					})
					i++
				}
			})
			b.w.RunFor(time.Duration(r.IntN(2000)) * time.Microsecond)
			b.store.rotateAt = min(b.store.rotateAt, b.store.logSize+int64(r.IntN(3000)))
		}
		if life%2 == 0 {
			b.m.Crash()
		} else {
			b.m.Kill()
		}
		if err := b.start(t); err != nil {
			t.Fatalf("seed %d, life %d: %v", seed, life, err)
		}
		for name := range b.contents(t) {
			if strings.HasSuffix(name, damagedSuffix) {
				t.Fatalf("seed %d, life %d: a torn write was taken for damage: %s", seed, life, name)
			}
		}
		var why error
		model, why = match(t, b, states[acked:])
		if model == nil {
			t.Fatalf("seed %d, life %d: %v; the tree is none of those between the last answer (%d) and the last change (%d)", seed, life, why, acked, len(states)-1)
		}
	}
	if err := b.close(t); err != nil {
		t.Fatal(err)
	}
}

// match finds the state that the store shows, its session ended.
func match(t *testing.T, b *bench, states []*storetest.Model) (m *storetest.Model, err error) {
	got := map[string]storetest.Node{}
	b.do(t, func() {
		for p, n := range b.store.tree.nodes {
			if p != "/zookeeper" && !strings.HasPrefix(p, "/zookeeper/") {
				got[p] = storetest.Node{Data: string(n.rec.data), Null: n.rec.data == nil, Stat: n.stat()}
			}
		}
	})
	for _, m = range states {
		m.EndSession()
		if err = m.Compare(got); err == nil {
			return m, nil
		}
	}
	return nil, err
}

// TestFencedForGood: after a failed sync nothing is believed any more, and the next opening shows what was answered.
func TestFencedForGood(t *testing.T) {
	for _, what := range []string{"sync", "write"} {
		b := newBench(6)
		c := storetest.NewClient(t, b.world(t))
		if _, err := c.Do(metadata.Create("/kept", nil)); err != nil {
			t.Fatal(err)
		}
		b.m.FailNext(what, "kring-store", 0, 1, syscall.EIO)
		for i := range 3 {
			_, err := c.Do(metadata.Create(fmt.Sprint("/lost", i), nil))
			if !errors.Is(err, metadata.ErrFenced) || i == 0 && !errors.Is(err, syscall.EIO) || metadata.OutcomeOf(err) != metadata.Unknown {
				t.Fatalf("after a failed %s: %v", what, err)
			}
		}
		if _, _, err := c.Get("/kept", false); !errors.Is(err, metadata.ErrFenced) {
			t.Fatalf("a read after a failed %s: %v", what, err)
		}
		if len(c.Events) != 1 || c.Events[0].Type != metadata.Expired {
			t.Fatalf("events: %v", c.Events)
		}
		if err := b.close(t); !errors.Is(err, metadata.ErrFenced) {
			t.Fatalf("closing: %v", err)
		}
		if err := b.start(t); err != nil {
			t.Fatal(err)
		}
		if _, ok := b.store.tree.nodes["/kept"]; !ok {
			t.Fatal("an answered change is gone")
		}
	}
}

// TestFailedSyncThenRestartThenPowerCut: what a failed sync left in the page cache alone must not lie below what is answered later.
func TestFailedSyncThenRestartThenPowerCut(t *testing.T) {
	for seed := range uint64(20) {
		b := newBench(seed)
		c := storetest.NewClient(t, b.world(t))
		if _, err := c.Do(metadata.Create("/before", nil)); err != nil {
			t.Fatal(err)
		}
		b.m.FailNext("sync", "kring-store", 0, 1, syscall.EIO)
		if _, err := c.Do(metadata.Create("/unknown", make([]byte, 2000))); !errors.Is(err, metadata.ErrFenced) {
			t.Fatal(err)
		}
		b.w.RunFor(time.Second) // the next opening is told
		b.m.Kill()
		c = storetest.NewClient(t, b.world(t))
		if _, err := c.Do(metadata.Create("/behind", nil)); err != nil {
			t.Fatal(err)
		}
		b.m.Crash()
		if err := b.start(t); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, path := range []string{"/before", "/behind"} {
			if _, ok := b.store.tree.nodes[path]; !ok {
				t.Fatalf("seed %d: %s was answered and is gone", seed, path)
			}
		}
	}
}

// TestGroupCommit: what is asked for in one turn shares a frame.
func TestGroupCommit(t *testing.T) {
	b := newBench(7)
	w := b.world(t)
	answered := 0
	before := b.store.logSize
	b.do(t, func() {
		for i := range 500 {
			b.store.Do([]metadata.Op{metadata.Create(fmt.Sprint("/g", i), nil)}, func(_ []metadata.Result, err error) {
				if err != nil {
					t.Error(err)
				}
				answered++
			})
		}
	})
	w.Until(t, func() bool { return answered == 500 })
	frames := 0
	for _, data := range b.contents(t) {
		for at := before; at < int64(len(data)); frames++ {
			_, payload, err := readFrame(data[at:], at)
			if err != nil {
				t.Fatal(err)
			}
			at += int64(frameHead + len(payload))
		}
	}
	if frames != 1 {
		t.Errorf("500 changes in %d frames", frames)
	}
}

// TestSnapshotFails: a snapshot that cannot be written costs nothing but a longer log.
func TestSnapshotFails(t *testing.T) {
	for _, what := range []string{"open", "write", "sync", "rename"} {
		b := newBench(8)
		c := storetest.NewClient(t, b.world(t))
		b.m.FailNext(what, ".snapshot", 0, 1, syscall.ENOSPC)
		b.store.rotateAt = 1
		for i := range 20 {
			if _, err := c.Do(metadata.Create(fmt.Sprint("/s", i), nil)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		b.w.RunFor(time.Second)
		if b.store.SnapshotErr() == nil {
			t.Fatalf("%s: no failure was noticed", what)
		}
		b.m.Crash()
		if err := b.start(t); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if len(b.store.tree.nodes) != 24 {
			t.Fatalf("%s: %d nodes", what, len(b.store.tree.nodes))
		}
	}
}

// TestRotationFails: when the next log cannot be begun the store goes on with the one it has, which may then be torn.
func TestRotationFails(t *testing.T) {
	for _, c := range []struct {
		what, pattern string
		skip          int
	}{{"open", ".log", 0}, {"write", "kring-store", 1}, {"sync", "kring-store", 1}, {"syncdir", dir, 0}} {
		for seed := range uint64(20) {
			b := newBench(seed)
			client := storetest.NewClient(t, b.world(t))
			b.m.FailNext(c.what, c.pattern, c.skip, 1, syscall.EIO)
			b.store.rotateAt = 1
			for i := range 3 {
				if _, err := client.Do(metadata.Create(fmt.Sprint("/s", i), nil)); err != nil {
					t.Fatalf("%s: %v", c.what, err)
				}
			}
			if b.store.SnapshotErr() == nil {
				t.Fatalf("%s: no failure was noticed", c.what)
			}
			if seed%2 == 1 { // the next attempt succeeds
				b.store.rotateAt = 1
				if _, err := client.Do(metadata.Create("/more", nil)); err != nil {
					t.Fatal(err)
				}
			}
			b.do(t, func() {
				b.store.Do([]metadata.Op{metadata.Create("/torn", bytes.Repeat([]byte{'x'}, 5000))}, func([]metadata.Result, error) {})
			})
			b.w.RunFor(time.Duration(b.w.Rand().IntN(300)) * time.Microsecond)
			b.m.Crash()
			b.m.CalmDown()
			if err := b.start(t); err != nil {
				t.Fatalf("%s, seed %d: %v", c.what, seed, err)
			}
			if b.store.tree.nodes["/s2"] == nil {
				t.Fatalf("%s, seed %d: an answered change is gone", c.what, seed)
			}
			if err := b.close(t); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestManyTopics: ten thousand topics fit, and opening them is quick work.
func TestManyTopics(t *testing.T) {
	b := newBench(9)
	w := b.world(t)
	left := 0
	b.do(t, func() {
		b.store.Do([]metadata.Op{metadata.Create("/t", nil)}, func([]metadata.Result, error) {})
		for i := range 10000 {
			p := fmt.Sprintf("/t/topic-%05d", i)
			left++
			b.store.Do([]metadata.Op{metadata.Create(p, bytes.Repeat([]byte("x"), 200)), metadata.Create(p+"/state", bytes.Repeat([]byte("y"), 80))},
				func([]metadata.Result, error) { left-- })
		}
	})
	w.Until(t, func() bool { return left == 0 })
	if err := b.close(t); err != nil {
		t.Fatal(err)
	}
	if err := b.start(t); err != nil || len(b.store.tree.nodes) != 20005 {
		t.Fatalf("%v, %d nodes", err, len(b.store.tree.nodes))
	}
}

// TestClosedStore: what is asked for behind Close is refused, later as everything.
func TestClosedStore(t *testing.T) {
	b := newBench(10)
	b.world(t)
	var after error
	b.do(t, func() {
		ring.Go(b.loop, func(task *ring.Task) {
			s := b.store
			s.Do([]metadata.Op{metadata.CreateEphemeral("/e", nil)}, func(_ []metadata.Result, err error) {
				if err != nil {
					t.Error(err)
				}
			})
			if err := s.Close(task); err != nil {
				t.Error(err)
			}
			s.Do([]metadata.Op{metadata.Create("/x", nil)}, func(_ []metadata.Result, err error) { after = err })
		})
	})
	b.w.RunFor(time.Second)
	if !errors.Is(after, metadata.ErrClosed) {
		t.Fatal(after)
	}
	tr, err := loadFiles(b.contents(t))
	if err != nil || len(tr.ephemerals) != 0 || tr.nodes["/"].rec.created != 1 {
		t.Fatalf("%v, ephemerals %v", err, tr.ephemerals)
	}
}

func FuzzLog(f *testing.F) {
	h := writeHistory(f, 3)
	f.Add(h.log)
	f.Add(h.log[:len(h.log)-3])
	f.Fuzz(func(t *testing.T, log []byte) {
		if tr, err := loadFiles(map[string][]byte{fileName(0, logSuffix): log}); err == nil {
			tr.text()
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	tr := newTree()
	f.Add(encodeSnapshot(tr.capture(), 0, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tr, _, err := decodeSnapshot(b); err == nil {
			tr.text()
		}
	})
}
