package embedded

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kring/metadata"
	"kring/metadata/storetest"
	"kring/ring"
)

// onDisk are the store's files as a process after a power cut finds them.
func onDisk(t *testing.T, b *bench) fstest.MapFS {
	files := fstest.MapFS{"other": {}}
	for name, data := range b.contents(t) {
		files[name] = &fstest.MapFile{Data: data}
	}
	return files
}

// foreign is a tree as a ZooKeeper has it: its numbers are ahead of a young store's.
func foreign() []Node {
	return []Node{
		{Path: "/q/n_0000000007", Data: []byte{0xff, 0}, Stat: metadata.Stat{Czxid: 1<<32 + 9, Mzxid: 1<<32 + 9, Pzxid: 1<<32 + 9, Version: 3, DataLength: 2}},
		{Path: "/", Data: []byte{}, Stat: metadata.Stat{Pzxid: 1<<32 + 1, Cversion: 1, NumChildren: 2}},
		{Path: "/q", Stat: metadata.Stat{Czxid: 1<<32 + 1, Pzxid: 1<<32 + 9, Ctime: 77, Cversion: 15, NumChildren: 1}},
	}
}

// TestReplace: whenever the power goes while a store takes another's place, one of them is there, whole.
func TestReplace(t *testing.T) {
	for _, keep := range []bool{true, false} {
		replaceAndCut(t, true, keep)
		replaceAndCut(t, false, keep)
	}
}

func replaceAndCut(t *testing.T, fresh, keep bool) {
	t.Helper()
	old, replaced := 0, 0
	for after := time.Duration(0); replaced < 3; after += 20 * time.Microsecond {
		b := newBench(uint64(after) + 21)
		if !fresh {
			storetest.NewClient(t, b.world(t)).Do(metadata.Create("/old", nil))
			b.m.Kill()
		}
		b.loop = b.m.Loops(1)[0]
		done := false
		b.do(t, func() {
			ring.Go(b.loop, func(task *ring.Task) {
				if err := task.MakeDir(dir); err != nil && fresh {
					t.Error(err)
				}
				if err := task.SyncDir("/"); err != nil {
					t.Error(err)
				}
				if _, err := Replace(task, dir, foreign(), keep); err != nil {
					t.Error(err)
				}
				done = true
			})
		})
		b.w.RunFor(after)
		b.m.Crash()
		nodes, err := ReadFiles(onDisk(t, b))
		paths := make([]string, len(nodes))
		for i, n := range nodes {
			paths[i] = n.Path
		}
		switch {
		case !done && fresh && errors.Is(err, fs.ErrNotExist), !done && !fresh && slices.Equal(paths, []string{"/", "/old"}):
			old++
		case slices.Equal(paths, []string{"/", "/q", "/q/n_0000000007"}):
			if done {
				replaced++
			}
			if nodes[2].Stat != foreign()[0].Stat || nodes[2].Data[0] != 0xff || nodes[1].Stat != foreign()[2].Stat {
				t.Fatalf("after %v: %+v", after, nodes)
			}
		default:
			t.Fatalf("fresh %v, after %v, done %v: %v %q", fresh, after, done, err, paths)
		}
	}
	if old == 0 {
		t.Errorf("fresh %v: the power never went before", fresh)
	}
}

// TestReplacedStoreGoesOn behind both.
func TestReplacedStoreGoesOn(t *testing.T) {
	b := newBench(31)
	b.loop = b.m.Loops(1)[0]
	for range 2 { // the second time over itself
		b.do(t, func() {
			ring.Go(b.loop, func(task *ring.Task) {
				_ = task.MakeDir(dir)
				if _, err := Replace(task, dir, foreign(), true); err != nil {
					t.Error(err)
				}
			})
		})
		b.w.RunFor(1e9)
	}
	b.m.Kill()
	c := storetest.NewClient(t, b.world(t))
	r, err := c.Do(metadata.CreateSequential("/q/n_", nil))
	if err != nil || r[0].Path != "/q/n_0000000008" || r[0].Stat.Czxid <= 1<<32+9 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestReplacedStoresAreKept: those of the two last replacements, whole, under names no opening reads; nobody else's file is touched.
func TestReplacedStoresAreKept(t *testing.T) {
	b := newBench(37)
	b.loop = b.m.Loops(1)[0]
	var endings []string
	for n := range 5 {
		nodes := append(foreign(), Node{Path: "/life-" + string(rune('0'+n))})
		b.do(t, func() {
			ring.Go(b.loop, func(task *ring.Task) {
				_ = task.MakeDir(dir)
				if n == 0 {
					if err := task.WriteFile(dir, "kring-store-note", []byte("kept")); err != nil {
						t.Error(err)
					}
				}
				ending, err := Replace(task, dir, nodes, n != 2)
				if err != nil {
					t.Error(err)
				}
				endings = append(endings, ending)
			})
		})
		b.w.RunFor(1e9)
	}
	if !slices.Equal(endings, []string{"", ".replaced-1", "", ".replaced-2", ".replaced-3"}) {
		t.Errorf("%q", endings)
	}
	all := b.contents(t)
	if string(all["kring-store-note"]) != "kept" {
		t.Error("a file that is not the tree's is gone")
	}
	for n, ending := range []string{".replaced-1", "none", ".replaced-2", ".replaced-3", ""} { // of the store of each life
		old := fstest.MapFS{"other": {}}
		for name, data := range all {
			if kept, is := strings.CutSuffix(name, ending); is && IsTree(kept) {
				old[kept] = &fstest.MapFile{Data: data}
			}
		}
		nodes, err := ReadFiles(old)
		if n < 2 {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: more than the last two that were to be kept: %v", ending, err)
			}
		} else if err != nil || !slices.ContainsFunc(nodes, func(x Node) bool { return x.Path == "/life-"+string(rune('0'+n)) }) {
			t.Errorf("%q: %v %v", ending, nodes, err)
		}
	}
}
