package conformance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// oracle tells that the tests are to run against a Kafka 3.9 of their own each, instead of kring: so a test is itself checked.
func oracle() bool { return os.Getenv("CONFORMANCE_KAFKA") != "" }

// peers runs the script that starts real Kafka.
func peers(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("peers/peers", args...).CombinedOutput(); err != nil {
		t.Fatalf("peers %v: %v\n%s", args, err, out)
	}
}

// startKafka starts a ZooKeeper and a Kafka on an empty directory and free ports, with settings of Kafka alone.
func startKafka(t *testing.T, overrides ...string) *broker {
	t.Helper()
	b := &broker{t: t, dir: t.TempDir(), addr: freeAddr(t), kafka: true}
	_, port, _ := net.SplitHostPort(b.addr)
	_, zk, _ := net.SplitHostPort(freeAddr(t))
	peers(t, "zk", b.dir+"/zk", "clientPort="+zk, "tickTime=1000") // a killed broker's session ends soon
	t.Cleanup(func() { kill(t, pidIn(t, b.dir+"/zk")) })
	b.args = []string{"port=" + port, "zookeeper.connect=127.0.0.1:" + zk, "log.dirs=" + b.dir + "/data", "zookeeper.session.timeout.ms=6000"}
	for _, o := range overrides {
		if !strings.HasPrefix(o, "kring.") {
			b.args = append(b.args, o)
		}
	}
	b.run()
	t.Cleanup(func() { kill(t, b.pid()) })
	return b
}

// runKafka starts the process again; a broker that was killed is refused until its session has ended.
func (b *broker) runKafka() {
	b.t.Helper()
	until := time.Now().Add(2 * startMax)
	for {
		out, err := exec.Command("peers/peers", append([]string{"kafka", b.dir + "/kafka"}, b.args...)...).CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(until) {
			b.t.Fatalf("Kafka does not start: %v\n%s", err, out)
		}
	}
	for {
		c, err := net.DialTimeout("tcp", b.addr, time.Second)
		if err == nil {
			_, err = roundTrip(c, encode(kmsg.NewPtrApiVersionsRequest()))
			c.Close()
		}
		if err == nil {
			return
		}
		if time.Now().After(until) {
			b.t.Fatalf("Kafka does not answer: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stopKafka sends sig and waits until the process is gone. Nobody here is its parent.
func (b *broker) stopKafka(sig syscall.Signal) {
	b.t.Helper()
	pid := b.pid()
	_ = syscall.Kill(pid, sig)
	if !gone(pid, 2*stopMax) {
		b.t.Errorf("Kafka does not end")
	}
}

// pid is the broker's process.
func (b *broker) pid() int {
	b.t.Helper()
	if b.kafka {
		return pidIn(b.t, b.dir+"/kafka")
	}
	return b.cmd.Process.Pid
}

func pidIn(t *testing.T, dir string) int {
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

func kill(t *testing.T, pid int) {
	t.Helper()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if !gone(pid, stopMax) {
		t.Errorf("process %d does not end", pid)
	}
}

// gone waits for a process to end; a dead one that nobody has waited for counts as gone.
func gone(pid int, most time.Duration) bool {
	for until := time.Now().Add(most); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") || strings.Contains(string(stat), ") X ") {
			return true
		}
	}
	return false
}
