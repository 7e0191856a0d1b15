package suites

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// list is what is expected of a suite, as testdata has it.
type list struct {
	file    string
	names   []string          // in the file's order
	verdict map[string]string // pass, again, skip or out
	reason  map[string]string
}

// list reads testdata and checks it against the tests that the suite has.
func (s *suite) list(t *testing.T) *list {
	l, err := readList("testdata/" + s.name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	has := s.tests(t)
	for _, name := range has {
		if l.verdict[name] == "" {
			t.Errorf("%s does not list %s", l.file, name)
		}
	}
	for _, name := range l.names {
		if top, _, _ := strings.Cut(name, "/"); !slices.Contains(has, top) {
			t.Errorf("%s lists %s, which the suite does not have", l.file, name)
		}
	}
	return l
}

func readList(file string) (*list, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l := &list{file: file, verdict: map[string]string{}, reason: map[string]string{}}
	for n, line := range strings.Split(string(text), "\n") {
		what, reason, _ := strings.Cut(" "+line, " #") // some names have a # inside
		words := strings.Fields(what)
		if len(words) == 0 {
			continue
		}
		bad := ""
		switch {
		case len(words) != 2 || !slices.Contains([]string{"pass", "again", "skip", "out"}, words[0]):
			bad = "want pass, again, skip or out, and a test"
		case l.verdict[words[1]] != "":
			bad = "listed twice"
		case words[0] != "pass" && strings.TrimSpace(reason) == "":
			bad = "no reason"
		}
		if bad != "" {
			return nil, fmt.Errorf("%s:%d: %s: %s", file, n+1, bad, line)
		}
		l.names = append(l.names, words[1])
		l.verdict[words[1]], l.reason[words[1]] = words[0], strings.TrimSpace(reason)
	}
	return l, nil
}

// run is the tests to run.
func (l *list) run(match string) []string {
	return slices.DeleteFunc(slices.Clone(l.names), func(name string) bool {
		return strings.Contains(name, "/") || l.verdict[name] == "out" || !regexp.MustCompile(match).MatchString(name)
	})
}

// out is the tests and subtests not to run.
func (l *list) out() []string {
	return slices.DeleteFunc(slices.Clone(l.names), func(name string) bool { return l.verdict[name] != "out" })
}

// wrong is the tests whose result is not the expected one.
func (l *list) wrong(got results) (names []string) {
	for _, name := range l.names {
		want := l.verdict[name]
		if want == "again" {
			want = "pass"
		}
		if want != "out" && got.of(name) != want {
			names = append(names, name)
		}
	}
	return names
}

// compare tells what is not as listed, and counts.
func (l *list) compare(t *testing.T, got results, match string) {
	ran := l.run(match)
	for _, name := range l.wrong(got) {
		if top, _, _ := strings.Cut(name, "/"); slices.Contains(ran, top) {
			t.Errorf("%s: listed as %s, and is: %s\n%s", name, l.verdict[name], got.of(name), got.said(name))
		}
	}
	count := map[string]int{}
	for _, name := range l.names {
		if !strings.Contains(name, "/") {
			count[l.verdict[name]]++
		}
	}
	t.Logf("%s: of %d tests %d pass, %d of them with a second try allowed, %d skip themselves, %d left out", l.file,
		count["pass"]+count["again"]+count["skip"]+count["out"], count["pass"]+count["again"], count["again"], count["skip"], count["out"])
}

func TestListsAreWellFormed(t *testing.T) {
	for _, s := range suites {
		if _, err := readList("testdata/" + s.name + ".txt"); err != nil {
			t.Error(err)
		}
	}
}
