package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kring/daemon/config"
)

func TestVersionAndHelp(t *testing.T) {
	if out := kring(t, "", "--version").ok(t); !regexp.MustCompile(`^kring \S.* \(go\S+, linux/\w+\)\n$`).MatchString(out) {
		t.Errorf("%q", out)
	}
	if out := kring(t, "", "help", "exit-codes").ok(t); !strings.Contains(out, "a log dir is in use by another broker") {
		t.Errorf("%q", out)
	}
	for args, want := range map[string]string{"produce x --acks": "0\n1\nall\n:", "consume x -o": "beginning\nend\n:"} {
		if out := kring(t, "", append([]string{"__complete"}, append(strings.Fields(args), "")...)...).ok(t); !strings.HasPrefix(out, want) {
			t.Errorf("completion of %s: %q", args, out)
		}
	}
	out := kring(t, "", "broker", "--help").ok(t)
	for _, k := range config.BrokerKeys {
		if strings.HasPrefix(k.Name, "kring.") && !strings.Contains(out, "  "+k.Name+" ") {
			t.Errorf("kring broker --help is silent about %s:\n%s", k.Name, out)
		}
	}
	if out := kring(t, "", "completion", "bash").ok(t); !strings.Contains(out, "__start_kring") {
		t.Error("no completion for bash")
	}
}

func TestProbeTellsWhatIsThere(t *testing.T) {
	if out := kring(t, "", "probe").ok(t); !strings.Contains(out, "kernel") {
		t.Errorf("%s", out)
	}
	for line := range strings.Lines(kring(t, "", "probe", "--json").ok(t)) {
		var f struct {
			What, Found, Cure string
			OK                *bool
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.What == "" || f.OK == nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestIdleTopicSettingWarnsOnceForAllTopics(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	for _, topic := range []string{"a", "b"} {
		b.kring("", "topics", "create", topic, "-c", "retention.ms=5000", "-c", "compression.type=gzip").ok(t)
	}
	said := b.said.String()
	if strings.Count(said, "key=compression.type topic=a") != 1 || strings.Contains(said, "topic=b key=") || strings.Contains(said, "key=compression.type topic=b") {
		t.Errorf("not one warning for both topics:\n%s", said)
	}
	if strings.Contains(said, "retention.ms") {
		t.Errorf("a warning about a setting that acts:\n%s", said)
	}
}

func TestChangesAreLogged(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	b.kring("", "topics", "create", "a", "-p", "2", "-c", "retention.ms=5000").ok(t)
	b.kring("", "topics", "alter", "a", "-p", "3", "-c", "segment.bytes=1000000").ok(t)
	b.kring("", "topics", "delete", "a").ok(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	most := "32000"
	if _, err := kadm.NewClient(cl).AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: "message.max.bytes", Value: &most}}); err != nil {
		t.Fatal(err)
	}
	b.said.wait("dynamic broker settings ", b.done)
	b.said.wait("topic deleted ", b.done)
	for _, want := range []string{`topic created topic=a id=\S+ partitions=2\n`, `partitions added topic=a partitions=3\n`,
		`topic settings changed topic=a settings=retention.ms,segment.bytes\n`, `topic deleted topic=a `,
		`dynamic broker settings broker=<default> settings=message.max.bytes\n`} {
		if n := len(regexp.MustCompile(want).FindAllString(b.said.String(), -1)); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", want, n, b.said.String())
		}
	}
}

