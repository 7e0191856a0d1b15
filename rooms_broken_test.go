package kring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// good is a tree that keeps every rule, with its map.
func good() (map[string]string, map[string]room) {
	return map[string]string{
		"a/doc.go":        "// Package a is the lower room.\npackage a\n",
		"a/a.go":          "package a\n\nimport \"time\"\n\ntype T struct{ d time.Duration }\n",
		"a/invariants.go": "package a\n",
		"a/a_test.go":     "package a\n\nimport \"example.com/anything\"\n",
		"b/doc.go":        "// Package b is the upper room.\npackage b\n",
		"b/b.go":          "package b\n\nimport _ \"kring/a\"\nimport _ \"example.com/good/sub\"\n",
	}, map[string]room{"a": {pure: true, state: true}, "b": {sees: "a", outside: "example.com/good"}}
}

func build(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestEachRuleFails breaks every rule once, alone, and expects one clear message.
func TestEachRuleFails(t *testing.T) {
	files, house := good()
	if problems := inspect(build(t, files), house); len(problems) > 0 {
		t.Fatalf("the good tree: %q", problems)
	}
	long := strings.Repeat("x", lineColumnsMax+1)
	for _, row := range []struct{ file, text, want string }{
		{"a/up.go", "package a\n\nimport _ \"kring/b\"\n", "a/up.go: a may not see b"},
		{"a/out.go", "package a\n\nimport _ \"example.com/good\"\n", "a/out.go: a may not use example.com/good"},
		{"b/near.go", "package b\n\nimport _ \"example.com/goodness\"\n", "b/near.go: b may not use example.com/goodness"},
		{"b/unsafe.go", "package b\n\nimport _ \"unsafe\"\n", "b/unsafe.go: only ring may use unsafe"},
		{"c/doc.go", "// Package c is new.\npackage c\n", "c is in the tree and not on the map"},
		{"b/doc.go", "package b\n", "b has no doc.go with a package comment"},
		{"a/invariants.go", "", "a holds state and has no invariants.go"},
		{"b/long.go", "package b\n" + strings.Repeat("\n", fileLinesMax), "b/long.go: 601 lines, more than 600"},
		{"b/func.go", "package b\n\nfunc f() {" + strings.Repeat("\n", funcLinesMax) + "}\n", "b/func.go: func f has 71 lines, more than 70"},
		{"b/wide.go", "package b\n\n//" + long + "\n", "b/wide.go:3: a line of 143 columns, more than 140"},
		{"b/init.go", "package b\n\nfunc init() {}\n", "b/init.go: func init hides what happens at start"},
		{"a/go.go", "package a\n\nfunc f() { go f() }\n", "a/go.go:3: a pure room starts no goroutine"},
		{"a/sel.go", "package a\n\nfunc f() { select {} }\n", "a/sel.go:3: a pure room does not select"},
		{"a/now.go", "package a\n\nimport \"time\"\n\nvar _ = time.Now()\n", "a/now.go:5: a pure room asks its loop, not time.Now"},
		{"a/rnd.go", "package a\n\nimport \"math/rand/v2\"\n\nvar _ = rand.IntN(3)\n", "a/rnd.go:5: a pure room asks its loop, not rand.IntN"},
		{"a/os.go", "package a\n\nimport _ \"os\"\n", "a/os.go: a pure room may not use os"},
		{"a/net.go", "package a\n\nimport \"net\"\n\nvar _ = net.JoinHostPort\nvar _ = net.Dial\n", "a/net.go:6: a pure room asks its loop, not net.Dial"},
		{"a/sync.go", "package a\n\nimport _ \"sync\"\n", "a/sync.go: a pure room may not use sync"},
	} {
		files, house := good()
		files[row.file] = row.text
		if row.text == "" {
			delete(files, row.file)
		}
		if problems := inspect(build(t, files), house); !slices.Equal(problems, []string{row.want}) {
			t.Errorf("%s: %q, want %q", row.file, problems, row.want)
		}
	}
}

func TestMapWithoutTreeAndBadNamesFail(t *testing.T) {
	files, house := good()
	house["gone"] = room{}
	files["b/util/doc.go"] = "// Package util is a drawer.\npackage util\n"
	house["b/util"] = room{}
	want := []string{"b/util: a room named util says nothing", "gone is on the map and not in the tree"}
	if problems := inspect(build(t, files), house); !slices.Equal(problems, want) {
		t.Errorf("%q", problems)
	}
}

func TestBrokenDocumentsFail(t *testing.T) {
	house := map[string]room{"a": {}, "b": {}, "b/c": {}}
	const readme, architecture, makefile = "`a` `b`\n\n    make run\n", "`a` `b` `b/c`", "run:\n\ttrue\n"
	if problems := inspectDocuments(house, readme, architecture, makefile); len(problems) > 0 {
		t.Fatalf("%q", problems)
	}
	for _, row := range []struct{ readme, architecture, makefile, want string }{
		{readme, "`a` `b`", makefile, "ARCHITECTURE.md does not name the room `b/c`"},
		{"`a`\n\n    make run\n", architecture, makefile, "README.md does not name the room `b`"},
		{readme, architecture, "walk:\n", "make run is promised and not in the Makefile"},
		{readme + "call `make fly` too\n", architecture, makefile, "make fly is promised and not in the Makefile"},
	} {
		if problems := inspectDocuments(house, row.readme, row.architecture, row.makefile); !slices.Equal(problems, []string{row.want}) {
			t.Errorf("%q, want %q", problems, row.want)
		}
	}
}
