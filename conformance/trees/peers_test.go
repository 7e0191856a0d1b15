package trees

import (
	"bytes"
	"context"
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

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// side is one of the two brokers under comparison.
type side struct {
	client *kgo.Client
	tree   func(testing.TB) tree
	// restart stops the broker in order, or kills it, and starts it again.
	restart func(t *testing.T, kill bool)
}

const patience = 60 * time.Second

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

func peers(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("../peers/peers", args...).CombinedOutput(); err != nil {
		t.Fatalf("peers %v: %v\n%s", args, err, out)
	}
}

// end kills what peers runs in dir. A dead process that nobody has waited for yet counts as gone.
func end(t testing.TB, dir string) {
	t.Helper()
	text, err := os.ReadFile(dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	_ = os.Remove(dir + "/pid") // or peers would take the dead process for a running one
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") || strings.Contains(string(stat), ") X ") {
			return
		}
	}
	t.Errorf("process %d does not end", pid)
}

// settings are both brokers' alike.
var settings = []string{"broker.id=1", "broker.rack=RACK1", "num.partitions=2",
	"default.replication.factor=1", "auto.create.topics.enable=true"}

func startKafka(t *testing.T) *side {
	dir, zkPort, port := t.TempDir(), freePort(t), freePort(t)
	peers(t, "zk", dir+"/zk", "clientPort="+zkPort)
	t.Cleanup(func() { end(t, dir+"/zk") })
	args := append([]string{"kafka", dir + "/kafka", "port=" + port, "zookeeper.connect=127.0.0.1:" + zkPort,
		"zookeeper.session.timeout.ms=6000"}, settings...)
	peers(t, args...)
	t.Cleanup(func() { end(t, dir+"/kafka") })
	c, events, err := zk.Connect([]string{"127.0.0.1:" + zkPort}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	s := &side{client: connect(t, port), tree: func(t testing.TB) tree { return zooKeeperTree(t, c) }}
	s.restart = func(t *testing.T, kill bool) {
		if kill {
			end(t, dir+"/kafka")
			expire(t, c)
		} else {
			peers(t, "stop", dir+"/kafka")
		}
		peers(t, args...)
		await(t, s.client)
	}
	await(t, s.client)
	return s
}

// expire waits until the session of a killed broker has ended: before that it cannot register again.
func expire(t *testing.T, c *zk.Conn) {
	t.Helper()
	late := time.After(patience)
	for {
		there, _, gone, err := c.ExistsW("/brokers/ids/1")
		if err != nil {
			t.Fatal(err)
		}
		if !there {
			return
		}
		select {
		case <-gone:
		case <-late:
			t.Fatal("the session of the killed broker does not end")
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func startKring(t *testing.T) *side {
	binary := os.Getenv("KRING")
	if binary == "" {
		binary = "../../bin/kring"
	}
	binary, err := filepath.Abs(binary)
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		t.Fatalf("the broker's binary: %v (run `make build` first)", err)
	}
	dir, port := t.TempDir(), freePort(t)
	args := []string{"broker"}
	for _, o := range append([]string{"log.dirs=" + dir, "listeners=PLAINTEXT://127.0.0.1:" + port}, settings...) {
		args = append(args, "--override", o)
	}
	var said bytes.Buffer
	var cmd *exec.Cmd
	run := func() {
		cmd = exec.Command(binary, args...)
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	stop := func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("kring ended with %v", err)
		}
	}
	run()
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("kring said:\n%s", said.String())
		}
	})
	s := &side{client: connect(t, port), tree: func(t testing.TB) tree { return kringTree(t, dir) }}
	s.restart = func(t *testing.T, kill bool) {
		if kill {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		} else {
			stop()
		}
		run()
		await(t, s.client)
	}
	await(t, s.client)
	return s
}

func connect(t *testing.T, port string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:"+port), kgo.RequestRetries(0), kgo.RetryTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// await waits until the broker is the controller of its cluster.
func await(t *testing.T, c *kgo.Client) {
	t.Helper()
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{}
		var resp *kmsg.MetadataResponse
		resp, err = req.RequestWith(ctx, c)
		cancel()
		if err == nil && resp.ControllerID == 1 {
			return
		}
	}
	t.Fatalf("no controller: %v", err)
}
