package kring

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	fileLinesMax   = 600
	funcLinesMax   = 70
	lineColumnsMax = 140
)

// inspect holds the tree at root against the map and returns what is wrong, a line each.
func inspect(root string, house map[string]room) []string {
	i := &inspector{root: root, house: house, seen: map[string]bool{}, documented: map[string]bool{}, invariants: map[string]bool{}}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); d.IsDir() && path != root && err == nil {
			return filepath.SkipDir // a module of its own, such as a client's program
		}
		if !d.IsDir() && strings.HasSuffix(name, ".go") {
			i.file(path)
		}
		return nil
	})
	if err != nil {
		i.say("%v", err)
	}
	i.rooms()
	slices.Sort(i.problems)
	return i.problems
}

type inspector struct {
	root       string
	house      map[string]room
	seen       map[string]bool
	documented map[string]bool
	invariants map[string]bool
	problems   []string
	fset       *token.FileSet
}

func (i *inspector) say(format string, args ...any) {
	i.problems = append(i.problems, fmt.Sprintf(format, args...))
}

// rooms checks each room as a whole.
func (i *inspector) rooms() {
	for _, name := range slices.Sorted(maps.Keys(i.house)) {
		switch {
		case !i.seen[name]:
			i.say("%s is on the map and not in the tree", name)
		case !i.documented[name]:
			i.say("%s has no doc.go with a package comment", name)
		case i.house[name].state && !i.invariants[name]:
			i.say("%s holds state and has no invariants.go", name)
		}
	}
}

func (i *inspector) file(path string) {
	rel, _ := filepath.Rel(i.root, path)
	name := filepath.ToSlash(filepath.Dir(rel))
	if name == "." {
		return // the root holds this test alone
	}
	i.fset = token.NewFileSet()
	f, err := parser.ParseFile(i.fset, path, nil, parser.ParseComments)
	if err != nil {
		i.say("%s: %v", rel, err)
		return
	}
	r, onMap := i.house[name]
	if !onMap && !i.seen[name] {
		i.say("%s is in the tree and not on the map", name)
	}
	i.seen[name] = true
	for part := range strings.SplitSeq(name, "/") {
		if slices.Contains(refusedNames, part) {
			i.say("%s: a room named %s says nothing", name, part)
		}
	}
	if strings.HasSuffix(path, "_test.go") {
		return
	}
	base := filepath.Base(path)
	if f.Doc != nil && (base == "doc.go" || f.Name.Name == "main") {
		i.documented[name] = true
	}
	if base == "invariants.go" {
		i.invariants[name] = true
	}
	if onMap {
		i.imports(rel, name, r, f)
	}
	i.sizes(rel, path, f)
	if r.pure {
		i.purity(rel, f)
	}
}

var refusedNames = []string{"util", "utils", "common", "types", "internal", "pkg", "core", "helpers", "misc", "impl", "manager"}

func (i *inspector) imports(rel, name string, r room, f *ast.File) {
	for _, s := range f.Imports {
		path, _ := strconv.Unquote(s.Path.Value)
		first, _, _ := strings.Cut(path, "/")
		switch {
		case first == "kring":
			ours := strings.TrimPrefix(path, "kring/")
			if !slices.Contains(strings.Fields(r.sees), ours) {
				i.say("%s: %s may not see %s", rel, name, ours)
			}
		case strings.Contains(first, "."):
			if !slices.ContainsFunc(strings.Fields(r.outside), func(m string) bool { return within(path, m) }) {
				i.say("%s: %s may not use %s", rel, name, path)
			}
		case path == "unsafe" || path == "syscall" && r.pure || path == "C":
			if name != "ring" {
				i.say("%s: only ring may use %s", rel, path)
			}
		}
	}
}

// within reports whether a package belongs to a module; kgo's own module holds kgo and kerr and not its neighbours kmsg and kadm.
func within(path, module string) bool {
	if module == "github.com/twmb/franz-go" {
		return strings.HasPrefix(path, module+"/pkg/kgo") || strings.HasPrefix(path, module+"/pkg/kerr")
	}
	return path == module || strings.HasPrefix(path, module+"/")
}

func (i *inspector) sizes(rel, path string, f *ast.File) {
	file, err := os.Open(path)
	if err != nil {
		i.say("%v", err)
		return
	}
	defer file.Close()
	lines := 0
	for s := bufio.NewScanner(file); s.Scan(); {
		lines++
		if n := utf8.RuneCountInString(s.Text()); n > lineColumnsMax {
			i.say("%s:%d: a line of %d columns, more than %d", rel, lines, n, lineColumnsMax)
		}
	}
	if lines > fileLinesMax {
		i.say("%s: %d lines, more than %d", rel, lines, fileLinesMax)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if fn.Name.Name == "init" && fn.Recv == nil {
			i.say("%s: func init hides what happens at start", rel)
		}
		if n := i.fset.Position(fn.End()).Line - i.fset.Position(fn.Pos()).Line + 1; n > funcLinesMax {
			i.say("%s: func %s has %d lines, more than %d", rel, fn.Name.Name, n, funcLinesMax)
		}
	}
}

var (
	impureImports = []string{"os", "sync", "syscall", "math/rand", "os/exec", "os/signal", "net/http", "crypto/rand", "log"}
	impureTime    = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	pureNet       = []string{"JoinHostPort", "SplitHostPort"} // text alone
	impureRand    = regexp.MustCompile(`^(Int|Uint|Float|Norm|Exp|Perm|Shuffle|N$)`)
)

func (i *inspector) purity(rel string, f *ast.File) {
	for _, s := range f.Imports {
		if path, _ := strconv.Unquote(s.Path.Value); slices.Contains(impureImports, path) {
			i.say("%s: a pure room may not use %s", rel, path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		line := func() int { return i.fset.Position(n.Pos()).Line }
		switch n := n.(type) {
		case *ast.GoStmt:
			i.say("%s:%d: a pure room starts no goroutine", rel, line())
		case *ast.SelectStmt:
			i.say("%s:%d: a pure room does not select", rel, line())
		case *ast.SelectorExpr:
			from, ok := n.X.(*ast.Ident)
			if !ok || from.Obj != nil {
				break
			}
			if from.Name == "time" && slices.Contains(impureTime, n.Sel.Name) || from.Name == "rand" && impureRand.MatchString(n.Sel.Name) ||
				from.Name == "net" && !slices.Contains(pureNet, n.Sel.Name) {
				i.say("%s:%d: a pure room asks its loop, not %s.%s", rel, line(), from.Name, n.Sel.Name)
			}
		}
		return true
	})
}

var makeCommand = regexp.MustCompile("(?m)(?:^|`)\\s*make ([a-z-]+)")

// inspectDocuments holds README and ARCHITECTURE against the map and the Makefile.
func inspectDocuments(house map[string]room, readme, architecture, makefile string) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(house)) {
		if !strings.Contains(architecture, "`"+name+"`") {
			problems = append(problems, "ARCHITECTURE.md does not name the room `"+name+"`")
		}
	}
	for _, text := range []string{readme, architecture} {
		for _, m := range makeCommand.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
				problems = append(problems, "make "+m[1]+" is promised and not in the Makefile")
			}
		}
	}
	for top := range topRooms(house) {
		if !strings.Contains(readme, "`"+top+"`") {
			problems = append(problems, "README.md does not name the room `"+top+"`")
		}
	}
	slices.Sort(problems)
	return problems
}

func topRooms(house map[string]room) map[string]bool {
	top := map[string]bool{}
	for name := range house {
		first, _, _ := strings.Cut(name, "/")
		top[first] = true
	}
	return top
}
