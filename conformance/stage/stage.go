package stage

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Kring is the path of the broker's binary: KRING, or bin/kring as `make build` leaves it.
func Kring(t testing.TB) string {
	t.Helper()
	name := os.Getenv("KRING")
	if name == "" {
		name = filepath.Join(root(t), "bin/kring")
	}
	name, err := filepath.Abs(name)
	if err == nil {
		_, err = os.Stat(name)
	}
	if err != nil {
		t.Fatalf("the broker's binary: %v (run `make build` first)", err)
	}
	return name
}

// root is the project's directory. A test runs in that of its package.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir + "/go.mod"); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the test's directory")
	return ""
}

// FreeAddr is 127.0.0.1 and a port that is free now.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// FreePort is the port alone.
func FreePort(t testing.TB) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(FreeAddr(t))
	return port
}

// Small keeps a JVM from what a long-lived broker needs: more of Command's environment.
var Small = []string{"HEAP=256m", "JAVA_OPTS=-XX:TieredStopAtLevel=1"}

// Command is a run of the script that starts real Kafka and ZooKeeper.
func Command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(root(t), "conformance/peers/peers"), args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// Peers runs the script; it must succeed.
func Peers(t testing.TB, env []string, args ...string) {
	t.Helper()
	if out, err := Command(t, env, args...).CombinedOutput(); err != nil {
		t.Fatalf("peers %v: %v\n%s", args, err, out)
	}
}

// Pid is the process that the script runs in dir.
func Pid(t testing.TB, dir string) int {
	t.Helper()
	text, err := os.ReadFile(dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// Runs says whether the script runs something in dir that End has not ended.
func Runs(dir string) bool {
	_, err := os.Stat(dir + "/pid")
	return err == nil
}

// End sends sig to what the script runs in dir, and waits at most so long until it is gone.
func End(t testing.TB, dir string, sig syscall.Signal, most time.Duration) {
	t.Helper()
	pid := Pid(t, dir)
	_ = syscall.Kill(pid, sig)
	if !Gone(pid, most) {
		t.Fatalf("process %d does not end", pid)
	}
	_ = os.Remove(dir + "/pid") // or peers would take the dead process for a running one
}

// Gone waits at most so long for a process that is nobody's child here to end. One that is dead and that nobody has waited for
// counts as gone.
func Gone(pid int, most time.Duration) bool {
	for until := time.Now().Add(most); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") || strings.Contains(string(stat), ") X ") {
			return true
		}
	}
	return false
}

// Noise is n bytes that no codec makes smaller, the same for each seed.
func Noise(seed, n int) []byte {
	b := make([]byte, n)
	x := uint64(seed)*2654435761 + 88172645463325252
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return b
}
