package suites

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"kring/conformance/stage"
)

// broker is a fresh broker for one suite.
type broker struct {
	addr string   // as it is advertised
	host string   // where it listens
	env  []string // what the suite must know beside its own environment
}

// start starts kring, or Kafka where PEER says so, where the suite looks for it or at a free port.
func (s *suite) start(t *testing.T, loops string) *broker {
	t.Helper()
	b := &broker{addr: s.addr, host: stage.FreeAddr(t)}
	switch {
	case s.proxied:
		b.addr = stage.FreeAddr(t)
	case s.addr == "":
		b.addr = b.host
	default:
		_, port, _ := net.SplitHostPort(s.addr)
		b.host = "127.0.0.1:" + port
		l, err := net.Listen("tcp", b.host)
		if err != nil {
			t.Fatalf("this suite knows no other address than %s: %v", s.addr, err)
		}
		l.Close()
	}
	config := slices.Concat([]string{"listeners=PLAINTEXT://" + b.host, "advertised.listeners=PLAINTEXT://" + b.addr}, alike, s.config)
	if os.Getenv("PEER") == "kafka" {
		b.startKafka(t, config)
	} else {
		b.startKring(t, loops, config)
	}
	return b
}

func (b *broker) startKring(t *testing.T, loops string, config []string) {
	dir := t.TempDir()
	args := []string{"broker", "--override", "log.dirs=" + dir, "--override", "kring.loops=" + loops}
	for _, c := range config {
		args = append(args, "--override", c)
	}
	cmd := exec.Command(stage.Kring(t), args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("kring ended with %v", err)
			}
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			t.Error("kring did not end within 30 s of SIGTERM")
		}
		if t.Failed() {
			t.Logf("kring said:\n%s", tail(said.String()))
		}
	})
	for until := time.Now().Add(30 * time.Second); ; {
		c, err := net.Dial("tcp", b.host)
		if err == nil {
			c.Close()
			return
		}
		select {
		case err := <-done:
			done <- err
			t.Fatalf("kring ended at start: %v\n%s", err, said.String())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(until) {
			t.Fatalf("kring does not answer on %s: %v\n%s", b.host, err, said.String())
		}
	}
}

// startKafka starts a plain Kafka 3.9 with a ZooKeeper of its own.
func (b *broker) startKafka(t *testing.T, config []string) {
	dir := t.TempDir()
	_, port, _ := net.SplitHostPort(b.host)
	zkPort := stage.FreePort(t)
	stage.Peers(t, nil, "zk", dir+"/zk", "clientPort="+zkPort)
	t.Cleanup(func() { stage.Peers(t, nil, "stop", dir+"/zk", "KILL") })
	stage.Peers(t, nil, append([]string{"kafka", dir + "/kafka", "port=" + port, "zookeeper.connect=127.0.0.1:" + zkPort}, config...)...)
	t.Cleanup(func() { stage.Peers(t, nil, "stop", dir+"/kafka", "KILL") })
}
