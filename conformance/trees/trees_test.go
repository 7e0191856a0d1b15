package trees

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"kring/metadata/embedded"
)

// node is what two stores must have in common: all but times, numbers of changes and sessions.
type node struct {
	Data                        string // normalised
	Version, Cversion, Aversion int32
	Children                    int32
	Ephemeral                   bool
	DataSince, ListSince        bool // data, list of children unchanged since the creation
}

type tree map[string]node

// volatile keys of JSON nodes are ids and times.
var volatile = map[string]bool{"timestamp": true, "topic_id": true, "id": true}

// normal makes JSON comparable: objects in order of keys, ids and times blanked, ports of the loopback too.
func normal(data []byte) string {
	if data == nil {
		return "null"
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "text:" + string(data)
	}
	blank(v)
	b, err := json.Marshal(v)
	if err != nil {
		return "text:" + string(data)
	}
	return string(b)
}

func blank(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			switch {
			case volatile[k]:
				v[k] = fmt.Sprintf("%T", x)
			case k == "port":
				v[k] = 0
			case k == "endpoints":
				for i, e := range x.([]any) {
					s := e.(string)
					x.([]any)[i] = s[:strings.LastIndex(s, ":")]
				}
			default:
				blank(x)
			}
		}
	case []any:
		for _, x := range v {
			blank(x)
		}
	}
}

// kringTree reads the files of a running kring, which has made durable whatever it has answered.
func kringTree(t testing.TB, dir string) tree {
	t.Helper()
	var out bytes.Buffer
	if err := embedded.ExportFiles(os.DirFS(dir), &out); err != nil {
		t.Fatal(err)
	}
	var in struct {
		Nodes []struct {
			Path                        string
			Data                        *string
			Czxid, Mzxid, Pzxid         int64
			Version, Cversion, Aversion int32
			EphemeralOwner              int64
			NumChildren                 int32
		}
	}
	if err := json.Unmarshal(out.Bytes(), &in); err != nil {
		t.Fatal(err)
	}
	got := tree{}
	for _, n := range in.Nodes {
		var data []byte
		if n.Data != nil {
			data = []byte(*n.Data)
		}
		got[n.Path] = node{normal(data), n.Version, n.Cversion, n.Aversion, n.NumChildren, n.EphemeralOwner != 0,
			n.Mzxid == n.Czxid, n.Pzxid == n.Czxid}
	}
	return got
}

// zooKeeperTree reads a ZooKeeper that only Kafka writes to.
func zooKeeperTree(t testing.TB, c *zk.Conn) tree {
	t.Helper()
	got := tree{}
	var walk func(path string)
	walk = func(path string) {
		data, st, err := c.Get(path)
		if err == zk.ErrNoNode {
			return
		}
		if err != nil {
			t.Fatal(path, err)
		}
		got[path] = node{normal(data), st.Version, st.Cversion, st.Aversion, st.NumChildren, st.EphemeralOwner != 0,
			st.Mzxid == st.Czxid, st.Pzxid == st.Czxid}
		names, _, err := c.Children(path)
		if err == zk.ErrNoNode {
			return
		}
		if err != nil {
			t.Fatal(path, err)
		}
		for _, name := range names {
			if name == "zookeeper" && path == "/" {
				continue
			}
			walk(strings.TrimSuffix(path, "/") + "/" + name)
		}
	}
	walk("/")
	return got
}

// differences lists where two trees differ.
func differences(kafka, kring tree) []string {
	var out []string
	paths := map[string]bool{}
	for p := range kafka {
		paths[p] = true
	}
	for p := range kring {
		paths[p] = true
	}
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		a, inKafka := kafka[p]
		b, inKring := kring[p]
		switch {
		case !inKafka:
			out = append(out, fmt.Sprintf("%s: only in kring's tree: %+v", p, b))
		case !inKring:
			out = append(out, fmt.Sprintf("%s: only in Kafka's tree: %+v", p, a))
		case a != b:
			out = append(out, fmt.Sprintf("%s:\n\tkafka %+v\n\tkring %+v", p, a, b))
		}
	}
	return out
}

// TestSameTrees runs every step on Kafka and on kring and compares answers and trees after each.
func TestSameTrees(t *testing.T) {
	if os.Getenv("KRING_PEERS_TEST") == "" {
		t.Skip("needs a real Kafka; make conformance sets KRING_PEERS_TEST")
	}
	kafka, kring := startKafka(t), startKring(t)
	compare := func(t *testing.T, step string) {
		t.Helper()
		// Both brokers work on after their answers: wait until they have come to the same, or not.
		var diff []string
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if diff = differences(kafka.tree(t), kring.tree(t)); len(diff) == 0 {
				return
			}
		}
		t.Fatalf("after step %q the trees differ:\n%s", step, strings.Join(diff, "\n"))
	}
	compare(t, "started")
	for _, s := range steps {
		if s.restart {
			kafka.restart(t, s.kill)
			kring.restart(t, s.kill)
		} else {
			a, b := s.run(kafka.client), s.run(kring.client)
			if s.kring == "" && a != b {
				t.Errorf("step %q is answered differently:\n\tkafka %s\n\tkring %s", s.name, a, b)
			}
			if s.kring != "" && (b != s.kring || a != s.kafka) {
				t.Errorf("step %q, answered differently on purpose:\n\tkafka %s, known: %s\n\tkring %s, meant: %s",
					s.name, a, s.kafka, b, s.kring)
			}
		}
		compare(t, s.name)
	}
}
