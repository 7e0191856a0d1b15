package broker

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
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

// TestNewClusterIsTold: a log dir whose name is misspelt looks like a new one, and so what begins in one is told; a log dir that comes to a
// cluster is a warning, and a start on what was there before says neither.
func TestNewClusterIsTold(t *testing.T) {
	s := newSim(t, 1, 1)
	s.said = &strings.Builder{}
	s.start()
	id := s.b.node.ClusterID
	once(t, s.said.String(), `msg="new cluster made; if there should be one in the log dir, stop and look at log.dirs and at what is mounted there" `+
		`cluster.id=`+id+` dir=/data`)
	s.stop()
	s.said.Reset()
	s.start("log.dirs=/data,/dta2")
	once(t, s.said.String(), `level=WARN msg="log dir is new to this cluster; if there should be partitions in it, stop and look at log.dirs and at what `+
		`is mounted there" dir=/dta2 cluster.id=`+id)
	s.stop()
	s.said.Reset()
	s.start("log.dirs=/data,/dta2")
	if said := s.said.String(); strings.Contains(said, "new cluster") || strings.Contains(said, "is new to") {
		t.Errorf("said of what is not new:\n%s", said)
	}
	s.stop()
}

// TestOldCopyOfTheStoreIsTold brings the store's files of a time back when a topic had fewer partitions, another one was not there, and fewer
// leaders had been elected; the logs stay.
func TestOldCopyOfTheStoreIsTold(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		const dirs = "log.dirs=/data,/more"
		s := newSim(t, loops, 1)
		s.said = &strings.Builder{}
		s.start(dirs)
		c := connect(t, s)
		c.createTopic("k", 2)
		s.stop()
		old := map[string][]byte{}
		for _, name := range s.m.Files("/data") {
			if strings.HasPrefix(name, "/data/kring-store-") {
				old[name], _ = s.m.ReadFile(name)
			}
		}
		s.start(dirs)
		c = connect(t, s)
		c.createTopic("late", 1)
		m := kmsg.NewPtrCreatePartitionsRequest()
		m.Topics, m.TimeoutMillis = []kmsg.CreatePartitionsRequestTopic{{Topic: "k", Count: 4}}, 5000
		ask[*kmsg.CreatePartitionsResponse](c, m, 3)
		moved := s.inDir("/more", "k", 2)[0]
		s.m.FailNext("write", fmt.Sprintf("/k-%d/", moved), 0, 1, syscall.EIO)
		c.produce("k", moved, 1, words("lost")) // which costs the log dir, and its partitions their leader
		if !eventually(func() bool { return leader(c, "k", moved) == -1 }) {
			t.Fatal("the partition keeps its leader")
		}
		s.on0stop()
		s.start(dirs)
		connect(t, s).produce("k", moved, 1, words("in a later epoch"))
		s.stop()
		for _, name := range s.m.Files("/data") {
			if strings.HasPrefix(name, "/data/kring-store-") {
				if err := s.m.RemoveAll(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, b := range old {
			s.m.WriteFile(name, b)
		}
		s.said.Reset()
		s.start(dirs)
		said := s.said.String()
		once(t, said, `level=WARN msg="logs know a later leader epoch than the cluster's state: the state is older than they are. If kring-store-* are an old `+
			`copy, stop and bring the newest back before producers go on" partitions=1 names=`+fmt.Sprintf("k-%d", moved))
		once(t, said, "topics that the cluster's state does not know")
		once(t, said, `msg="log dirs hold partitions that their topics do not have in the cluster's state: they are kept, and not served. If kring-store-* are `+
			`an old copy, stop and bring the newest back before producers go on" partitions=2 names="k-`)
		if t.Failed() {
			t.Log(said)
		}
		s.stop()
	}
}
