package conformance

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

// oracle tells that the tests are to run against a Kafka 3.9 of their own each, instead of kring: so a test is itself checked.
func oracle() bool { return os.Getenv("CONFORMANCE_KAFKA") != "" }

// startKafka starts a ZooKeeper and a Kafka on an empty directory and free ports, with settings of Kafka alone.
func startKafka(t *testing.T, overrides ...string) *broker {
	t.Helper()
	b := &broker{t: t, dir: t.TempDir(), addr: stage.FreeAddr(t), kafka: true}
	_, port, _ := net.SplitHostPort(b.addr)
	zk := stage.FreePort(t)
	stage.Peers(t, nil, "zk", b.dir+"/zk", "clientPort="+zk, "tickTime=1000") // a killed broker's session ends soon
	t.Cleanup(func() { kill(t, stage.Pid(t, b.dir+"/zk")) })
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
		out, err := stage.Command(b.t, nil, append([]string{"kafka", b.dir + "/kafka"}, b.args...)...).CombinedOutput()
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
	if !stage.Gone(pid, 2*stopMax) {
		b.t.Errorf("Kafka does not end")
	}
}

// pid is the broker's process.
func (b *broker) pid() int {
	b.t.Helper()
	if b.kafka {
		return stage.Pid(b.t, b.dir+"/kafka")
	}
	return b.cmd.Process.Pid
}

func kill(t *testing.T, pid int) {
	t.Helper()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if !stage.Gone(pid, stopMax) {
		t.Errorf("process %d does not end", pid)
	}
}
