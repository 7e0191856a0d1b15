package embedded

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"kring/metadata"
	"kring/metadata/storetest"
	"kring/ring"
)

// TestGoldenTrees: trees recorded from ZooKeeper are imported and exported unchanged, versions and all.
func TestGoldenTrees(t *testing.T) {
	f, err := os.Open("../testdata/znodes.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r := tar.NewReader(z); ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "writes.json" || strings.HasPrefix(h.Name, "60-ibp") { // the latter are parts of trees, below a chroot
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := importTree(bytes.NewReader(content))
		if err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
		var want, got exported
		if err := json.Unmarshal(content, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tr.text()), &got); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(want.Nodes, func(a, b exportedNode) int { return strings.Compare(a.Path, b.Path) })
		if !reflect.DeepEqual(got, want) {
			for i := range want.Nodes {
				if i >= len(got.Nodes) || !reflect.DeepEqual(got.Nodes[i], want.Nodes[i]) {
					t.Fatalf("%s: got %d nodes, want %d; wanted %+v", h.Name, len(got.Nodes), len(want.Nodes), want.Nodes[i])
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("%d trees", n)
	}
}

// TestImport: a store made from an export goes on where the other stood.
func TestImport(t *testing.T) {
	a := newBench(11)
	c := storetest.NewClient(t, a.world(t))
	c.Do(metadata.Create("/q", nil), metadata.CreateEphemeral("/e", nil))
	c.Do(metadata.CreateSequential("/q/n_", []byte("1")))
	c.Do(metadata.Delete("/q/n_0000000000", -1))
	var out bytes.Buffer
	if err := a.store.Export(&out); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"other": {}}
	for name, data := range a.contents(t) {
		files[name] = &fstest.MapFile{Data: data}
	}
	var offline bytes.Buffer
	if err := ExportFiles(files, &offline); err != nil || offline.String() != out.String() {
		t.Fatalf("%v: the export of the files differs from that of the store", err)
	}

	b := newBench(12)
	b.loop = b.m.Loops(1)[0]
	b.do(t, func() {
		ring.Go(b.loop, func(task *ring.Task) {
			if err := task.MakeDir(dir); err != nil {
				t.Error(err)
			}
			if err := Import(task, dir, bytes.NewReader(out.Bytes())); err != nil {
				t.Error(err)
			}
			if err := Import(task, dir, bytes.NewReader(out.Bytes())); err == nil {
				t.Error("a store was written over another")
			}
		})
	})
	b.w.RunFor(1e9)
	b.m.Kill()
	d := storetest.NewClient(t, b.world(t))
	if _, err := d.Exists("/e", false); err == nil {
		t.Error("an ephemeral node outlived its session")
	}
	r, err := d.Do(metadata.CreateSequential("/q/n_", nil))
	if err != nil || r[0].Path != "/q/n_0000000001" {
		t.Errorf("%v %v", r, err)
	}
}
