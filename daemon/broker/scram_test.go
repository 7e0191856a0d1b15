package broker

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/metadata"
	"kring/ring"
)

// TestScramCredentialsAreDescribedAsKafka: what Kafka wrote into the tree for its users is described as Kafka described it, by mechanism
// and iterations; no salt and no key leaves the store.
func TestScramCredentialsAreDescribedAsKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/scram.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Users   map[string]string // nodes below /config/users
		Answers []struct {
			Users []string // null: the request has none
			Hex   string
		}
	}
	if err := json.Unmarshal(text, &golden); err != nil || len(golden.Users) < 7 || len(golden.Answers) < 9 {
		t.Fatal(err, len(golden.Users), len(golden.Answers))
	}
	for _, loops := range []int{1, 2, 4} {
		s := newSim(t, loops, 1)
		s.start()
		var ops []metadata.Op
		for node, data := range golden.Users {
			ops = append(ops, metadata.Create("/config/users/"+node, []byte(data)))
		}
		s.on(func(_ *ring.Task, b *Broker) {
			b.store.Store.Do(ops, func(_ []metadata.Result, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		})
		s.w.RunFor(time.Second)
		c := connect(t, s)
		for _, a := range golden.Answers {
			m := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
			if a.Users != nil {
				m.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{}
			}
			for _, name := range a.Users {
				m.Users = append(m.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: name})
			}
			c.compare(adminCase{name: strings.Join(a.Users, ","), request: m}, goldenAnswer{API: "DescribeUserScramCredentials", Answer: a.Hex})
		}
		s.stop()
	}
}
