package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

// TestCompactionIsKafkas has Kafka write a topic - plain, idempotent and transactional records, some of them aborted, keys deleted,
// with each codec - and gives the same files to Kafka and to Kring to compact. What both make of them is compared file by file,
// and Kafka's dump tool reads ours. A second round, when the tombstones' time is over, is compared too.
func TestCompactionIsKafkas(t *testing.T) {
	settings := []string{"log.cleaner.backoff.ms=200", "log.segment.delete.delay.ms=1000", "auto.create.topics.enable=false",
		"transaction.state.log.num.partitions=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"log.retention.ms=-1"}
	kafka := startKafka(t, settings...)
	topic := []string{"segment.bytes=20000", "index.interval.bytes=300", "min.cleanable.dirty.ratio=0.01", "delete.retention.ms=1000"}
	kafka.create("twin", int32(len(twinCodecs)), topic...)
	writeTwin(t, kafka)
	kafka.stop(syscall.SIGTERM)
	ours := start(t, 1, settings...)
	if ours.kafka {
		t.Skip("compares Kafka with itself")
	}
	ours.create("twin", int32(len(twinCodecs)), topic...)
	ours.stop(syscall.SIGTERM)
	for p := range twinCodecs {
		copyLog(t, fmt.Sprintf("%s/data/twin-%d", kafka.dir, p), fmt.Sprintf("%s/data/twin-%d", ours.dir, p))
	}
	kafka.run()
	ours.run()
	both := []*broker{kafka, ours}
	for _, b := range both {
		compact(t, b, "twin", "compact")
	}
	for _, b := range both {
		awaitClean(t, b, 0)
	}
	compareTwins(t, kafka, ours, "after the first cleaning")
	for _, b := range both {
		compact(t, b, "twin", "delete")
	}
	before := cleanedTo(t, ours)
	time.Sleep(1100 * time.Millisecond) // delete.retention.ms goes by
	for _, b := range both {
		writeMore(t, b)
		compact(t, b, "twin", "compact")
	}
	for _, b := range both {
		awaitClean(t, b, before+1)
	}
	compareTwins(t, kafka, ours, "after the second cleaning")
	ours.stop(syscall.SIGTERM)
	for p := range twinCodecs {
		dumpWithKafka(t, fmt.Sprintf("%s/data/twin-%d", ours.dir, p))
	}
	ours.run()
}

var twinCodecs = []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}

// writeTwin fills each partition in its codec.
func writeTwin(t *testing.T, b *broker) {
	t.Helper()
	for p, codec := range twinCodecs {
		common := []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec)}
		plain := b.client(append(common, kgo.DisableIdempotentWrite())...)
		idempotent := b.client(common...)
		txn := b.client(append(common, kgo.TransactionalID(fmt.Sprint("twin ", p)))...)
		for round := range 40 {
			twinBatch(t, plain, p, round, 12)
			twinBatch(t, idempotent, p, 1000+round, 1+round%7)
			if round%4 != 0 {
				continue
			}
			if err := txn.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			twinBatch(t, txn, p, 2000+round, 5)
			twinBatch(t, plain, p, 3000+round, 2)
			end := kgo.TryCommit
			if round%8 == 0 {
				end = kgo.TryAbort
			}
			if err := txn.EndTransaction(context.Background(), end); err != nil {
				t.Fatal(err)
			}
		}
		plain.Close()
		idempotent.Close()
		txn.Close()
	}
}

