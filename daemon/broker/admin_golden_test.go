package broker

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// levels is a log's level.
type levels struct{ name string }

func (l *levels) Level() string        { return l.name }
func (l *levels) SetLevel(name string) { l.name = name }

const adminGolden = "../api/testdata/admin.json"

// goldenAnswer is what Kafka answered to a case in a version: the body, in hexadecimal.
type goldenAnswer struct {
	Case    string
	API     string
	Version int16
	Request string
	Answer  string
}

// TestRecordAdminAnswers asks the Kafka at KRING_RECORD, which must be new, all the cases and writes down its answers.
func TestRecordAdminAnswers(t *testing.T) {
	addr := os.Getenv("KRING_RECORD")
	if addr == "" {
		t.Skip("for recording only: KRING_RECORD=host:port of a new Kafka 3.9 (conformance/peers/peers kafka)")
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Minute))
	c := &client{link: &realLink{t, conn}, t: t}
	var lines []string
	eachAdminCase(func(a adminCase, version int16) {
		a.request.SetVersion(version)
		c.post(a.request)
		resp := c.receive(a.request)
		line, err := json.Marshal(goldenAnswer{a.name, wire.Name(a.request.Key()), version, hex.EncodeToString(a.request.AppendTo(nil)),
			hex.EncodeToString(resp.AppendTo(nil))})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	})
	if err := os.WriteFile(adminGolden, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestAdminAnswersAsKafka asks a broker what Kafka was asked, in the same order, and compares the answers field by field.
func TestAdminAnswersAsKafka(t *testing.T) {
	text, err := os.ReadFile(adminGolden)
	if err != nil {
		t.Fatal(err)
	}
	var all []goldenAnswer
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, loops := range []int{1, 2, 4} {
		t.Run(fmt.Sprint("loops=", loops), func(t *testing.T) {
			s := newSim(t, loops, 1)
			s.m.SetCapacity(1 << 40)
			s.start("broker.id=1", "broker.rack=RACK1", "num.partitions=4")
			c := connect(t, s)
			at := 0
			eachAdminCase(func(a adminCase, version int16) {
				g := all[at]
				at++
				a.request.SetVersion(version)
				if g.Case != a.name || g.Version != version || g.Request != hex.EncodeToString(a.request.AppendTo(nil)) {
					t.Fatalf("the case %s %d is not the one recorded: %s %d", a.name, version, g.Case, g.Version)
				}
				c.compare(a, g)
			})
			s.stop()
		})
	}
}

func (c *client) compare(a adminCase, g goldenAnswer) {
	c.t.Helper()
	body, err := hex.DecodeString(g.Answer)
	if err != nil {
		c.t.Fatal(err)
	}
	want := a.request.ResponseKind()
	want.SetVersion(g.Version)
	if err := want.ReadFrom(body); err != nil {
		c.t.Fatal(err)
	}
	c.post(a.request)
	got := c.receive(a.request)
	if a.setUp {
		return
	}
	if ours, kafkas := plain(c.t, got), plain(c.t, want); ours != kafkas {
		at := 0
		for at < min(len(ours), len(kafkas)) && ours[at] == kafkas[at] {
			at++
		}
		c.t.Errorf("%s, %s %d:\n ours  %s\n Kafka %s", a.name, g.API, g.Version, around(ours, at), around(kafkas, at))
	}
}

// around is the part of a text about a place in it.
func around(s string, at int) string { return s[max(at-120, 0):min(at+160, len(s))] }

// plain is an answer as text that can be compared: lists in an order of their own, and without what differs between machines.
func plain(t testing.TB, resp kmsg.Response) string {
	t.Helper()
	if dirs, ok := resp.(*kmsg.DescribeLogDirsResponse); ok {
		for i := range dirs.Dirs {
			d := &dirs.Dirs[i]
			d.Dir = strings.TrimRight(d.Dir, "abcdefghijklmnopqrstuvwxyz0123456789/-.")
			if d.TotalBytes >= d.UsableBytes && d.UsableBytes > 1<<20 {
				d.TotalBytes, d.UsableBytes = 2, 1
			}
		}
	}
	if configs, ok := resp.(*kmsg.DescribeConfigsResponse); ok {
		for i := range configs.Resources {
			r := &configs.Resources[i]
			r.Configs = slices.DeleteFunc(r.Configs, func(c kmsg.DescribeConfigsResponseResourceConfig) bool {
				return r.ResourceType == kmsg.ConfigResourceTypeBrokerLogger && c.Name != "root" // what a JVM has besides
			})
		}
	}
	text, err := json.Marshal(resp)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return ourWords.Replace(string(sorted(v)))
}

// ourWords are words of Kafka's that we say otherwise: the code is the same.
var ourWords = strings.NewReplacer("Leader election not needed for topic partition.", wire.ElectionNotNeeded.Text(),
	"This server does not host this topic-partition.", wire.UnknownTopicOrPartition.Text(),
	`"Topic name is invalid: 'bad name' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"`,
	`"topic name \"bad name\" contains a character other than ASCII letters, digits, '.', '_' and '-'"`,
	"Unexpected node id. Expected 1, but received 1", "Unexpected broker id, expected 1, but received 2", // it names its own twice
	"expected 1 but received 2", "expected 1, but received 2",
	"Cannot update these configs dynamically: Set(num.partitions)", "num.partitions cannot be changed dynamically: it is read at start only",
	"/ by zero", "log.cleaner.threads=0 is not valid; allowed: from 1 to 4, half of the present number to twice as many",
	"ArrayBuffer(1, 1)", "[1 1]", "ArrayBuffer(2)", "[2]", "ArrayBuffer(-1)", "[-1]", "Set(1)", "[1]")

func sorted(v any) []byte {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = string(sorted(v[i]))
		}
		slices.Sort(parts)
		return []byte("[" + strings.Join(parts, ",") + "]")
	case map[string]any:
		parts := make([]string, 0, len(v))
		for k, e := range v {
			if k != "UnknownTags" {
				parts = append(parts, k+":"+string(sorted(e)))
			}
		}
		slices.Sort(parts)
		return []byte("{" + strings.Join(parts, ",") + "}")
	default:
		b, _ := json.Marshal(v)
		return b
	}
}
