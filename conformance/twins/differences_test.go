package twins

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"path"
	"slices"
	"strings"
	"testing"
)

// moment says how both brokers ended before their files are compared.
type moment string

const (
	stopped moment = "stopped"
	killed  moment = "killed"
	// truncated: logs were cut off and went on, without a broker.
	truncated moment = "truncated"
)

// difference is one thing in which the files may differ.
type difference struct {
	files string // which, as a pattern of paths
	when  moment // always, if empty
	why   string
	only  func(all files, name string) bool // of these, where it is set
	// rest gives what must be equal nevertheless; without it the file is not looked at.
	rest func(t *testing.T, name string, b []byte) []byte
}

// differences is all in which the two log dirs may differ. A line that is not needed any more fails the test.
var differences = []*difference{
	{"kring-store-*", "", "the embedded store, where Kafka has ZooKeeper", nil, nil},
	{"meta.properties", "", "a comment with the time, the order of lines, and the cluster's id", nil, properties},
	{"*/partition.metadata", "", "the topic's id", nil, topicID},
	{"*-checkpoint", "", "the order of lines is that of a hash map in Kafka", nil, sortedLines},
	{"*/*.snapshot*", "", "the order of producers is that of a hash map in Kafka", nil, sortedProducers},
	{"*.X-delete/*", "", "Kafka leaves the newest indexes long where it removes a log, and misreads it at the next start", besideLog, nil},
	{"*/*index", killed, "kring writes a segment's indexes when it is finished; a start rebuilds those of the newest anyway", newest, nil},
	{"*-checkpoint", killed, "they are written by clocks, which begin at other times", nil, nil},
	{"*/*.deleted", truncated, "kring removes at once what a truncation cuts off, Kafka when file.delete.delay.ms is over", nil, nil},
	{"*/*.snapshot", truncated, "after a truncation Kafka writes one at once, kring when it rolls or stops; a start removes it", stray, nil},
	{"*/*.snapshot", stopped, "after a recovery Kafka writes one at once, kring when it rolls or stops; a start removes it", stray, nil},
	{"*/*.snapshot", stopped, "kring keeps the producers of a log that was deleted up to its end, Kafka forgets them at a start", forgotten, nil},
	{"synced-0/*.log", killed, "kring writes zeros ahead of a log that syncs each batch", nil, withoutZeros},
	{"prealloc-empty-0/*.log", killed, "kring presets the size of a segment with its first record", nil, withoutZeros},
}

