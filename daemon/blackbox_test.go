package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests that run the finished program build it once.
var program string

// patience is far more than anything here needs on a slow machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(withoutRing) != "" {
		execWithoutRing()
	}
	dir, err := os.MkdirTemp("", "kring-test-*")
	if err == nil {
		program = filepath.Join(dir, "kring")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the program:", err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// result is what a finished command left.
type result struct {
	status      int
	out, errOut string
}

// kring runs a command to its end.
func kring(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	return finish(t, cmd, stdin)
}

func finish(t *testing.T, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	if cmd.Dir == "" {
		cmd.Dir = t.TempDir()
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// ok fails the test unless the command succeeded, and returns what it printed.
func (r result) ok(t *testing.T) string {
	t.Helper()
	if r.status != 0 {
		t.Fatalf("status %d: %s", r.status, r.errOut)
	}
	return r.out
}

// running is a broker process under test.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	data string
	args []string
	said lines
	done chan struct{}
}

// lines keeps what a process says and lets a test wait for a word.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait returns once word was said; false if ended comes first.
func (l *lines) wait(word string, ended <-chan struct{}) bool {
	limit := time.After(patience)
	for {
		l.mu.Lock()
		found := strings.Contains(l.text.String(), word)
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-more:
		case <-ended:
			return strings.Contains(l.String(), word)
		case <-limit:
			return false
		}
	}
}

// start runs a broker on a data directory, and a port the kernel chooses, until the test ends, and waits until it serves.
func start(t *testing.T, data string, settings ...string) *running {
	t.Helper()
	b := &running{t: t, data: data}
	b.args = []string{"broker"}
	for _, s := range append([]string{"log.dirs=" + data, "listeners=PLAINTEXT://127.0.0.1:0"}, settings...) {
		b.args = append(b.args, "--override", s)
	}
	b.run()
	t.Cleanup(func() {
		b.end(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the broker said:\n%s", b.said.String())
		}
	})
	return b
}

func (b *running) run() {
	b.t.Helper()
	b.said = lines{}
	b.follow("Ctrl-C stops")
	b.addr = serves.FindStringSubmatch(b.said.String())[1]
}

var serves = regexp.MustCompile(` serves \w+://([^\s,]+:[1-9]\d*)(?:,\w+://(\S+:[1-9]\d*))?\n`)

// end sends a signal, if the process still runs, and returns the exit status (-1 if a signal ended it).
func (b *running) end(s os.Signal) int {
	_ = b.cmd.Process.Signal(s)
	select {
	case <-b.done:
	case <-time.After(patience):
		_ = b.cmd.Process.Kill()
		<-b.done
		b.t.Errorf("the broker did not end after %v", s)
	}
	return b.cmd.ProcessState.ExitCode()
}

// kring runs a client command against the broker.
func (b *running) kring(stdin string, args ...string) result {
	b.t.Helper()
	return kring(b.t, stdin, append(args, "-b", b.addr)...)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// everyLoops runs a test with 1, 2 and 4 loops.
func everyLoops(t *testing.T, fn func(t *testing.T, b *running)) {
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("loops=%d", n), func(t *testing.T) { fn(t, start(t, t.TempDir()+"/data", fmt.Sprintf("kring.loops=%d", n))) })
	}
}

// tree is everything below root: names, modes and contents.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[path] = info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[path] += fmt.Sprintf(" %d %x", len(content), sha256.Sum256(content))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// follow starts any command and waits until it says word.
func (b *running) follow(word string) {
	b.t.Helper()
	b.launch(b.command(), word)
}

// command is the program with b's arguments, all it says kept.
func (b *running) command() *exec.Cmd {
	cmd := exec.Command(program, b.args...)
	cmd.Dir = b.t.TempDir()
	cmd.Stdout, cmd.Stderr = &b.said, &b.said
	return cmd
}

// launch starts cmd as b's process and waits until it says word.
func (b *running) launch(cmd *exec.Cmd, word string) {
	b.t.Helper()
	b.done, b.cmd = make(chan struct{}), cmd
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(b.cmd, b.done)
	if !b.said.wait(word, b.done) {
		b.end(syscall.SIGKILL)
		b.t.Fatalf("%s did not say %q:\n%s", strings.Join(b.args, " "), word, b.said.String())
	}
}
