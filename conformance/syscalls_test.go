package conformance

import (
	"bufio"
	"encoding/json"
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

	"kring/conformance/stage"
)

// mover are the calls by which bytes may move; ours are by far the most.
var mover = map[string]bool{"io_uring_enter": true, "sendfile": true, "splice": true, "pwritev2": true}

// perRequest matches calls that a broker without a ring makes for each request.
var perRequest = regexp.MustCompile(`^(read|write|recv.*|send(to|msg|mmsg)|epoll_.*|futex|poll|ppoll|select|pselect6)$`)

// TestBytesMoveByTheRing counts the calls of a broker that takes at least 5,000 requests/s and serves six readers. What the Go
// runtime calls comes by time, not by request: some 600 calls a second for each busy loop. So that tracing, which is slow across
// processors, does not make that a large share, the broker and strace have one processor and the load another.
func TestBytesMoveByTheRing(t *testing.T) {
	for _, path := range []string{"auto", "ring", "pwrite"} {
		t.Run("write.path="+path, func(t *testing.T) {
			everyLoops(t, func(t *testing.T, loops int) {
				b := start(t, loops, "kring.write.path="+path)
				var calls map[string]int64
				var requests int64
				// Whatever else the machine does slows the tracing and so raises the runtime's share: a bad count is
				// taken again, a few times.
				for range 4 {
					calls, requests = countCalls(t, b)
					if all, ours := share(calls); float64(ours) >= least*float64(all) {
						break
					}
				}
				checkCalls(t, calls, requests, path)
			})
		})
	}
}

// countCalls returns calls by name and the requests answered while they were counted, or a little longer.
func countCalls(t *testing.T, b *broker) (map[string]int64, int64) {
	t.Helper()
	out, pid := b.dir+"/strace", strconv.Itoa(b.cmd.Process.Pid)
	run(t, "taskset", "-acp", "1", pid)
	load := exec.Command("taskset", "-c", "0", stage.Kring(t), "bench", "tail", "-b", b.addr, "--connections", "8", "--readers", "6",
		"--warm-up", "2s", "--duration", "4s", "--json")
	var report, errs strings.Builder
	load.Stdout, load.Stderr = &report, &errs
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // into the warm-up: the load is steady
	trace := exec.Command("taskset", "-c", "1", "strace", "-c", "-f", "-o", out, "-p", pid)
	if err := trace.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	trace.Process.Signal(os.Interrupt)
	trace.Wait()
	if err := load.Wait(); err != nil {
		t.Fatalf("kring bench: %v: %s", err, errs.String())
	}
	var r bench.Report
	if err := json.Unmarshal([]byte(report.String()), &r); err != nil {
		t.Fatal(err)
	}
	if r.PerSecond < 5000 {
		t.Errorf("%.0f requests/s, want at least 5,000 for the count to tell", r.PerSecond)
	}
	return readCalls(t, out), r.Requests
}

// run runs a program to its end.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// readCalls reads strace's table: % time, seconds, usecs/call, calls, [errors], syscall.
func readCalls(t *testing.T, name string) map[string]int64 {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls := map[string]int64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) < 5 {
			continue
		}
		if n, err := strconv.ParseInt(w[3], 10, 64); err == nil && w[len(w)-1] != "total" {
			calls[w[len(w)-1]] = n
		}
	}
	return calls
}

// least is the share of all calls that move bytes by the ring, sendfile or pwritev2.
const least = 0.95

func share(calls map[string]int64) (all, ours int64) {
	for name, n := range calls {
		all += n
		if mover[name] {
			ours += n
		}
	}
	return all, ours
}

func checkCalls(t *testing.T, calls map[string]int64, requests int64, path string) {
	t.Helper()
	all, ours := share(calls)
	for name, n := range calls {
		// A call per request would be one for each; the runtime's own futexes are far fewer.
		if perRequest.MatchString(name) && n > requests/10 {
			t.Errorf("%d calls of %s for %d requests", n, name, requests)
		}
	}
	if all == 0 || float64(ours) < least*float64(all) {
		t.Errorf("%d of %d calls move bytes by the ring, sendfile or pwritev2: %v", ours, all, calls)
	}
	if path == "ring" && calls["pwritev2"] != 0 {
		t.Errorf("%d calls of pwritev2 with kring.write.path=ring", calls["pwritev2"])
	}
	t.Logf("%d requests: %.1f %% of %d calls: %v", requests, 100*float64(ours)/float64(all), all, calls)
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
