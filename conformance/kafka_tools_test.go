package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// toolMax bounds what one command of Kafka's may take.
const toolMax = 60 * time.Second

// jvm runs Kafka's command-line tools (peers/Tools.java).
type jvm struct {
	in   io.WriteCloser
	mu   sync.Mutex
	n    int
	runs map[int]*toolRun
	dead error
	some *sync.Cond
}

// toolRun is one command: what it has printed so far, standard error's lines marked, and its end.
type toolRun struct {
	id       int
	out, err strings.Builder
	status   int
	ended    bool
}

func startTools(t *testing.T) *jvm {
	t.Helper()
	cmd := exec.Command("peers/peers", "tools", "3.9")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	j := &jvm{in: in, runs: map[int]*toolRun{}}
	j.some = sync.NewCond(&j.mu)
	read := make(chan struct{})
	go func() { defer close(read); j.read(out) }()
	tick := time.AfterFunc(0, func() {})
	var wake func()
	wake = func() { j.some.Broadcast(); tick.Reset(100 * time.Millisecond) }
	tick = time.AfterFunc(100*time.Millisecond, func() { wake() })
	t.Cleanup(func() {
		in.Close()
		<-read
		_ = cmd.Wait()
		tick.Stop()
	})
	return j
}

func (j *jvm) read(out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		var e struct {
			ID       int
			Out, Err string
			Exit     *int
		}
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		j.mu.Lock()
		if err != nil {
			j.dead = err
		} else if r := j.runs[e.ID]; r != nil {
			r.out.WriteString(e.Out)
			r.err.WriteString(e.Err)
			if e.Exit != nil {
				r.ended, r.status = true, *e.Exit
			}
		}
		j.some.Broadcast()
		j.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// begin starts a tool.
func (j *jvm) begin(t *testing.T, in, tool string, args ...string) *toolRun {
	t.Helper()
	main, ok := toolClasses[tool]
	if !ok {
		t.Fatalf("no tool %q", tool)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
	r := &toolRun{id: j.n}
	j.runs[r.id] = r
	j.tell(t, map[string]any{"id": r.id, "main": main, "args": args, "in": in})
	return r
}

func (j *jvm) tell(t *testing.T, command map[string]any) {
	t.Helper()
	b, _ := json.Marshal(command)
	if _, err := j.in.Write(append(b, '\n')); err != nil {
		t.Fatalf("Kafka's tools: %v", err)
	}
}

// end asks a tool to stop, as SIGTERM would.
func (j *jvm) end(t *testing.T, r *toolRun) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tell(t, map[string]any{"id": r.id, "stop": true})
}

// await waits until what the tool has printed satisfies enough, or it has ended.
func (j *jvm) await(t *testing.T, r *toolRun, enough func(out string) bool) {
	t.Helper()
	until := time.Now().Add(toolMax)
	j.mu.Lock()
	defer j.mu.Unlock()
	for !r.ended && (enough == nil || !enough(r.out.String())) {
		if j.dead != nil {
			t.Fatalf("Kafka's tools ended: %v", j.dead)
		}
		if time.Now().After(until) {
			t.Fatalf("the tool neither ends nor prints what is awaited; so far:\n%s%s", tail(r.out.String(), 2000), tail(r.err.String(), 4000))
		}
		j.some.Wait()
	}
}

// run runs a tool to its end.
func (j *jvm) run(t *testing.T, in, tool string, args ...string) *toolRun {
	t.Helper()
	r := j.begin(t, in, tool, args...)
	j.await(t, r, nil)
	return r
}

var toolClasses = map[string]string{
	"topics":               "org.apache.kafka.tools.TopicCommand",
	"groups":               "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
	"configs":              "kafka.admin.ConfigCommand",
	"acls":                 "kafka.admin.AclCommand",
	"console-producer":     "kafka.tools.ConsoleProducer",
	"console-consumer":     "org.apache.kafka.tools.consumer.ConsoleConsumer",
	"producer-perf":        "org.apache.kafka.tools.ProducerPerformance",
	"consumer-perf":        "org.apache.kafka.tools.ConsumerPerformance",
	"e2e-latency":          "org.apache.kafka.tools.EndToEndLatency",
	"verifiable-producer":  "org.apache.kafka.tools.VerifiableProducer",
	"verifiable-consumer":  "org.apache.kafka.tools.VerifiableConsumer",
	"dump-log":             "kafka.tools.DumpLogSegments",
	"reassign":             "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
	"leader-election":      "org.apache.kafka.tools.LeaderElectionCommand",
	"delete-records":       "org.apache.kafka.tools.DeleteRecordsCommand",
	"log-dirs":             "org.apache.kafka.tools.LogDirsCommand",
	"offsets":              "org.apache.kafka.tools.GetOffsetShell",
	"api-versions":         "kafka.admin.BrokerApiVersionsCommand",
	"cluster":              "org.apache.kafka.tools.ClusterTool",
	"features":             "org.apache.kafka.tools.FeatureCommand",
	"compat":               "org.apache.kafka.tools.ClientCompatibilityTest",
	"transactions":         "org.apache.kafka.tools.TransactionsCommand",
	"client-metrics":       "org.apache.kafka.tools.ClientMetricsCommand",
	"tokens":               "org.apache.kafka.tools.DelegationTokenCommand",
	"replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
	"connect-standalone":   "org.apache.kafka.connect.cli.ConnectStandalone",
}

// The transcripts: what one types and what Kafka 3.9 answers. CONFORMANCE_RECORD=1 writes them anew from a live Kafka.
//
//	# a remark
//	$ TOOL ARGS...            a command, run to its end; BROKER stands for the address, DIR for a directory of the test's,
//	                          DATA for the broker's log dir; the next lines are what it prints
//	$ sorted TOOL ARGS...     the order of lines says nothing
//	$ until TEXT TOOL ARGS... typed again until its output holds TEXT (one word, or in quotes)
//	$ only TEXT TOOL ARGS...  of what it prints, only lines that hold TEXT say something; their order does not
//	$ quiet TOOL ARGS...      it must end well; what it prints says nothing
//	$ begin NAME TOOL ARGS... a command that goes on while others run
//	$ await NAME TEXT         until it has printed TEXT
//	$ end NAME                it is stopped; then follows what it printed
//	$ stop NAME               it is stopped; what it printed says nothing
//	$ same FILE FILE          until both files of DIR hold the same
//	$ write FILE              the next lines beginning with < are a file of DIR
//	< text                    a line of standard input of the command above
//	! text                    a line on standard error
//	? 1                       the command's status, where it is not 0
//	~ text                    what kring prints instead of the line above, on purpose; ~ alone: nothing
type transcript struct {
	name  string
	steps []*toolStep
}

type toolStep struct {
	comments []string
	words    []string
	in       []string
	want     []string          // printed lines as kept in the file: Kafka's
	instead  map[string]string // of a line of Kafka's, kring's
}

// kring is what kring is to print.
func (s *toolStep) kring() (want []string) {
	for _, l := range s.want {
		other, differs := s.instead[l]
		switch {
		case !differs:
			want = append(want, l)
		case other != "":
			want = append(want, other)
		}
	}
	return want
}

func readTranscript(t *testing.T, name string) *transcript {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tr := &transcript{name: name}
	var comments []string
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "$ "):
			tr.steps = append(tr.steps, &toolStep{comments: comments, words: words(line[2:]), instead: map[string]string{}})
			comments = nil
		case strings.HasPrefix(line, "#"):
			comments = append(comments, line)
		case len(tr.steps) == 0:
			t.Fatalf("%s:%d: before the first command", name, n+1)
		case line == "<" || strings.HasPrefix(line, "< "):
			s := tr.steps[len(tr.steps)-1]
			s.in = append(s.in, strings.TrimPrefix(line[1:], " "))
		case line == "~" || strings.HasPrefix(line, "~ "):
			s := tr.steps[len(tr.steps)-1]
			if len(s.want) == 0 {
				t.Fatalf("%s:%d: instead of nothing", name, n+1)
			}
			s.instead[s.want[len(s.want)-1]] = strings.TrimPrefix(line[1:], " ")
		default:
			s := tr.steps[len(tr.steps)-1]
			s.want = append(s.want, line)
		}
	}
	return tr
}

