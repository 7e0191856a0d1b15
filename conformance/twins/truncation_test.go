package twins

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kring/conformance/stage"
	"kring/ring"
	"kring/segment"
)

// truncation is a follower's: a log is cut off at an offset, and goes on with what it had there.
type truncation struct {
	partition            string
	segmentBytes, spread int64
	logStart, end        int64
	at                   int64
	batches              [][]byte // from there on
}

// truncations cuts partitions in the midst of a segment, at the beginning of one, in the midst of transactions and near the end.
func truncations(t *testing.T, dir string) (all []*truncation) {
	t.Helper()
	for _, x := range []truncation{
		{partition: "rolls-0", segmentBytes: 20000, spread: 300},
		{partition: "idem-0", segmentBytes: 4096, spread: 4096},
		{partition: "codecs-2", segmentBytes: 1 << 30, spread: 4096},
		{partition: "txn-0", segmentBytes: 20000, spread: 600},
		{partition: "compacted-0", segmentBytes: 6000, spread: 300},
		{partition: "index-each-0", segmentBytes: 20000, spread: 0},
		{partition: "by-time-0", segmentBytes: 4096, spread: 4096},
		{partition: "append-time-0", segmentBytes: 8000, spread: 300},
	} {
		logs, err := filepath.Glob(dir + "/" + x.partition + "/*.log")
		if err != nil || len(logs) == 0 {
			t.Fatal(err, x.partition)
		}
		var batches [][]byte
		var bases []int64
		for _, name := range logs {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > 0 {
				bases = append(bases, offsetOf(b))
			}
			for one := cut(&b); one != nil; one = cut(&b) {
				batches = append(batches, one)
			}
		}
		x.logStart = checkpointed(t, dir+"/log-start-offset-checkpoint", x.partition)
		last := batches[len(batches)-1]
		x.end = offsetOf(last) + int64(lastDelta(last)) + 1
		cuts := []int64{offsetOf(batches[len(batches)*2/3]), offsetOf(last), bases[len(bases)/2], offsetOf(batches[len(batches)/3])}
		for i, at := range slices.Compact(slices.Sorted(slices.Values(cuts))) {
			y := x
			y.at = max(at, x.logStart)
			y.partition = fmt.Sprintf("%s%d-%s", topicOf(x.partition), i, x.partition[strings.LastIndexByte(x.partition, '-')+1:])
			for _, b := range batches {
				if offsetOf(b) >= y.at {
					y.batches = append(y.batches, b)
				}
			}
			all = append(all, &y)
		}
	}
	return all
}

func topicOf(partition string) string { return partition[:strings.LastIndexByte(partition, '-')] }

// checkpointed is a partition's offset in a checkpoint file, 0 if there is none.
func checkpointed(t *testing.T, name, partition string) (offset int64) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0]+"-"+f[1] == partition {
			_, _ = fmt.Sscan(f[2], &offset)
		}
	}
	return offset
}

// truncate gives copies of Kafka's files, from a clean stop, to Kafka's log and to ours, cuts both off and lets both go on: no request
// does that to a broker that is alone.
func (s *story) truncate() {
	s.t.Helper()
	all := truncations(s.t, s.twins[0].dir)
	var kafkas, ours = s.t.TempDir(), s.t.TempDir()
	var lines strings.Builder
	for _, x := range all {
		from := s.twins[0].dir + "/" + topicOf(x.partition)[:len(topicOf(x.partition))-1] + x.partition[strings.LastIndexByte(x.partition, '-'):]
		for _, to := range []string{kafkas, ours} {
			if err := os.CopyFS(to+"/"+x.partition, os.DirFS(from)); err != nil {
				s.t.Fatal(err)
			}
		}
		file := s.t.TempDir() + "/batches"
		if err := os.WriteFile(file, slices.Concat(x.batches...), 0o644); err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintln(&lines, kafkas+"/"+x.partition, x.logStart, x.end, x.segmentBytes, x.spread, x.at, file)
	}
	jars, err := stage.Command(s.t, nil, "jars", "3.9").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", strings.TrimSpace(string(jars))+"/*", "Truncate.java")
	cmd.Stdin = strings.NewReader(lines.String())
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "\n") < len(all) {
		s.t.Fatalf("%v\n%s", err, out)
	}
	truncateOurs(s.t, ours, all)
	compare(s.t, readDir(s.t, kafkas), readDir(s.t, ours), truncated, "after a truncation")
}

// truncateOurs does with our log what Truncate.java does with Kafka's.
func truncateOurs(t *testing.T, dir string, all []*truncation) {
	t.Helper()
	k, err := ring.New(ring.Options{Loops: 1, Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	one := func(task *ring.Task, x *truncation) error {
		conf := segment.DefaultConfig()
		conf.SegmentBytes, conf.IndexIntervalBytes, conf.ProducerExpireMs, conf.FileDeleteDelayMs = x.segmentBytes, x.spread, 1<<31-1, 3600_000
		l, err := segment.Open(task, segment.Options{Dir: dir + "/" + x.partition, Config: conf, Clean: true,
			RecoveryPoint: segment.Offset(x.end), LogStart: segment.Offset(x.logStart)})
		if err != nil {
			return err
		}
		if err := l.TruncateTo(task, segment.Offset(x.at)); err != nil {
			return err
		}
		for _, b := range x.batches {
			a := &segment.Append{Data: slices.Clone(b), Origin: segment.FromLeader, Done: func(*segment.Append) {}}
			if l.Append(a); a.Err != nil {
				return a.Err
			}
		}
		return l.Close(task)
	}
	err = k.Run(func() {
		ring.Go(k.Loops()[0], func(task *ring.Task) {
			defer k.Stop()
			for _, x := range all {
				if err := one(task, x); err != nil {
					t.Errorf("%s: %v", x.partition, err)
				}
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
