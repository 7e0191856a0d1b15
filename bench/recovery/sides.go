package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kring/bench"
)

// result is one recovery.
type result struct{ seconds, cpu float64 }

// peers starts real Kafka; it stands in the project.
const peers = "conformance/peers/peers"

// process is a running kring.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

func (p process) stop(sig syscall.Signal) (cpu float64) {
	p.cmd.Process.Signal(sig)
	<-p.gone
	return (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds()
}

// startKring starts it and waits until it says that it serves; it says how long that took.
func (s *settings) startKring(ctx context.Context) (process, time.Duration, error) {
	args := []string{"broker", "--override", "log.dirs=" + s.dir + "/data", "--override", "broker.id=1",
		"--override", "listeners=PLAINTEXT://127.0.0.1:" + strconv.Itoa(s.port),
		"--override", "num.recovery.threads.per.data.dir=" + strconv.Itoa(s.threads)}
	log, err := os.Create(s.dir + "/kring.log")
	if err != nil {
		return process{}, 0, err
	}
	defer log.Close()
	p := process{exec.Command(s.kring, append(args, strings.Fields(s.kringArgs)...)...), make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return p, 0, err
	}
	go func() {
		p.cmd.Wait()
		close(p.gone)
	}()
	for ctx.Err() == nil {
		if b, err := os.ReadFile(s.dir + "/kring.log"); err == nil && bytes.Contains(b, []byte("broker serves")) {
			return p, time.Since(began), nil
		}
		select {
		case <-p.gone:
			return p, 0, fmt.Errorf("kring did not start, see %s/kring.log", s.dir)
		case <-time.After(time.Millisecond):
		}
	}
	p.stop(syscall.SIGKILL)
	return p, 0, ctx.Err()
}

func (s *settings) options() bench.Options {
	return bench.Options{Addr: "127.0.0.1:" + strconv.Itoa(s.port), Topic: "recovered", Partitions: s.partitions,
		Conns: s.partitions, Size: 1024, Records: s.batch, Acks: 1, Duration: time.Hour}
}

// fill has kring write the data, and kills it.
func (s *settings) fill(ctx context.Context, d dir) error {
	p, _, err := s.startKring(ctx)
	if err != nil {
		return err
	}
	defer p.stop(syscall.SIGKILL)
	filling, enough := context.WithCancel(ctx)
	defer enough()
	o := s.options()
	if s.gb == 0 {
		o.Duration, o.Conns = time.Second, min(o.Conns, 100)
		_, err := bench.Produce(filling, o)
		return err
	}
	go func() {
		for filling.Err() == nil && float64(d.size()) < s.gb*1e9 {
			time.Sleep(100 * time.Millisecond)
		}
		enough()
	}()
	if _, err := bench.Produce(filling, o); err != nil && filling.Err() == nil {
		return err
	}
	return ctx.Err()
}

// first waits for the first acknowledged record.
func (s *settings) first(ctx context.Context) error {
	o := s.options()
	o.Topic, o.Partitions, o.Conns, o.Records, o.Size = "first", 1, 1, 1, 100
	_, err := bench.First(ctx, o)
	return err
}

func (s *settings) kringRecovers(ctx context.Context) (result, error) {
	p, took, err := s.startKring(ctx)
	if err != nil {
		return result{}, err
	}
	return result{took.Seconds(), p.stop(syscall.SIGKILL)}, nil
}

// zookeeper starts one; the function stops it.
func (s *settings) zookeeper(ctx context.Context) (func(), error) {
	dir, err := filepath.Abs(s.dir + "/zk")
	if err != nil {
		return nil, err
	}
	stop := func() { exec.Command(peers, "stop", dir, "KILL").Run() }
	if err := script(ctx, "zk", dir, "clientPort="+strconv.Itoa(s.port+1)); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

var loaded = regexp.MustCompile(`Loaded (\d+) logs in (\d+)ms`)

func (s *settings) kafkaRecovers(ctx context.Context) (result, error) {
	dir, err := filepath.Abs(s.dir + "/kafka")
	if err != nil {
		return result{}, err
	}
	data, err := filepath.Abs(s.dir + "/data")
	if err != nil {
		return result{}, err
	}
	for range 100 { // a session of the last round may not have ended yet
		if c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(s.port)); err != nil {
			break
		} else {
			c.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	defer exec.Command(peers, "stop", dir, "KILL").Run()
	err = script(ctx, "kafka", dir, "port="+strconv.Itoa(s.port), "zookeeper.connect=127.0.0.1:"+strconv.Itoa(s.port+1),
		"log.dirs="+data, "zookeeper.session.timeout.ms=1000", "num.recovery.threads.per.data.dir="+strconv.Itoa(s.threads))
	log, e := os.ReadFile(dir + "/log")
	found := loaded.FindSubmatch(log)
	if err = errors.Join(err, e); err != nil || found == nil {
		return result{}, errors.Join(err, errors.New("Kafka does not say that it has loaded its logs"))
	}
	ms, err := strconv.Atoi(string(found[2]))
	if err != nil {
		return result{}, err
	}
	text, err := os.ReadFile(dir + "/pid")
	if err != nil {
		return result{}, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return result{}, err
	}
	cpu, err := bench.CPUTime(pid)
	return result{float64(ms) / 1000, cpu.Seconds()}, err
}

func script(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, peers, args...)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
