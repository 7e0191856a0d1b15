package conformance

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/bench"
)

// mover are the calls by which bytes may move; ours are by far the most.
var mover = map[string]bool{"io_uring_enter": true, "sendfile": true, "splice": true, "pwritev2": true}

// perRequest matches calls that a broker without a ring makes for each request.
var perRequest = regexp.MustCompile(`^(read|write|recv.*|send(to|msg|mmsg)|epoll_.*|futex|poll|ppoll|select|pselect6)$`)

// TestBytesMoveByTheRing counts the calls of a broker that takes 5,000 requests/s and serves six readers.
func TestBytesMoveByTheRing(t *testing.T) {
	for _, path := range []string{"auto", "ring", "pwrite"} {
		t.Run("write.path="+path, func(t *testing.T) {
			everyLoops(t, func(t *testing.T, loops int) {
				b := start(t, loops, "kring.write.path="+path)
				calls, requests := countCalls(t, b)
				checkCalls(t, calls, requests, path)
			})
		})
	}
}

// countCalls returns calls by name and the requests answered meanwhile.
func countCalls(t *testing.T, b *broker) (map[string]int64, int64) {
	t.Helper()
	out := b.dir + "/strace"
	o := bench.Options{Addr: b.addr, Topic: "load", Partitions: 6, Conns: 50, Size: 1024, Records: 1, Acks: 1,
		Warm: time.Second, Duration: 3 * time.Second}
	var trace *exec.Cmd
	o.Progress = func(done float64, what string) {
		switch {
		case what == "tail" && trace == nil:
			trace = exec.Command("strace", "-c", "-f", "-o", out, "-p", strconv.Itoa(b.cmd.Process.Pid))
			if err := trace.Start(); err != nil {
				t.Errorf("strace: %v", err)
			}
		case what == "tail" && done == 1:
			trace.Process.Signal(os.Interrupt)
			trace.Wait()
		}
	}
	r, err := bench.Tail(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.PerSecond < 5000 {
		t.Errorf("%.0f requests/s under strace, want at least 5,000 for the count to tell", r.PerSecond)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls := map[string]int64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		// % time, seconds, usecs/call, calls, [errors], syscall
		w := strings.Fields(s.Text())
		if len(w) < 5 {
			continue
		}
		if n, err := strconv.ParseInt(w[3], 10, 64); err == nil && w[len(w)-1] != "total" {
			calls[w[len(w)-1]] = n
		}
	}
	return calls, r.Requests
}

func checkCalls(t *testing.T, calls map[string]int64, requests int64, path string) {
	t.Helper()
	var all, ours int64
	for name, n := range calls {
		all += n
		if mover[name] {
			ours += n
		}
		// Signals of the collector and the wake of a helper now and then are no cost of a request.
		if perRequest.MatchString(name) && n > requests/100 {
			t.Errorf("%d calls of %s for %d requests", n, name, requests)
		}
	}
	if all == 0 || float64(ours) < 0.95*float64(all) {
		t.Errorf("%d of %d calls move bytes by the ring, sendfile or pwritev2: %v", ours, all, calls)
	}
	if path == "ring" && calls["pwritev2"] != 0 {
		t.Errorf("%d calls of pwritev2 with kring.write.path=ring", calls["pwritev2"])
	}
	t.Logf("%d requests: %v", requests, calls)
}

// TestGoroutinesDoNotGrowWithConnections lets the runtime print its goroutines, with few connections and with many.
func TestGoroutinesDoNotGrowWithConnections(t *testing.T) {
	everyLoops(t, func(t *testing.T, loops int) {
		few, many := goroutines(t, loops, 1), goroutines(t, loops, 500)
		if many > few+4 {
			t.Errorf("%d goroutines with 500 connections, %d with one", many, few)
		}
	})
}

func goroutines(t *testing.T, loops, conns int) int {
	t.Helper()
	b := start(t, loops)
	b.create("g", 1)
	open := make([]net.Conn, conns)
	for i := range open {
		open[i] = b.dial()
		if _, err := roundTrip(open[i], produceFrameWithLength("g")); err != nil {
			t.Fatal(fmt.Errorf("connection %d: %w", i, err))
		}
	}
	b.stop(syscall.SIGQUIT)
	n := strings.Count(b.log.String(), "\ngoroutine ")
	if n == 0 {
		t.Fatalf("no goroutines in what the broker printed: %s", tail(b.log.String(), 1000))
	}
	return n
}

func produceFrameWithLength(topic string) []byte {
	return produceFrame(topic, "conformance", recordBatch([]byte("k"), []byte("v")))
}