// words splits a command at blanks outside single quotes.
func words(line string) (out []string) {
	quoted, any, w := false, false, ""
	for _, c := range line {
		switch {
		case c == '\'':
			quoted, any = !quoted, true
		case c == ' ' && !quoted:
			if any {
				out = append(out, w)
			}
			any, w = false, ""
		default:
			any, w = true, w+string(c)
		}
	}
	if any {
		out = append(out, w)
	}
	return out
}

func quote(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w == "" || strings.ContainsAny(w, ` *|<>;"[]{}`) {
			w = "'" + w + "'"
		}
		b.WriteString(w)
	}
	return b.String()
}

// write puts the transcript back with what was printed now.
func (tr *transcript) write(t *testing.T) {
	t.Helper()
	var b strings.Builder
	for _, s := range tr.steps {
		for _, c := range s.comments {
			b.WriteString(c + "\n")
		}
		b.WriteString("$ " + quote(s.words) + "\n")
		for _, l := range s.in {
			b.WriteString(strings.TrimRight("< "+l, " ") + "\n")
		}
		for _, l := range s.want {
			b.WriteString(l + "\n")
			if other, differs := s.instead[l]; differs {
				b.WriteString(strings.TrimRight("~ "+other, " ") + "\n")
			}
		}
	}
	if err := os.WriteFile(tr.name, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// player types a transcript.
type player struct {
	t          *testing.T
	jvm        *jvm
	b          *broker
	dir        string
	background map[string]*toolRun
}

// play runs the step and returns what it printed, as a transcript keeps it; nil where that says nothing.
func (p *player) play(s *toolStep) (got []string, compare bool) {
	p.t.Helper()
	w := slices.Clone(s.words)
	for i := range w {
		w[i] = strings.NewReplacer("BROKER", p.b.addr, "DIR", p.dir, "DATA", p.b.dir+"/data").Replace(w[i])
	}
	in := strings.Join(s.in, "\n")
	if len(s.in) > 0 {
		in += "\n"
	}
	switch w[0] {
	case "write":
		if err := os.WriteFile(filepath.Join(p.dir, w[1]), []byte(strings.NewReplacer("BROKER", p.b.addr, "DIR", p.dir).Replace(in)), 0o644); err != nil {
			p.t.Fatal(err)
		}
		return nil, false
	case "same":
		p.same(w[1], w[2])
		return nil, false
	case "begin":
		p.background[w[1]] = p.jvm.begin(p.t, in, w[2], w[3:]...)
		return nil, false
	case "await":
		p.jvm.await(p.t, p.running(w[1]), func(out string) bool { return strings.Contains(out, w[2]) })
		return nil, false
	case "end":
		r := p.running(w[1])
		p.jvm.end(p.t, r)
		p.jvm.await(p.t, r, nil)
		return p.printed(r, false), true
	case "stop":
		r := p.running(w[1])
		p.jvm.end(p.t, r)
		p.jvm.await(p.t, r, nil)
		return nil, false
	case "until":
		for until := time.Now().Add(toolMax); ; {
			got := p.printed(p.jvm.run(p.t, in, w[2], w[3:]...), true)
			if strings.Contains(strings.Join(got, "\n"), w[1]) {
				return got, true
			}
			if time.Now().After(until) {
				p.t.Errorf("%s: does not come to print %q", quote(s.words), w[1])
				return got, true
			}
		}
	case "quiet":
		r := p.jvm.run(p.t, in, w[1], w[2:]...)
		if r.status != 0 {
			p.t.Errorf("%s: status %d\n%s%s", quote(s.words), r.status, tail(r.out.String(), 2000), tail(r.err.String(), 2000))
		}
		return nil, false
	case "only":
		got = p.printed(p.jvm.run(p.t, in, w[2], w[3:]...), true)
		return slices.DeleteFunc(got, func(l string) bool { return !strings.Contains(l, w[1]) }), true
	case "sorted":
		return p.printed(p.jvm.run(p.t, in, w[1], w[2:]...), true), true
	}
	return p.printed(p.jvm.run(p.t, in, w[0], w[1:]...), false), true
}

func (p *player) same(one, other string) {
	p.t.Helper()
	var a, b []byte
	for until := time.Now().Add(2 * toolMax); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		a, _ = os.ReadFile(filepath.Join(p.dir, one))
		b, _ = os.ReadFile(filepath.Join(p.dir, other))
		if len(a) > 0 && bytes.Equal(a, b) {
			return
		}
	}
	p.t.Errorf("%s holds %q, %s holds %q", one, tail(string(a), 200), other, tail(string(b), 200))
	for name, r := range p.background {
		p.jvm.mu.Lock()
		p.t.Logf("%s said: %s%s", name, tail(r.out.String(), 2000), tail(r.err.String(), 4000))
		p.jvm.mu.Unlock()
	}
}

func (p *player) running(name string) *toolRun {
	p.t.Helper()
	r := p.background[name]
	if r == nil {
		p.t.Fatalf("nothing named %s was begun", name)
	}
	return r
}

var unsteady = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`_throughput":[0-9.E]+`), `_throughput":N`},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`TopicId: [A-Za-z0-9_-]{22}`), "TopicId: ID"},
	{regexp.MustCompile(`Cluster ID: [A-Za-z0-9_-]{22}`), "Cluster ID: ID"},
	{regexp.MustCompile(`\b1[5-9][0-9]{11}\b`), "TIME"},
	{regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]+Z?`), "TIME"},
	{regexp.MustCompile(`\}\{"key"`), "}\n{\"key\""}, // some formatters end no line
	{regexp.MustCompile(`(?i)\bcrc: [0-9]+`), "CRC: N"},
	{regexp.MustCompile(`\bproducerId: [0-9]+`), "producerId: N"},
	{regexp.MustCompile(`console-consumer-[0-9]{1,5}\b`), "console-consumer-N"},
	{regexp.MustCompile(`adminclient-[0-9]+`), "adminclient-N"},
	{regexp.MustCompile(`127\.0\.0\.1:[0-9]+`), "ADDRESS"},
	{regexp.MustCompile(` {2,}`), " "},
}

// passing are lines that say nothing: where in its code a tool failed, what a client says of a topic that is being made, and settings
// that kring has of its own.
var passing = regexp.MustCompile(`^\tat |reported a recoverable issue|^ kring\.`)

func (p *player) printed(r *toolRun, sorted bool) []string {
	j := p.jvm
	j.mu.Lock()
	defer j.mu.Unlock()
	clean := func(s string) []string {
		s = strings.NewReplacer(p.b.addr, "BROKER", p.b.dir+"/data", "DATA", p.dir, "DIR").Replace(s)
		for _, u := range unsteady {
			s = u.what.ReplaceAllString(s, u.with)
		}
		s = strings.TrimRight(s, "\n")
		if s == "" {
			return nil
		}
		lines := slices.DeleteFunc(strings.Split(s, "\n"), passing.MatchString)
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t")
		}
		if sorted {
			slices.Sort(lines)
		}
		return lines
	}
	got := clean(r.out.String())
	for i, l := range got {
		if l != "" && strings.ContainsAny(l[:1], "$#<!?~\\") {
			got[i] = `\` + l
		}
	}
	for _, l := range clean(r.err.String()) {
		got = append(got, strings.TrimRight("! "+l, " "))
	}
	if r.status != 0 {
		got = append(got, fmt.Sprint("? ", r.status))
	}
	return got
}

// differences are the lines that only one side has, or where the order is another.
func differences(ours, kafkas []string) string {
	var b strings.Builder
	only := func(name string, lines, others []string) {
		others = slices.Clone(others)
		for _, l := range lines {
			if i := slices.Index(others, l); i >= 0 {
				others = slices.Delete(others, i, i+1)
			} else if b.Len() < 8000 {
				fmt.Fprintf(&b, "  only %s: %s\n", name, l)
			}
		}
	}
	only("ours", ours, kafkas)
	only("Kafka's", kafkas, ours)
	if b.Len() == 0 {
		return "  " + firstDifference(strings.Join(ours, "\n"), strings.Join(kafkas, "\n"))
	}
	return b.String()
}

// TestKafkasTools types what testdata/tools holds and compares what is printed, line by line.
func TestKafkasTools(t *testing.T) {
	names, err := filepath.Glob("testdata/tools/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	record := os.Getenv("CONFORMANCE_RECORD") != ""
	settings := []string{"broker.id=1", "broker.rack=RACK1", "num.partitions=2", "group.initial.rebalance.delay.ms=0",
		"offsets.topic.replication.factor=1", "default.replication.factor=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "zookeeper.session.timeout.ms=6000", "log.retention.check.interval.ms=500"}
	var b *broker
	if record {
		b = startKafka(t, settings...)
	} else {
		b = start(t, 2, settings...)
	}
	j := startTools(t)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			tr := readTranscript(t, name)
			if record {
				defer tr.write(t)
			}
			p := &player{t: t, jvm: j, b: b, dir: t.TempDir(), background: map[string]*toolRun{}}
			for _, s := range tr.steps {
				got, compare := p.play(s)
				if record {
					s.want = got
				} else if compare && !slices.Equal(got, s.kring()) {
					t.Errorf("$ %s\n%s", quote(s.words), differences(got, s.kring()))
				}
			}
		})
	}
}
