package suites

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long one process of a suite may take.
const patience = 10 * time.Minute

// golang runs go in the suite's folder, or another.
func (s *suite) golang(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = or(dir, s.name)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false", "CGO_ENABLED="+map[bool]string{true: "1", false: "0"}[s.cgo])
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// folder is where the suite's source lies.
func (s *suite) folder(t *testing.T) string { return s.golang(t, "", "list", "-f", "{{.Dir}}", s.pkg) }

// build makes the suite's test program, from a copy of its module if there is one.
func (s *suite) build(t *testing.T, source string) string {
	path, pkg := filepath.Join(t.TempDir(), "suite.test"), s.pkg
	if source != "" {
		pkg = "."
	}
	s.golang(t, source, slices.Concat([]string{"test", "-c", "-o", path}, s.flags, []string{pkg})...)
	return path
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w*)\(\w+ \*testing\.T\)`)

// tests is every test that the suite's source has.
func (s *suite) tests(t *testing.T) (names []string) {
	args := append([]string{"list", "-f", `{{.Dir}}{{range .TestGoFiles}} {{.}}{{end}}{{range .XTestGoFiles}} {{.}}{{end}}`}, s.flags...)
	files := strings.Fields(s.golang(t, "", append(args, s.pkg)...))
	for _, f := range files[1:] {
		text, err := os.ReadFile(filepath.Join(files[0], f))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), s.only) {
			continue
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// program is a suite's test program, ready to run.
type program struct {
	t    *testing.T
	dir  string
	path string
	args []string
	env  []string
}

// run runs the tests and gives their results.
func (p *program) run(names, out []string) results {
	p.t.Helper()
	args := slices.Concat([]string{"-test.v=test2json", "-test.timeout=" + patience.String(), "-test.run=" + pattern(names)}, p.args)
	if len(out) > 0 {
		args = append(args, "-test.skip="+pattern(out))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run() // the results say what went wrong
	if dir := os.Getenv("SUITES_KEEP"); dir != "" {
		_ = os.WriteFile(filepath.Join(dir, filepath.Base(filepath.Dir(p.path))+"."+names[0]), said.Bytes(), 0o600)
	}
	r := parse(said.String())
	for _, name := range names {
		if r[name] == nil { // it never began: the process ended before
			r[name] = &result{said: tail(said.String())}
		}
	}
	return r
}

// pattern matches exactly the named tests and subtests.
func pattern(names []string) string {
	var alternatives []string
	for _, name := range names {
		parts := strings.Split(name, "/")
		for i := range parts {
			parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
		}
		alternatives = append(alternatives, strings.Join(parts, "/"))
	}
	return strings.Join(alternatives, "|")
}

// result is how a test ended, and its last words.
type result struct{ how, said string }

type results map[string]*result

var (
	ended = regexp.MustCompile(`\x16 *--- (PASS|FAIL|SKIP): (\S+) \(`)
	turns = regexp.MustCompile(`\x16=== (?:RUN|CONT|NAME) +(\S+)`)
)

// parse reads what a test program with -test.v=test2json said: its framing stands behind a byte 0x16, wherever a test left the line.
func parse(text string) results {
	r, now := results{}, ""
	at := func(name string) *result {
		if r[name] == nil {
			r[name] = &result{}
		}
		return r[name]
	}
	for line := range strings.Lines(text) {
		if m := turns.FindStringSubmatch(line); m != nil {
			now = m[1]
		}
		if m := ended.FindStringSubmatch(line); m != nil {
			at(m[2]).how, now = strings.ToLower(m[1]), m[2]
		} else if now != "" {
			at(now).said += line
		}
	}
	return r
}

func (r results) add(more results) {
	for name, x := range more {
		r[name] = x
	}
}

func (r results) of(name string) string {
	switch {
	case r[name] == nil:
		return "not run"
	case r[name].how == "":
		return "without an end"
	}
	return r[name].how
}

// said is the last words of a test and of its subtests that failed.
func (r results) said(name string) string {
	text := ""
	for sub, x := range r {
		if sub == name || strings.HasPrefix(sub, name+"/") && x.how != "pass" && x.how != "skip" {
			text += "[" + sub + "]\n" + tail(x.said)
		}
	}
	return text
}

func tail(s string) string {
	const most = 3000
	s = strings.ReplaceAll(s, "\x16", "")
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

func TestResultsAreFoundWhereverATestLeftTheLine(t *testing.T) {
	r := parse("\x16=== RUN   TestA\nhalf a line\x16--- PASS: TestA (0.00s)\n\x16=== RUN   TestB\n\x16=== RUN   TestB/one\nbad luck\n" +
		"    \x16--- FAIL: TestB/one (0.10s)\n\x16--- FAIL: TestB (0.10s)\n\x16=== RUN   TestC\npanic: nil\n")
	for name, want := range map[string]string{"TestA": "pass", "TestB/one": "fail", "TestB": "fail", "TestC": "without an end", "TestD": "not run"} {
		if got := r.of(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := r.said("TestB"); !strings.Contains(got, "bad luck") {
		t.Errorf("the failed subtest's words are missing: %q", got)
	}
}
