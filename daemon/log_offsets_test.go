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

// TestLogDumpNamesLaterGroups: records of the groups of KIP-848 by their keys, in the form Kafka's tool gives keys.
func TestLogDumpNamesLaterGroups(t *testing.T) {
	for _, c := range []struct {
		key, value         []byte
		wantKey, wantValue string
	}{
		{[]byte("\x00\x03\x00\x01g"), []byte("\x00\x00\x00\x00\x00\x05\x00"), `{"type":"3","data":{"groupId":"g"}}`, `{"version":"0","data":"AAAABQA="}`},
		{[]byte("\x00\x05\x00\x01g\x00\x02me"), nil, `{"type":"5","data":{"groupId":"g","memberId":"me"}}`, "<DELETE>"},
		{[]byte("\x00\x08\x00\x01g\x00\x02me"), []byte{0}, `{"type":"8","data":{"groupId":"g","memberId":"me"}}`, "AA=="},
		{[]byte("\x00\x08\x00\x01g\x00\x09me"), nil, "Unknown record type 8 at offset 7, skipping.", ""},
		{[]byte("\x00\x0b\x00\x01g"), nil, "Unknown record type 11 at offset 7, skipping.", ""},
	} {
		if key, value := parseOffsets(7, c.key, c.value); key != c.wantKey || value != c.wantValue {
			t.Errorf("%q: %s %s, want %s %s", c.key, key, value, c.wantKey, c.wantValue)
		}
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
