package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// storeFiles names the files of a dir's store.
func storeFiles(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(dir + "/kring-store-*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no store in %s: %v", dir, err)
	}
	return names
}

func moveFiles(t *testing.T, names []string, dir string) {
	t.Helper()
	for _, name := range names {
		if err := os.Rename(name, dir+"/"+filepath.Base(name)); err != nil {
			t.Fatal(err)
		}
	}
}

// refusedOn has the broker and both hand-overs refuse log dirs in this order, in the same words and without touching them.
func refusedOn(t *testing.T, first, second string, wants ...string) {
	t.Helper()
	before := tree(t, filepath.Dir(first))
	flags := []string{"--log-dir", first, "--log-dir", second, "--zookeeper", "127.0.0.1:1"}
	for _, args := range [][]string{
		{"broker", "--override", "log.dirs=" + first + "," + second, "--override", "listeners=PLAINTEXT://127.0.0.1:0"},
		append([]string{"store", "import", "--replace"}, flags...),
		append([]string{"store", "export", "--overwrite"}, flags...),
		append([]string{"store", "export", "--undo"}, flags[:4]...),
	} {
		key := "--log-dir"
		if args[0] == "broker" {
			key = "log.dirs"
		}
		r := kring(t, "", args...)
		if r.status != exitData {
			t.Errorf("%v: status %d", args, r.status)
		}
		for _, want := range append(wants, "first in "+key) {
			if !strings.Contains(r.errOut, want) {
				t.Errorf("%v: %q is not in %s", args, want, r.errOut)
			}
		}
		if after := tree(t, filepath.Dir(first)); !maps.Equal(before, after) {
			t.Errorf("%v: the disk has changed", args)
		}
	}
}

// TestStoreInAnotherLogDirThanTheFirstIsRefused: else what only that store knows would be forgotten when the order of log.dirs changes.
func TestStoreInAnotherLogDirThanTheFirstIsRefused(t *testing.T) {
	root := t.TempDir()
	a, z := root+"/a", root+"/z"
	b := start(t, a+","+z)
	b.kring("", "topics", "create", "onlykring").ok(t)
	b.end(unix.SIGTERM)
	refusedOn(t, z, a, "is in log dir "+a+", not in "+z, "put "+a+" first", "move "+a+"/kring-store-* to "+z)

	// What an opening or an import has set aside is no store.
	for _, name := range []string{"0000000000000000.log.17.damaged", "0000000000000000.log.replaced-1", "0000000000000000.snapshot.tmp"} {
		if err := os.WriteFile(z+"/kring-store-"+name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.run()
	if out := b.kring("", "topics", "list").ok(t); !strings.Contains(out, "onlykring") {
		t.Error(out)
	}
	b.end(unix.SIGTERM)

	// A mark without its store is a part of one that was left behind.
	if err := os.WriteFile(z+"/"+markFile, []byte(`{"action":"export","tree":"00"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	refusedOn(t, a, z, "2 log dirs have a store", "that in "+z+" of which the tree is gone")
	for _, name := range storeFiles(t, z) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}

	// The files may be moved instead.
	moveFiles(t, storeFiles(t, a), z)
	b.args[2] = "log.dirs=" + z + "," + a
	b.run()
	if out := b.kring("", "topics", "list").ok(t); !strings.Contains(out, "onlykring") {
		t.Error(out)
	}
	b.end(unix.SIGTERM)
}

// TestStoresInTwoLogDirsAreBothNamed, with what helps to choose.
func TestStoresInTwoLogDirsAreBothNamed(t *testing.T) {
	root := t.TempDir()
	a, z := root+"/a", root+"/z"
	one := start(t, a)
	one.kring("", "topics", "create", "onlykring").ok(t)
	one.end(unix.SIGTERM)
	two := start(t, z)
	two.end(unix.SIGTERM)
	if err := os.Remove(z + "/meta.properties"); err != nil { // else the dirs would be of two clusters
		t.Fatal(err)
	}
	for _, order := range [][2]string{{a, z}, {z, a}} {
		refusedOn(t, order[0], order[1], "2 log dirs have a store", "that in "+a+" of cluster ", "with 1 topic", "that in "+z+" of cluster ",
			"with 0 topics", "move kring-store-* out of the others")
	}
	if err := os.Symlink(a, root+"/same"); err != nil {
		t.Fatal(err)
	}
	if have := storeDirs([]string{a, root + "/same", root + "/none"}); len(have) != 1 || have[0] != a {
		t.Errorf("one dir under two names: %v", have)
	}
}

// TestClusterWithoutItsStoreIsRefusedInAnyLogDir, before a store is made in the first that would stand in the way later.
func TestClusterWithoutItsStoreIsRefusedInAnyLogDir(t *testing.T) {
	root := t.TempDir()
	a, z := root+"/a", root+"/z"
	write("z/meta.properties", "version=0\nbroker.id=5\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")(t, root)
	before := tree(t, root)
	r := kring(t, "", "broker", "--override", "log.dirs="+a+","+z, "--override", "listeners=PLAINTEXT://127.0.0.1:0")
	if r.status != exitData || !strings.Contains(r.errOut, z+"/meta.properties belongs to cluster") ||
		!strings.Contains(r.errOut, "if another log dir was the first") {
		t.Errorf("%+v", r)
	}
	if after := tree(t, root); !maps.Equal(before, after) {
		t.Errorf("the disk has changed: %v", after)
	}
}
