package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kring/daemon/api"
)

// fetched is a page that is served beside the numbers.
func fetched(t *testing.T, address, path string) string {
	t.Helper()
	r, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHealthTellsOfGroupsThatAreNotServed damages what a group has committed: the broker serves, and says what it does not.
func TestHealthTellsOfGroupsThatAreNotServed(t *testing.T) {
	b, address := withNumbers(t, "group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=1")
	work(t, b)
	if health := fetched(t, address, "/health"); strings.Contains(health, "groups") {
		t.Fatal(health)
	}
	b.end(syscall.SIGTERM)
	logs, err := filepath.Glob(b.data + "/__consumer_offsets-0/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-3] ^= 1
	if err := os.WriteFile(logs[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	b.run()
	if !b.said.wait("groups cannot be loaded", b.done) {
		t.Fatal("the damage is not found")
	}
	if health := fetched(t, address, "/health"); !strings.Contains(health, "serving\n") ||
		!strings.Contains(health, "groups not served, of partitions of __consumer_offsets: 1\n") {
		t.Errorf("%q", health)
	}
	if numbers := fetched(t, address, "/metrics"); !strings.Contains(numbers, "\nkring_group_partitions_failed 1\n") {
		t.Error("the numbers do not tell")
	}
}

// TestWantOfRoomIsDegraded: partitions that are offline until there is room for their logs are told of in words.
func TestWantOfRoomIsDegraded(t *testing.T) {
	var node api.Node
	told := func() string {
		var b strings.Builder
		degraded(&b, &node)
		return b.String()
	}
	if text := told(); text != "" {
		t.Errorf("of a broker that serves all: %q", text)
	}
	node.SetNoRoom(&api.NoRoom{Partitions: 81, Dirs: []string{"/a", "/b"}, Causes: []string{"no space left on device", "none there"}})
	if text := told(); text != "degraded: 81 partitions offline for want of room in /a, /b: no space left on device\n" {
		t.Errorf("%q", text)
	}
	families, err := parseNumbers("# HELP kring_log_dirs_without_room x\n# TYPE kring_log_dirs_without_room gauge\nkring_log_dirs_without_room 2\n" +
		"# HELP kring_partitions_without_room x\n# TYPE kring_partitions_without_room gauge\nkring_partitions_without_room 81\n" +
		"# HELP kring_broker_info x\n# TYPE kring_broker_info gauge\nkring_broker_info{broker_id=\"1\",cluster_id=\"c\"} 1\n")
	if err != nil {
		t.Fatal(err)
	}
	var read numbersRead
	for i := range families {
		read.add(&families[i])
	}
	var shown strings.Builder
	newStats(&read, nil, 0).print(&shown)
	if !strings.Contains(shown.String(), "\ndegraded  no room in 2 log dirs; 81 partitions offline until there is\n") {
		t.Error(shown.String())
	}
}
