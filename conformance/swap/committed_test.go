package swap

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestReadCommitted has Kafka's own producer write transactions to Kafka - committed, aborted, timed out, open, over each other, in many
// segments, with each codec, and compacted - and clients read them from Kafka; then kring serves the same directory, and everything has
// to be the same: what each client reads, and each answer to Fetch and ListOffsets, at every offset. Two things are not: Kafka names
// aborted transactions that begin behind what an answer holds, and does not look for a time beyond a segment that lost its records.
func TestReadCommitted(t *testing.T) {
	needsPeers(t)
	s := &story{house: newHouse(t), t: t, topics: map[string]string{}}
	s.startKafka()
	s.create("plain", 3, "segment.bytes=12000", "index.interval.bytes=400", "retention.ms=-1")
	s.create("tidy", 2, "segment.bytes=12000", "cleanup.policy=compact", "min.cleanable.dirty.ratio=0.01", "index.interval.bytes=400",
		"retention.ms=-1")
	written{}.write(t, s.addr, 0, 60, 2*time.Second, "plain:3", "tidy:2")
	s.awaitTimeout(t, "Kafka")
	s.awaitClean("tidy", 2)
	s.alter("tidy", "cleanup.policy", "delete")
	kafkas := s.everything()
	s.endKafka(syscall.SIGTERM)
	segments := s.segments("plain-0") + s.segments("tidy-0")
	if lines := strings.Count(kafkas["librdkafka"], "\n"); segments < 6 || lines < 200 {
		t.Fatalf("only %d segments and %d committed records:\n%.2000s", segments, lines, kafkas["librdkafka"])
	}
	storeDone(t, "import", s.properties, "--replace")
	loops := []int{2}
	if rounds(t) > 4 {
		loops = []int{1, 2, 4}
	}
	for _, n := range loops {
		s.startKring(n)
		ours := s.everything()
		for what, want := range kafkas {
			if got := ours[what]; what == "ListOffsets" {
				s.sameTimes(want, got)
			} else if got != want {
				t.Errorf("%d loops: %s: %s", n, what, firstDifference(want, got))
			}
		}
		s.endKring(syscall.SIGTERM)
	}
}

// sameTimes compares answers to ListOffsets. Of a compacted topic Kafka may know no record of a time or later where there is one.
func (s *story) sameTimes(kafkas, ours string) {
	s.t.Helper()
	a, b := strings.Split(kafkas, "\n"), strings.Split(ours, "\n")
	if len(a) != len(b) {
		s.t.Fatalf("ListOffsets: %d answers of Kafka, %d of kring", len(a), len(b))
	}
	for i := range a {
		question, _, _ := strings.Cut(a[i], ":")
		if a[i] != b[i] && !(strings.HasPrefix(a[i], "tidy") && a[i] == question+": code 0 offset -1 time -1" && strings.HasPrefix(b[i], question+": code 0 ")) {
			s.t.Errorf("ListOffsets: Kafka answers %s, kring %s", a[i], b[i])
		}
	}
}

// firstDifference is the first line in which two texts differ, and the one before.
func firstDifference(kafka, kring string) string {
	a, b := strings.Split(kafka, "\n"), strings.Split(kring, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d of %d: Kafka has\n%.600s\nline %d of %d: kring has\n%.600s", i, len(a), strings.Join(a[min(i, len(a)):min(i+1, len(a))], ""),
				i, len(b), strings.Join(b[min(i, len(b)):min(i+1, len(b))], ""))
		}
	}
	return "the same"
}

// awaitClean waits until Kafka has cleaned each partition, which it does once its newest segment alone is left.
func (s *story) awaitClean(topic string, partitions int) {
	s.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(s.data() + "/cleaner-offset-checkpoint")
		if err == nil && strings.Count(string(text), topic+" ") == partitions {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("%s is not cleaned: %v %q", topic, err, text)
		}
	}
}

func (s *story) segments(partition string) (n int) {
	for _, e := range dirOf(s.t, s.data()+"/"+partition) {
		if strings.HasSuffix(e, ".log") {
			n++
		}
	}
	return n
}

func dirOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// partsOf are the partitions of TestReadCommitted.
var partsOf = []struct {
	topic string
	n     int32
}{{"plain", 3}, {"tidy", 2}}

