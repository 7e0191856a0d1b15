package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kring/bench"
)

// side is one broker of the comparison.
type side struct {
	name  string
	port  int
	pid   int
	child *exec.Cmd // kring
	dirs  []string  // what the peers script runs
}

// peers starts real Kafka; it stands in the project.
const peers = "conformance/peers/peers"

func (b *side) start(ctx context.Context, s settings) error {
	if b.name == "kring" {
		return b.startKring(ctx, s)
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	zk, kafka := dir+"/zk", dir+"/kafka"
	b.dirs = []string{kafka, zk}
	if err := script(ctx, "zk", zk, "clientPort="+strconv.Itoa(b.port+1)); err != nil {
		return err
	}
	return b.startKafka(ctx)
}

// data is the broker's log dir.
func (b *side) data(s settings) string {
	if b.name == "kring" {
		return s.dir + "/kring"
	}
	return s.dir + "/kafka/data"
}

func (b *side) startKafka(ctx context.Context) error {
	kafka := b.dirs[0]
	err := script(ctx, "kafka", kafka, "port="+strconv.Itoa(b.port), "zookeeper.connect=127.0.0.1:"+strconv.Itoa(b.port+1),
		"log.segment.delete.delay.ms=1000")
	if err != nil {
		return err
	}
	pid, err := os.ReadFile(kafka + "/pid")
	if err != nil {
		return err
	}
	b.pid, err = strconv.Atoi(strings.TrimSpace(string(pid)))
	return err
}

func (b *side) startKring(ctx context.Context, s settings) error {
	start := time.Now()
	if err := b.runKring(s); err != nil {
		return err
	}
	if _, err := bench.First(ctx, b.options("first")); err != nil {
		return fmt.Errorf("%w (see %s/kring.log)", err, s.dir)
	}
	fmt.Printf("kring: exec to the first acknowledged record: %.0f ms\n", float64(time.Since(start).Microseconds())/1000)
	return nil
}

func (b *side) runKring(s settings) error {
	log, err := os.OpenFile(s.dir+"/kring.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"broker", "--override", "log.dirs=" + s.dir + "/kring",
		"--override", "listeners=PLAINTEXT://127.0.0.1:" + strconv.Itoa(b.port),
		"--override", "log.segment.delete.delay.ms=1000", "--override", "group.initial.rebalance.delay.ms=0"}
	b.child = exec.Command(s.kring, append(args, strings.Fields(s.kringArgs)...)...)
	b.child.Stdout, b.child.Stderr = log, log
	if err := b.child.Start(); err != nil {
		return err
	}
	b.pid = b.child.Process.Pid
	return nil
}

// restart stops the broker and starts it again; Seconds of the report is the time from exec until it has answered for the offsets of
// every group.
func (b *side) restart(ctx context.Context, s settings, o bench.Options) (*bench.Report, error) {
	started := make(chan error, 1)
	if b.child != nil {
		b.child.Process.Signal(syscall.SIGTERM)
		b.child.Wait()
		started <- b.runKring(s)
	} else {
		if err := stopPeer(ctx, b.dirs[0]); err != nil {
			return nil, err
		}
		go func() { started <- b.startKafka(ctx) }() // it returns when Kafka says that it has started
	}
	took, err := bench.FirstOffsets(ctx, o)
	if e := <-started; err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	o.PIDs = []int{b.pid}
	r, err := bench.Memory(o)
	if err == nil {
		r.Load, r.Seconds = "replay", took.Seconds()
	}
	return r, err
}

func (b *side) stop() {
	if b.child != nil {
		b.child.Process.Signal(syscall.SIGTERM)
		b.child.Wait()
	}
	for _, d := range b.dirs {
		if err := stopPeer(context.Background(), d); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
		}
	}
}

// stopPeer stops what dir runs. A Kafka that has not stopped after a minute is killed: the next round needs its port and its memory.
func stopPeer(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir + "/pid"); errors.Is(err, os.ErrNotExist) {
		return nil // it was never started
	}
	if err := script(ctx, "stop", dir); err != nil {
		return script(ctx, "stop", dir, "KILL")
	}
	return nil
}

func (b *side) options(topic string) bench.Options {
	return bench.Options{Addr: "127.0.0.1:" + strconv.Itoa(b.port), Topic: topic, Partitions: 6, Conns: 50, Readers: 6, Size: 1024, Records: 1,
		Acks: 1, Warm: 3 * time.Second, Duration: 10 * time.Second, PIDs: []int{b.pid}}
}

func script(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, peers, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// fillCache writes a file of that part of the machine's memory and leaves it in the page cache.
func fillCache(ctx context.Context, name string, part float64) error {
	if part <= 0 {
		return nil
	}
	if part > 0.9 {
		return errors.New("-fill: at most 0.9 of the memory")
	}
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return err
	}
	size := int64(float64(info.Totalram) * float64(info.Unit) * part)
	fmt.Fprintf(os.Stderr, "filling the page cache with %.1f GB\n", float64(size)/1e9)
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	chunk := make([]byte, 8<<20)
	for n := int64(0); n < size && ctx.Err() == nil; n += int64(len(chunk)) {
		if _, err := f.Write(chunk); err != nil {
			return err
		}
	}
	return errors.Join(f.Sync(), ctx.Err())
}

// machine says where the figures were taken.
func machine() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	model := "unknown processor"
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		b, _ := io.ReadAll(f)
		f.Close()
		if _, rest, ok := strings.Cut(string(b), "model name"); ok {
			line, _, _ := strings.Cut(rest, "\n")
			model = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), ":"))
		}
	}
	return fmt.Sprintf("%d x %s, Linux %s, %s\n", runtime.NumCPU(), model, strings.TrimSpace(string(release)), runtime.Version())
}
