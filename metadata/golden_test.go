package metadata

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

type goldenNode struct {
	Path     string  `json:"path"`
	Data     *string `json:"data"`
	Cversion int32   `json:"cversion"`
}

// goldenTrees reads the trees recorded from Kafka.
func goldenTrees(t testing.TB) map[string][]goldenNode {
	t.Helper()
	f, err := os.Open("testdata/znodes.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	trees := map[string][]goldenNode{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return trees
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "writes.json" {
			continue
		}
		var tree struct {
			Nodes []goldenNode `json:"nodes"`
		}
		if err := json.NewDecoder(r).Decode(&tree); err != nil {
			t.Fatal(h.Name, err)
		}
		trees[h.Name] = tree.Nodes
	}
}

type encoder interface{ Encode() []byte }

// codec is a kind of node: which paths hold it, and how it is read.
type codec struct {
	name string
	path *regexp.Regexp
	read func(data []byte) (encoder, error)
}

func kind[T encoder](name, path string, read func([]byte) (T, error)) codec {
	return codec{name, regexp.MustCompile("^" + path + "$"), func(data []byte) (encoder, error) { return read(data) }}
}

type epochText ControllerEpoch

func (e epochText) Encode() []byte { return EncodeControllerEpoch(ControllerEpoch(e)) }

// codecs are all kinds of nodes with data.
func codecs() []codec {
	return []codec{
		kind("cluster id", "/cluster/id", DecodeClusterID),
		kind("controller", "/controller", DecodeController),
		kind("controller epoch", "/controller_epoch", func(b []byte) (epochText, error) {
			e, err := DecodeControllerEpoch(b)
			return epochText(e), err
		}),
		kind("feature", "/feature", DecodeFeature),
		kind("producer ids", "/latest_producer_id_block", DecodeProducerIDBlock),
		kind("broker", "/brokers/ids/[0-9]+", DecodeRegistration),
		kind("topic", "/brokers/topics/[^/]+", DecodeTopic),
		kind("state", "/brokers/topics/[^/]+/partitions/[0-9]+/state", DecodeState),
		kind("isr change", "/isr_change_notification/.+", DecodePartitions),
		kind("preferred", "/admin/preferred_replica_election", DecodePartitions),
		kind("reassign", "/admin/reassign_partitions", DecodeReassign),
		kind("log dir event", "/log_dir_event_notification/.+", DecodeLogDirEvent),
		kind("config", "/config/(topics|brokers|clients|users|ips)/.+", DecodeConfig),
		kind("config change", "/config/changes/.+", DecodeConfigChange),
		kind("acl", "/kafka-acl(-extended/prefixed)?/[^/]+/.+", DecodeACL),
		kind("acl change", "/kafka-acl-changes/.+", func(b []byte) (ACLChangeNode, error) { return DecodeACLChange(b, false) }),
		kind("acl change, extended", "/kafka-acl-extended-changes/.+", func(b []byte) (ACLChangeNode, error) { return DecodeACLChange(b, true) }),
		kind("token", "/delegation_token/tokens/.+", DecodeToken),
	}
}

// TestGoldenRoundTrip: every node that Kafka wrote is read and written again byte for byte.
func TestGoldenRoundTrip(t *testing.T) {
	seen := map[string]int{}
	for name, tree := range goldenTrees(t) {
		for _, n := range tree {
			if n.Data == nil || *n.Data == "" || strings.HasPrefix(n.Path, "/delegation_token/token_changes/") {
				continue
			}
			found := false
			for _, c := range codecs() {
				if !c.path.MatchString(n.Path) {
					continue
				}
				found = true
				seen[c.name]++
				v, err := c.read([]byte(*n.Data))
				if err != nil {
					t.Errorf("%s %s: %v", name, n.Path, err)
					continue
				}
				if got := string(v.Encode()); got != *n.Data {
					t.Errorf("%s %s:\ngot  %s\nwant %s", name, n.Path, got, *n.Data)
				}
			}
			if !found {
				t.Errorf("%s: nobody reads %s: %s", name, n.Path, *n.Data)
			}
		}
	}
	for _, c := range codecs() {
		if seen[c.name] == 0 && c.name != "preferred" && c.name != "reassign" && c.name != "log dir event" && c.name != "isr change" {
			t.Errorf("no golden node of kind %q", c.name)
		}
	}
	t.Log(seen)
}

