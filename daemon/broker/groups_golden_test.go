package broker

import (
	"flag"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

var recordFrom = flag.String("record-groups", "", "address of a fresh Apache Kafka broker to record testdata/groups.txt from")

const groupsFile = "testdata/groups.txt"

// peer is a broker that somebody else runs.
type peer struct {
	place
	t    testing.TB
	addr string
}

func (p *peer) dial() link {
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(10 * time.Minute)) // it may have little of the machine
	return &realLink{p.t, c}
}

// TestGroupsAnswerAsKafka plays the scenes and holds each answer, field by field, against Apache Kafka's.
func TestGroupsAnswerAsKafka(t *testing.T) {
	if *recordFrom != "" {
		lines := play(t, &peer{t: t, addr: *recordFrom})
		if err := os.WriteFile(groupsFile, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(groupsFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	everywhere(t, func(t *testing.T, p place) {
		p.start("broker.id=1", "group.initial.rebalance.delay.ms=0")
		got := play(t, p)
		scene, asked := "", ""
		for i := range max(len(want), len(got)) {
			w, g := "the end", "the end"
			if i < len(want) {
				w = want[i]
			}
			if i < len(got) {
				g = got[i]
			}
			if strings.HasPrefix(w, "#") {
				scene = w
			} else if strings.Contains(w, "> ") {
				asked = w
			}
			if w != g {
				t.Errorf("%s\n%s\nKafka %s\nKring %s", scene, asked, w, g)
			}
		}
	})
}
