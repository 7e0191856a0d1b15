package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// noDelay has a group not wait for more members.
const noDelay = "group.initial.rebalance.delay.ms=0"

// quickly runs a test with 1, 2 and 4 loops and groups that do not wait.
func quickly(t *testing.T, fn func(t *testing.T, b *running)) {
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("loops=%d", n), func(t *testing.T) { fn(t, start(t, t.TempDir()+"/data", fmt.Sprintf("kring.loops=%d", n), noDelay)) })
	}
}

// describedAs is what groups describe --json says of one group.
func (b *running) describedAs(group string) describedGroup {
	b.t.Helper()
	var d describedGroup
	if err := json.Unmarshal([]byte(b.kring("", "groups", "describe", group, "--json").ok(b.t)), &d); err != nil {
		b.t.Fatal(err)
	}
	return d
}

// committed are the committed offsets of a group by partition of one topic, -1 for none.
func (d *describedGroup) committed(topic string, partitions int) []int64 {
	all := make([]int64, partitions)
	for i := range all {
		all[i] = -1
	}
	for _, o := range d.Offsets {
		if o.Topic == topic && o.Committed != nil {
			all[o.Partition] = *o.Committed
		}
	}
	return all
}

// groupOf makes a topic of three partitions with 4, 5 and 6 records, and a group that has read them all.
func groupOf(t *testing.T, b *running, group string) {
	t.Helper()
	b.kring("", "topics", "create", "words", "-p", "3", "--if-not-exists").ok(t)
	for p, text := range []string{"a\nb\nc\nd\n", "a\nb\nc\nd\ne\n", "a\nb\nc\nd\ne\nf\n"} {
		b.kring(text, "produce", "words", "-p", string(rune('0'+p))).ok(t)
	}
	if out := b.kring("", "consume", "words", "-g", group, "--from-beginning", "-e").ok(t); strings.Count(out, "\n") != 15 {
		t.Fatalf("%q", out)
	}
}

func TestGroupReadsCommitsAndResumes(t *testing.T) {
	quickly(t, func(t *testing.T, b *running) {
		groupOf(t, b, "readers")
		if out := b.kring("", "consume", "words", "-g", "readers", "--from-beginning", "-e").ok(t); out != "" {
			t.Errorf("read twice: %q", out)
		}
		b.kring("new\n", "produce", "words", "-p", "1").ok(t)
		d := b.describedAs("readers")
		if got := d.committed("words", 3); got[0] != 4 || got[1] != 5 || got[2] != 6 || known(d.Lag) != "1" || d.State != "Empty" || d.ProtocolType != "consumer" {
			t.Errorf("%+v", d)
		}
		if out := b.kring("", "consume", "words", "-g", "readers", "-n", "1").ok(t); out != "new\n" {
			t.Errorf("%q", out)
		}
		if d := b.describedAs("readers"); known(d.Lag) != "0" {
			t.Errorf("lag %s", known(d.Lag))
		}
		out := b.kring("", "groups", "describe", "readers").ok(t)
		if !regexp.MustCompile(`(?m)^readers  Empty, 0 members, coordinated by broker \d+, lag 0$`).MatchString(out) ||
			!regexp.MustCompile(`(?m)^words +1  6 +6 +0 +-$`).MatchString(out) {
			t.Errorf("%s", out)
		}
		list := b.kring("", "groups", "list").ok(t)
		if !regexp.MustCompile(`(?m)^readers +Empty +consumer +\d+$`).MatchString(list) {
			t.Errorf("%s", list)
		}
		if out := b.kring("", "groups", "list", "--state", "Stable", "--json").ok(t); out != "" {
			t.Errorf("%s", out)
		}
	})
}

