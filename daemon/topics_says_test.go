package main

import (
	"strings"
	"testing"
)

// TestDescribeShowsOwnTopicsFirst: those of brokers themselves are shown where they are named or asked for.
func TestDescribeShowsOwnTopicsFirst(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	groupOf(t, b, "g")
	for args, internal := range map[string]bool{"": false, "--internal": true, "__consumer_offsets": true, "words": false, "--json": false,
		"--json --internal": true} {
		out := b.kring("", append([]string{"topics", "describe"}, strings.Fields(args)...)...).ok(t)
		if strings.Contains(out, "__consumer_offsets") != internal || strings.Contains(out, "RECORDS") {
			t.Errorf("%s:\n%s", args, out)
		}
	}
}

// TestSettingsBackToWhat: the protocol takes the removal of anything; the command says what was not there.
func TestSettingsBackToWhat(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	b.kring("", "topics", "create", "a", "-c", "retention.ms=60000").ok(t)
	for _, row := range []struct {
		args     string
		status   int
		out, err string
	}{
		{"--delete-config foo", exitFailed, "", "kring: a: foo is no setting of a topic\n"},
		{"--delete-config segment.bytes", 0, "", "segment.bytes of a was not set\n"},
		{"--delete-config segment.bytes --delete-config retention.ms", 0, "altered 1 setting of a\n", "segment.bytes of a was not set\n"},
		{"--delete-config retention.ms -c segment.bytes=1000000", 0, "altered 1 setting of a\n", "retention.ms of a was not set\n"},
	} {
		r := b.kring("", append([]string{"topics", "alter", "a"}, strings.Fields(row.args)...)...)
		if r.status != row.status || r.out != row.out || r.errOut != row.err {
			t.Errorf("%s: %+v", row.args, r)
		}
	}
	if r := b.kring("", "topics", "alter", "absent", "--delete-config", "retention.ms"); r.status != exitFailed ||
		!strings.HasPrefix(r.errOut, "kring: absent: UNKNOWN_TOPIC_OR_PARTITION: ") {
		t.Errorf("%+v", r)
	}
}

// TestProducerNamesTheRuleThatRefused: the client library does not pass on why a broker refuses a record.
func TestProducerNamesTheRuleThatRefused(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	b.kring("", "topics", "create", "latest", "-c", "cleanup.policy=compact").ok(t)
	b.kring("", "topics", "create", "small", "-c", "max.message.bytes=1000").ok(t)
	for _, row := range []struct{ args, in, want string }{
		{"latest", "x\n", "latest: INVALID_RECORD: the topic is compacted (cleanup.policy), and takes no record without a key; --key or --key-separator gives one"},
		{"small", strings.Repeat("x", 2000) + "\n", "small: MESSAGE_TOO_LARGE: a batch is larger than the topic's max.message.bytes, 1000; --max-message-bytes makes "},
		{"small --max-message-bytes 600", strings.Repeat("x", 700) + "\n", "small: MESSAGE_TOO_LARGE: a record of 700 bytes does not fit into --max-message-bytes, 600"},
		{"latest -k k --max-message-bytes 5000", strings.Repeat("x", 6000) + "\n", "latest: MESSAGE_TOO_LARGE: a record of 6001 bytes does not fit into --max-message-bytes, 5000"},
	} {
		r := b.kring(row.in, append([]string{"produce"}, strings.Fields(row.args)...)...)
		if r.status != exitFailed || !strings.Contains(r.errOut, "kring: "+row.want) {
			t.Errorf("%s: %+v, want %s", row.args, r, row.want)
		}
	}
	b.kring("x\n", "produce", "latest", "-k", "k").ok(t)
}

// TestHelpOfNoCommand is not another command's.
func TestHelpOfNoCommand(t *testing.T) {
	for args, want := range map[string]string{
		"groups reset --help":      `kring: there is no command "groups reset"; kring groups --help lists them` + "\n",
		"groups -h reset":          `kring: there is no command "groups reset"; kring groups --help lists them` + "\n",
		"nope --help":              `kring: there is no command "nope"; kring --help lists them` + "\n",
		"log dumps -h":             `kring: there is no command "log dumps"; kring log --help lists them` + "\n",
		"topics describe x -h":     "",
		"groups --help":            "",
		"help groups":              "",
		"--help":                   "",
		"groups --timeout 1s":      "",
		"groups --timeout 1s x -h": `kring: there is no command "groups x"; kring groups --help lists them` + "\n",
	} {
		r := kring(t, "", strings.Fields(args)...)
		if wrong := want != ""; wrong != (r.status == exitArguments) || r.errOut != want || wrong != (r.out == "") {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
