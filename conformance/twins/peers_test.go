package twins

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

const patience = 60 * time.Second

// settings are both brokers' alike. What would work in its own time is told not to, and files that wait to be removed stay.
var settings = []string{"broker.id=1", "auto.create.topics.enable=false", "log.retention.ms=-1", "log.segment.delete.delay.ms=3600000",
	"log.retention.check.interval.ms=300", "log.initial.task.delay.ms=300",
	"transaction.partition.verification.enable=false", "producer.id.expiration.ms=2147483647",
	"log.cleaner.backoff.ms=200", "offsets.topic.num.partitions=1", "offsets.topic.replication.factor=1",
	"log.flush.offset.checkpoint.interval.ms=3600000", "log.flush.start.offset.checkpoint.interval.ms=3600000",
	"replica.high.watermark.checkpoint.interval.ms=3600000"}

// twin is one of the two brokers.
type twin struct {
	name string
	dir  string // its log dir
	addr string
	conn net.Conn
	// topics is how many there should be.
	topics int

	run  func(t *testing.T)
	halt func(t *testing.T, sig syscall.Signal)
}

// twins starts a Kafka and a kring on empty directories.
func startTwins(t *testing.T, loops int) []*twin {
	t.Helper()
	both := []*twin{kafkaTwin(t), kringTwin(t, loops)}
	for _, w := range both {
		w.start(t)
	}
	return both
}

func kafkaTwin(t *testing.T) *twin {
	home, port, zk := t.TempDir(), stage.FreePort(t), stage.FreePort(t)
	stage.Peers(t, nil, "zk", home+"/zk", "clientPort="+zk, "tickTime=500")
	t.Cleanup(func() { stage.End(t, home+"/zk", syscall.SIGKILL, patience) })
	args := append([]string{"kafka", home + "/kafka", "port=" + port, "zookeeper.connect=127.0.0.1:" + zk, "log.dirs=" + home + "/data",
		"zookeeper.session.timeout.ms=6000"}, settings...)
	w := &twin{name: "Kafka", dir: home + "/data", addr: "127.0.0.1:" + port}
	w.run = func(t *testing.T) {
		// A killed broker is refused until its session has ended.
		for until := time.Now().Add(patience); ; {
			out, err := stage.Command(t, nil, args...).CombinedOutput()
			if err == nil {
				break
			}
			if text, _ := os.ReadFile(home + "/kafka/log"); !strings.Contains(string(text), "NodeExists") || time.Now().After(until) {
				t.Fatalf("Kafka does not start: %v\n%s", err, out)
			}
			_ = os.Remove(home + "/kafka/pid")
		}
	}
	w.halt = func(t *testing.T, sig syscall.Signal) {
		if stage.Runs(home + "/kafka") {
			stage.End(t, home+"/kafka", sig, patience)
		}
	}
	t.Cleanup(func() { w.halt(t, syscall.SIGKILL) })
	return w
}

func kringTwin(t *testing.T, loops int) *twin {
	home, port := t.TempDir(), stage.FreePort(t)
	args := []string{"broker"}
	for _, o := range append([]string{"log.dirs=" + home + "/data", "listeners=PLAINTEXT://127.0.0.1:" + port,
		fmt.Sprint("kring.loops=", loops)}, settings...) {
		args = append(args, "--override", o)
	}
	w := &twin{name: "kring", dir: home + "/data", addr: "127.0.0.1:" + port}
	said, cmd := new(bytes.Buffer), (*exec.Cmd)(nil)
	w.run = func(t *testing.T) {
		cmd = exec.Command(stage.Kring(t), args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = home, said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	w.halt = func(t *testing.T, sig syscall.Signal) {
		if cmd == nil {
			return
		}
		_ = cmd.Process.Signal(sig)
		if err := cmd.Wait(); err != nil && sig != syscall.SIGKILL {
			t.Errorf("kring ended with %v", err)
		}
		cmd = nil
		deaf(t, w.addr)
	}
	t.Cleanup(func() {
		w.halt(t, syscall.SIGKILL)
		if t.Failed() {
			t.Logf("kring said:\n%s", said)
		}
	})
	return w
}

// deaf waits until nobody accepts at addr: the kernel closes a killed broker's ring, and the socket it accepts on, after its end.
func deaf(t *testing.T, addr string) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			c.Close()
		}
		if time.Now().After(until) {
			t.Errorf("%s is still listened on after the broker's end: %v", addr, err)
			return
		}
	}
}

// start runs the broker and waits until it leads what it has.
func (w *twin) start(t *testing.T) {
	t.Helper()
	w.run(t)
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", w.addr, time.Second)
		if err == nil {
			w.conn = c
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%s does not answer: %v", w.name, err)
		}
	}
	w.await(t)
}

// await waits until the broker knows all topics and leads them.
func (w *twin) await(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if w.settled(w.ask(t, metadataRequest()).(*kmsg.MetadataResponse)) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s does not lead all partitions", w.name)
		}
	}
}

// settled says whether the broker is the controller, knows all topics and leads every partition.
func (w *twin) settled(m *kmsg.MetadataResponse) bool {
	if len(m.Topics) != w.topics {
		return false
	}
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 || p.Leader != 1 {
				return false
			}
		}
	}
	return m.ControllerID == 1 && len(m.Brokers) == 1
}

// stop ends the broker in order, or kills it.
func (w *twin) stop(t *testing.T, sig syscall.Signal) {
	t.Helper()
	w.conn.Close()
	w.halt(t, sig)
}
