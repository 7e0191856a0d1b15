package main

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"kring/daemon/broker"
)

// TestSilentBrokerMayBeRecovering: one that is loading its logs takes connections and does not answer.
func TestSilentBrokerMayBeRecovering(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := "kring: " + l.Addr().String() + " took the connection but did not answer in 300ms; it may be recovering logs: /health says how far\n"
	for _, args := range []string{"topics list", "groups list", "topics describe x"} {
		r := kring(t, "", append(strings.Fields(args), "--timeout", "300ms", "-b", l.Addr().String())...)
		if r.status != exitFailed || r.errOut != want {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
}

// TestStatsOfABrokerThatStarts shows how far it is, and nothing of what there is not yet.
func TestStatsOfABrokerThatStarts(t *testing.T) {
	n := &numbers{life: &life{}, log: newLogs(new(strings.Builder), logConfig("info", "text")), pulse: newPulse(nil)}
	recovery := &broker.Recovery{Dirs: []broker.RecoveryDir{{Path: "/d", LogsLeft: 7, SegmentsLeft: 3}}, Bytes: 1.5e9, Took: 4 * time.Second}
	n.life.stage.Store(&broker.Stage{Doing: "recovering logs", Done: 2, Total: 9, Recovery: recovery})
	n.life.recovery.Store(recovery)
	families, err := parseNumbers(string(n.scrape()))
	if err != nil {
		t.Fatal(err)
	}
	read := &numbersRead{}
	for i := range families {
		read.add(&families[i])
	}
	s := newStats(read, nil, 0)
	var out strings.Builder
	s.print(&out)
	first, rest, _ := strings.Cut(out.String(), "\n")
	if !strings.HasPrefix(first, "broker starting for ") || !strings.HasSuffix(first, ", recovering logs: 2 of 9, 1.5 GB checked in 4 s") ||
		!strings.HasPrefix(rest, "process ") || strings.Count(rest, "\n") != 1 {
		t.Errorf("%s", out.String())
	}
	text, err := json.Marshal(s)
	if err != nil || !strings.Contains(string(text), `"broker":null,`) ||
		!strings.Contains(string(text), `"start":{"logs":9,"logsLoaded":2,"unclean":true,"bytesChecked":1500000000,"seconds":4}`) {
		t.Errorf("%s %v", text, err)
	}
}

// TestStatsKnowAPortForClients: the address of the numbers is often mistaken.
func TestStatsKnowAPortForClients(t *testing.T) {
	b, address := withNumbers(t, noDelay)
	r := kring(t, "", "stats", "--address", b.addr)
	if r.status != exitFailed || !strings.HasPrefix(r.errOut, "kring: what listens at "+b.addr+" does not speak HTTP: it may be a port for clients; ") {
		t.Errorf("%+v", r)
	}
	b.kring("", "topics", "create", "one").ok(t)
	b.kring("x\n", "produce", "one").ok(t)
	out := kring(t, "", "stats", "--address", address, "--interval", "0").ok(t)
	for _, want := range []string{"1 message in", "logs      1 partition, 1 led here, ", "1 segment, "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var s map[string]any
	if err := json.Unmarshal([]byte(kring(t, "", "stats", "--address", address, "--interval", "0", "--json").ok(t)), &s); err != nil || s["broker"] != 1001.0 {
		t.Errorf("broker %v %v", s["broker"], err)
	}
}
