package conformance

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kring/conformance/stage"
)

// TestKafkasDumpReadsOurFiles lets Kafka's own DumpLogSegments print the files of a cleanly stopped broker, indexes checked against
// the log, and wants `kring log dump` to print the same.
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
	theirs := output(t, "peers/peers", "tool", "3.9", "dump-log", "--print-data-log", "--files", strings.Join(files, ","))
	ours := output(t, stage.Kring(t), append([]string{"log", "dump", "--records"}, files...)...)
	if ours != theirs {
		t.Errorf("the dumps differ at %s", firstDifference(ours, theirs))
	}
}

// output is what a command prints; it must print nothing on standard error, where both tools say what is wrong with an index.
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
