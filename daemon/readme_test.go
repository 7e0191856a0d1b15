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
	commands := regexp.MustCompile(`(?m)^    (.*\bkcat .*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 2 {
		t.Fatalf("%d kcat lines in README.md", len(commands))
	}
	b := start(t, t.TempDir()+"/data")
	var out []byte
	for _, c := range commands {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(c[1], "localhost:9092", b.addr))
		cmd.WaitDelay = time.Second
		if out, err = cmd.Output(); err != nil {
			t.Fatalf("%s: %v", c[1], err)
		}
	}
	if string(out) != "hello\n" {
		t.Errorf("read back %q", out)
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
