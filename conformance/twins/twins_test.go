package twins

import (
	"syscall"
	"testing"
	"time"
)

func TestTwins(t *testing.T) {
	s := &story{t: t, twins: startTwins(t), base: time.Now().Add(-time.Hour).UnixMilli()}
	s.topics()
	s.plain(0)
	s.idempotent(0)
	s.transactions(0)
	s.view("before the first stop")
	s.halt(syscall.SIGTERM)
	s.compare("after a clean stop")
	s.begin()
	s.view("after a clean stop")
	s.finish(0)
	s.plain(1)
	s.idempotent(1)
	s.transactions(1)
	s.deleteRecords("deleted", 0, 17)
	s.deleteTopic("gone")
	s.halt(syscall.SIGTERM)
	s.compare("after a second clean stop")
	for _, d := range differences {
		if !needed[d] {
			t.Errorf("the table of differences names %s, which does not differ", d.files)
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
	compare(s.t, readDir(s.t, s.twins[0].dir), readDir(s.t, s.twins[1].dir), when, what)
}
