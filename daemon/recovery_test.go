package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// A stop in order leaves nothing to recover: no segment is read at the next start. After a crash those that may be torn are, and the
// numbers say how much that was.
func TestNumbersTellOfRecovery(t *testing.T) {
	b, address := withNumbers(t, "log.segment.bytes=20000")
	b.kring("", "topics", "create", "words", "-p", "3").ok(t)
	b.kring(strings.Repeat("a word of forty letters, more or less so\n", 2000), "produce", "words", "-p", "0", "--max-message-bytes", "10000").ok(t)
	for _, c := range []struct {
		signal   os.Signal
		segments bool
	}{{syscall.SIGTERM, false}, {syscall.SIGKILL, true}, {syscall.SIGTERM, false}} {
		b.end(c.signal)
		b.run()
		n := read(t, address)
		read := n.sum("recovery_segments_total")
		if read > 0 != c.segments || n.sum("recovery_bytes_total") > 0 != c.segments || n.sum("recovery_unclean") > 0 != c.segments {
			t.Errorf("after %v: %v segments were read, %v bytes, unclean %v", c.signal, read, n.sum("recovery_bytes_total"), n.sum("recovery_unclean"))
		}
		if n.sum("remaining_logs_to_recover") != 0 || n.sum("remaining_segments_to_recover") != 0 ||
			n.samples("remaining_segments_to_recover") == nil {
			t.Error("something remains to be recovered, though the broker serves")
		}
	}
}