func TestTopicsFromTheCommandLine(t *testing.T) {
	everyLoops(t, func(t *testing.T, b *running) {
		if out := b.kring("", "topics", "create", "a", "b", "-p", "3", "-c", "retention.ms=60000").ok(t); out != "created a\ncreated b\n" {
			t.Errorf("%q", out)
		}
		if r := b.kring("", "topics", "create", "a"); r.status != exitFailed || !strings.Contains(r.errOut, "kring: a: TOPIC_ALREADY_EXISTS: ") {
			t.Errorf("%+v", r)
		}
		if out := b.kring("", "topics", "create", "a", "--if-not-exists").ok(t); out != "a exists already\n" {
			t.Errorf("%q", out)
		}
		if r := b.kring("", "topics", "create", "a/b"); r.status != exitFailed || !strings.Contains(r.errOut, "INVALID_TOPIC_EXCEPTION") {
			t.Errorf("%+v", r)
		}
		if r := b.kring("", "topics", "create", "c", "-c", "segment.bytes=1"); r.status != exitFailed || !strings.Contains(r.errOut, "INVALID_CONFIG") {
			t.Errorf("%+v", r)
		}
		b.kring("", "topics", "alter", "a", "-p", "5", "-c", "segment.bytes=1000000", "--delete-config", "retention.ms").ok(t)
		var d described
		if err := json.Unmarshal([]byte(b.kring("", "topics", "describe", "a", "--json").ok(t)), &d); err != nil {
			t.Fatal(err)
		}
		if d.Topic != "a" || len(d.ID) != 22 || len(d.Partitions) != 5 || len(d.Config) != 1 || d.Config["segment.bytes"] != "1000000" {
			t.Errorf("%+v", d)
		}
		if p := d.Partitions[4]; p.Leader < 0 || len(p.ISR) != 1 || p.Start != 0 || p.End != 0 {
			t.Errorf("%+v", p)
		}
		if out := kring(t, "", "__complete", "consume", "-b", b.addr, "").ok(t); !strings.HasPrefix(out, "a\nb\n:") {
			t.Errorf("completion: %q", out)
		}
		if out := b.kring("", "topics", "list").ok(t); strings.Count(out, "\n") != 3 {
			t.Errorf("%s", out)
		}
		if r := b.kring("", "topics", "delete", "a", "nope"); r.status != exitFailed || r.out != "deleted a\n" ||
			!strings.Contains(r.errOut, "nope: UNKNOWN_TOPIC_OR_PARTITION") || !strings.Contains(r.errOut, "1 of 2 topics failed") {
			t.Errorf("%+v", r)
		}
		if r := b.kring("", "topics", "describe", "b", "nope"); r.status != exitFailed || !strings.Contains(r.out, "b  id ") ||
			!strings.Contains(r.errOut, "nope: UNKNOWN_TOPIC_OR_PARTITION: there is no such topic") {
			t.Errorf("%+v", r)
		}
		if out := b.kring("", "topics", "describe").ok(t); strings.Contains(out, "a  id ") || !strings.Contains(out, "b  id ") {
			t.Errorf("%s", out)
		}
	})
}

// TestEachListenerLeadsToItself has two of them, at addresses of different kinds.
func TestEachListenerLeadsToItself(t *testing.T) {
	b := start(t, t.TempDir()+"/data", "listeners=INSIDE://127.0.0.2:0,OUTSIDE://[::1]:0",
		"listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT", "inter.broker.listener.name=INSIDE")
	outside := serves.FindStringSubmatch(b.said.String())[2]
	if !strings.HasPrefix(b.addr, "127.0.0.2:") || !strings.HasPrefix(outside, "[::1]:") {
		t.Fatalf("%s and %s", b.addr, outside)
	}
	b.kring("from inside\n", "produce", "words").ok(t)
	if out := kring(t, "", "consume", "words", "--from-beginning", "-e", "-b", outside).ok(t); out != "from inside\n" {
		t.Errorf("%q", out)
	}
	for _, addr := range []string{b.addr, outside} {
		cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		meta, err := kadm.NewClient(cl).BrokerMetadata(t.Context())
		if err != nil || len(meta.Brokers) != 1 || net.JoinHostPort(meta.Brokers[0].Host, fmt.Sprint(meta.Brokers[0].Port)) != addr {
			t.Errorf("%s is told of %+v (%v)", addr, meta.Brokers, err)
		}
	}
}

// TestEveryAddressIsListenedOn leaves the host out: clients are told a name of this machine.
func TestEveryAddressIsListenedOn(t *testing.T) {
	b := start(t, t.TempDir()+"/data", "listeners=PLAINTEXT://:0")
	host, port, err := net.SplitHostPort(b.addr)
	if err != nil || host == "" {
		t.Fatalf("%s: %v", b.addr, err)
	}
	for _, address := range []string{"127.0.0.1:" + port, "127.0.0.3:" + port, "[::1]:" + port} {
		if out := kring(t, "x\n", "produce", "words", "-b", address); out.status != 0 {
			t.Errorf("%s: %s", address, out.errOut)
		}
	}
}

// seen is a record of consume --json.
type seen struct {
	Partition int32
	Offset    int64
	Key       *string
	Value     *string
	Headers   []struct{ Key, Value string }
}

