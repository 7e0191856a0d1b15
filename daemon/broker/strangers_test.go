package broker

import (
	"strings"
	"testing"
)

// TestLogsAndStateThatDoNotMatchAreTold takes the log of one partition away, and puts the log of an unknown topic beside it.
func TestLogsAndStateThatDoNotMatchAreTold(t *testing.T) {
	s := newSim(t, 2, 1)
	s.said = &strings.Builder{}
	s.start()
	connect(t, s).createTopic("k", 3)
	if said := s.said.String(); strings.Contains(said, "have no log") {
		t.Errorf("said of a new topic: %s", said)
	}
	s.stop()
	if err := s.m.RemoveAll("/data/k-1"); err != nil {
		t.Fatal(err)
	}
	s.m.WriteFile("/data/ghost-0/leader-epoch-checkpoint", []byte("0\n0\n"))
	s.said.Reset()
	s.start()
	connect(t, s)
	said := s.said.String()
	for _, want := range []string{"topics that the cluster's state does not know", "names=ghost-0", "have no log", "names=k-1"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said in:\n%s", want, said)
		}
	}
	s.stop()
	s.said.Reset()
	s.start()
	if strings.Contains(s.said.String(), "have no log") {
		t.Error("said again of a log that is there")
	}
	s.stop()
}
