package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kring/conformance/stage"
)

// TestKafkasDumpReadsOurFiles lets Kafka's own DumpLogSegments print the files of a cleanly stopped broker, indexes checked against
// the log, and wants `kring log dump` to print the same, with every option.
func TestKafkasDumpReadsOurFiles(t *testing.T) {
	b := start(t, 1)
	b.create("dumped", 1, "segment.bytes=20000", "index.interval.bytes=500")
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(),
		kgo.ZstdCompression()} {
		cl := b.client(kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic("dumped"))
		for i := range 100 {
			r := &kgo.Record{Key: fmt.Appendf(nil, "key-%d", i), Value: bytes.Repeat([]byte{byte('a' + i%26)}, 200),
				Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, i)}}}
			if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.stop(syscall.SIGTERM)
	var files []string
	for _, suffix := range []string{".log", ".index", ".timeindex", ".snapshot"} {
		found, err := filepath.Glob(filepath.Join(b.dir, "data", "dumped-0", "*"+suffix))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s files: %v", suffix, err)
		}
		files = append(files, found...)
	}
	if n := len(files); n < 16 {
		t.Fatalf("%d files: nothing was rolled", n)
	}
	j := startTools(t)
	for _, c := range []struct{ ours, kafkas string }{
		{"", ""},
		{"--records", "--print-data-log"},
		{"--deep-iteration", "--deep-iteration"},
		{"--records --skip-record-metadata", "--print-data-log --skip-record-metadata"},
		{"--deep-iteration --max-bytes 5000", "--deep-iteration --max-bytes 5000"},
		{"--verify-index-only", "--verify-index-only"},
		{"--index-sanity-check", "--index-sanity-check"},
		{"--key-decoder string --value-decoder string", "--key-decoder-class " + decoders + "StringDecoder"},
	} {
		if wrong := sameDump(t, j, files, c.ours, c.kafkas); wrong != "" {
			t.Errorf("%s: %s", c.kafkas, wrong)
		}
	}
}

const decoders = "org.apache.kafka.tools.api."

// TestDumpOfMadeFilesIsKafkas is TestKafkasDumpReadsOurFiles for files that hold what a broker seldom writes, or never; see the README
// beside them. Kafka's tool tells on standard error what is wrong, and so do we.
func TestDumpOfMadeFilesIsKafkas(t *testing.T) {
	made, err := filepath.Abs("../segment/testdata/dump/made-0")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(made + "/*.*")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files in %s: %v", len(files), made, err)
	}
	golden, err := filepath.Abs("../coordinator/testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	j := startTools(t)
	for _, options := range []string{"", "--deep-iteration", "--verify-index-only"} {
		sameDump(t, j, files, options, options)
	}
	sameDump(t, j, files, "--records", "--print-data-log")
	sameDump(t, j, files, "--records --skip-record-metadata", "--print-data-log --skip-record-metadata")
	numbers := []string{longs(t)}
	sameDump(t, j, numbers, "--key-decoder integer --value-decoder long",
		"--key-decoder-class "+decoders+"IntegerDecoder --value-decoder-class "+decoders+"LongDecoder")
	for _, name := range []string{"transactions", "transactions-made"} {
		log := filepath.Join(t.TempDir(), "00000000000000000000.log")
		b, err := os.ReadFile(golden + "/" + name + ".log")
		if err == nil {
			err = os.WriteFile(log, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		sameDump(t, j, []string{log}, "--transaction-log-decoder", "--transaction-log-decoder")
	}
}

// longs is a segment whose keys and values are numbers, as kring wrote it.
func longs(t *testing.T) string {
	b := start(t, 1)
	b.create("numbers", 1)
	cl := b.client(kgo.DefaultProduceTopic("numbers"))
	for _, n := range []uint64{0, 1, 1 << 31, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		r := &kgo.Record{Key: binary.BigEndian.AppendUint32(nil, uint32(n>>32)), Value: binary.BigEndian.AppendUint64(nil, n)}
		if err := cl.ProduceSync(context.Background(), r, &kgo.Record{}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	b.stop(syscall.SIGTERM)
	return filepath.Join(b.dir, "data", "numbers-0", "00000000000000000000.log")
}

// badSnapshot are the words of both tools for a snapshot that cannot be read; ours name the file.
var badSnapshot = regexp.MustCompile(`(?m)^(Snapshot is corrupt|Snapshot contained|.*: malformed file: snapshot).*$`)

// sameDump lets both tools print the files and wants the same lines on standard output, and on standard error, which it returns.
func sameDump(t *testing.T, j *jvm, files []string, ours, kafkas string) (wrong string) {
	t.Helper()
	theirs := j.run(t, "", "dump-log", append(strings.Fields(kafkas), "--files", strings.Join(files, ","))...)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, stage.Kring(t), append(append([]string{"log", "dump"}, strings.Fields(ours)...), files...)...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil || theirs.status != 0 {
		t.Fatalf("kring log dump %s: %v: %s\nKafka's: status %d: %s", ours, err, tail(errOut.String(), 2000), theirs.status, theirs.err.String())
	}
	if out.String() != theirs.out.String() {
		t.Errorf("kring log dump %s: the dumps differ at %s", ours, firstDifference(out.String(), theirs.out.String()))
	}
	told := func(s string) string { return badSnapshot.ReplaceAllString(s, "(a bad snapshot)") }
	if a, b := told(errOut.String()), told(theirs.err.String()); a != b {
		t.Errorf("kring log dump %s: what is wrong differs at %s", ours, firstDifference(a, b))
	}
	return theirs.err.String()
}

// output is what a command prints; it must print nothing on standard error.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil || errOut.Len() > 0 {
		t.Fatalf("%s: %v: %s", name, err, tail(errOut.String(), 2000))
	}
	return out.String()
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n ours %q\n Kafka's %q", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("their ends: %d and %d lines", len(x), len(y))
}
