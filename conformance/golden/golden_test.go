package golden

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kring/conformance/stage"
)

const (
	testdata = "../../segment/testdata/"
	cluster  = "uQtXc7wQQ-SEYe54tbNBOA"
	// patience bounds what anything may take on a busy machine.
	patience = 2 * time.Minute
)

// expected is what expect.json says of one log dir.
type expected struct {
	Partitions map[string]struct {
		Summary struct {
			TopicID            string
			LeaderEpoch        int32
			LogStartOffset     int64
			LogEndOffset       int64
			LastStableOffset   int64
			MaxTimestamp       int64
			MaxTimestampOffset int64
		}
		ReadUncommitted string // offsets of records: "0-2,5"
	}
	AfterRecovery map[string]struct{ LogStartOffset, HighWatermark, LastStableOffset int64 }
}

// found is what clients see of one partition.
type found struct {
	Start, End, Stable, MaxTime, MaxTimeAt int64
	Uncommitted, Committed                 []int64 // offsets of records
}

func TestGoldenLogDirs(t *testing.T) {
	if os.Getenv("KRING_PEERS_TEST") == "" {
		t.Skip("needs a real Kafka; make conformance sets KRING_PEERS_TEST")
	}
	text, err := os.ReadFile(testdata + "expect.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]expected
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clean", "killed"} {
		t.Run(name, func(t *testing.T) { handOver(t, name, all["logdir-"+name]) })
	}
}

// handOver has kring, and then Kafka, serve a log dir.
func handOver(t *testing.T, name string, e expected) {
	dir := t.TempDir()
	unpack(t, testdata+"logdir-"+name+".tar.gz", dir)
	data, zkPort, port := dir+"/logdir-"+name, stage.FreePort(t), stage.FreePort(t)
	stage.Peers(t, stage.Small, "zk", dir+"/zk", "clientPort="+zkPort)
	t.Cleanup(func() { stage.Peers(t, stage.Small, "stop", dir+"/zk", "KILL") })
	plant(t, "127.0.0.1:"+zkPort, e)
	run(t, "store", "import", "--zookeeper", "127.0.0.1:"+zkPort, "--log-dir", data)

	settings := []string{"broker.id=4", "log.index.size.max.bytes=4096", "log.retention.ms=-1", "log.cleaner.enable=false",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=3600000",
		"offsets.topic.num.partitions=3", "transaction.state.log.num.partitions=3", "offsets.retention.minutes=2147483647"}
	addr := "127.0.0.1:" + port
	stop := startKring(t, append([]string{"log.dirs=" + data, "listeners=PLAINTEXT://" + addr}, settings...))
	byKring := look(t, addr, e)
	stop()
	compare(t, "kring", byKring, e)
	run(t, "log", "verify", "-q", data)
	run(t, "store", "export", "--zookeeper", "127.0.0.1:"+zkPort, "--log-dir", data)

	kafka := []string{"kafka", dir + "/kafka", "port=" + port, "zookeeper.connect=127.0.0.1:" + zkPort, "log.dirs=" + data}
	stage.Peers(t, stage.Small, append(kafka, settings...)...)
	byKafka := look(t, addr, e)
	stage.Peers(t, stage.Small, "stop", dir+"/kafka")
	compare(t, "Kafka behind kring", byKafka, e)
	for p, of := range byKafka {
		if got := byKring[p]; !slices.Equal(got.Committed, of.Committed) {
			t.Errorf("%s: committed are %v by kring and %v by Kafka", p, got.Committed, of.Committed)
		}
	}
	if log, err := os.ReadFile(dir + "/kafka/log"); err != nil || bytes.Contains(log, []byte("Recovering unflushed segment")) {
		t.Errorf("Kafka recovers what kring has stopped in order; %v", err)
	}
}

// compare holds what was seen against what is expected.
func compare(t *testing.T, who string, got map[string]found, e expected) {
	t.Helper()
	for p, x := range e.Partitions {
		if deleted(p) {
			continue
		}
		s := x.Summary
		want := found{Start: s.LogStartOffset, End: s.LogEndOffset, Stable: s.LastStableOffset,
			MaxTime: s.MaxTimestamp, MaxTimeAt: s.MaxTimestampOffset}
		if r, ok := e.AfterRecovery[p]; ok {
			want.Start, want.End, want.Stable = r.LogStartOffset, r.HighWatermark, r.LastStableOffset
		}
		g := got[p]
		if g.Start != want.Start || g.End != want.End || g.Stable != want.Stable ||
			g.MaxTime != want.MaxTime || g.MaxTimeAt != want.MaxTimeAt {
			t.Errorf("%s: %s finds %+v, want %+v", p, who, g, want)
		}
		if got := ranges(g.Uncommitted); got != x.ReadUncommitted && !strings.HasPrefix(p, "__") { // nobody asked for those
			t.Errorf("%s: %s gives the records %s, want %s", p, who, got, x.ReadUncommitted)
		}
	}
}

