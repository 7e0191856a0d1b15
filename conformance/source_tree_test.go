package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordMax is above the largest file of the Go source tree.
const recordMax = 16 << 20

// file is a regular file of the tree: the key is its path, the value its content.
type file struct {
	path string
	sum  [32]byte
	size int
}

// sourceTree lists every regular file of the Go distribution's sources.
func sourceTree(t *testing.T) (root string, files []file) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(strings.TrimSpace(string(out)), "src")
	large, empty := false, false
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		files = append(files, file{rel, sha256.Sum256(b), len(b)})
		large, empty = large || len(b) > 1<<20, empty || len(b) == 0
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5000 || !large || !empty {
		t.Fatalf("%s holds %d files, one over 1 MiB: %v, an empty one: %v; this is not the tree the test is for", root, len(files), large, empty)
	}
	return root, files
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

var codecNames = []string{"none", "gzip", "snappy", "lz4", "zstd"}

func TestGoSourceTreeComesBack(t *testing.T) {
	root, files := sourceTree(t)
	everyLoops(t, func(t *testing.T, loops int) {
		b := start(t, loops, "socket.request.max.bytes=104857600")
		for _, codec := range codecNames {
			t.Run("franz-go/"+codec, func(t *testing.T) {
				topic := "franz-" + codec
				b.create(topic, 6, "max.message.bytes="+strconv.Itoa(recordMax))
				franzProduce(t, b, topic, codecs[codec], root, files)
				checkTree(t, readBack(t, b, topic, len(files)), files, nil)
				removeTopic(t, b, topic)
			})
			t.Run("kcat/"+codec, func(t *testing.T) {
				topic := "kcat-" + codec
				b.create(topic, 6, "max.message.bytes="+strconv.Itoa(recordMax))
				kcatProduce(t, b, topic, codec, root, files)
				checkTree(t, kcatReadBack(t, b, topic), files, nil)
				removeTopic(t, b, topic)
			})
		}
	})
}

func franzProduce(t *testing.T, b *broker, topic string, codec kgo.CompressionCodec, root string, files []file) {
	t.Helper()
	cl := b.client(kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(recordMax), kgo.DefaultProduceTopic(topic),
		kgo.BrokerMaxWriteBytes(4*recordMax), kgo.MaxBufferedBytes(64<<20))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(root, f.path))
		if err != nil {
			t.Fatal(err)
		}
		cl.Produce(ctx, &kgo.Record{Key: []byte(f.path), Value: content}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce %s: %v", f.path, err)
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// got is what came back: how often each key, and its last value's sum.
type got map[string]struct {
	n   int
	sum [32]byte
}

func (g got) add(key, value []byte) {
	e := g[string(key)]
	e.n, e.sum = e.n+1, sha256.Sum256(value)
	g[string(key)] = e
}

func readBack(t *testing.T, b *broker, topic string, want int) got {
	t.Helper()
	cl := b.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxPartitionBytes(4<<20),
		kgo.BrokerMaxReadBytes(256<<20))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	g := got{}
	for n := 0; n < want; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", n, want, err)
		}
		fs.EachRecord(func(r *kgo.Record) { g.add(r.Key, r.Value); n++ })
	}
	return g
}

func checkTree(t *testing.T, g got, files []file, skip func(file) bool) {
	t.Helper()
	bad, n := 0, 0
	for _, f := range files {
		if skip != nil && skip(f) {
			continue
		}
		n++
		if e := g[f.path]; (e.n != 1 || e.sum != f.sum) && bad < 5 {
			bad++
			t.Errorf("%s (%d bytes) came back %d times, content equal: %v", f.path, f.size, e.n, e.sum == f.sum)
		}
	}
	if len(g) != n {
		t.Errorf("%d keys came back, want %d", len(g), n)
	}
}

// The delimiters kcat splits its input by; kcatProduce asserts that they do not occur.
const keyEnd, recordEnd = "\x01:key-end:\x02", "\x01:record-end:\x02"

// kcatProduce pipes every file through kcat. kcat takes an empty value as the empty value, not null, unless -Z is given.
func kcatProduce(t *testing.T, b *broker, topic, codec, root string, files []file) {
	t.Helper()
	cmd := exec.Command("kcat", "-P", "-b", b.addr, "-t", topic, "-K", keyEnd, "-D", recordEnd, "-z", codec,
		"-X", "message.max.bytes="+strconv.Itoa(recordMax), "-X", "message.copy.max.bytes=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("kcat: %v", err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(root, f.path))
		if err == nil && (bytes.Contains(content, []byte(keyEnd)) || bytes.Contains(content, []byte(recordEnd))) {
			err = fmt.Errorf("holds a delimiter")
		}
		if err != nil {
			t.Fatalf("%s: %v", f.path, err)
		}
		io.WriteString(in, f.path+keyEnd)
		in.Write(content)
		io.WriteString(in, recordEnd)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("kcat: %v\n%s", err, tail(out.String(), 1000))
	}
}

// kcatReadBack reads the topic by kcat to its end: key length, value length, key and value of each record.
func kcatReadBack(t *testing.T, b *broker, topic string) got {
	t.Helper()
	cmd := exec.Command("kcat", "-C", "-b", b.addr, "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%K %S\n%k%s",
		"-X", "fetch.message.max.bytes="+strconv.Itoa(4<<20), "-X", "receive.message.max.bytes="+strconv.Itoa(256<<20), "-X", "fetch.max.bytes=52428800",
		"-X", "message.max.bytes="+strconv.Itoa(recordMax))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kcat: %v\n%s", err, tail(errs.String(), 1000))
	}
	g := got{}
	for len(out) > 0 {
		line, rest, ok := bytes.Cut(out, []byte("\n"))
		var k, v int
		if n, _ := fmt.Sscanf(string(line), "%d %d", &k, &v); !ok || n != 2 || k < 0 {
			t.Fatalf("kcat printed %.80q", line)
		}
		v = max(v, 0) // -1 for null
		g.add(rest[:k], rest[k:k+v])
		out = rest[k+v:]
	}
	return g
}
