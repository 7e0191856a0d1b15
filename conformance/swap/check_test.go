package swap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// promised is what had been acknowledged at one moment.
type promised struct {
	records map[*stream]int
	commits map[int32]int64
}

func promises(streams []*stream, g *readers) promised {
	p := promised{map[*stream]int{}, g.acknowledged()} // commits first: what is committed was read
	for _, s := range streams {
		p.records[s] = s.acknowledged()
	}
	return p
}

// hold checks promises against a broker that serves; the load goes on.
func (h *house) hold(t *testing.T, p promised, streams []*stream, when string) {
	t.Helper()
	defer h.timed("reading all")()
	cl, adm := h.admin(t)
	defer cl.Close()
	began := time.Now()
	ends := awaitEnds(t, adm, steady, compact)
	t.Logf("all is led after %v", time.Since(began).Round(time.Millisecond))
	for _, s := range streams {
		o, _ := ends.Lookup(s.topic, s.partition)
		if o.Offset < int64(p.records[s]) {
			t.Errorf("%s: %s-%d ends at %d, %d were acknowledged", when, s.topic, s.partition, o.Offset, p.records[s])
			continue
		}
		records := h.read(t, s.topic, s.partition, o.Offset)
		s.compare(t, records, p.records[s], when)
	}
	t.Logf("all is read after %v", time.Since(began).Round(time.Millisecond))
	offsets, err := fetchOffsets(adm)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	for partition, least := range p.commits {
		o, _ := offsets.Lookup(steady, partition)
		end, _ := ends.Lookup(steady, partition)
		if o.At < least || o.Err != nil {
			t.Errorf("%s: the committed offset of %s-%d is %d (%v), %d was acknowledged; the log's end is %d", when, steady, partition, o.At, o.Err,
				least, end.Offset)
		}
	}
}

func (h *house) admin(t *testing.T) (*kgo.Client, *kadm.Client) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(h.addr), kgo.RetryTimeout(patience), kgo.MetadataMinAge(20*time.Millisecond), soon)
	if err != nil {
		t.Fatal(err)
	}
	return cl, kadm.NewClient(cl)
}

// awaitEnds lists the ends of topics; a broker that has just started says for a moment that it does not lead them.
func awaitEnds(t *testing.T, adm *kadm.Client, topics ...string) kadm.ListedOffsets {
	t.Helper()
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		var ends kadm.ListedOffsets
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		ends, err = adm.ListEndOffsets(ctx, topics...)
		cancel()
		if err == nil {
			err = ends.Error()
		}
		if err == nil && len(ends) == len(topics) {
			return ends
		}
	}
	t.Fatalf("the ends of %v: %v", topics, err)
	return nil
}

func fetchOffsets(adm *kadm.Client) (offsets kadm.OffsetResponses, err error) {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		offsets, err = adm.FetchOffsets(ctx, group)
		cancel()
		if err == nil {
			return offsets, nil
		}
	}
	return offsets, err
}

// read reads a partition from its start until all before end has been seen: control records too.
func (h *house) read(t *testing.T, topic string, partition int32, end int64, opts ...kgo.Opt) (records []*kgo.Record) {
	t.Helper()
	if end == 0 {
		return nil
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(h.addr), kgo.FetchMaxWait(200 * time.Millisecond), kgo.KeepControlRecords(),
		kgo.MetadataMinAge(50 * time.Millisecond), soon,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { records = append(records, r) })
		if n := len(records); n > 0 && records[n-1].Offset >= end-1 {
			return records
		}
	}
	last := int64(-1)
	if n := len(records); n > 0 {
		last = records[n-1].Offset
	}
	t.Fatalf("%s-%d: read up to %d, the end is %d", topic, partition, last, end)
	return nil
}

// compare holds what is in the partition against what was acknowledged: everything once, in order, at its offset; of a compacted
// partition what no later record of the same key has replaced.
func (s *stream) compare(t *testing.T, records []*kgo.Record, acked int, when string) {
	t.Helper()
	var there []int
	for i, r := range records {
		if !s.fits(r) {
			t.Errorf("%s: %s-%d has at offset %d what was not sent for it: key %q, %.20q…", when, s.topic, s.partition, r.Offset, r.Key, r.Value)
			return
		}
		if i > 0 && r.Offset <= records[i-1].Offset {
			t.Errorf("%s: %s-%d: offset %d comes behind %d", when, s.topic, s.partition, r.Offset, records[i-1].Offset)
			return
		}
		there = append(there, int(r.Offset))
	}
	latest := map[int]int{} // by number of the key
	for _, n := range there {
		latest[n%keys] = n
	}
	at := 0
	for n := range acked {
		for at < len(there) && there[at] < n {
			at++
		}
		if at < len(there) && there[at] == n || s.topic == compact && latest[n%keys] > n {
			continue
		}
		t.Errorf("%s: %s-%d: record %d of %d acknowledged is lost (%d there)", when, s.topic, s.partition, n, acked, len(there))
		return
	}
}