// twinBatch produces one batch of records of few keys at fixed times.
func twinBatch(t *testing.T, cl *kgo.Client, partition, round, n int) {
	t.Helper()
	var list []*kgo.Record
	for i := range n {
		r := &kgo.Record{Topic: "twin", Partition: int32(partition), Timestamp: time.UnixMilli(1_700_000_000_000 + int64(round*100+i*13%7)),
			Key: fmt.Appendf(nil, "key %d", (round*7+i*3)%60), Value: fmt.Appendf(nil, "value %d of round %d %s", i, round, strings.Repeat("abc", round%30))}
		if (round+i)%9 == 0 {
			r.Value = nil
		}
		if i%5 == 0 {
			r.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte{byte(i)}}}
		}
		list = append(list, r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := cl.ProduceSync(ctx, list...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// writeMore writes the same batches of one record to any broker, enough for some segments.
func writeMore(t *testing.T, b *broker) {
	t.Helper()
	for p, codec := range twinCodecs {
		cl := b.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec), kgo.DisableIdempotentWrite(), kgo.ProducerLinger(0))
		for round := range 50 {
			r := &kgo.Record{Topic: "twin", Partition: int32(p), Timestamp: time.UnixMilli(1_700_001_000_000 + int64(round)),
				Key: fmt.Appendf(nil, "key %d", round%10), Value: stage.Noise(round, 900)}
			if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		cl.Close()
	}
}

func copyLog(t *testing.T, from, to string) {
	t.Helper()
	old, err := filepath.Glob(to + "/0*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range old {
		os.Remove(name)
	}
	list, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Name() == "partition.metadata" || strings.HasSuffix(e.Name(), ".deleted") {
			continue
		}
		content, err := os.ReadFile(from + "/" + e.Name())
		if err == nil {
			err = os.WriteFile(to+"/"+e.Name(), content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// compact sets a topic's cleanup.policy. A broker that has just begun may not know the topic yet.
func compact(t *testing.T, b *broker, topic, policy string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	admin := kadm.NewClient(b.client())
	for {
		all, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "cleanup.policy", Value: &policy}}, topic)
		if err == nil {
			var one kadm.AlterConfigsResponse
			if one, err = all.On(topic, nil); err == nil {
				err = one.Err
			}
		}
		if err == nil {
			return
		}
		if !errors.Is(err, kerr.UnknownTopicOrPartition) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// cleanedTo is the least offset up to which the partitions of the topic are clean, -1 if one never was.
func cleanedTo(t *testing.T, b *broker) int64 {
	t.Helper()
	content, err := os.ReadFile(b.dir + "/data/cleaner-offset-checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	seen, least := map[int]bool{}, int64(1<<62)
	for line := range strings.Lines(string(content)) {
		var p int
		var o int64
		if n, _ := fmt.Sscanf(line, "twin %d %d", &p, &o); n == 2 {
			seen[p], least = true, min(least, o)
		}
	}
	if len(seen) < len(twinCodecs) {
		return -1
	}
	return least
}

// awaitClean waits until each partition is clean beyond an offset, and nothing goes on any more.
func awaitClean(t *testing.T, b *broker, beyond int64) {
	t.Helper()
	until := time.Now().Add(2 * time.Minute)
	for cleanedTo(t, b) < max(beyond, 1) {
		if time.Now().After(until) {
			checkpoint, _ := os.ReadFile(b.dir + "/data/cleaner-offset-checkpoint")
			t.Fatalf("Kafka %v: not cleaned beyond %d; checkpoint %q", b.kafka, beyond, checkpoint)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for leftOver(t, b) != "" {
		if time.Now().After(until) {
			t.Fatalf("still there: %s", leftOver(t, b))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// leftOver is a file of the topic that is on its way in or out, "" if there is none.
func leftOver(t *testing.T, b *broker) string {
	t.Helper()
	list, err := filepath.Glob(b.dir + "/data/twin-*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		switch filepath.Ext(name) {
		case ".deleted", ".cleaned", ".swap":
			return name
		}
	}
	return ""
}

// compareTwins holds the files of both brokers against each other, but for the newest segment, which is not finished.
func compareTwins(t *testing.T, kafka, ours *broker, when string) {
	t.Helper()
	for p := range twinCodecs {
		theirs, mine := segmentsOf(t, fmt.Sprintf("%s/data/twin-%d", kafka.dir, p)), segmentsOf(t, fmt.Sprintf("%s/data/twin-%d", ours.dir, p))
		sameSize := true
		for name, want := range theirs {
			got, ok := mine[name]
			where := fmt.Sprintf("%s, partition %d, %s", when, p, name)
			switch {
			case !ok:
				t.Errorf("%s: we have no such file", where)
			case strings.HasSuffix(name, ".log"):
				compareBatches(t, where, got, want)
				sameSize = sameSize && len(got) == len(want)
			case strings.HasSuffix(name, ".snapshot"):
			}
		}
		for name := range mine {
			if _, ok := theirs[name]; !ok {
				t.Errorf("%s, partition %d: %s is ours alone", when, p, name)
			}
		}
		if p == 0 && !sameSize {
			t.Errorf("%s: uncompressed segments are not of the same size", when)
		}
		for name, want := range theirs { // positions follow from sizes, and those from how well a codec compresses
			if got := mine[name]; (p == 0 || strings.HasSuffix(name, ".txnindex")) && !strings.HasSuffix(name, ".log") && !bytes.Equal(got, want) {
				t.Errorf("%s, partition %d: %s\n% x\nwant\n% x", when, p, name, got, want)
			}
		}
	}
}

// segmentsOf reads all files of finished segments.
func segmentsOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	list, err := filepath.Glob(dir + "/*.log")
	if err != nil || len(list) < 2 {
		t.Fatalf("%s: %v %v", dir, list, err)
	}
	slices.Sort(list)
	newest := strings.TrimSuffix(filepath.Base(list[len(list)-1]), ".log")
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if base, suffix, ok := strings.Cut(e.Name(), "."); ok && len(base) == 20 && base < newest && suffix != "snapshot" {
			if all[e.Name()], err = os.ReadFile(dir + "/" + e.Name()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// compareBatches holds two .log files against each other. The time of the cleaning is in a batch's delete horizon and in the timestamp deltas
// that count from it, the leader's epoch in the batches each broker wrote itself; compressed records are unpacked.
func compareBatches(t *testing.T, where string, got, want []byte) {
	t.Helper()
	for n := 0; len(got) > 0 || len(want) > 0; n++ {
		a, b := cutBatch(&got), cutBatch(&want)
		if a == nil || b == nil {
			t.Errorf("%s: batch %d: ours %v, theirs %v", where, n, a != nil, b != nil)
			return
		}
		if crc := binary.BigEndian.Uint32(a[17:]); crc != crc32.Checksum(a[21:], crc32.MakeTable(crc32.Castagnoli)) {
			t.Errorf("%s: batch %d: wrong checksum", where, n)
		}
		ha, hb := bytes.Clone(a[:61]), bytes.Clone(b[:61])
		codec, horizon := ha[22]&7, ha[22]&0x40 != 0
		for _, h := range [][]byte{ha, hb} {
			clear(h[12:16]) // leader epoch
			clear(h[17:21]) // checksum
			if codec != 0 {
				clear(h[8:12])
			}
			if horizon {
				clear(h[27:35])
			}
		}
		if !bytes.Equal(ha, hb) {
			t.Errorf("%s: batch %d\n% x\nwant\n% x", where, n, a[:61], b[:61])
			continue
		}
		if codec == 0 && !horizon && !bytes.Equal(a[61:], b[61:]) {
			t.Errorf("%s: batch %d\n% x\nwant\n% x", where, n, a, b)
		}
		if ra, rb := recordsOf(t, a), recordsOf(t, b); !slices.Equal(ra, rb) {
			t.Errorf("%s: batch %d\n%q\nwant\n%q", where, n, ra, rb)
		}
	}
}

// recordsOf unpacks a batch.
func recordsOf(t *testing.T, b []byte) (all []string) {
	t.Helper()
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Topic: "twin"},
		&kmsg.FetchResponseTopicPartition{RecordBatches: b}, kgo.DefaultDecompressor(), nil)
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	for _, r := range got.Records {
		all = append(all, fmt.Sprintf("%d %d %q=%q %v %v", r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, r.Value == nil, r.Headers))
	}
	return all
}

// cutBatch takes the first batch off the front.
func cutBatch(b *[]byte) []byte {
	if len(*b) < 61 {
		return nil
	}
	n := 12 + int(binary.BigEndian.Uint32((*b)[8:]))
	if n > len(*b) {
		return nil
	}
	first := (*b)[:n]
	*b = (*b)[n:]
	return first
}

// dumpWithKafka lets Kafka's own tool check every file of a partition.
func dumpWithKafka(t *testing.T, dir string) {
	t.Helper()
	var names []string
	for _, suffix := range []string{"log", "index", "timeindex", "txnindex"} {
		list, err := filepath.Glob(dir + "/*." + suffix)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, list...)
	}
	j := startTools(t)
	run := j.run(t, "", "dump-log", "--files", strings.Join(names, ","), "--deep-iteration", "--index-sanity-check")
	got := run.out.String() + run.err.String()
	for _, bad := range []string{"Mismatches in", "not valid", "not correct", "isvalid: false", "Found timestamp mismatch", "Exception"} {
		if strings.Contains(got, bad) {
			t.Errorf("%s: Kafka's dump tool says %q:\n%s", dir, bad, tail(got, 3000))
		}
	}
	if !strings.Contains(got, "Log starting offset") {
		t.Errorf("%s: %s", dir, tail(got, 2000))
	}
}
