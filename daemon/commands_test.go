package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestEveryCommandExplainsItself(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s has no short description", c.CommandPath())
		}
		if c.Runnable() && !strings.Contains(c.Example, "kring") {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(command())
}

func TestReadmeListsTheExitStatuses(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range exitStatuses {
		if !strings.Contains(string(readme), fmt.Sprintf("| %d |", s.status)) {
			t.Errorf("README.md does not list exit status %d", s.status)
		}
	}
	if n := strings.Count(string(readme), "\n| "); n == 0 {
		t.Error("README.md has no table")
	}
}

func TestStartErrorsHaveTheirStatus(t *testing.T) {
	locked := &fs.PathError{Op: "lock", Path: "/d/.lock", Err: syscall.EAGAIN}
	for _, row := range []struct {
		err  error
		want int
	}{
		{fmt.Errorf("listen on :1: %w", syscall.EADDRINUSE), exitAddress},
		{fmt.Errorf("listen on :1: %w", syscall.EACCES), exitAddress},
		{fmt.Errorf("held: %w", locked), exitLocked},
		{&fs.PathError{Op: "mkdir", Path: "/d", Err: syscall.EACCES}, exitData},
		{errors.New("/d/x is not a partition"), exitData},
	} {
		if got := startStatus(row.err); got != row.want {
			t.Errorf("%v: %d, want %d", row.err, got, row.want)
		}
	}
	if statusOf(errors.New("x")) != exitFailed || statusOf(nil) != 0 || statusOf(wrong("x")) != exitArguments {
		t.Error("statusOf")
	}
	if got := oneLine(errors.New("a\nb\r\nc")); got != "a; b; c" {
		t.Errorf("%q", got)
	}
}

func TestOffsetsAreRead(t *testing.T) {
	for _, row := range []struct {
		text       string
		start, end int64
		want       int64
	}{
		{"beginning", 5, 9, 5}, {"end", 5, 9, 9}, {"7", 5, 9, 7}, {"2", 5, 9, 5}, {"70", 5, 9, 9}, {"-1", 5, 9, 8}, {"-100", 5, 9, 5}, {"0", 0, 9, 0},
	} {
		o, err := parseOffset(row.text)
		if err != nil || o.time >= 0 || o.from(row.start, row.end) != row.want {
			t.Errorf("%s in %d to %d: %d, want %d (%v)", row.text, row.start, row.end, o.from(row.start, row.end), row.want, err)
		}
	}
	for text, want := range map[string]int64{"@0": 0, "@1700000000000": 1700000000000, "@2026-01-01T00:00:00Z": 1767225600000} {
		if o, err := parseOffset(text); err != nil || o.time != want {
			t.Errorf("%s: %d, want %d (%v)", text, o.time, want, err)
		}
	}
	for _, text := range []string{"", "last", "@", "@yesterday", "@-5", "1.5", "--1"} {
		if _, err := parseOffset(text); statusOf(err) != exitArguments {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestInputIsCutIntoRecords(t *testing.T) {
	p := &producing{}
	for _, row := range []struct {
		input, delimiter, separator string
		want                        []string
	}{
		{"a\nb\n", "\n", "", []string{"nil=a", "nil=b"}},
		{"a\n\nb", "\n", "", []string{"nil=a", "nil=", "nil=b"}},
		{"k:v:w\nplain\n:x\n", "\n", ":", []string{"k=v:w", "nil=plain", "=x"}},
		{"one\r\ntwo", "\r\n", "", []string{"nil=one", "nil=two"}},
		{"aENDbEND", "END", "", []string{"nil=a", "nil=b"}},
		{"", "\n", "", nil},
	} {
		var got []string
		more, err := p.lines(strings.NewReader(row.input), row.delimiter, row.separator, func(key, value []byte) bool {
			k := "nil"
			if key != nil {
				k = string(key)
			}
			if value == nil {
				t.Errorf("%q: a value is nil, which would be a tombstone", row.input)
			}
			got = append(got, k+"="+string(value))
			return true
		})
		if err != nil || !more || !slices.Equal(got, row.want) {
			t.Errorf("%q: %q, want %q (%v)", row.input, got, row.want, err)
		}
	}
}

func TestEscapesOnTheCommandLine(t *testing.T) {
	for text, want := range map[string]string{`\n`: "\n", `\t`: "\t", `\0`: "\x00", `\x1f`: "\x1f", `a"b\\`: `a"b\`, "plain": "plain"} {
		if got, err := unquote(text); err != nil || got != want {
			t.Errorf("%s: %q, want %q (%v)", text, got, want, err)
		}
	}
	if _, err := unquote(`\q`); err == nil {
		t.Error(`\q passed`)
	}
}

func TestRecordsAsJSON(t *testing.T) {
	r := &kgo.Record{Topic: "t", Partition: 1, Offset: 2, Timestamp: time.UnixMilli(3), Key: []byte("k"), Value: []byte{0xff},
		Headers: []kgo.RecordHeader{{Key: "h", Value: nil}}}
	line, err := json.Marshal(jsonRecord(r))
	const want = `{"headers":[{"key":"h","value":null}],"key":"k","leaderEpoch":0,"offset":2,"partition":1,"timestamp":3,` +
		`"timestampType":"CreateTime","topic":"t","valueBase64":"/w=="}`
	if err != nil || string(line) != want {
		t.Errorf("%s (%v)", line, err)
	}
}

func TestCollectorIsPacedAfterEachCollection(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	tuneMemory()
	live := make([]byte, 200<<20)
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for range 100 { // the finalizer runs at its own time after a collection
		runtime.GC()
		if metrics.Read(percent); percent[0].Value.Uint64() == heapFraction {
			break
		}
	}
	if got := percent[0].Value.Uint64(); got != heapFraction {
		t.Errorf("%d %% with %d bytes living, want %d", got, len(live), heapFraction)
	}
	runtime.KeepAlive(live)
}

func TestCollectorKeepsRoomNotAFactor(t *testing.T) {
	for _, row := range []struct {
		live uint64
		want int
	}{{0, 600}, {1 << 20, 600}, {4 << 20, 600}, {24 << 20, 100}, {200 << 20, 50}} {
		if got := gcPercent(row.live); got != row.want {
			t.Errorf("%d live: %d %%, want %d", row.live, got, row.want)
		}
	}
	for processors, want := range map[int]int{1: 1, 2: 1, 4: 2, 64: 8} {
		if got := loopsFor(processors); got != want {
			t.Errorf("%d processors: %d loops, want %d", processors, got, want)
		}
	}
}
