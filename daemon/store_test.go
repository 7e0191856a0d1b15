package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kring/metadata"
	"kring/metadata/embedded"
	"kring/segment"
)

// grown are nodes of "path=data" (no data without =), in the order of paths.
func grown(text ...string) (nodes []embedded.Node) {
	for _, s := range text {
		path, data, some := strings.Cut(s, "=")
		n := embedded.Node{Path: path}
		if some {
			n.Data = []byte(data)
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b embedded.Node) int { return strings.Compare(a.Path, b.Path) })
	return nodes
}

func TestDifferenceIsWhatMakesOneTreeOfAnother(t *testing.T) {
	theirs := grown("/", "/brokers", "/brokers/ids", "/brokers/topics", "/brokers/topics/a", "/brokers/topics/a/partitions", "/brokers/topics/b=1",
		"/controller_epoch=4", "/config=")
	theirs = append(theirs, embedded.Node{Path: "/zz-ephemeral", Stat: metadata.Stat{EphemeralOwner: 9}})
	for i := range theirs {
		theirs[i].Stat.Version = int32(i)
	}
	ours := grown("/brokers", "/brokers/ids", "/brokers/topics", "/brokers/topics/b=2", "/brokers/topics/c", "/brokers/topics/c/partitions",
		"/config", "/config/changes", "/controller_epoch=4")
	w := difference(ours, theirs)
	got := fmt.Sprint(paths(w.create), paths(w.set), paths(w.remove), paths(w.count))
	want := "[/brokers/topics/c /brokers/topics/c/partitions /config/changes] [/brokers/topics/b /config] " +
		"[/brokers/topics/a/partitions /brokers/topics/a] [/config/changes]"
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if i := slices.IndexFunc(theirs, func(n embedded.Node) bool { return n.Path == "/brokers/topics/b" }); w.set[0].Stat.Version != int32(i) {
		t.Errorf("%+v is not written over version %d alone", w.set[0], i)
	}
}

func TestHandoverTakesWhatTheFileSays(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		if err := os.WriteFile(dir+"/server.properties", []byte("broker.id=3\nlog.dirs="+dir+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir + "/server.properties"
	}
	h := handover{}
	if err := h.settle([]string{file("zookeeper.connect=a:1,b:2/c\n")}); err != nil || h.zooKeeper != "a:1,b:2/c" || h.id != 3 || h.logDirs[0] != dir {
		t.Errorf("%+v %v", h, err)
	}
	for text, status := range map[string]int{
		"zookeeper.connect=a:1\nzookeeper.ssl.client.enable=true": exitUnsupported,
		"zookeeper.connect=a:1\nauthorizer.class.name=x.Y":        exitUnsupported,
		"zookeeper.connect=a:1\nlog.segment.bytes=many":           exitArguments,
		"": exitArguments,
	} {
		h := handover{}
		if err := h.settle([]string{file(text)}); err == nil || statusOf(err) != status {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A damaged store is not replaced, since nobody can say whether it is ahead of ZooKeeper; it is said what to do.
func TestImportOverADamagedStoreSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/kring-store-0000000000000000.log", make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	h := handover{logDirs: []string{dir}, replace: true}
	err := h.importTree(nil, nil, segment.Meta{})
	if err == nil || statusOf(err) != exitData || !strings.Contains(err.Error(), "kring-store-0000000000000000.log at byte 0") ||
		!strings.Contains(err.Error(), "move "+dir+"/kring-store-* away, and import again") {
		t.Error(err)
	}
}

func TestCensusLeavesOutWhatIsEphemeral(t *testing.T) {
	nodes := grown(`/cluster/id={"version":"1","id":"mine"}`, "/controller_epoch=12",
		`/brokers/topics/a={"version":3,"partitions":{"0":[5],"1":[5]},"topic_id":"iekmJcKISeKODFsrmS3i7A","adding_replicas":{},"removing_replicas":{}}`)
	nodes = append(nodes, embedded.Node{Path: "/brokers/ids/5", Stat: metadata.Stat{EphemeralOwner: 9}})
	e := &ensemble{name: "z:1"}
	kept, c, err := e.takeCensus(nodes, segment.Meta{ClusterID: "mine", BrokerID: 5})
	if err != nil || len(kept) != 3 || c.epoch != 12 || c.topics != 1 || c.partitions != 2 {
		t.Errorf("%+v %+v %v", kept, c, err)
	}
	for _, m := range []segment.Meta{{ClusterID: "mine", BrokerID: 4}, {ClusterID: "another", BrokerID: 5}} {
		if _, _, err := e.takeCensus(nodes, m); err == nil || statusOf(err) != exitData {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
