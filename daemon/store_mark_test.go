package main

import (
	"maps"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kring/metadata/embedded"
)

// topic is a node of a topic with an id that ends in last.
func topicNode(name, last string) string {
	return "/brokers/topics/" + name + `={"version":3,"partitions":{"0":[1]},"topic_id":"iekmJcKISeKODFsrmS3i7` + last +
		`","adding_replicas":{},"removing_replicas":{}}`
}

// TestSidesThatWereUsedAreTold: a mark says which side has changed since, whatever the controllers' epochs are.
func TestSidesThatWereUsedAreTold(t *testing.T) {
	base := grown("/brokers/topics", "/cluster/id=c", "/controller_epoch=5", topicNode("old", "A"))
	krings := grown("/brokers/topics", "/cluster/id=c", "/controller_epoch=8", topicNode("old", "A"), topicNode("kr-only", "Q"))
	kafkas := grown("/brokers/topics", "/cluster/id=c", "/controller_epoch=6", topicNode("old", "g"), topicNode("made-in-kafka", "w"))
	older := grown("/brokers/topics", "/cluster/id=c", "/controller_epoch=4", topicNode("old", "A"))
	last := &mark{Action: didImport, ZooKeeper: "z:1", Epoch: 5, Tree: treeSum(base)}
	five := int32(5)
	begun := &mark{Action: begunIt, ZooKeeper: "z:1", Epoch: 8, Tree: treeSum(krings), Before: &five}
	h := &handover{zooKeeper: "z:1", logDirs: []string{"/d"}}
	for _, c := range []struct {
		name               string
		last               *mark
		store, zk          []embedded.Node
		imports, exports   string // "" for yes, else part of the refusal
		replace, overwrite string // the same with the flag
	}{
		{"nothing", last, base, base, "", "", "", ""},
		{"only Kring", last, krings, base, "only the store in /d was used: kring store export brings", "",
			"only the store in /d was used", ""},
		{"only Kafka", last, base, kafkas, "", "only ZooKeeper z:1 was used: kring store import brings", "", ""},
		{"both", last, krings, kafkas, "both sides were used since the last hand-over", "both sides were used since the last hand-over", "", ""},
		{"both alike", last, krings, krings, "", "", "", ""},
		{"nobody knows", nil, krings, kafkas, "nothing says which", "nothing says which", "", ""},
		{"ZooKeeper of before", last, base, older, "both sides were used", "both sides were used", "", ""},
		{"half an export", begun, krings, base, "kring store export finishes it", "", "kring store export finishes it", ""},
		{"Kafka on half an export", begun, krings, kafkas, "both sides were used", "both sides were used", "", ""},
	} {
		s, err := compare(c.last, c.store, c.zk)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what, want string, err error) {
			t.Helper()
			if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || statusOf(err) != exitData) {
				t.Errorf("%s, %s: %v, want %q", c.name, what, err, want)
			}
		}
		h.replace, h.overwrite = false, false
		check("import", c.imports, h.mayImport(s, c.store, c.zk))
		check("export", c.exports, h.mayExport(s, c.store, c.zk))
		h.replace, h.overwrite = true, true
		check("import --replace", c.replace, h.mayImport(s, c.store, c.zk))
		check("export --overwrite", c.overwrite, h.mayExport(s, c.store, c.zk))
	}
	text := h.choice(sides{last: last, store: true, zooKeeper: true}, krings, kafkas).Error()
	for _, want := range []string{"--replace", "loses 2 topics (kr-only, old) and 1 node", "--overwrite", "loses 2 topics (made-in-kafka, old)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// TestEmptyZooKeeperIsFilledOnlyWhenAsked, since most often its name is misspelt.
func TestEmptyZooKeeperIsFilledOnlyWhenAsked(t *testing.T) {
	h, one := &handover{zooKeeper: "z:1/kafak"}, int32(1)
	if err := h.mayCreate(&mark{Action: didImport, ZooKeeper: "z:1/kafka"}); err == nil || statusOf(err) != exitData ||
		!strings.Contains(err.Error(), "holds nothing of Kafka's") || !strings.Contains(err.Error(), "imported from ZooKeeper z:1/kafka at") ||
		!strings.Contains(err.Error(), "--create") {
		t.Error(err)
	}
	if err := h.mayCreate(&mark{Action: begunIt, ZooKeeper: "z:1/kafak", Before: &one}); err != nil {
		t.Errorf("what was begun is not finished: %v", err)
	}
	h.create = true
	if err := h.mayCreate(nil); err != nil {
		t.Error(err)
	}
	if !isEmpty(grown("/")) || isEmpty(grown("/", "/brokers")) {
		t.Error("empty is not told from full")
	}
}

// TestExportedStoreIsNotServed, until it is given back or taken over.
func TestExportedStoreIsNotServed(t *testing.T) {
	data := t.TempDir() + "/data"
	b := start(t, data)
	b.end(unix.SIGTERM)
	for action, want := range map[string]string{
		didExport: "was exported to ZooKeeper z:1 at 2001-02-03T04:05:06Z, controller epoch 7, and Kafka may have run since: kring store import",
		begunIt:   "an export to ZooKeeper z:1 was begun at 2001-02-03T04:05:06Z and not finished: kring store export finishes it",
	} {
		text := `{"action":"` + action + `","zookeeper":"z:1","at":"2001-02-03T04:05:06Z","controllerEpoch":7,"tree":"00"}`
		if err := os.WriteFile(data+"/"+markFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		before := tree(t, data)
		if r := kring(t, "", b.args...); r.status != exitData || !strings.Contains(r.errOut, want) || !strings.Contains(r.errOut, "--undo") {
			t.Errorf("%s: %+v", action, r)
		}
		if after := tree(t, data); !maps.Equal(before, after) {
			t.Errorf("%s: the disk has changed", action)
		}
	}
	if out := kring(t, "", "store", "export", "--undo", "--log-dir", data).ok(t); !strings.Contains(out, "Kring may start") {
		t.Error(out)
	}
	if r := kring(t, "", "store", "export", "--undo", "--log-dir", data); r.status != exitData || !strings.Contains(r.errOut, "no export to undo") {
		t.Errorf("%+v", r)
	}
	b.run()
	b.end(unix.SIGTERM)
	if err := os.WriteFile(data+"/"+markFile, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := kring(t, "", b.args...); r.status != exitData || !strings.Contains(r.errOut, markFile+", which says") {
		t.Errorf("%+v", r)
	}
}

// TestRootLeavesFilesToTheOwner of a log dir, and tells of a broker that serves as root.
func TestRootLeavesFilesToTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this is not root")
		}
		t.Skip("only root can make what is another user's")
	}
	const nobody = 65534
	data := t.TempDir() + "/data"
	b := start(t, data)
	if strings.Contains(b.said.String(), "root serves") {
		t.Error("a dir of our own is called another user's")
	}
	b.end(unix.SIGTERM)
	if err := os.Lchown(data, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir() + "/outside"
	write("outside", "of root")(t, strings.TrimSuffix(outside, "/outside"))
	if err := os.Symlink(outside, data+"/kring-store-link"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data+"/"+markFile, []byte(`{"action":"export","tree":"00"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	kring(t, "", "store", "export", "--undo", "--log-dir", data).ok(t)
	owned := func(name string) uint32 {
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			t.Fatal(err)
		}
		return st.Uid
	}
	for _, name := range []string{markFile, "kring-store-0000000000000000.log"} {
		if id := owned(data + "/" + name); id != nobody {
			t.Errorf("%s is of user %d", name, id)
		}
	}
	if id := owned(outside); id != 0 {
		t.Errorf("what a link leads to was given to user %d", id)
	}
	b.run()
	if said := b.said.String(); !strings.Contains(said, "root serves a log dir of another user's") || !strings.Contains(said, "owner=nobody") {
		t.Error(said)
	}
}

// TestAnotherBrokerIDNamesTheCure: the id in a log dir stands, and the line says how to go on.
func TestAnotherBrokerIDNamesTheCure(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	b.end(unix.SIGTERM)
	r := kring(t, "", append(b.args, "--override", "broker.id=7")...)
	if r.status != exitData || !strings.Contains(r.errOut, "broker.id is 1001, but 7 is configured") ||
		!strings.Contains(r.errOut, "set broker.id=1001 or leave it out") {
		t.Errorf("%+v", r)
	}
}
