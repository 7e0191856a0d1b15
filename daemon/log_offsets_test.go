package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogDumpDecodesOffsetsAsKafka compares with what kafka-dump-log --offsets-decoder printed of the same file; see the README
// beside it.
func TestLogDumpDecodesOffsetsAsKafka(t *testing.T) {
	const golden = "../coordinator/testdata/golden/decoder"
	log, err := os.ReadFile(golden + ".log")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(golden + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "__consumer_offsets-3")
	file := filepath.Join(dir, "00000000000000000000.log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, log, 0o600); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(text), "Dumping 00000000000000000000.log", "Dumping "+file, 1)
	for _, args := range []string{"--offsets-decoder " + dir, "--records " + dir, "-r " + file} {
		if out := kring(t, "", append([]string{"log", "dump"}, strings.Fields(args)...)...).ok(t); out != want {
			t.Errorf("%s:\n%s\nKafka:\n%s", args, out, want)
		}
	}
	if out := kring(t, "", "log", "dump", dir).ok(t); strings.Contains(out, "commitTimestamp") {
		t.Errorf("records nobody asked for:\n%s", out)
	}
}

func TestLogDumpSaysWhatIsNoOffset(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	b.kring("key:value\n", "produce", "words", "-K", ":").ok(t)
	b.kring("\tvalue\n", "produce", "words", "-K", "\t").ok(t)
	out := kring(t, "", "log", "dump", "--offsets-decoder", b.data+"/words-0").ok(t)
	for _, want := range []string{" key: Unknown record type 27493 at offset 0, skipping.\n", " key: Error at offset 1, skipping. malformed record: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
