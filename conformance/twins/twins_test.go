package twins

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestTwins stops both brokers in order, twice, and then gives each the other's files.
func TestTwins(t *testing.T) { eachLoops(t, 2, twins) }

// long says whether all is asked for that may be compared.
func long() bool { return os.Getenv("TWINS") == "long" }

// eachLoops tells a story with kring on some number of loops; in the long form with 1, 2 and 4.
func eachLoops(t *testing.T, usually int, tell func(t *testing.T, loops int)) {
	all := []int{usually}
	if long() {
		all = []int{1, 2, 4}
	}
	for _, n := range all {
		t.Run(fmt.Sprint("loops=", n), func(t *testing.T) { tell(t, n) })
	}
}

func twins(t *testing.T, loops int) {
	s := newStory(t, loops)
	s.topics()
	s.edged()
	s.plain(0)
	s.edges(0)
	s.idempotent(0)
	s.silent()
	s.transactions(0)
	s.compacted(0)
	s.commits()
	s.glance("before the first stop")
	s.halt(syscall.SIGTERM)
	s.compare("after a clean stop")
	s.begin()
	s.view("after a clean stop")
	s.endings()
	s.clean()
	s.finish(0)
	s.plain(1)
	s.idempotent(1)
	s.transactions(1)
	s.deleteRecords("deleted", 0, 17)
	s.deleteTopic("gone")
	s.edges(1)
	s.forget()
	s.view("after a cleaning")
	s.halt(syscall.SIGTERM)
	s.compare("after a cleaning and a clean stop")
	s.exchange()
	s.begin()
	s.view("on the other's files")
	s.committedOffsets("g", true, 12, 0)
	s.compacted(1)
	s.clean() // the time of the first cleaning's tombstones is over
	s.finish(1)
	s.transactions(2)
	s.glance("after a cleaning of the other's files")
	s.halt(syscall.SIGTERM)
	s.compare("after a cleaning of the other's files and a clean stop")
	s.truncate()
}

// TestDifferencesAreNeeded comes last: every kind of file was compared, and no line of the table may be one that is never needed.
func TestDifferencesAreNeeded(t *testing.T) {
	if len(needed) == 0 {
		t.Skip("nothing was compared")
	}
	for _, kind := range kinds {
		if !compared[kind] && !t.Failed() {
			t.Errorf("no file %s was compared", kind)
		}
	}
	for _, d := range differences {
		if !needed[d] && !t.Failed() {
			t.Errorf("the table of differences names %s (%s), which does not differ", d.files, d.why)
		}
	}
}

func (s *story) halt(sig syscall.Signal) {
	s.t.Helper()
	for _, w := range s.twins {
		w.stop(s.t, sig)
	}
	s.killed = sig == syscall.SIGKILL
}

func (s *story) begin() {
	s.t.Helper()
	for _, w := range s.twins {
		w.start(s.t)
	}
}

// compare holds the log dirs against each other, both brokers being down.
func (s *story) compare(what string) {
	s.t.Helper()
	when := stopped
	if s.killed {
		when = killed
	}
	s.t.Logf("%s: %v since the brokers were begun", what, time.Since(s.begun).Round(time.Millisecond))
	compare(s.t, readDir(s.t, s.twins[0].dir), readDir(s.t, s.twins[1].dir), when, what)
}
