package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kring/daemon/config"
)

func logConfig(level, format string) *config.Config {
	return &config.Config{LogLevel: level, LogFormat: format}
}

// someLines logs one of each kind.
func someLines(log *slog.Logger) {
	log.Debug("hidden")
	log.With("a", 1).Info("one thing", "k", "v w", "took", 3*time.Millisecond)
	log.WithGroup("g").With("b", true).Warn("two", "k", "", slog.Group("in", "x", "=")) // a group keeps its name
	log.Error("three\nlines", "error", errors.New("no\nway"))
}

func TestTextIsForPeople(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "8:1") // of another stream
	var out bytes.Buffer
	l := newLogs(&out, logConfig("info", "text"))
	someLines(l.Logger)
	l.queue.flush(patience)
	want := []string{` INFO  one thing a=1 k="v w" took=3ms`, ` WARN  two g.b=true g.k="" g.in.x="="`, ` ERROR "three\nlines" error="no\nway"`}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, line := range lines {
		when, rest, _ := strings.Cut(line, " ")
		clock, rest, _ := strings.Cut(rest, " ")
		if _, err := time.Parse(lineTime, when+" "+clock); err != nil || len(lines) != len(want) || " "+rest != want[i] {
			t.Errorf("%q (%v)", line, err)
		}
	}
}

// journalFile stands for the stream systemd connects: what counts is that JOURNAL_STREAM names it.
func journalFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", st.Dev, st.Ino))
	return f
}

func TestJournalGetsPrioritiesAndNoTimes(t *testing.T) {
	for format, want := range map[string]string{
		"text": "<6>one thing a=1 k=\"v w\" took=3ms\n<4>two g.b=true g.k=\"\" g.in.x=\"=\"\n<3>\"three\\nlines\" error=\"no\\nway\"\n",
		"json": "<6>{<4>{<3>{",
	} {
		f := journalFile(t)
		l := newLogs(f, logConfig("info", format))
		someLines(l.Logger)
		l.queue.flush(patience)
		said, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		got := string(said)
		if format == "json" {
			got = ""
			for line := range strings.Lines(string(said)) {
				if !json.Valid([]byte(line[3:])) {
					t.Errorf("%q", line)
				}
				got += line[:4]
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}

func TestLevelChangesWhileTheBrokerRuns(t *testing.T) {
	var out bytes.Buffer
	l := newLogs(&out, logConfig("warn", "json"))
	l.Info("hidden")
	l.configure(logConfig("debug", "json"))
	l.Debug("seen")
	l.queue.flush(patience)
	if !strings.Contains(out.String(), `"msg":"seen"`) || strings.Contains(out.String(), "hidden") {
		t.Errorf("%s", out.String())
	}
}

// stalled is a reader who does not read until he is let.
type stalled struct {
	gate chan struct{}
	mu   sync.Mutex
	got  bytes.Buffer
}

func (s *stalled) Write(b []byte) (int, error) {
	<-s.gate
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(b)
}

func TestNobodyWaitsForTheReaderOfTheLog(t *testing.T) {
	out := &stalled{gate: make(chan struct{})}
	l := newLogs(out, logConfig("info", "text"))
	text := strings.Repeat("x", 1000)
	const lines = 2 * linesWaiting / 1000
	for range lines {
		l.Info(text)
	}
	dropped := l.queue.droppedAll.Load()
	if dropped == 0 || dropped > lines*2/3 {
		t.Errorf("%d of %d lines dropped", dropped, lines)
	}
	l.queue.flush(time.Millisecond) // in vain, but it ends
	close(out.gate)
	l.queue.flush(patience)
	told := fmt.Sprintf("WARN  lines of the log are missing: nobody read them in time lines=%d\n", dropped)
	if got := out.got.String(); strings.Count(got, text) != lines-int(dropped) || strings.Count(got, told) != 1 {
		t.Errorf("%d lines written, %d dropped, not told as %q", strings.Count(got, text), dropped, told)
	}
	l.Info("after")
	l.queue.flush(patience)
	if !strings.HasSuffix(out.got.String(), " INFO  after\n") {
		t.Error("the queue does not recover")
	}
}

// TestStalledOutputHoldsUpNothing gives the broker a standard error that nobody reads, fills it, and goes on working.
func TestStalledOutputHoldsUpNothing(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	b := start(t, t.TempDir()+"/data")
	b.end(syscall.SIGTERM)
	b.args = append(b.args, "--override", "listeners=PLAINTEXT://"+b.addr, "--override", "kring.log.level=debug")
	b.said = lines{}
	cmd := b.command()
	cmd.Stderr = write
	b.launch(cmd, "Ctrl-C stops")
	fill(t, write)
	b.kring("", "topics", "create", "words", "-c", "compression.type=gzip").ok(t) // which is logged
	for i := range 30 {
		b.kring("", "topics", "create", fmt.Sprint("t", i)).ok(t)
	}
	b.kring("a\n", "produce", "words").ok(t)
	if status := b.end(syscall.SIGTERM); status != 0 {
		t.Errorf("status %d", status)
	}
	if !exists(b.data, ".kafka_cleanshutdown") {
		t.Error("the stop was not clean")
	}
}

// fill writes to a pipe until it takes no more.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	fd := int(pipe.Fd())
	copied, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(copied)
	if err := syscall.SetNonblock(copied, true); err != nil {
		t.Fatal(err)
	}
	for size := 4096; size > 0; {
		if _, err := syscall.Write(copied, make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := syscall.SetNonblock(copied, false); err != nil { // the two share it
		t.Fatal(err)
	}
}

// TestLastLinesAreWrittenBeforeACrash calls what a loop that panics calls before its trace is printed.
func TestLastLinesAreWrittenBeforeACrash(t *testing.T) {
	out := &stalled{gate: make(chan struct{})}
	l := newLogs(out, logConfig("info", "text"))
	before := lastWords.Swap(l.queue)
	defer lastWords.Store(before)
	l.Info("the last line")
	time.AfterFunc(time.Millisecond, func() { close(out.gate) })
	kernelOptions(&config.Config{}, l.Logger).Crashing()
	if got := out.got.String(); !strings.Contains(got, "the last line") {
		t.Errorf("%q", got)
	}
}
