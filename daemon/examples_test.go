package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestExamplesWorkAsPrinted runs the examples of the commands that end by themselves, in one directory, against a broker with its
// data in ./kring-data. Loads have a test of their own.
func TestExamplesWorkAsPrinted(t *testing.T) {
	dir := t.TempDir()
	numbers := freeAddr(t)
	b := start(t, filepath.Join(dir, "kring-data"), "kring.metrics.address="+numbers)
	if err := os.WriteFile(filepath.Join(dir, "some.go"), []byte("package some\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines, last []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			switch line = strings.TrimSpace(line); {
			case c.Name() == "broker" || c.Parent() == nil || c.Parent().Name() == "bench" || c.Name() == "bench" || strings.Contains(line, "/etc/") ||
				strings.HasPrefix(line, "kring store"), strings.HasPrefix(line, "kring log repair"): // need a ZooKeeper, or no broker
			case c.Name() == "topics" || c.Name() == "groups": // those of their commands say the same
			case c.Name() == "delete":
				last = append(last, line)
			case c.Name() == "create":
				lines = append([]string{line}, lines...)
			default:
				lines = append(lines, line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(command())
	if lines = append(lines, last...); len(lines) < 15 {
		t.Errorf("only %d examples: %q", len(lines), lines)
	}
	b.kring("", "topics", "create", "words", "-p", "3").ok(t)
	b.kring("1\n2\n3\n4\n5\n", "produce", "words").ok(t)
	for _, line := range lines {
		run := strings.Replace(strings.Replace(line, statsAddress, numbers, 1), "kring stats", "kring stats --address "+numbers, 1)
		for _, asks := range []string{"kring produce", "kring consume", "kring topics list", "kring topics describe", "kring topics alter",
			"kring topics create", "kring topics delete", "kring groups list", "kring groups describe", "kring groups reset-offsets",
			"kring groups delete"} {
			run = strings.Replace(run, asks, asks+" -b "+b.addr, 1)
		}
		if strings.Contains(line, "kring consume") {
			run += " --exit"
		}
		if line == "kring topics create words" {
			run += " --if-not-exists"
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", run)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}
