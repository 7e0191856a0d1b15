package swap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
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

// startZooKeeper with short ticks, so that the session of a killed broker ends soon.
func startZooKeeper(t *testing.T) (addr string) {
	dir, port := t.TempDir(), stage.FreePort(t)
	stage.Peers(t, stage.Small, "zk", dir, "clientPort="+port, "tickTime=1000")
	t.Cleanup(func() { stage.End(t, dir, syscall.SIGKILL, patience) })
	return "127.0.0.1:" + port
}

// settings are both brokers' alike. Segments are small, the cleaner is keen.
var settings = []string{"broker.id=1", "num.partitions=1", "offsets.topic.num.partitions=4", "transaction.state.log.num.partitions=2",
	"log.cleaner.backoff.ms=300", "log.cleaner.dedupe.buffer.size=4194304", "log.segment.delete.delay.ms=1000",
	"auto.create.topics.enable=false", "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000"}

func newHouse(t *testing.T) *house {
	h := &house{t: t, dir: t.TempDir(), zk: startZooKeeper(t) + "/one/cluster"}
	port := stage.FreePort(t)
	h.addr = "127.0.0.1:" + port
	h.properties = h.dir + "/kafka/server.properties"
	h.settings = append([]string{"port=" + port, "zookeeper.connect=" + h.zk, "zookeeper.session.timeout.ms=6000"}, settings...)
	t.Cleanup(func() {
		if stage.Runs(h.dir + "/kafka") {
			stage.End(t, h.dir+"/kafka", syscall.SIGKILL, patience)
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
	stage.Peers(h.t, stage.Small, append([]string{"kafka", h.dir + "/kafka"}, h.settings...)...)
	h.await()
}

func (h *house) endKafka(sig syscall.Signal) {
	h.t.Helper()
	stage.End(h.t, h.dir+"/kafka", sig, patience)
}

// startKring starts it on Kafka's own server.properties.
func (h *house) startKring(loops int) {
	h.t.Helper()
	defer h.timed("the start of kring")()
	h.said = new(bytes.Buffer)
	h.kring = exec.Command(stage.Kring(h.t), "broker", h.properties, "--override", "zookeeper.connect=", "--override", fmt.Sprint("kring.loops=", loops))
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
	Lost            []string `json:"topicsLost"`
	Kept            string
}

// run is `kring store` and how it ended.
func store(t *testing.T, args ...string) (said string, status int) {
	t.Helper()
	cmd := exec.Command(stage.Kring(t), append([]string{"store"}, args...)...)
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
