package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
