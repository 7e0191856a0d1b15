package conformance

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

// startMax and stopMax bound what a healthy broker needs by far.
const (
	startMax = 20 * time.Second
	stopMax  = 20 * time.Second
)

// loops are the loop counts every broker test runs with.
var loops = []int{1, 2, 4}

// everyLoops runs fn with each count of loops.
func everyLoops(t *testing.T, fn func(t *testing.T, loops int)) {
	if os.Getenv("CONFORMANCE_ADDR") != "" {
		fn(t, 0)
		return
	}
	if oracle() {
		fn(t, 1)
		return
	}
	for _, n := range loops {
		t.Run(fmt.Sprintf("loops=%d", n), func(t *testing.T) { fn(t, n) })
	}
}

// broker is a running kring, or a Kafka in its place.
type broker struct {
	t     *testing.T
	cmd   *exec.Cmd
	addr  string
	dir   string
	args  []string
	log   *journal
	done  chan error
	kafka bool
}

// start runs a broker on an empty directory and a free port of the loopback.
func start(t *testing.T, loops int, overrides ...string) *broker {
	t.Helper()
	if addr := os.Getenv("CONFORMANCE_ADDR"); addr != "" {
		return &broker{t: t, addr: addr}
	}
	if oracle() {
		return startKafka(t, overrides...)
	}
	b := &broker{t: t, dir: t.TempDir(), addr: stage.FreeAddr(t)}
	b.args = []string{"broker"}
	for _, o := range append([]string{"log.dirs=" + b.dir + "/data", "listeners=PLAINTEXT://" + b.addr, fmt.Sprint("kring.loops=", loops)}, overrides...) {
		b.args = append(b.args, "--override", o)
	}
	b.run()
	t.Cleanup(func() {
		b.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the broker said:\n%s", tail(b.log.String(), 4000))
		}
	})
	return b
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// run starts the process and waits until it answers.
func (b *broker) run() {
	b.t.Helper()
	if b.kafka {
		b.runKafka()
		return
	}
	b.log = new(journal)
	b.cmd = exec.Command(stage.Kring(b.t), b.args...)
	b.cmd.Dir = b.dir
	b.cmd.Stdout, b.cmd.Stderr = b.log, b.log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan error) { done <- cmd.Wait() }(b.cmd, b.done)
	until := time.After(startMax)
	for {
		c, err := net.DialTimeout("tcp", b.addr, time.Second)
		if err == nil {
			_, err = roundTrip(c, encode(kmsg.NewPtrApiVersionsRequest()))
			c.Close()
		}
		if err == nil {
			return
		}
		select {
		case err := <-b.done:
			b.done <- err
			b.t.Fatalf("the broker ended at start: %v\n%s", err, b.log)
		case <-until:
			b.t.Fatalf("the broker does not answer on %s: %v\n%s", b.addr, err, b.log)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// stop sends sig and waits for the end.
func (b *broker) stop(sig syscall.Signal) {
	b.t.Helper()
	if b.kafka {
		b.stopKafka(sig)
		return
	}
	b.cmd.Process.Signal(sig)
	select {
	case err := <-b.done:
		b.done <- err
	case <-time.After(stopMax):
		b.cmd.Process.Kill()
		b.t.Errorf("the broker did not end within %v of %v\n%s", stopMax, sig, tail(b.log.String(), 4000))
	}
}

// client is a franz-go client of the broker.
func (b *broker) client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.addr)}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	return cl
}

// create makes a topic with configs "key=value".
func (b *broker) create(topic string, partitions int32, configs ...string) {
	b.t.Helper()
	m := map[string]*string{}
	for _, c := range configs {
		k, v, _ := strings.Cut(c, "=")
		m[k] = &v
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := kadm.NewClient(b.client()).CreateTopic(ctx, partitions, 1, m, topic)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		b.t.Fatalf("create topic %s: %v", topic, err)
	}
}

// dial is a raw connection.
func (b *broker) dial() net.Conn {
	b.t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	return c
}

// encode makes a frame of the message, correlation id 1.
func encode(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("conformance")).AppendRequest(nil, req, 1)
}

// frame puts the length before a request.
func frame(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }

// roundTrip sends a frame and returns the answer without its length; io.EOF if the broker closed.
func roundTrip(c net.Conn, frame []byte) ([]byte, error) {
	c.SetDeadline(time.Now().Add(startMax))
	if _, err := c.Write(frame); err != nil {
		return nil, err
	}
	return answer(c)
}

func answer(c net.Conn) ([]byte, error) {
	var h [4]byte
	if _, err := io.ReadFull(c, h[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(h[:]))
	_, err := io.ReadFull(c, b)
	return b, err
}

func removeTopic(t *testing.T, b *broker, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := kadm.NewClient(b.client()).DeleteTopic(ctx, topic)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		t.Fatalf("delete topic %s: %v", topic, err)
	}
}
