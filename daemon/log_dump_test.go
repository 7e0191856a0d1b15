package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// place copies a recorded log into a directory as a partition's first segment.
func place(t *testing.T, golden, partition string) (dir, file string) {
	t.Helper()
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), partition)
	file = filepath.Join(dir, "00000000000000000000.log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// TestLogDumpDecodesTransactionsAsKafka compares with what kafka-dump-log --transaction-log-decoder printed of the same files.
func TestLogDumpDecodesTransactionsAsKafka(t *testing.T) {
	for _, name := range []string{"transactions", "transactions-made"} {
		golden := "../coordinator/testdata/golden/" + name
		text, err := os.ReadFile(golden + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		dir, file := place(t, golden+".log", "__transaction_state-0")
		want := strings.Replace(string(text), "Dumping 00000000000000000000.log", "Dumping "+file, 1)
		_, elsewhere := place(t, golden+".log", "copied")
		for _, args := range []string{"--records " + dir, "--transaction-log-decoder " + file, "--transaction-log-decoder " + elsewhere} {
			fields := strings.Fields(args)
			out := kring(t, "", append([]string{"log", "dump"}, fields...)...).ok(t)
			if out = strings.Replace(out, elsewhere, file, 1); out != want {
				t.Errorf("%s %s:\n%.3000s\nKafka:\n%.3000s", name, args, out, want)
			}
		}
		if out := kring(t, "", "log", "dump", dir).ok(t); strings.Contains(out, "txnTimeoutMs") {
			t.Errorf("records nobody asked for:\n%s", out)
		}
	}
}

// Keys and values that are numbers or bytes, by the decoder asked for; without metadata; no more bytes than asked for.
func TestLogDumpReadsKeysAndValuesAsAsked(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	b.kring("\x00\x00\x01\x02=\x00\x00\x00\x00\x00\x00\x00\x7f\nodd=value\n", "produce", "numbers", "-K", "=").ok(t)
	dir := b.data + "/numbers-0"
	dump := func(args ...string) string {
		return kring(t, "", append([]string{"log", "dump", dir + "/00000000000000000000.log"}, args...)...).ok(t)
	}
	for _, c := range []struct{ args, want string }{
		{"--key-decoder integer --value-decoder long", "\n| key: 258 payload: 127\n| key: (3 bytes, not 4: 6f6464) payload: (5 bytes, not 8: 76616c7565)\n"},
		{"--key-decoder hex --value-decoder base64", "\n| key: 00000102 payload: AAAAAAAAAH8=\n| key: 6f6464 payload: dmFsdWU=\n"},
		{"--value-decoder string", "\n| key: \x00\x00\x01\x02 payload: \x00\x00\x00\x00\x00\x00\x00\x7f\n| key: odd payload: value\n"},
	} {
		if out := dump(append(strings.Fields(c.args), "--skip-record-metadata")...); !strings.HasSuffix(out, c.want) {
			t.Errorf("%s:\n%q\nends otherwise than\n%q", c.args, out, c.want)
		}
	}
	if out := dump("--records"); !strings.Contains(out, "keySize: 3 valueSize: 5 ") {
		t.Errorf("no metadata:\n%s", out)
	}
	if out := dump("--records", "--max-bytes", "80"); out != fmt.Sprintf("Dumping %s/00000000000000000000.log\nLog starting offset: 0\n", dir) {
		t.Errorf("of 80 bytes, in which no batch fits:\n%s", out)
	}
}

// What is no record of a transactional id is named, and the rest is printed.
func TestLogDumpSaysWhatIsNoTransaction(t *testing.T) {
	for _, c := range []struct {
		key, value      []byte
		wantKey, wanted string
	}{
		{[]byte("\x00\x01\x00\x01a"), nil, "Unknown record type 1 at offset 7, skipping.", ""},
		{[]byte("\x00"), nil, "Error at offset 7, skipping. malformed record: ", ""},
		{[]byte("\x00\x00\x00\x01a"), []byte{0, 2}, "Error at offset 7, skipping. malformed record: ", ""},
		{[]byte("\x00\x00\x00\x01a"), nil, "transaction_metadata::transactionalId=a", "<DELETE>"},
	} {
		if key, value := parseTransactions(7, c.key, c.value); !strings.HasPrefix(key, c.wantKey) || value != c.wanted {
			t.Errorf("%q: %s %s, want %s %s", c.key, key, value, c.wantKey, c.wanted)
		}
	}
}

// The three commands that look at files end alike where a path leads nowhere, and say what is wrong with a file on standard error.
func TestLogCommandsEndAlike(t *testing.T) {
	for _, command := range []string{"dump", "verify", "repair"} {
		r := kring(t, "", "log", command, "/nowhere/words-0")
		if r.status != exitData || !strings.Contains(r.errOut, "/nowhere/words-0") || r.out != "" {
			t.Errorf("log %s: status %d, %q", command, r.status, r.errOut)
		}
		help := kring(t, "", "log", command, "--help").ok(t)
		if !strings.Contains(strings.Join(strings.Fields(help), " "), "7 if something could not be read") {
			t.Errorf("log %s --help has no word of status 7:\n%s", command, help)
		}
	}
	for _, args := range []string{"--key-decoder double", "--max-bytes -1", "--offsets-decoder --transaction-log-decoder"} {
		if r := kring(t, "", append([]string{"log", "dump", "."}, strings.Fields(args)...)...); r.status != exitArguments {
			t.Errorf("%s: status %d, %q", args, r.status, r.errOut)
		}
	}
	odd := filepath.Join(t.TempDir(), "leader-epoch-checkpoint")
	if err := os.WriteFile(odd, bytes.Repeat([]byte{'0', '\n'}, 2), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := kring(t, "", "log", "dump", odd); r.status != 0 || r.out != "Dumping "+odd+"\n" || r.errOut != "Ignoring unknown file "+odd+"\n" {
		t.Errorf("a file that is none of a log: %+v", r)
	}
}