// TestLagOfPartitionsWithoutCommits: what was never committed has a dash for its offset and lag, as in kafka-consumer-groups, and is no lag
// of 0 in the sum.
func TestLagOfPartitionsWithoutCommits(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	b.kring("", "topics", "create", "words", "-p", "2").ok(t)
	b.kring("a\nb\n", "produce", "words", "-p", "1").ok(t)
	member := &running{t: t, args: []string{"consume", "words", "-g", "fresh", "-v", "-b", b.addr}}
	member.follow("assigned words ")
	out := b.kring("", "groups", "describe", "fresh").ok(t)
	for _, want := range []string{`(?m)^fresh  Stable, .*, lag -$`, `(?m)^words +0  - +0 +- +kring-`, `(?m)^words +1  - +2 +- +kring-`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if d := b.describedAs("fresh"); d.Lag != nil {
		t.Errorf("lag %d", *d.Lag)
	}
	b.kring("c\n", "produce", "words", "-p", "1").ok(t)
	for until := time.Now().Add(patience); ; {
		if out = b.kring("", "groups", "describe", "fresh").ok(t); strings.Contains(out, ", lag 0 and 1 partition without a committed offset\n") {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("what is committed is not summed up beside what is not:\n%s", out)
		}
	}
}

func TestOnlyWhatWasPrintedIsCommitted(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	groupOf(t, b, "all")
	for i := range 3 {
		if out := b.kring("", "consume", "words", "-g", "slow", "--from-beginning", "-n", "4", "--json").ok(t); strings.Count(out, "\n") != 4 {
			t.Fatalf("%d: %s", i, out)
		}
		d := b.describedAs("slow")
		sum := int64(0)
		for _, c := range d.committed("words", 3) {
			sum += max(c, 0)
		}
		if sum != int64(4*(i+1)) {
			t.Errorf("%d records committed after %d", sum, 4*(i+1))
		}
	}
}

func TestMembersShareATopic(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	groupOf(t, b, "pair")
	first := &running{t: t, args: []string{"consume", "words", "-g", "pair", "-v", "-b", b.addr, "--instance-id", "one"}}
	first.follow("assigned words 0,1,2, generation")
	second := &running{t: t, args: []string{"consume", "words", "-g", "pair", "-v", "-b", b.addr}}
	second.follow("assigned words ")
	for _, word := range []string{"revoked words 0,1,2", "assigned words 0,1, generation", "assigned words 2, generation"} {
		if !strings.Contains(second.said.String(), word) && !first.said.wait(word, first.done) {
			t.Fatalf("nobody said %q:\n%s%s", word, first.said.String(), second.said.String())
		}
	}
	d := b.describedAs("pair")
	if d.State != "Stable" || len(d.Members) != 2 || d.Protocol != "range" {
		t.Fatalf("%+v", d)
	}
	static := d.Members[0]
	if static.Instance == nil {
		static = d.Members[1]
	}
	if static.Instance == nil || *static.Instance != "one" || static.Client != "kring" || !strings.HasPrefix(static.Host, "/127.") || len(static.Partitions) != 1 {
		t.Errorf("%+v", static)
	}
	for _, args := range []string{"groups reset-offsets pair --all-topics --to-earliest", "groups reset-offsets pair --topic words --to-latest --execute"} {
		r := b.kring("", strings.Fields(args)...)
		if r.status != exitFailed || r.errOut != "kring: pair is Stable with 2 members: stop them, then its offsets can be reset\n" {
			t.Errorf("%+v", r)
		}
	}
	if r := b.kring("", "groups", "delete", "pair"); r.status != exitFailed || !strings.Contains(r.errOut, "pair: NON_EMPTY_GROUP: the group has members") {
		t.Errorf("%+v", r)
	}
	b.kring("seen\n", "produce", "words", "-p", "2").ok(t)
	which := second
	if !strings.Contains(second.said.String(), "assigned words 2") {
		which = first
	}
	which.said.wait("\nseen\n", which.done)
	if status := second.end(syscall.SIGINT); status != 0 {
		t.Errorf("status %d", status)
	}
	if !first.said.wait("assigned words 0,1,2, generation 3", first.done) {
		t.Errorf("%s", first.said.String())
	}
	if status := first.end(syscall.SIGTERM); status != 0 {
		t.Errorf("status %d", status)
	}
	if d := b.describedAs("pair"); known(d.Lag) != "0" || len(d.Members) != 1 {
		t.Errorf("a static member does not leave, and all is committed: %+v", d)
	}
}

func TestOffsetsAreReset(t *testing.T) {
	quickly(t, func(t *testing.T, b *running) {
		groupOf(t, b, "g")
		file := filepath.Join(t.TempDir(), "offsets.csv")
		if err := os.WriteFile(file, []byte("words,0,2\ng,words,2,1\nother,words,1,0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			args string
			want [3]int64
			says string
		}{
			{"--topic words --to-earliest", [3]int64{0, 0, 0}, ""},
			{"--all-topics --shift-by 3", [3]int64{3, 3, 3}, ""},
			{"--topic words:0,2 --shift-by -1", [3]int64{2, 3, 2}, ""},
			{"--topic words:1 --shift-by 100", [3]int64{2, 5, 2}, "words-1 has no offset 103: 5 is the nearest\n"},
			{"--topic words --to-offset 5", [3]int64{4, 5, 5}, "words-0 has no offset 5: 4 is the nearest\n"},
			{"--from-file " + file, [3]int64{2, 5, 1}, ""},
			{"--topic words --to-current", [3]int64{2, 5, 1}, ""},
			{"--topic words:0 --topic words:1 --to-datetime 2001-01-01T00:00:00", [3]int64{0, 0, 1}, ""},
			{"--topic words --to-datetime 2200-01-01T00:00:00Z", [3]int64{4, 5, 6}, ""},
			{"--topic words --by-duration P1DT1H", [3]int64{0, 0, 0}, ""},
			{"--topic words --to-latest", [3]int64{4, 5, 6}, ""},
		} {
			before := b.describedAs("g")
			args := append([]string{"groups", "reset-offsets", "g"}, strings.Fields(row.args)...)
			dry := b.kring("", args...)
			if dry.ok(t); dry.errOut != row.says+"nothing is changed; --execute sets these offsets\n" || !strings.Contains(dry.out, "NEW") {
				t.Errorf("%s: %q %q", row.args, dry.errOut, dry.out)
			}
			if now := b.describedAs("g"); known(now.Lag) != known(before.Lag) {
				t.Errorf("%s acts without --execute", row.args)
			}
			if r := b.kring("", append(args, "--execute")...); r.ok(t) != dry.out || !strings.HasPrefix(r.errOut, row.says+"set ") {
				t.Errorf("%s: %q, planned %q; %q", row.args, r.out, dry.out, r.errOut)
			}
			d := b.describedAs("g")
			if got := [3]int64(d.committed("words", 3)); got != row.want {
				t.Errorf("%s: %v, want %v", row.args, got, row.want)
			}
		}
		if out := b.kring("", "groups", "reset-offsets", "g", "--all-topics", "--to-current", "--export").ok(t); out != "words,0,4\nwords,1,5\nwords,2,6\n" {
			t.Errorf("%q", out)
		}
	})
}

func TestResetRefusesWhatMakesNoSense(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	groupOf(t, b, "g")
	file := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(file, []byte("words,0,1\nwords,x,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"g --topic words":                           "say where to reset to: one of --to-earliest, ",
		"g --to-latest":                             "give either --topic or --all-topics",
		"g --to-latest --topic a --all-topics":      "give either --topic or --all-topics",
		"g --topic words --to-latest --to-earliest": "give one of --to-earliest and --to-latest",
		"g --topic words: --to-latest":              "--topic words: is not valid",
		"g --topic words:a --to-latest":             "--topic words:a is not valid",
		"g --topic words --to-datetime tomorrow":    "--to-datetime tomorrow is not valid",
		"g --topic words --by-duration long":        "--by-duration long is not valid",
		"g --topic words --to-offset -1":            "--to-offset -1 is not valid",
		"g --from-file /no/such/file":               "/no/such/file",
		"g --topic words --from-file " + file:       "--from-file names the partitions",
		"g --from-file " + file:                     file + ":2: words,x,1 is not valid",
		"g --from-file " + os.DevNull:               os.DevNull + " names no partition of g",
		"g --all-topics --to-latest --no-such-flag": "unknown flag",
		"g a --all-topics --to-latest":              "takes GROUP, not 2 arguments",
	} {
		r := b.kring("", append([]string{"groups", "reset-offsets"}, strings.Fields(args)...)...)
		if r.status != exitArguments || !strings.Contains(r.errOut, want) || strings.Count(r.errOut, "\n") != 1 {
			t.Errorf("%s: %d %q, want %q", args, r.status, r.errOut, want)
		}
	}
	for args, want := range map[string]string{
		"g --topic words:7 --to-latest":  "words: not every partition named is there; the topic has 3 partitions\n",
		"g --topic absent --to-latest":   "absent: UNKNOWN_TOPIC_OR_PARTITION: there is no such topic",
		"new --all-topics --to-latest":   "new has committed no offsets\n",
		"new --topic words --shift-by 1": "words-0 has no committed offset to shift; --topic words:0,1,... or --all-topics leave it out\n",
	} {
		if r := b.kring("", append([]string{"groups", "reset-offsets"}, strings.Fields(args)...)...); r.status != exitFailed || !strings.Contains(r.errOut, want) {
			t.Errorf("%s: %d %q, want %q", args, r.status, r.errOut, want)
		}
	}
	b.kring("", "groups", "reset-offsets", "new", "--topic", "words", "--to-earliest", "--execute").ok(t)
	if d := b.describedAs("new"); known(d.Lag) != "15" {
		t.Errorf("a group that was not there: %+v", d)
	}
}

func TestGroupsAreDeletedAndNamed(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	groupOf(t, b, "a")
	b.kring("", "consume", "words", "-g", "b", "--from-beginning", "-e").ok(t)
	if out := kring(t, "", "__complete", "groups", "describe", "-b", b.addr, "").ok(t); !strings.HasPrefix(out, "a\nb\n:") {
		t.Errorf("completion: %q", out)
	}
	if out := kring(t, "", "__complete", "consume", "words", "-b", b.addr, "--group", "").ok(t); !strings.HasPrefix(out, "a\nb\n:") {
		t.Errorf("completion: %q", out)
	}
	if r := b.kring("", "groups", "delete", "a", "none"); r.status != exitFailed || r.out != "deleted a\n" ||
		!strings.Contains(r.errOut, "none: GROUP_ID_NOT_FOUND: there is no such group") || !strings.Contains(r.errOut, "1 of 2 groups failed") {
		t.Errorf("%+v", r)
	}
	if out := b.kring("", "groups", "delete", "a", "b", "--if-exists").ok(t); out != "a does not exist\ndeleted b\n" {
		t.Errorf("%q", out)
	}
	if r := b.kring("", "groups", "describe", "a"); r.status != exitFailed || r.errOut != "kring: a: there is no such group; kring groups list shows those there are\n" {
		t.Errorf("%+v", r)
	}
	if out := b.kring("", "groups", "describe").ok(t); out != "" {
		t.Errorf("%q", out)
	}
	if out := b.kring("", "topics", "describe", "__consumer_offsets").ok(t); !strings.Contains(out, ", 50 partitions, internal\n") {
		t.Errorf("%s", out)
	}
}

func TestGroupFlagsNeedAGroup(t *testing.T) {
	for args, want := range map[string]string{
		"consume x -v":                         "--verbose needs --group",
		"consume x --instance-id a":            "--instance-id needs --group",
		"consume x -g a -p 0":                  "--partition and --group exclude each other",
		"consume x -g a --session-timeout 1ms": "--session-timeout 1ms is not valid; allowed: at least 1s",
		"consume x -g a --assignor fair":       "--assignor fair is not valid; allowed: range, roundrobin, sticky, cooperative-sticky",
	} {
		if r := kring(t, "", strings.Fields(args)...); r.status != exitArguments || !strings.Contains(r.errOut, want) {
			t.Errorf("%s: %d %q", args, r.status, r.errOut)
		}
	}
}

// TestSignalGivenTwiceIsOne ends a member as timeout(1) does: the second signal comes before the first is dealt with.
func TestSignalGivenTwiceIsOne(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	groupOf(t, b, "g")
	m := &running{t: t, args: []string{"consume", "words", "-g", "g", "-v", "-b", b.addr}}
	m.follow("assigned words 0,1,2")
	_ = m.cmd.Process.Signal(syscall.SIGINT)
	if status := m.end(syscall.SIGTERM); status != 0 {
		t.Errorf("status %d", status)
	}
	if d := b.describedAs("g"); len(d.Members) != 0 {
		t.Errorf("%+v", d.Members)
	}
}

func TestTimesAndDurationsAreRead(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1700000000000": 1700000000000, "2026-01-01T00:00:00Z": 1767225600000,
		"2026-01-01T01:00:00.5+01:00": 1767225600500, "2026-01-01T00:00:00.000": 1767225600000, "2026-01-01T00:00": 1767225600000,
		"2026-01-01": 1767225600000, "": -1, "-1": -1, "now": -1, "1969-12-31": -1} {
		if got, ok := parseTime(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %d %v, want %d", text, got, ok, want)
		}
	}
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour, "P1D": 24 * time.Hour,
		"P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "PT5M": 5 * time.Minute, "0s": 0,
		"": -1, "P": -1, "PT": -1, "P1DT": -1, "-1h": -1, "-2d": -1, "1": -1, "1w": -1, "P1M": -1, "P99999999999999999999D": -1} {
		if got, ok := parseDuration(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
}