func TestWrittenForms(t *testing.T) {
	for _, c := range []struct {
		node encoder
		want string
	}{
		{PartitionsNode{[]TopicPartition{{"t", 0}, {"u", 3}}}, `{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":3}]}`},
		{ReassignNode{[]Reassigned{{TopicPartition{"t", 0}, []int32{1, 2}}}}, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}`},
		{LogDirEventNode{1}, `{"version":1,"broker":1,"event":1}`},
		{StateNode{5, 1, 7, []int32{1, 2}, true}, `{"controller_epoch":5,"leader":1,"version":1,"leader_recovery_state":1,"leader_epoch":7,"isr":[1,2]}`},
		{ConfigNode{Config{{"a\"\\\n\x01", "ä/<>&\u2028"}}}, "{\"version\":1,\"config\":{\"a\\\"\\\\\\n\\u0001\":\"ä/<>&\u2028\"}}"},
		{FeatureNode{2, true, []Feature{{"f", 1, 3}}}, `{"features":{"f":{"max_version_level":3}},"version":2,"status":1}`},
		{FeatureNode{1, false, []Feature{{"f", 1, 3}}}, `{"features":{"f":{"min_version_level":1,"max_version_level":3}},"version":1,"status":0}`},
		{Registration{Version: 5, JMXPort: -1, Timestamp: 7, Endpoints: []Endpoint{{"SSL", "SSL", "::1", 9}}},
			`{"features":{},"listener_security_protocol_map":{"SSL":"SSL"},"endpoints":["SSL://[::1]:9"],"jmx_port":-1,"port":-1,"host":null,"version":5,"timestamp":"7"}`},
		{Registration{Version: 4, JMXPort: 5, Rack: "r", Timestamp: 7, Endpoints: []Endpoint{{"A", "SSL", "x", 1}, {"B", "PLAINTEXT", "y", 2}}},
			`{"listener_security_protocol_map":{"A":"SSL","B":"PLAINTEXT"},"endpoints":["A://x:1","B://y:2"],"rack":"r","jmx_port":5,"port":2,"host":"y","version":4,"timestamp":"7"}`},
	} {
		if got := string(c.node.Encode()); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestOlderVersions(t *testing.T) {
	r, err := DecodeRegistration([]byte(`{"jmx_port":-1,"timestamp":"1","host":"h","version":1,"port":9092}`))
	if err != nil || len(r.Endpoints) != 1 || r.Endpoints[0] != (Endpoint{"PLAINTEXT", "PLAINTEXT", "h", 9092}) {
		t.Errorf("registration v1: %+v, %v", r, err)
	}
	r, err = DecodeRegistration([]byte(`{"version":2,"host":"h","port":1,"jmx_port":9,"timestamp":"2","endpoints":["SSL://[fe80::1]:9093","PLAINTEXT://:9092"]}`))
	if err != nil || r.Endpoints[0] != (Endpoint{"SSL", "SSL", "fe80::1", 9093}) || r.Endpoints[1].Host != "" || r.JMXPort != 9 {
		t.Errorf("registration v2: %+v, %v", r, err)
	}
	n, err := DecodeTopic([]byte(`{"version":1,"partitions":{"1":[2,1],"0":[1]}}`))
	if err != nil || len(n.Partitions) != 2 || n.Partitions[0].Partition != 1 || !n.ID.IsZero() {
		t.Errorf("topic v1: %+v, %v", n, err)
	}
	c, err := DecodeController([]byte(`{"version":1,"brokerid":3,"timestamp":"5"}`))
	if err != nil || c != (ControllerNode{3, 5, -1}) {
		t.Errorf("controller v1: %+v, %v", c, err)
	}
	change, err := DecodeConfigChange([]byte(`{"version":1,"entity_type":"topics","entity_name":"foo"}`))
	if err != nil || change.Entity != "topics/foo" {
		t.Errorf("config change v1: %+v, %v", change, err)
	}
	token, err := DecodeToken([]byte(`{"version":2,"owner":"User%3Aa","renewers":[],"issueTimestamp":1,"maxTimestamp":2,"expiryTimestamp":3,"tokenId":"x"}`))
	if err != nil || token.Requester != "User%3Aa" {
		t.Errorf("token v2: %+v, %v", token, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		read func([]byte) error
		data string
		says string
	}{
		{readState, ``, "no JSON at byte 0"},
		{readState, `[]`, "no object"},
		{readState, `{"controller_epoch":1,"leader":1,"leader_epoch":0,"isr":[1]}x`, "byte"},
		{readState, `{"leader":1}`, `"controller_epoch" should be`},
		{readState, `{"controller_epoch":1,"leader":-2,"leader_epoch":0,"isr":[1]}`, `"leader" should be a whole number from -1`},
		{readState, `{"controller_epoch":1,"leader":1.5,"leader_epoch":0,"isr":[1]}`, `"leader" should be`},
		{readState, `{"controller_epoch":1,"leader":1,"leader_epoch":0,"isr":["1"]}`, `"isr" should be a list of broker ids`},
		{readState, `{"controller_epoch":1,"leader":99999999999,"leader_epoch":0,"isr":[]}`, "99999999999"},
		{readTopic, `{"version":4,"partitions":{}}`, `"version" should be a whole number from 1 to 3`},
		{readTopic, `{"version":3,"partitions":{"-1":[1]}}`, "partition numbers"},
		{readTopic, `{"version":3,"partitions":{"0":[1],"0":[2]}}`, "different partition numbers"},
		{readTopic, `{"version":3,"partitions":{"0":[1]},"topic_id":"short"}`, `"topic_id" should be 22`},
		{readTopic, strings.Repeat(`{"a":`, 40), "nested"},
	} {
		err := c.read([]byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, should say %s", c.data, err, c.says)
		}
	}
}

func readState(b []byte) error { _, err := DecodeState(b); return err }
func readTopic(b []byte) error { _, err := DecodeTopic(b); return err }

// FuzzZnode: no content of a node makes a reader panic, and what was read once is written in a form that reads the same.
func FuzzZnode(f *testing.F) {
	for _, tree := range goldenTrees(f) {
		for _, n := range tree {
			if n.Data != nil && *n.Data != "" && len(*n.Data) < 600 {
				f.Add([]byte(*n.Data))
			}
		}
		break
	}
	f.Add([]byte(`{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}`))
	all := codecs()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range all {
			v, err := c.read(data)
			if err != nil {
				continue
			}
			first := v.Encode()
			w, err := c.read(first)
			if err != nil {
				t.Fatalf("%s: what was written cannot be read: %v\n%q\n%q", c.name, err, data, first)
			}
			if second := w.Encode(); !bytes.Equal(first, second) {
				t.Fatalf("%s: written differently the second time:\n%q\n%q", c.name, first, second)
			}
		}
	})
}
