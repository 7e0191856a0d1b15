package coordinator

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what happened into the scenarios instead of comparing")

// TestScenarios runs the stories of testdata/scenarios, whose language its README explains: a line is what somebody does, and the
// indented lines under it are all that comes of it, answers and records of the journal, in order.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) < 25 && !*update {
		t.Fatalf("%d scenarios: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScenario(t, file) })
	}
}

func runScenario(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	st := newStage(t)
	var got []string
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		i++
		got = append(got, line)
		if line == "" || line[0] == '#' {
			continue
		}
		var want []string
		for i < len(lines) && strings.HasPrefix(lines[i], "    ") {
			want = append(want, strings.TrimSpace(lines[i]))
			i++
		}
		if err := st.do(strings.Fields(line)); err != nil {
			t.Fatalf("%s:%d: %s: %v", file, i, line, err)
		}
		st.verify()
		for _, happened := range st.happened {
			got = append(got, "    "+happened)
		}
		if !*update && !slices.Equal(st.happened, want) {
			t.Fatalf("%s: %s\nhappened:\n    %s\nshould:\n    %s", file, line, strings.Join(st.happened, "\n    "), strings.Join(want, "\n    "))
		}
		st.happened = nil
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// stage is where a scenario plays: a world, the clients by name, and what happened since the last line.
type stage struct {
	*world
	clients  map[string]*client
	names    map[string]string // of member ids
	happened []string
	began    time.Duration // of the line, for times
	held     bool
}

// client is somebody with a consumer.
type client struct {
	name, group string
	id          string
	ids         int
	instance    *string
	generation  int32
	waiting     int
}

func newStage(t *testing.T) *stage {
	st := &stage{world: newWorld(t), clients: map[string]*client{}, names: map[string]string{"": "-"}}
	st.journal.onAppend = func(b Batch, err error) {
		for _, r := range b.Records {
			st.say("journal%s: %s", failing(err), st.record(r, b))
		}
	}
	return st
}

func failing(err error) string {
	if err == nil {
		return ""
	}
	return " (" + err.Error() + ")"
}

func (st *stage) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if st.mono > st.began {
		text = fmt.Sprintf("+%v %s", st.mono-st.began, text)
	}
	st.happened = append(st.happened, text)
}

func (st *stage) record(r Record, b Batch) string {
	k, err := DecodeKey(r.Key)
	if err != nil {
		return err.Error()
	}
	what := fmt.Sprintf("group %s", k.Group)
	if k.Kind == OffsetKey {
		what = fmt.Sprintf("offset %s %s-%d", k.Group, k.Topic, k.Partition)
	}
	if b.Transactional {
		what = fmt.Sprintf("producer %d, %s", b.ProducerID, what)
	}
	switch {
	case r.Value == nil:
		return what + " tombstone"
	case k.Kind == OffsetKey:
		v, err := DecodeOffset(r.Value)
		if err != nil {
			return err.Error()
		}
		text := fmt.Sprintf("%s = %d", what, v.Offset)
		if v.Metadata != "" {
			text += fmt.Sprintf(" %q", v.Metadata)
		}
		if v.LeaderEpoch != -1 {
			text += fmt.Sprintf(" epoch %d", v.LeaderEpoch)
		}
		if v.ExpireMs != -1 {
			text += fmt.Sprintf(" until %v after", time.Duration(v.ExpireMs-v.CommitMs)*time.Millisecond)
		}
		if v.Version != 3 || !b.Commit && !b.Transactional {
			text += fmt.Sprintf(" (v%d)", v.Version)
		}
		return text
	}
	v, err := DecodeGroup(r.Value)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%s = %s generation %d", what, v.ProtocolType, v.Generation)
	if v.Protocol != nil {
		text += " " + *v.Protocol
	}
	if v.Leader != nil {
		text += " leader " + st.name(*v.Leader)
	}
	for _, m := range v.Members {
		text += fmt.Sprintf(" [%s: %s]", st.name(m.Member), m.Assignment)
	}
	return text
}

// client finds somebody by name; who is not known is new, in group g.
func (st *stage) client(name string) *client {
	c := st.clients[name]
	if c == nil {
		c = &client{name: name, group: "g", generation: -1}
		st.clients[name] = c
	}
	return c
}

func (st *stage) do(words []string) error {
	st.began = st.mono
	err := st.perform(words)
	if !st.held {
		st.journal.answer(st.now())
	}
	return err
}

var errNotUnderstood = fmt.Errorf("is not understood")

func (st *stage) perform(words []string) error {
	if len(words) >= 2 {
		if act, ok := clientActs[words[1]]; ok {
			return act(st, st.client(words[0]), words[2:])
		}
	}
	for n := min(len(words), 3); n > 0; n-- {
		if act, ok := acts[strings.Join(words[:n], " ")]; ok {
			return act(st, words[n:])
		}
	}
	return errNotUnderstood
}

func duration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	if err != nil {
		panic(err)
	}
	return d
}

func number(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// partition reads "topic-3".
func partition(word string) (string, int32) {
	i := strings.LastIndexByte(word, '-')
	return word[:i], int32(number(word[i+1:]))
}
