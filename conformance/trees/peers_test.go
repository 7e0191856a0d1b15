package trees

import (
	"bytes"
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

// side is one of the two brokers under comparison.
type side struct {
	client *kgo.Client
	tree   func(testing.TB) tree
	// restart stops the broker in order, or kills it, and starts it again.
	restart func(t *testing.T, kill bool)
}

const patience = 60 * time.Second

// settings are both brokers' alike.
var settings = []string{"broker.id=1", "broker.rack=RACK1", "num.partitions=2",
	"default.replication.factor=1", "auto.create.topics.enable=true"}

func startKafka(t *testing.T) *side {
	dir, zkPort, port := t.TempDir(), stage.FreePort(t), stage.FreePort(t)
	stage.Peers(t, nil, "zk", dir+"/zk", "clientPort="+zkPort)
	t.Cleanup(func() { stage.End(t, dir+"/zk", syscall.SIGKILL, patience) })
	args := append([]string{"kafka", dir + "/kafka", "port=" + port, "zookeeper.connect=127.0.0.1:" + zkPort,
		"zookeeper.session.timeout.ms=6000"}, settings...)
	stage.Peers(t, nil, args...)
	t.Cleanup(func() { stage.End(t, dir+"/kafka", syscall.SIGKILL, patience) })
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
			stage.End(t, dir+"/kafka", syscall.SIGKILL, patience)
			expire(t, c)
		} else {
			stage.Peers(t, nil, "stop", dir+"/kafka")
		}
		stage.Peers(t, nil, args...)
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
	dir, port := t.TempDir(), stage.FreePort(t)
	args := []string{"broker"}
	for _, o := range append([]string{"log.dirs=" + dir, "listeners=PLAINTEXT://127.0.0.1:" + port}, settings...) {
		args = append(args, "--override", o)
	}
	var said bytes.Buffer
	var cmd *exec.Cmd
	run := func() {
		cmd = exec.Command(stage.Kring(t), args...)
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
