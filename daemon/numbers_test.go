package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/daemon/broker"
	"kring/ring"
)

// withNumbers starts a broker that serves its numbers.
func withNumbers(t *testing.T, settings ...string) (b *running, address string) {
	t.Helper()
	address = freeAddr(t)
	return start(t, t.TempDir()+"/data", append(settings, "kring.metrics.address="+address)...), address
}

// read fetches and parses the numbers; whatever is wrong with the format fails the test.
func read(t *testing.T, address string) *numbersRead {
	t.Helper()
	n, err := fetchNumbers(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// work gives a broker something of everything to count.
func work(t *testing.T, b *running) {
	t.Helper()
	b.kring("", "topics", "create", "words", "-p", "3").ok(t)
	b.kring(strings.Repeat("word\n", 100), "produce", "words", "-p", "0").ok(t)
	b.kring(strings.Repeat("more\n", 50), "produce", "words", "-p", "1").ok(t)
	b.kring("", "consume", "words", "--from-beginning", "--exit").ok(t)
	b.kring("", "consume", "words", "--group", "readers", "--from-beginning", "-n", "150").ok(t)
	b.kring(strings.Repeat("late\n", 50), "produce", "words", "-p", "0").ok(t)
	b.kring("", "topics", "create", "words")
}

func TestNumbersTellWhatWasDone(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		t.Run(fmt.Sprint("loops=", loops), func(t *testing.T) {
			b, address := withNumbers(t, fmt.Sprint("kring.loops=", loops), "group.initial.rebalance.delay.ms=0")
			work(t, b)
			n := read(t, address)
			for _, want := range []struct {
				name   string
				labels []string
				value  float64
			}{
				{"messages_in_total", nil, 200},
				{"topic_messages_in_total", []string{"topic", "words"}, 200},
				{"partition_log_end_offset", []string{"topic", "words", "partition", "0"}, 150},
				{"partition_high_watermark", []string{"topic", "words", "partition", "1"}, 50},
				{"partition_log_start_offset", []string{"topic", "words", "partition", "0"}, 0},
				{"partition_log_segments", []string{"topic", "words"}, 3},
				{"partition_leader", []string{"topic", "words"}, 3},
				{"requests_total", []string{"api", "Produce"}, 3},
				{"request_errors_total", []string{"api", "CreateTopics", "error", "TOPIC_ALREADY_EXISTS"}, 1},
				{"group_offset", []string{"group", "readers", "topic", "words"}, 150},
				{"group_lag", []string{"group", "readers", "topic", "words"}, 50},
				{"groups", []string{"state", "Empty"}, 1},
				{"groups", nil, 1},
				{"loop_turning", nil, float64(loops)},
				{"broker_state", []string{"state", "serving"}, 1},
				{"partitions_left_out", nil, 0},
				{"offline_partitions", nil, 0},
				{"partitions_without_room", nil, 0},
				{"log_dirs_without_room", nil, 0},
				{"log_lines_total", []string{"level", "error"}, 0},
			} {
				if got := n.sum(want.name, want.labels...); got != want.value || n.samples(want.name) == nil {
					t.Errorf("kring_%s%s is %v, want %v", want.name, labelled(want.labels), got, want.value)
				}
			}
			if in, size := n.sum("topic_bytes_in_total", "topic", "words"), n.sum("partition_log_size_bytes", "topic", "words"); in != size || in == 0 {
				t.Errorf("%v bytes came in and the logs have %v", in, size)
			}
			if out, in := n.sum("topic_bytes_out_total"), n.sum("topic_bytes_in_total"); out < in {
				t.Errorf("%v bytes went out, but %v came in and most went out twice", out, in)
			}
			if n.sum("response_bytes_total", "api", "Fetch") < n.sum("bytes_out_total") {
				t.Error("answers are smaller than the records in them")
			}
			honest(t, n, read(t, address))
		})
	}
}

// honest holds our families against what their names and types promise: words, a suffix for counters alone, and no counter that
// goes back.
func honest(t *testing.T, before, after *numbersRead) {
	t.Helper()
	ours := 0
	for name, f := range after.families {
		if !strings.HasPrefix(name, "kring_") {
			continue
		}
		ours++
		if f.help == "" || !strings.HasSuffix(f.help, ".") {
			t.Errorf("%s: HELP %q", name, f.help)
		}
		if strings.HasSuffix(name, "_total") != (f.kind == "counter") {
			t.Errorf("%s is a %s", name, f.kind)
		}
		if f.kind == "histogram" {
			for _, h := range f.histograms() {
				if !h.counted || h.count == 0 {
					t.Errorf("%s %s is empty", name, h.labels)
				}
			}
		}
		if f.kind != "counter" || before.families[name] == nil {
			continue
		}
		for _, s := range before.families[name].samples {
			for _, now := range f.samples {
				if slices.Equal(s.labels, now.labels) && now.value < s.value {
					t.Errorf("%s%s went back from %v to %v", name, labelled(s.labels), s.value, now.value)
				}
			}
		}
	}
	if ours < 60 || after.families["go_goroutines"] == nil || after.families["process_resident_memory_bytes"] == nil {
		t.Errorf("%d families of ours, or those of Go and the process are missing", ours)
	}
}

func TestNumbersAreBounded(t *testing.T) {
	b, address := withNumbers(t, "kring.loops=2", "kring.metrics.partitions.max=2", "group.initial.rebalance.delay.ms=0")
	b.kring("", "topics", "create", "a", "b", "c", "-p", "2").ok(t)
	for _, topic := range []string{"a", "b", "c"} {
		b.kring("1\n2\n", "produce", topic).ok(t)
		b.kring("", "consume", topic, "--group", "g", "--from-beginning", "-n", "2").ok(t)
	}
	n := read(t, address)
	if got := len(n.samples("partition_log_end_offset")); got != 2 {
		t.Errorf("%d partitions have numbers of their own", got)
	}
	if got := len(n.samples("topic_messages_in_total")); got != 2 {
		t.Errorf("%d topics have numbers of their own", got)
	}
	all := n.sum("partitions")
	if all < 6 || n.sum("partitions_left_out") != all-2 || n.sum("messages_in_total") < 6 {
		t.Errorf("%v partitions, %v left out, %v messages", all, n.sum("partitions_left_out"), n.sum("messages_in_total"))
	}
	if shown := len(n.samples("group_offset")); shown > 2 || float64(shown)+n.sum("group_offsets_left_out") != n.sum("group_offsets") {
		t.Errorf("%d of %v offsets shown, %v left out", shown, n.sum("group_offsets"), n.sum("group_offsets_left_out"))
	}
}

// deaf is a loop that never runs what is posted.
type deaf struct {
	ring.Loop
	posts int
}

func (d *deaf) Post(*ring.Message) { d.posts++ }

// prompt runs it at once.
type prompt struct{ ring.Loop }

func (prompt) Post(m *ring.Message) { m.Run(m) }

func TestHealthNeedsServiceAndEveryLoop(t *testing.T) {
	stuck := &deaf{}
	n := &numbers{life: &life{}, pulse: newPulse([]ring.Loop{prompt{}, prompt{}})}
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		n.health(w, httptest.NewRequest("GET", "/health", nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	for _, row := range []struct {
		state state
		stage *broker.Stage
		pulse pulse
		code  int
		text  string
	}{
		{isStarting, nil, n.pulse, 503, "starting"},
		{isStarting, &broker.Stage{Doing: "recovering logs", Done: 2, Total: 9}, n.pulse, 503, "starting: recovering logs: 2 of 9"},
		{isServing, nil, n.pulse, 200, "serving"},
		{isServing, nil, newPulse([]ring.Loop{prompt{}, stuck}), 503, "loops that do not turn: [1]"},
		{isStopping, &broker.Stage{Doing: "closing logs"}, n.pulse, 503, "stopping: closing logs"},
	} {
		n.life.state.Store(int32(row.state))
		n.life.stage.Store(row.stage)
		n.pulse = row.pulse
		if code, text := ask(); code != row.code || text != row.text {
			t.Errorf("%d %q, want %d %q", code, text, row.code, row.text)
		}
	}
}

func TestStuckLoopIsAskedOnce(t *testing.T) {
	stuck := &deaf{}
	p := newPulse([]ring.Loop{stuck, prompt{}})
	for range 3 {
		if still := p.still(time.Millisecond); !slices.Equal(still, []int{0}) {
			t.Errorf("%v", still)
		}
	}
	if stuck.posts != 1 {
		t.Errorf("%d messages wait for a loop that does not turn", stuck.posts)
	}
}

func TestWatchersAreFew(t *testing.T) {
	b, address := withNumbers(t)
	var open []net.Conn
	for range watchersMost {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: x\r\n"); err != nil { // not yet whole
			t.Fatal(err)
		}
		open = append(open, c)
	}
	if _, err := http.Get("http://" + address + "/health"); err == nil {
		t.Error("one more is served")
	}
	open[0].Close()
	for end := time.Now().Add(patience); ; {
		if r, err := http.Get("http://" + address + "/health"); err == nil {
			r.Body.Close()
			break
		} else if time.Now().After(end) {
			t.Fatal("a place that was given back is not given again")
		}
	}
	if status := b.end(syscall.SIGTERM); status != 0 {
		t.Errorf("watchers hold up the stop: status %d", status)
	}
}

func TestNumbersNeedTheirAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data := t.TempDir() + "/data"
	r := kring(t, "", "broker", "--override", "log.dirs="+data, "--override", "listeners=PLAINTEXT://127.0.0.1:0",
		"--override", "kring.metrics.address="+l.Addr().String())
	if r.status != exitAddress || !strings.Contains(r.errOut, "kring.metrics.address "+l.Addr().String()+": ") || exists(data, "") {
		t.Errorf("%+v", r)
	}
}

func TestStatsShowNumbersToPeople(t *testing.T) {
	b, address := withNumbers(t, "group.initial.rebalance.delay.ms=0", "kring.loops=2")
	work(t, b)
	out := kring(t, "", "stats", "--address", address, "--interval", "50ms").ok(t)
	for _, want := range []string{"serving for ", "200 messages in (0/s)", "TOPIC_ALREADY_EXISTS", "\nProduce ", "SUBMISSIONS", "per second:",
		"\nreaders ", "1 Empty"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var s stats
	if err := json.Unmarshal([]byte(kring(t, "", "stats", "--address", address, "--interval", "0", "--json").ok(t)), &s); err != nil {
		t.Fatal(err)
	}
	if s.State != "serving" || len(s.Loops) != 2 || !s.Loops[1].Turning || s.Loops[0].Submissions.Total == 0 || s.Interval != 0 {
		t.Errorf("%+v", s)
	}
	if i := slices.IndexFunc(s.APIs, func(a apiStats) bool { return a.API == "Produce" }); i < 0 || s.APIs[i].Requests != 3 || s.APIs[i].P99 <= 0 {
		t.Errorf("%+v", s.APIs)
	}
	if len(s.Lags) != 1 || s.Lags[0].Group != "readers" || s.Lags[0].Lag != 50 {
		t.Errorf("%+v", s.Lags)
	}
	b.end(syscall.SIGTERM)
	r := kring(t, "", "stats", "--address", address)
	if want := "kring: no numbers at " + address + ": connect: connection refused; kring.metrics.address says where a broker serves them\n"; r.errOut != want ||
		r.status != exitFailed {
		t.Errorf("%+v, want %q", r, want)
	}
	for _, args := range []string{"stats --address x", "stats --interval -1s", "stats x"} {
		if r := kring(t, "", strings.Fields(args)...); r.status != exitArguments {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 12.6: "13"} {
		if got := number(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	for f, want := range map[float64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 200 << 20: "200 MiB", 3 << 40: "3.0 TiB"} {
		if got := bytesText(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	for f, want := range map[float64]string{0: "", 32e-6: "32 us", 0.0125: "12.5 ms", 3: "3.0 s"} {
		if got := duration(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}

// TestNamesStayDifferent: whatever bytes a group's name has, its label is UTF-8, and no other name has the same.
func TestNamesStayDifferent(t *testing.T) {
	for name, want := range map[string]string{"plain": "plain", "gr\u00f6\u00dfe": "gr\u00f6\u00dfe", "a\xffb": `a\xffb`, "a\xfeb": `a\xfeb`, `a\xffb`: `a\x5cxffb`,
		`c:\dir`: `c:\dir`, "\ufffd": "\ufffd", "\xc3": `\xc3`} {
		if got := readable(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
	if got := labelled([]string{"group", "a\xff\"\n"}); got != `{group="a\\xff\"\n"}` {
		t.Error(got)
	}
}

// TestNegotiationIsNoError: a client that is told of an older ApiVersions goes on with that.
func TestNegotiationIsNoError(t *testing.T) {
	read := func() *numbersRead {
		families, err := parseNumbers("# TYPE kring_requests_total counter\nkring_requests_total{api=\"ApiVersions\"} 3\n" +
			"# TYPE kring_request_errors_total counter\nkring_request_errors_total{api=\"ApiVersions\",error=\"UNSUPPORTED_VERSION\"} 2\n" +
			"kring_request_errors_total{api=\"ApiVersions\",error=\"INVALID_REQUEST\"} 1\n")
		if err != nil {
			t.Fatal(err)
		}
		n := &numbersRead{families: map[string]*family{}}
		for i := range families {
			n.families[families[i].name] = &families[i]
		}
		return n
	}
	s := newStats(read(), nil, 0)
	if len(s.APIs) != 1 || len(s.APIs[0].Errors) != 1 || s.APIs[0].Errors[0].Name != "INVALID_REQUEST" {
		t.Errorf("%+v", s.APIs)
	}
}