// expected are lines of Kafka's log at WARN and above that have nothing to do with files: its controller talks to its own broker before
// that listens, and ZooKeeper is slow on a busy machine.
var expected = []*regexp.Regexp{
	regexp.MustCompile(`Connection to node 1 .* could not be established`),
	regexp.MustCompile(`Controller 1's connection to broker .* was unsuccessful`),
	regexp.MustCompile(`\(ClientCnxn\)$`),
	// A kill while the files of a deleted segment get other names, the log first, leaves the rest, in Kafka as in kring.
	regexp.MustCompile(`Found an orphaned index file \S+, with no corresponding log file`),
}

var severe = regexp.MustCompile(`^\S+ \S+ (WARN|ERROR|FATAL) `)

// kafkaSaid reads what Kafka has complained about since its start.
func (h *house) kafkaSaid(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(h.dir + "/kafka/log")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !severe.MatchString(line) {
			continue
		}
		say := t.Errorf
		if slices.ContainsFunc(expected, func(e *regexp.Regexp) bool { return e.MatchString(strings.TrimSpace(line)) }) {
			say = t.Logf
		}
		say("Kafka says: %s", strings.TrimSpace(line))
	}
}

// kafkasDump lets Kafka's dump tool look at every file of the log dir; it must find nothing. Indexes that a killed broker has not
// finished are made anew by the next start, be it kring's or Kafka's: they are left out.
func (h *house) kafkasDump(t *testing.T, killed bool, when string) {
	t.Helper()
	defer h.timed("Kafka's dump tool")()
	var indexes, logs []string
	err := filepath.WalkDir(h.data(), func(path string, _ os.DirEntry, err error) error {
		switch filepath.Ext(path) {
		case ".index", ".timeindex":
			if !killed || h.finished(t, path) {
				indexes = append(indexes, path)
			}
		case ".log", ".txnindex", ".snapshot":
			if filepath.Dir(path) != h.data() {
				logs = append(logs, path)
			}
		}
		return err
	})
	if err != nil || len(logs) == 0 || len(indexes) == 0 && !killed {
		t.Fatal(err, len(indexes), len(logs))
	}
	for _, c := range []struct {
		files []string
		flags []string
	}{{indexes, []string{"--index-sanity-check"}}, {append(indexes, logs...), []string{"--verify-index-only", "--deep-iteration"}}} {
		if len(c.files) == 0 {
			continue
		}
		cmd := exec.Command("../peers/peers", append(append([]string{"tool", "3.9", "dump-log"}, c.flags...), "--files", strings.Join(c.files, ","))...)
		cmd.Env = append(os.Environ(), "HEAP=256m", "TIER=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: dump-log %v: %v\n%s", when, c.flags, err, out)
		}
		cleaned := false
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "Non-consecutive offsets in ") {
				cleaned = ofCleaned.MatchString(line)
			}
			if faulty(line) && !(cleaned && gap.MatchString(line)) {
				t.Errorf("%s: dump-log %v: %s", when, c.flags, line)
			}
		}
	}
}

// finished tells whether an index belongs to a segment below the recovery point.
func (h *house) finished(t *testing.T, path string) bool {
	t.Helper()
	segments, err := filepath.Glob(filepath.Dir(path) + "/*.log")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(segments)
	at := slices.Index(segments, strings.TrimSuffix(path, filepath.Ext(path))+".log")
	if at < 0 || at+1 == len(segments) {
		return false
	}
	var next, point int64
	_, _ = fmt.Sscanf(filepath.Base(segments[at+1]), "%d.log", &next)
	text, err := os.ReadFile(h.data() + "/recovery-point-offset-checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(filepath.Dir(path))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0]+"-"+f[1] == name {
			_, _ = fmt.Sscan(f[2], &point)
		}
	}
	return next <= point
}

var sound = regexp.MustCompile(`^(Dumping |Log starting offset|Starting offset|offset: |timestamp: |baseOffset: |\| offset: |producerId: |version: |` +
	`.* passed sanity check|\S+\.(time)?index is empty\.)`)

// A compacted log has gaps.
var (
	ofCleaned = regexp.MustCompile(`/(` + compact + `|__consumer_offsets)-\d+/`)
	gap       = regexp.MustCompile(`^Non-consecutive offsets in |^\d+ is followed by \d+$`)
)

func faulty(line string) bool {
	return line != "" && (!sound.MatchString(line) || strings.Contains(strings.ToLower(line), "isvalid: false"))
}

// transactionLogs are the sizes and contents of the transaction coordinator's files, which kring has nothing to do with.
func (h *house) transactionLogs(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(h.data() + "/__transaction_state-*/*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs of __transaction_state: %v", err)
	}
	var b strings.Builder
	total := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
		fmt.Fprintf(&b, "%s %d %x\n", filepath.Base(filepath.Dir(name)), len(text), sum([]byte(name), text))
	}
	if total == 0 {
		t.Fatal("the transaction coordinator has written nothing")
	}
	return b.String()
}
