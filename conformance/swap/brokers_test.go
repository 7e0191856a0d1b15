package swap

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience bounds what anything may take on a busy machine.
const patience = 2 * time.Minute

// house is where both brokers live, in turn: a ZooKeeper, a server.properties, one log dir and one port.
type house struct {
	t          *testing.T
	dir        string
	addr       string
	zk         string
	settings   []string
	properties string

	kring *exec.Cmd
	said  *bytes.Buffer
	ended chan error
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func binary(t *testing.T) string {
	t.Helper()
	name := os.Getenv("KRING")
	if name == "" {
		name = "../../bin/kring"
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

// small keeps the JVMs from what a long-lived broker needs.
var small = []string{"HEAP=256m", "JAVA_OPTS=-XX:TieredStopAtLevel=1"}

func peers(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("../peers/peers", args...)
	cmd.Env = append(os.Environ(), small...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("peers %v: %v\n%s", args, err, out)
	}
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

// end sends sig to what peers runs in dir and waits until it is gone; a dead process that nobody has waited for counts as gone.
func end(t *testing.T, dir string, sig syscall.Signal) {
	t.Helper()
	pid := pidIn(t, dir)
	_ = syscall.Kill(pid, sig)
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") || strings.Contains(string(stat), ") X ") {
			_ = os.Remove(dir + "/pid") // or peers would take the dead process for a running one
			return
		}
	}
	t.Fatalf("process %d does not end", pid)
}

// startZooKeeper with short ticks, so that the session of a killed broker ends soon.
func startZooKeeper(t *testing.T) (addr string) {
	dir, port := t.TempDir(), freePort(t)
	peers(t, "zk", dir, "clientPort="+port, "tickTime=1000")
	t.Cleanup(func() { end(t, dir, syscall.SIGKILL) })
	return "127.0.0.1:" + port
}

// settings are both brokers' alike. Segments are small, the cleaner is keen.
var settings = []string{"broker.id=1", "num.partitions=1", "offsets.topic.num.partitions=4", "transaction.state.log.num.partitions=2",
	"log.cleaner.backoff.ms=300", "log.cleaner.dedupe.buffer.size=4194304", "log.segment.delete.delay.ms=1000",
	"auto.create.topics.enable=false", "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000"}

func newHouse(t *testing.T) *house {
	h := &house{t: t, dir: t.TempDir(), zk: startZooKeeper(t) + "/one/cluster"}
	port := freePort(t)
	h.addr = "127.0.0.1:" + port
	h.properties = h.dir + "/kafka/server.properties"
	h.settings = append([]string{"port=" + port, "zookeeper.connect=" + h.zk, "zookeeper.session.timeout.ms=6000"}, settings...)
	t.Cleanup(func() {
		if _, err := os.Stat(h.dir + "/kafka/pid"); err == nil {
			end(t, h.dir+"/kafka", syscall.SIGKILL)
		}
		if h.kring != nil {
			h.endKring(syscall.SIGKILL)
		}
	})
	return h
}

// timed says how long a step took.
func (h *house) timed(what string) func() {
	began := time.Now()
	return func() { h.t.Logf("%s took %v", what, time.Since(began).Round(time.Millisecond)) }
}

func (h *house) data() string { return h.dir + "/kafka/data" }

// keep leaves a copy of the log dir as it was handed over, where KRING_SWAP_KEEP names a directory.
func (h *house) keep(name string) {
	h.t.Helper()
	if to := os.Getenv("KRING_SWAP_KEEP"); to != "" {
		if err := os.CopyFS(to+"/"+name, os.DirFS(h.data())); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *house) startKafka() {
	h.t.Helper()
	defer h.timed("the start of Kafka")()
	peers(h.t, append([]string{"kafka", h.dir + "/kafka"}, h.settings...)...)
	h.await()
}

func (h *house) endKafka(sig syscall.Signal) {
	h.t.Helper()
	end(h.t, h.dir+"/kafka", sig)
}

// startKring starts it on Kafka's own server.properties.
func (h *house) startKring(loops int) {
	h.t.Helper()
	defer h.timed("the start of kring")()
	h.said = new(bytes.Buffer)
	h.kring = exec.Command(binary(h.t), "broker", h.properties, "--override", "zookeeper.connect=", "--override", fmt.Sprint("kring.loops=", loops))
	h.kring.Stdout, h.kring.Stderr = h.said, h.said
	if err := h.kring.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(h.kring, h.ended)
	h.await()
}

func (h *house) endKring(sig syscall.Signal) {
	h.t.Helper()
	_ = h.kring.Process.Signal(sig)
	select {
	case err := <-h.ended:
		if sig == syscall.SIGTERM && err != nil {
			h.t.Errorf("kring ended with %v:\n%s", err, h.said)
		}
	case <-time.After(patience):
		_ = h.kring.Process.Kill()
		h.t.Fatalf("kring does not end:\n%s", h.said)
	}
	h.kring = nil
}

// await waits until the broker knows itself and its topics.
func (h *house) await() {
	h.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(h.addr), kgo.RequestRetries(0))
	if err != nil {
		h.t.Fatal(err)
	}
	defer cl.Close()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var resp *kmsg.MetadataResponse
		resp, err = kmsg.NewPtrMetadataRequest().RequestWith(ctx, cl)
		cancel()
		if err == nil && resp.ControllerID == 1 && len(resp.Brokers) == 1 {
			return
		}
		if h.kring != nil {
			select {
			case gone := <-h.ended:
				h.ended <- gone
				h.t.Fatalf("kring ended at its start: %v\n%s", gone, h.said)
			default:
			}
		}
	}
	h.t.Fatalf("no broker at %s: %v", h.addr, err)
}

// handed is what `kring store` says it did.
type handed struct {
	ClusterID       string
	ControllerEpoch int
	Topics          int
	Created         []string
	Changed         []string
	Deleted         []string
	LeftAlone       []string
	Replaced        bool
}

// run is `kring store` and how it ended.
func store(t *testing.T, args ...string) (said string, status int) {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"store"}, args...)...)
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func storeDone(t *testing.T, args ...string) (s handed) {
	t.Helper()
	out, status := store(t, append(args, "--json", "--timeout", "60s", "--wait", patience.String())...)
	if err := json.Unmarshal([]byte(out), &s); err != nil || status != 0 {
		t.Fatalf("kring store %v: status %d, %v:\n%s", args, status, err, out)
	}
	return s
}