// everything is what clients see of the broker, by client and request.
func (s *story) everything() map[string]string {
	s.t.Helper()
	defer s.timed("reading with every client")()
	seen := map[string]string{
		"Java 3.9":    java(s.t, jars39(s.t), "Reader", s.addr, "plain", "tidy"),
		"Java 4":      java(s.t, jars4(s.t), "Reader", s.addr, "plain", "tidy"),
		"franz-go":    "",
		"librdkafka":  "",
		"ListOffsets": "",
	}
	w := dialWire(s.t, s.addr)
	defer w.conn.Close()
	for _, topic := range partsOf {
		for p := range topic.n {
			kcat := run(s.t, "kcat", "-q", "-b", s.addr, "-C", "-t", topic.topic, "-p", fmt.Sprint(p), "-o", "beginning", "-e", "-X",
				"isolation.level=read_committed", "-X", "fetch.wait.max.ms=50", "-f", "%t %p %o %T %k %S %s\n")
			seen["librdkafka"] += kcat
			seen["franz-go"] += s.franz(topic.topic, p, strings.Count(kcat, "\n"))
			start, end := w.bound(topic.topic, p, -2, 0), w.bound(topic.topic, p, -1, 0)
			for isolation := range int8(2) {
				for _, ms := range []int64{-1, -2, -3, 0, 1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_345, 1_700_000_500_000} {
					seen["ListOffsets"] += w.offset(topic.topic, p, ms, isolation)
				}
				for _, most := range []int32{1, 3000, 20000} {
					var all strings.Builder
					for o := start; o <= end; o++ {
						all.WriteString(w.fetch(topic.topic, p, o, isolation, most))
					}
					seen[fmt.Sprintf("Fetch of %s-%d, isolation %d, at most %d bytes", topic.topic, p, isolation, most)] = all.String()
				}
			}
		}
	}
	return seen
}

// franz is what franz-go reads of committed records, of which there should be n.
func (s *story) franz(topic string, partition int32, n int) string {
	s.t.Helper()
	var out strings.Builder
	for _, r := range s.committed(s.t, topic, partition, n, kgo.FetchMaxPartitionBytes(4000)) {
		fmt.Fprintf(&out, "%s %d %d %d %d %q=%q %v\n", r.Topic, r.Partition, r.Offset, r.ProducerID, r.Timestamp.UnixMilli(), r.Key, r.Value, r.Attrs)
	}
	return out.String()
}

// wire sends single requests.
type wire struct {
	t    *testing.T
	conn net.Conn
}

func dialWire(t *testing.T, addr string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return &wire{t, c}
}

func (w *wire) ask(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	_ = w.conn.SetDeadline(time.Now().Add(patience))
	_, err := w.conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1))
	var b []byte
	if err == nil {
		var n [4]byte
		if _, err = io.ReadFull(w.conn, n[:]); err == nil {
			b = make([]byte, binary.BigEndian.Uint32(n[:]))
			_, err = io.ReadFull(w.conn, b)
		}
	}
	resp := req.ResponseKind()
	if err == nil {
		err = resp.ReadFrom(b[4:])
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

func (w *wire) offsets(topic string, partition int32, ms int64, isolation int8) kmsg.ListOffsetsResponseTopicPartition {
	w.t.Helper()
	m := kmsg.NewPtrListOffsetsRequest()
	m.Version, m.ReplicaID, m.IsolationLevel = 5, -1, isolation
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, ms, -1
	m.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return w.ask(m).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
}

func (w *wire) bound(topic string, partition int32, ms int64, isolation int8) int64 {
	w.t.Helper()
	return w.offsets(topic, partition, ms, isolation).Offset
}

func (w *wire) offset(topic string, partition int32, ms int64, isolation int8) string {
	w.t.Helper()
	a := w.offsets(topic, partition, ms, isolation)
	return fmt.Sprintf("%s-%d time %d isolation %d: code %d offset %d time %d\n", topic, partition, ms, isolation, a.ErrorCode, a.Offset, a.Timestamp)
}

// fetch is the answer to a Fetch of one partition, on a line.
func (w *wire) fetch(topic string, partition int32, from int64, isolation int8, most int32) string {
	w.t.Helper()
	m := kmsg.NewPtrFetchRequest()
	m.Version, m.ReplicaID, m.MaxBytes, m.SessionEpoch, m.IsolationLevel = 11, -1, 1<<20, -1, isolation
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.LogStartOffset, p.PartitionMaxBytes, p.FetchOffset = partition, -1, -1, most, from
	m.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	a := w.ask(m).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	slices.SortFunc(a.AbortedTransactions, func(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return int(a.FirstOffset - b.FirstOffset)
	})
	var aborted []string
	last := lastWhole(a.RecordBatches)
	for _, x := range a.AbortedTransactions {
		if x.FirstOffset > last {
			continue // Kafka goes by its index, and names some that begin behind
		}
		aborted = append(aborted, fmt.Sprintf("%d from %d", x.ProducerID, x.FirstOffset))
	}
	return fmt.Sprintf("from %d: code %d watermark %d stable %d start %d aborted %q, %d bytes %x\n", from, a.ErrorCode, a.HighWatermark, a.LastStableOffset,
		a.LogStartOffset, aborted, len(a.RecordBatches), sum(nil, a.RecordBatches))
}

// lastWhole is the last offset of whole batches, -1 if there is none.
func lastWhole(b []byte) int64 {
	last := int64(-1)
	for len(b) >= 61 {
		n := 12 + int(binary.BigEndian.Uint32(b[8:]))
		if n > len(b) {
			break
		}
		last = int64(binary.BigEndian.Uint64(b)) + int64(binary.BigEndian.Uint32(b[23:]))
		b = b[n:]
	}
	return last
}
