package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFirstMinuteOfTheReadmeWorks runs the README's commands for a client, as they stand, against a broker as make run starts it.
func TestFirstMinuteOfTheReadmeWorks(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^    (.*\bkcat .*|.*\bbin/kring .*)$`).FindAllStringSubmatch(string(text), -1)
	want := []string{"", "hello\n", "hello\n", "readers  Empty, 0 members, coordinated by broker 1001, lag 0\n", "", "hello\nhello again\n"}
	if len(commands) != len(want) {
		t.Fatalf("%d lines with kcat or kring in README.md", len(commands))
	}
	b := start(t, t.TempDir()+"/data")
	for i, c := range commands {
		line := strings.ReplaceAll(c[1], "localhost:9092", b.addr)
		if before, after, ours := strings.Cut(line, "bin/kring "); ours {
			line = before + program + " " + after + " -b " + b.addr
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if !strings.HasPrefix(string(out), want[i]) {
			t.Errorf("%s: %q, want %q", line, out, want[i])
		}
	}
}

func TestBenchRunsEveryLoad(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	for _, l := range loads {
		args := []string{"bench", l.use, "--warm-up", "50ms", "--duration", "200ms", "--json"}
		for flag, value := range map[string]string{"connections": "2", "readers": "2", "rate": "500"} {
			if slices.Contains(strings.Fields(l.flags), flag) {
				args = append(args, "--"+flag, value)
			}
		}
		if out := b.kring("", args...).ok(t); !strings.HasPrefix(out, `{"load":"`+l.use) {
			t.Errorf("%s: %s", l.use, out)
		}
		if out := b.kring("", append(args, "--json=false")...).ok(t); !strings.HasPrefix(out, l.use+":") {
			t.Errorf("%s: %s", l.use, out)
		}
	}
	if r := b.kring("", "bench", "idle", "--acks", "1"); r.status != exitArguments {
		t.Errorf("an idle connection produces: %+v", r)
	}
	if r := b.kring("", "bench", "consume", "--topic", "absent"); r.status != exitFailed || !strings.Contains(r.errOut, "absent-0: UNKNOWN_TOPIC") {
		t.Errorf("%+v", r)
	}
}