func properties(t *testing.T, name string, b []byte) []byte {
	var lines []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if id, ok := strings.CutPrefix(line, "cluster.id="); ok {
			if len(strings.TrimSpace(id)) != 22 {
				t.Errorf("%s: cluster id %q", name, id)
			}
			line = "cluster.id\n"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

func topicID(t *testing.T, name string, b []byte) []byte {
	before, id, _ := bytes.Cut(b, []byte("topic_id: "))
	if len(id) != 22 {
		t.Errorf("%s: %q", name, b)
	}
	return before
}

// withoutZeros cuts zeros off the end, which were written ahead.
func withoutZeros(t *testing.T, name string, b []byte) []byte { return bytes.TrimRight(b, "\x00") }

func sortedLines(t *testing.T, name string, b []byte) []byte {
	lines := strings.SplitAfter(string(b), "\n")
	if len(lines) > 2 {
		slices.Sort(lines[2:])
	}
	return []byte(strings.Join(lines, ""))
}

func sortedProducers(t *testing.T, name string, b []byte) []byte {
	if len(b) < 10 {
		return b
	}
	var all [][]byte
	for rest := b[10:]; len(rest) >= 46; rest = rest[46:] {
		all = append(all, rest[:46])
	}
	slices.SortFunc(all, bytes.Compare)
	b = append(bytes.Clone(b[:10]), bytes.Join(all, nil)...)
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

// reduce takes out of a dir what may differ at the moment, and notes in met which lines of the table were met.
func reduce(t *testing.T, all files, when moment, met map[*difference]map[string][]string) files {
	t.Helper()
	times := markersOf(all)
	rest := files{}
files:
	for name, b := range all {
		if m, ok := times[path.Dir(name)]; ok {
			b = timesOut(t, name, b, m)
		}
		for _, d := range differences {
			if ok, err := path.Match(d.files, name); err != nil || !ok || d.when != "" && d.when != when || d.only != nil && !d.only(all, name) {
				continue
			}
			if met[d] == nil {
				met[d] = map[string][]string{}
			}
			met[d][name] = append(met[d][name], string(b))
			if d.rest == nil {
				continue files
			}
			b = d.rest(t, name, b)
		}
		rest[name] = b
	}
	return rest
}

// newest says whether a file belongs to the newest segment of its partition.
func newest(all files, name string) bool {
	base, _, _ := strings.Cut(path.Base(name), ".")
	for other := range all {
		if path.Dir(other) == path.Dir(name) && strings.HasSuffix(other, ".log") && strings.TrimSuffix(path.Base(other), ".log") > base {
			return false
		}
	}
	return true
}

// besideLog says whether a file is no .log.
func besideLog(_ files, name string) bool { return !strings.HasSuffix(name, ".log") }

// stray says whether a snapshot of producers is of no use: not the newest, nor at the base of a segment.
func stray(all files, name string) bool {
	base := strings.TrimSuffix(name, ".snapshot")
	if _, ok := all[base+".log"]; ok {
		return false
	}
	for other := range all {
		if path.Dir(other) == path.Dir(name) && strings.HasSuffix(other, ".snapshot") && other > name {
			return true
		}
	}
	return false
}

// forgotten says whether a snapshot is that at the end of a log which holds nothing.
func forgotten(all files, name string) bool {
	log, ok := all[strings.TrimSuffix(name, ".snapshot")+".log"]
	if !ok || len(log) > 0 {
		return false
	}
	for other := range all {
		if path.Dir(other) == path.Dir(name) && strings.HasSuffix(other, ".log") && other != strings.TrimSuffix(name, ".snapshot")+".log" {
			return false
		}
	}
	return true
}

// needed notes the lines of the table without which a comparison would have failed.
var needed = map[*difference]bool{}

// kinds are the files of a log dir that Kafka keeps for long. Those that end in .cleaned and .swap it has for a moment: what a start
// makes of them is compared (interrupt).
var kinds = []string{".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".log.deleted", ".index.deleted", ".timeindex.deleted",
	".txnindex.deleted", ".snapshot.deleted", "leader-epoch-checkpoint", "partition.metadata", "meta.properties",
	"recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint",
	".kafka_cleanshutdown", ".lock"}

// compared are those that were.
var compared = map[string]bool{}

// kindOf takes the offset off a file's name.
func kindOf(name string) string { return strings.TrimLeft(path.Base(name), "0123456789") }

// compare holds both log dirs against each other.
func compare(t *testing.T, kafkas, ours files, when moment, what string) {
	t.Helper()
	met := map[*difference]map[string][]string{}
	want, got := reduce(t, kafkas, when, met), reduce(t, ours, when, met)
	for d, names := range met {
		for _, seen := range names {
			needed[d] = needed[d] || len(seen) == 1 || seen[0] != seen[1]
		}
	}
	bad := 0
	for name, w := range want {
		compared[kindOf(name)] = true
		g, ok := got[name]
		switch {
		case !ok:
			t.Errorf("%s: %s is Kafka's alone (%d bytes)", what, name, len(w))
		case !bytes.Equal(g, w):
			at := 0
			for at < min(len(g), len(w)) && g[at] == w[at] {
				at++
			}
			t.Errorf("%s: %s differs from byte %d on: ours of %d bytes\n%s\nKafka's of %d\n%s", what, name, at,
				len(g), show(g, at), len(w), show(w, at))
		default:
			continue
		}
		if bad++; bad > 40 {
			t.Fatal("and so on")
		}
	}
	for name, g := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is ours alone (%d bytes)", what, name, len(g))
		}
	}
}

func show(b []byte, at int) string {
	from, to := max(at-24, 0), min(at+72, len(b))
	var out strings.Builder
	for i := from; i < to; i++ {
		if i == at {
			out.WriteString("| ")
		}
		const hex = "0123456789abcdef"
		out.WriteByte(hex[b[i]>>4])
		out.WriteByte(hex[b[i]&15])
		out.WriteByte(' ')
	}
	return out.String()
}
