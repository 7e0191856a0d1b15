package segment

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"kring/ring"
	"kring/ring/simring"
	"kring/wire/batch"
)

// rig is a simulated machine with one loop, on which tests run tasks.
type rig struct {
	tb    testing.TB
	w     *simring.World
	m     *simring.Machine
	loop  ring.Loop
	files *Files
	logs  []*Log
}

// epoch is the wall clock of a rig at its start: shortly after the golden log dirs were written.
const epoch = 1_796_011_000_000

func newRig(tb testing.TB, seed uint64) *rig {
	tb.Helper()
	r := &rig{tb: tb, w: simring.New(seed, simring.Options{Epoch: epoch})}
	r.m = r.w.Machine("disk")
	r.boot()
	return r
}

// boot starts a process (anew, after Kill or Crash).
func (r *rig) boot() {
	r.loop = r.m.Loops(1)[0]
	r.logs = nil
	r.files = NewFiles(r.loop, 8)
}

// do runs fn as a task and lets the world turn until it is done.
func (r *rig) do(what string, fn func(*ring.Task)) {
	r.tb.Helper()
	done := false
	r.m.Do(r.loop, func() {
		ring.Go(r.loop, func(t *ring.Task) {
			fn(t)
			done = true
		})
	})
	if err := r.w.RunUntil(what, time.Hour, func() bool { r.check(); return done }); err != nil {
		r.tb.Fatal(err)
	}
}

// check looks at the truths of all logs, now and then: it costs more than a step.
func (r *rig) check() {
	if r.w.Steps()%16 == 0 {
		for _, l := range r.logs {
			l.checkAll()
		}
	}
}

// on runs fn on the loop.
func (r *rig) on(fn func()) {
	r.tb.Helper()
	r.do("a call", func(*ring.Task) { fn() })
}

func (r *rig) options(dir string) Options {
	return Options{Dir: dir, Config: DefaultConfig(), Files: r.files, Log: quiet(r.tb)}
}

// open opens a log that must open.
func (r *rig) open(o Options) *Log {
	r.tb.Helper()
	var l *Log
	r.do("open", func(t *ring.Task) {
		var err error
		if l, err = Open(t, o); err != nil {
			r.tb.Fatalf("open %s: %v", o.Dir, err)
		}
	})
	r.logs = append(r.logs, l)
	return l
}

func (r *rig) close(l *Log) {
	r.tb.Helper()
	r.do("close", func(t *ring.Task) {
		if err := l.Close(t); err != nil {
			r.tb.Fatalf("close: %v", err)
		}
	})
}

// append appends one batch and waits for it.
func (r *rig) append(l *Log, data []byte) *Append {
	r.tb.Helper()
	return r.appendAs(l, &Append{Data: data})
}

func (r *rig) appendAs(l *Log, a *Append) *Append {
	r.tb.Helper()
	done := false
	a.Done = func(*Append) { done = true }
	r.on(func() { l.Append(a); done = done || a.Err != nil })
	if err := r.w.RunUntil("append", time.Hour, func() bool { return done }); err != nil {
		r.tb.Fatal(err)
	}
	return a
}

// read reads what Read finds from an offset on, below upTo.
func (r *rig) read(l *Log, from, upTo Offset, maxBytes int, firstWhole bool) ([]byte, error) {
	r.tb.Helper()
	var got []byte
	var x Range
	done := false
	x.Done = func(*Range) { done = true }
	r.on(func() { done = l.Read(from, upTo, maxBytes, firstWhole, &x) || done })
	if err := r.w.RunUntil("read", time.Hour, func() bool { return done }); err != nil {
		r.tb.Fatal(err)
	}
	if x.Err != nil {
		return nil, x.Err
	}
	if x.Len > 0 {
		r.do("read the range", func(t *ring.Task) {
			got = make([]byte, x.Len)
			n, err := t.Read(x.File, got, x.From)
			if err != nil || n != len(got) {
				r.tb.Fatalf("range of %d bytes at %d: %d, %v", x.Len, x.From, n, err)
			}
		})
	}
	r.on(x.Unpin)
	return got, nil
}

// readAll reads a log from its start as a consumer does, and gives the batches.
func (r *rig) readAll(l *Log, maxBytes int) [][]byte {
	r.tb.Helper()
	var all [][]byte
	for at := l.Start(); at < l.Written(); {
		b, err := r.read(l, at, l.Written(), maxBytes, true)
		if err != nil {
			r.tb.Fatalf("read at %d: %v", at, err)
		}
		if len(b) == 0 {
			r.tb.Fatalf("read at %d of %d: nothing", at, l.Written())
		}
		before := at
		for {
			first, rest, err := batch.Whole(b)
			if err != nil {
				break
			}
			if h := header(first); h.last() >= at {
				all = append(all, bytes.Clone(first))
				at = h.last() + 1
			}
			b = rest
		}
		if at == before {
			break // a gap up to the end
		}
	}
	return all
}

func quiet(tb testing.TB) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(testWriter{tb}, nil))
	}
	return nil
}

type testWriter struct{ tb testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.tb.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// put unpacks a golden archive to the machine's root; dirs are "/logdir-clean" and "/logdir-killed".
func (r *rig) put(archive string) {
	r.tb.Helper()
	for name, content := range unpack(r.tb, archive) {
		r.m.WriteFile("/"+name, content)
	}
}

var archives = map[string]map[string][]byte{}

func unpack(tb testing.TB, archive string) map[string][]byte {
	tb.Helper()
	if a := archives[archive]; a != nil {
		return a
	}
	b, err := os.ReadFile("testdata/" + archive)
	if err != nil {
		tb.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string][]byte{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if files[h.Name], err = io.ReadAll(tr); err != nil {
				tb.Fatal(err)
			}
		}
	}
	archives[archive] = files
	return files
}

// expected is testdata/expect.json.
type expected struct {
	Partitions map[string]struct {
		Summary struct {
			TopicID        string
			LogStartOffset Offset
			LogEndOffset   Offset
			LastStable     Offset `json:"lastStableOffset"`
			HighWatermark  Offset
			MaxTimestamp   int64
			MaxTimestampAt Offset `json:"maxTimestampOffset"`
			LeaderEpochs   [][2]int64
			Open           []struct{ ProducerID, FirstOffset int64 } `json:"openTransactions"`
		}
		Files []struct {
			File      string
			Size      int64
			Entries   json.RawMessage
			Producers []struct {
				ProducerID, LastOffset, Timestamp, CurrentTxnFirstOffset int64
				Epoch, LastSequence, OffsetDelta, CoordinatorEpoch       int64
			}
			Content string
		}
		Batches []struct {
			Segment, BaseOffset, LastOffset Offset
			Position, Size                  int64
			CrcOk                           bool
			MaxTimestamp                    int64
			LeaderEpoch                     int32
		}
	}
	AfterRecovery map[string]struct{ LogStartOffset, HighWatermark, LastStableOffset Offset }
}

var expectedOnce map[string]expected

func expectations(tb testing.TB) map[string]expected {
	tb.Helper()
	if expectedOnce != nil {
		return expectedOnce
	}
	b, err := os.ReadFile("testdata/expect.json")
	if err != nil {
		tb.Fatal(err)
	}
	var e map[string]expected
	if err := json.Unmarshal(b, &e); err != nil {
		tb.Fatal(err)
	}
	expectedOnce = e
	return e
}

// records makes a batch of n records without a producer.
func records(n int, ms int64, value string) []byte {
	b := batch.NewBuilder(batch.None)
	for i := range n {
		b.Add(ms+int64(i), []byte("k"), []byte(value))
	}
	return b.AppendTo(nil)
}
