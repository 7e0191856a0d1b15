package main

import (
	"strings"
	"syscall"
	"testing"
)

// TestSignalEndsARecovery holds a recovery still while the signal comes: the broker ends without recovering the rest and without marking
// the log dir clean, and the next start has everything.
func TestSignalEndsARecovery(t *testing.T) {
	b := start(t, t.TempDir()+"/data", "kring.loops=2")
	b.kring("", "topics", "create", "words", "-p", "500").ok(t)
	b.kring(strings.Repeat("a word\n", 3000), "produce", "words").ok(t)
	b.end(syscall.SIGKILL)
	b.said = lines{}
	b.follow("the last stop was not clean: logs are recovered")
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGCONT} {
		if err := b.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	<-b.done
	said := b.said.String()
	if status := b.cmd.ProcessState.ExitCode(); status != 0 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{"broker stops while it starts", "broker stopped before it served; the next start recovers what this one has not"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(said, "logs loaded") || strings.Contains(said, "ERROR") || exists(b.data, ".kafka_cleanshutdown") || exists(b.data, ".lock") {
		t.Errorf("it went on, or looks like a clean stop: %s", said)
	}
	b.run()
	if out := b.kring("", "consume", "words", "--from-beginning", "-e").ok(t); strings.Count(out, "a word\n") != 3000 {
		t.Errorf("%d records of 3000", strings.Count(out, "a word\n"))
	}
}