func parseSeen(t *testing.T, out string) (all []seen) {
	t.Helper()
	for line := range strings.Lines(out) {
		var s seen
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestRecordsFromTheCommandLine(t *testing.T) {
	everyLoops(t, func(t *testing.T, b *running) {
		for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
			for _, acks := range []string{"1", "all"} {
				r := b.kring("k1:v1\nk2:v2\nplain\nk3:\n", "produce", codec+acks, "-K", ":", "-H", "from=test", "-z", codec, "--acks", acks, "-p", "0")
				r.ok(t)
				if !strings.Contains(r.errOut, "4 records, ") {
					t.Errorf("%s", r.errOut)
				}
				all := parseSeen(t, b.kring("", "consume", codec+acks, "--from-beginning", "--exit", "--json").ok(t))
				if len(all) != 4 || *all[0].Key != "k1" || *all[0].Value != "v1" || all[2].Key != nil || *all[3].Value != "" || all[3].Offset != 3 ||
					all[0].Headers[0].Key != "from" || all[0].Headers[0].Value != "test" {
					t.Errorf("%s, acks %s: %+v", codec, acks, all)
				}
			}
		}
		b.kring("", "topics", "create", "many", "-p", "4").ok(t)
		b.kring(strings.Repeat("0123456789\n", 1000), "produce", "many").ok(t)
		if n := len(parseSeen(t, b.kring("", "consume", "many", "-o", "beginning", "-e", "--json").ok(t))); n != 1000 {
			t.Errorf("%d records, want 1000", n)
		}
		if out := b.kring("", "consume", "none1", "-p", "0", "-o", "-2", "-n", "1", "-K", "=", "--offsets").ok(t); !regexp.
			MustCompile(`^0 2 \S+  =plain\n$`).MatchString(out) {
			t.Errorf("%q", out)
		}
		if out := b.kring("", "consume", "none1", "-o", "@0", "-e", "--headers").ok(t); !strings.HasPrefix(out, "from=test v1\n") {
			t.Errorf("%q", out)
		}
		if r := b.kring("", "consume", "none1", "-p", "7"); r.status != exitFailed || !strings.Contains(r.errOut, "no partition 7") {
			t.Errorf("%+v", r)
		}
		if r := b.kring("x\n", "produce", "none1", "-p", "7"); r.status != exitFailed || !strings.Contains(r.errOut, "no partition 7; the topic has 1 partition, ") {
			t.Errorf("%+v", r)
		}
		if r := b.kring("", "consume", "none1", "-o", "99", "-e"); r.ok(t) != "" ||
			!strings.Contains(r.errOut, "none1-0 has no offset 99: reading from 4") {
			t.Errorf("%+v", r)
		}
		b.kring("", "topics", "create", "small", "-c", "segment.bytes=20000").ok(t)
		for arg, want := range map[string]string{"20001": "MESSAGE_TOO_LARGE: a record of 30000 bytes does not fit into --max-message-bytes, 20001",
			"1000000": "RECORD_LIST_TOO_LARGE: a batch is larger than the topic's segment.bytes"} {
			r := b.kring(strings.Repeat("x", 30000), "produce", "small", "--max-message-bytes", arg)
			if r.status != exitFailed || !strings.Contains(r.errOut, want) {
				t.Errorf("%s: %+v", arg, r)
			}
		}
		if r := b.kring("", "consume", "absent", "-e"); r.status != exitFailed || !strings.Contains(r.errOut, "UNKNOWN_TOPIC_OR_PARTITION") {
			t.Errorf("%+v", r)
		}
	})
}

func TestEachFileIsARecord(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	dir := t.TempDir()
	big := strings.Repeat("x", 3<<20)
	for name, text := range map[string]string{"empty": "", "big": big, "lines": "a\nb\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.kring("", "topics", "create", "files", "-c", "max.message.bytes=8000000").ok(t)
	b.kring("", "produce", "files", filepath.Join(dir, "empty"), filepath.Join(dir, "big"), filepath.Join(dir, "lines"), "--each-file",
		"--max-message-bytes", "8000000").ok(t)
	found := map[string]string{}
	for _, s := range parseSeen(t, b.kring("", "consume", "files", "--from-beginning", "-e", "--json").ok(t)) {
		found[filepath.Base(*s.Key)] = *s.Value
	}
	if len(found) != 3 || found["empty"] != "" || found["big"] != big || found["lines"] != "a\nb\n" {
		t.Errorf("%d files, big %d bytes", len(found), len(found["big"]))
	}
}

func TestConsumeStopsCleanlyBySignal(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	b.kring("one\n", "produce", "words").ok(t)
	c := &running{t: t, args: []string{"consume", "words", "--from-beginning", "-b", b.addr}}
	c.follow("one")
	if status := c.end(syscall.SIGINT); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestLogDumpShowsWhatWasWritten(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	b.kring("key:needle\n", "produce", "words", "-K", ":").ok(t)
	if out := kring(t, "", "log", "dump", "--records", b.data+"/words-0").ok(t); !strings.Contains(out, "payload: needle") {
		t.Errorf("while the broker runs:\n%s", out)
	}
	b.end(syscall.SIGTERM)
	out := kring(t, "", "log", "dump", "-r", b.data+"/words-0").ok(t)
	for _, want := range []string{"Log starting offset: 0\n", "baseOffset: 0 ", "key: key payload: needle\n", "Dumping " + b.data +
		"/words-0/00000000000000000000.index\n", ".timeindex\n", "00000000000000000001.snapshot\n", "producerId: "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if out := kring(t, "", "log", "dump", b.data+"/words-0").ok(t); strings.Contains(out, "needle") {
		t.Errorf("records nobody asked for:\n%s", out)
	}
	if r := kring(t, "", "log", "dump", b.data); r.status != exitData || r.out != "" || !strings.Contains(r.errOut, "<topic>-<partition>") {
		t.Errorf("%+v", r)
	}
	if r := kring(t, "", "log", "dump", "/no/such/file"); r.status != exitData {
		t.Errorf("%+v", r)
	}
}