// ranges writes offsets as expect.json does.
func ranges(offsets []int64) string {
	var b strings.Builder
	for i := 0; i < len(offsets); i++ {
		first := offsets[i]
		for i+1 < len(offsets) && offsets[i+1] == offsets[i]+1 {
			i++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if fmt.Fprint(&b, first); offsets[i] > first {
			fmt.Fprintf(&b, "-%d", offsets[i])
		}
	}
	return b.String()
}

// look asks for everything clients can see.
func look(t *testing.T, addr string, e expected) map[string]found {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	all := map[string]found{}
	for p := range e.Partitions {
		if !deleted(p) {
			all[p] = found{}
		}
	}
	for _, q := range []struct {
		ask  func(context.Context, ...string) (kadm.ListedOffsets, error)
		into func(*found, kadm.ListedOffset)
	}{
		{adm.ListStartOffsets, func(f *found, o kadm.ListedOffset) { f.Start = o.Offset }},
		{adm.ListEndOffsets, func(f *found, o kadm.ListedOffset) { f.End = o.Offset }},
		{adm.ListCommittedOffsets, func(f *found, o kadm.ListedOffset) { f.Stable = o.Offset }},
		{adm.ListMaxTimestampOffsets, func(f *found, o kadm.ListedOffset) { f.MaxTime, f.MaxTimeAt = o.Timestamp, o.Offset }},
	} {
		for p, f := range all {
			topic, i := split(p)
			q.into(&f, offset(ctx, t, q.ask, topic, i))
			all[p] = f
		}
	}
	for p, f := range all {
		f.Uncommitted = consume(ctx, t, addr, p, f.End, kgo.ReadUncommitted())
		f.Committed = consume(ctx, t, addr, p, f.Stable, kgo.ReadCommitted())
		all[p] = f
	}
	return all
}

type question = func(context.Context, ...string) (kadm.ListedOffsets, error)

// offset asks until the partition has its leader.
func offset(ctx context.Context, t *testing.T, ask question, topic string, i int32) kadm.ListedOffset {
	t.Helper()
	for {
		offsets, err := ask(ctx, topic)
		o, ok := offsets.Lookup(topic, i)
		if err == nil && ok && o.Err == nil {
			return o
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s-%d: %v %v", topic, i, err, o.Err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// consume gives the offsets of the records of a partition below end, control records left out.
func consume(ctx context.Context, t *testing.T, addr, partition string, end int64, how kgo.IsolationLevel) (offsets []int64) {
	t.Helper()
	topic, i := split(partition)
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(how), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {i: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for idle := 0; idle < 20; { // compacted logs may have nothing at their end
		quick, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		f := cl.PollFetches(quick)
		cancel()
		if err := f.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%s: %v", partition, err)
		}
		idle++
		last := int64(-1)
		f.EachRecord(func(r *kgo.Record) {
			idle, last = 0, r.Offset
			if !r.Attrs.IsControl() {
				offsets = append(offsets, r.Offset)
			}
		})
		if last+1 >= end {
			break
		}
	}
	return offsets
}

// deleted says whether it is a directory of a topic that was deleted.
func deleted(partition string) bool { return strings.HasPrefix(partition, "gone-") }

func split(partition string) (topic string, i int32) {
	dash := strings.LastIndexByte(partition, '-')
	n, _ := strconv.Atoi(partition[dash+1:])
	return partition[:dash], int32(n)
}

// plant writes the topics into a ZooKeeper, as the controller of that Kafka had them.
func plant(t *testing.T, addr string, e expected) {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for ev := range events {
		if ev.State == zk.StateHasSession {
			break
		}
	}
	put := func(path, data string) {
		for i := 1; i < len(path); i++ {
			if path[i] == '/' {
				_, _ = c.Create(path[:i], nil, 0, zk.WorldACL(zk.PermAll))
			}
		}
		if _, err := c.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(path, err)
		}
	}
	put("/cluster/id", `{"version":"1","id":"`+cluster+`"}`)
	put("/controller_epoch", "1")
	topics := map[string]map[string][]int{}
	ids := map[string]string{}
	for p, x := range e.Partitions {
		topic, i := split(p)
		if deleted(p) {
			continue
		}
		if topics[topic] == nil {
			topics[topic] = map[string][]int{}
		}
		topics[topic][fmt.Sprint(i)], ids[topic] = []int{4}, x.Summary.TopicID
	}
	for topic, partitions := range topics {
		assigned, _ := json.Marshal(partitions)
		put("/brokers/topics/"+topic, fmt.Sprintf(
			`{"removing_replicas":{},"partitions":%s,"topic_id":"%s","adding_replicas":{},"version":3}`, assigned, ids[topic]))
		put("/config/topics/"+topic, `{"version":1,"config":{}}`)
		for i := range partitions {
			put("/brokers/topics/"+topic+"/partitions/"+i+"/state", fmt.Sprintf(
				`{"controller_epoch":1,"leader":4,"version":1,"leader_epoch":%d,"isr":[4]}`, e.Partitions[topic+"-"+i].Summary.LeaderEpoch))
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// run runs a command of kring that must succeed.
func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(stage.Kring(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("kring %v: %v\n%s", args, err, out)
	}
}

// startKring starts a broker; the function stops it in order.
func startKring(t *testing.T, settings []string) (stop func()) {
	t.Helper()
	args := []string{"broker"}
	for _, s := range settings {
		args = append(args, "--override", s)
	}
	cmd := exec.Command(stage.Kring(t), args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return func() {
		ended = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("kring ended with %v", err)
		}
	}
}

func unpack(t *testing.T, archive, into string) {
	t.Helper()
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		name := filepath.Join(into, h.Name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(name), 0o755)
		}
		if err == nil {
			err = os.WriteFile(name, content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
