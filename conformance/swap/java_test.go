package swap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kring/conformance/stage"
)

// run runs a program and gives its output; it must end well in time.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %.300q: %v\n%s", name, args, err, failed.String())
	}
	return string(out)
}

// java runs one of the programs beside this file with the jars of a client.
func java(t *testing.T, jars, program string, args ...string) string {
	t.Helper()
	return run(t, "java", append([]string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars + "/*", program + ".java"}, args...)...)
}

// jars39 are those of Kafka 3.9, jars4 those of the client 4.
func jars39(t *testing.T) string {
	t.Helper()
	out, err := stage.Command(t, nil, "jars", "3.9").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func jars4(t *testing.T) string {
	t.Helper()
	run(t, "../java-4/run", "install")
	cache := os.Getenv("KRING_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache/kring-conformance")
	}
	return cache + "/java-4/libs"
}

// javaLedger is a topic that transactions of Kafka's own producer write to.
const javaLedger, javaParts = "java-ledger", 2

// written is what became of records: lines "topic partition key=value" by "committed", "aborted", "timed-out" and "open".
type written map[string][]string

// write has Kafka's own producer write transactions.
func (w written) write(t *testing.T, addr string, round, count int, timeout time.Duration, topics ...string) {
	t.Helper()
	out := java(t, jars39(t), "Writer", append([]string{addr, fmt.Sprint(round), fmt.Sprint(count), fmt.Sprint(timeout.Milliseconds())}, topics...)...)
	for line := range strings.Lines(out) {
		how, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		w[how] = append(w[how], what)
	}
	for _, how := range []string{"committed", "aborted", "timed-out", "open"} {
		if len(w[how]) == 0 {
			t.Fatalf("the writer tells of no records that are %s:\n%.2000s", how, out)
		}
	}
}

// committed reads the first n records that a reader of committed ones sees in a partition, or what there is with them. How far there is
// something to see is not known otherwise: the last records below the last stable offset may be aborted.
func (h *house) committed(t *testing.T, topic string, partition int32, n int, opts ...kgo.Opt) (records []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(h.addr), kgo.FetchMaxWait(200 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond),
		soon, kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience/4)
	defer cancel()
	for len(records) < n && ctx.Err() == nil {
		cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { records = append(records, r) })
	}
	return records
}

// check reads the topic with and without regard to transactions: of the first, those that were committed and no others.
func (w written) check(t *testing.T, h *house, when string) {
	t.Helper()
	cl, adm := h.admin(t)
	defer cl.Close()
	ends := awaitEnds(t, adm, javaLedger)
	stable, err := adm.ListCommittedOffsets(context.Background(), javaLedger)
	if err == nil {
		err = stable.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	var all, committed []string
	line := func(r *kgo.Record) string {
		value := "NULL"
		if r.Value != nil {
			value = string(r.Value)
		}
		return fmt.Sprintf("%s %d %s=%s", r.Topic, r.Partition, r.Key, value)
	}
	for p := range int32(javaParts) {
		end, _ := ends.Lookup(javaLedger, p)
		upTo, _ := stable.Lookup(javaLedger, p)
		if upTo.Offset >= end.Offset {
			t.Errorf("%s: %s-%d is stable up to %d, and ends at %d: nothing is open", when, javaLedger, p, upTo.Offset, end.Offset)
		}
		for _, r := range h.read(t, javaLedger, p, end.Offset) {
			if !r.Attrs.IsControl() {
				all = append(all, line(r))
			}
		}
		n := 0
		for _, sent := range w["committed"] {
			if strings.HasPrefix(sent, fmt.Sprintf("%s %d ", javaLedger, p)) {
				n++
			}
		}
		for _, r := range h.committed(t, javaLedger, p, n) {
			committed = append(committed, line(r))
		}
	}
	sent := slices.Concat(w["committed"], w["aborted"], w["timed-out"], w["open"])
	for _, c := range []struct {
		what      string
		got, want []string
	}{{"all", all, sent}, {"committed", committed, slices.Clone(w["committed"])}} {
		slices.Sort(c.got)
		slices.Sort(c.want)
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %s of %s are %d records, not the %d that were sent", when, c.what, javaLedger, len(c.got), len(c.want))
		}
	}
}

// awaitTimeout waits until the coordinator, which Kafka has and kring has not, has ended the transaction that was to time out.
func (h *house) awaitTimeout(t *testing.T, when string) {
	t.Helper()
	cl, adm := h.admin(t)
	defer cl.Close()
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		d, err := adm.DescribeTransactions(ctx, "soon-over")
		cancel()
		state := d["soon-over"].State
		if err == nil && state == "CompleteAbort" {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s: the transaction that was left to time out is %q (%v)", when, state, err)
		}
	}
}
