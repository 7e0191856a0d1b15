package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// TestGroupsOfAFreshBroker: the topic of offsets is made when it is first asked for, and the command waits for it.
func TestGroupsOfAFreshBroker(t *testing.T) {
	for args, want := range map[string]string{
		"describe nosuch": "kring: nosuch: there is no such group; kring groups list shows those there are\n",
		"delete nosuch":   "kring: nosuch: GROUP_ID_NOT_FOUND: there is no such group; kring groups list shows those there are\n",
		"reset-offsets nosuch --all-topics --to-earliest": "kring: nosuch has committed no offsets\n",
	} {
		b := start(t, t.TempDir()+"/data", noDelay)
		if r := b.kring("", append([]string{"groups"}, strings.Fields(args)...)...); r.status != exitFailed || r.errOut != want {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// TestResetSaysWhatIsDone: the JSON of a plan and of what is done are told apart.
func TestResetSaysWhatIsDone(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	groupOf(t, b, "g")
	for _, execute := range []bool{false, true} {
		args := []string{"groups", "reset-offsets", "g", "--topic", "words:0", "--to-earliest", "--json"}
		if execute {
			args = append(args, "--execute")
		}
		var m move
		if out := b.kring("", args...).ok(t); json.Unmarshal([]byte(out), &m) != nil || !strings.Contains(out, `"executed":`) || m.Executed != execute {
			t.Errorf("%v: %s", execute, out)
		}
	}
}

// TestWhatIsTriedAgainIsSaidOnce, with what Kafka's name of it means here.
func TestWhatIsTriedAgainIsSaidOnce(t *testing.T) {
	var out strings.Builder
	c := &consuming{}
	c.group.name = "g"
	m := &member{consuming: c, says: &out}
	for range 3 {
		m.sayTrying(kerr.CoordinatorNotAvailable)
	}
	m.sayTrying(errors.New("gone"))
	want := "kring: group g: COORDINATOR_NOT_AVAILABLE: the topic of group offsets is being made, or cannot be read: then the broker's log says why; " +
		"trying again\nkring: group g: gone; trying again\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
