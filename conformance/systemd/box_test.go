package systemd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is far more than anything here takes on a slow machine.
const patience = 2 * time.Minute

// box is a machine that systemd runs.
type box struct {
	t   *testing.T
	one string // the number its process 1 has here
}

// newBox boots a machine for the length of the test.
func newBox(t *testing.T) *box {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("booting a machine needs root")
	}
	cmd := exec.Command("./box", fmt.Sprint("test-", os.Getpid()))
	var said bytes.Buffer
	cmd.Stderr = &said
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		hold.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("box: %v\n%s", err, said.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the machine does not boot: %v\n%s", err, said.String())
	}
	return &box{t: t, one: strings.TrimSpace(line)}
}

// result is what a command left.
type result struct {
	out    string // both outputs
	status int
}

// run runs a command in the machine.
func (b *box) run(args ...string) result {
	b.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"-t", b.one, "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "--"}, args...)...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		b.t.Fatalf("%v: %v", args, err)
	}
	return result{strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()}
}

// ok runs a command that must succeed.
func (b *box) ok(args ...string) string {
	b.t.Helper()
	r := b.run(args...)
	if r.status != 0 {
		b.t.Fatalf("%s: status %d\n%s\n%s", strings.Join(args, " "), r.status, r.out, b.run("journalctl", "-q", "-n", "40", "-o", "cat").out)
	}
	return r.out
}

// path is where a file of the machine is to be found here.
func (b *box) path(name string) string { return filepath.Join("/proc", b.one, "root", name) }

func (b *box) write(name, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// copy puts a file of ours into the machine.
func (b *box) copy(from, to string) {
	b.t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		b.t.Fatal(err)
	}
	b.write(to, string(text))
}

// dropIn lays settings over the unit until the subtest ends.
func (b *box) dropIn(t *testing.T, settings string) {
	t.Helper()
	const name = "/etc/systemd/system/kring.service.d/test.conf"
	b.write(name, "[Service]\n"+settings+"\n")
	b.ok("systemctl", "daemon-reload")
	t.Cleanup(func() {
		if err := os.Remove(b.path(name)); err != nil {
			t.Error(err)
		}
		b.ok("systemctl", "daemon-reload")
	})
}

// show is a property of the service.
func (b *box) show(property string) string {
	b.t.Helper()
	return b.ok("systemctl", "show", "--value", "-p", property, "kring.service")
}

// eventually waits until ok holds; each look asks the machine, which takes its time.
func (b *box) eventually(what string, ok func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			b.t.Fatalf("%s did not come\n%s", what, b.run("journalctl", "-q", "-n", "60", "-u", "kring").out)
		}
	}
}

// now is a time of the journal. (A cursor will not do: an entry behind it is lost where the one it names does not match.)
func (b *box) now() string {
	b.t.Helper()
	b.ok("journalctl", "--sync")
	return b.ok("date", "+@%s.%6N")
}

// said is what the journal has of the service since a time, with systemd's own lines about it.
func (b *box) said(since string, more ...string) string {
	b.t.Helper()
	b.ok("journalctl", "--sync")
	args := append([]string{"journalctl", "-q", "-u", "kring", "-o", "cat"}, more...)
	if since != "" {
		args = append(args, "--since", since)
	}
	return b.ok(args...)
}

// process is the number of the broker's process here, and in the machine.
func (b *box) process() (here, there int) {
	b.t.Helper()
	there, err := strconv.Atoi(b.show("MainPID"))
	if err != nil || there == 0 {
		b.t.Fatalf("no process: %v", err)
	}
	want, err := os.Readlink("/proc/" + b.one + "/ns/pid")
	if err != nil {
		b.t.Fatal(err)
	}
	names, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		if ns, _ := os.Readlink(filepath.Dir(name) + "/ns/pid"); ns != want {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if f[0] == "NSpid:" && f[len(f)-1] == strconv.Itoa(there) {
				here, _ = strconv.Atoi(f[1])
				return here, there
			}
		}
	}
	b.t.Fatalf("process %d of the machine is not to be found here", there)
	return 0, 0
}

// thread is the number here of the broker's thread of that name.
func (b *box) thread(process int, name string) int {
	b.t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", process))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, task := range tasks {
		if comm, err := os.ReadFile(task); err == nil && strings.TrimSpace(string(comm)) == name {
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(task)))
			return id
		}
	}
	b.t.Fatalf("process %d has no thread %s", process, name)
	return 0
}

// get asks the broker's HTTP port in the machine.
func (b *box) get(path string) result {
	b.t.Helper()
	return b.run("bash", "-c", fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/9404 && printf 'GET %s HTTP/1.0\r\n\r\n' >&3 && cat <&3`, path))
}

// kring runs a command of the installed program against the service.
func (b *box) kring(stdin string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command("nsenter", append([]string{"-t", b.one, "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w", "--", "/usr/bin/kring"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var errOut bytes.Buffer
	cmd.Stderr = io.MultiWriter(&errOut)
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("kring %s: %v\n%s\n%s", strings.Join(args, " "), err, errOut.String(), b.run("journalctl", "-q", "-n", "40", "-u", "kring").out)
	}
	return string(out)
}
