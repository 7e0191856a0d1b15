package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kring/segment"
)

// damagedWords is a stopped broker with a topic of 2,000 records, of which one batch in the midst of a segment is damaged.
func damagedWords(t *testing.T) (b *running, file string) {
	t.Helper()
	b = start(t, t.TempDir()+"/data", "log.segment.bytes=20000")
	b.kring("", "topics", "create", "words", "-p", "2").ok(t)
	b.kring(strings.Repeat("a word of forty letters, more or less so\n", 2000), "produce", "words", "-p", "0", "--max-message-bytes", "2000").ok(t)
	b.end(syscall.SIGTERM)
	if out := kring(t, "", "log", "verify", b.data).ok(t); !strings.Contains(out, "0 findings") {
		t.Errorf("before the damage: %s", out)
	}
	logs, err := filepath.Glob(b.data + "/words-0/*.log")
	if err != nil || len(logs) < 3 {
		t.Fatalf("%d segments, %v", len(logs), err)
	}
	file = logs[1]
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[10_000] ^= 1
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return b, file
}

func TestVerifyAndRepairADamagedLog(t *testing.T) {
	b, file := damagedWords(t)
	found := kring(t, "", "log", "verify", b.data)
	if found.status != 1 || !strings.HasPrefix(found.out, file+" at position ") || strings.Count(found.out, "\n") != 2 {
		t.Errorf("status %d: %s%s", found.status, found.out, found.errOut)
	}
	var one segment.Finding
	as := kring(t, "", "log", "verify", "--json", b.data+"/words-0", b.data+"/words-1")
	if err := json.Unmarshal([]byte(as.out), &one); err != nil || as.status != 1 || one.File != file || one.Position <= 0 || one.Do == "" {
		t.Errorf("status %d, %v: %s", as.status, err, as.out)
	}
	before := tree(t, b.data)
	plan := kring(t, "", "log", "repair", "--dry-run", b.data)
	if plan.status != 1 || !strings.Contains(plan.out, ": would copy bytes ") || !strings.Contains(plan.out, " of "+filepath.Base(file)+" to ") {
		t.Errorf("status %d: %s", plan.status, plan.out)
	}
	if after := tree(t, b.data); len(after) != len(before) {
		t.Error("a dry run changed the log dir")
	}
	b.run()
	b.kring("", "topics", "create", "new").ok(t)
	b.kring("more\n", "produce", "new").ok(t)
	notes := kring(t, "", "log", "verify", b.data)
	if !strings.Contains(notes.out, "note: 2 times, first in "+b.data) || strings.Contains(notes.out, "the next start") ||
		strings.Count(notes.out, ": not on disk while a broker runs; nothing: it is made at a roll or a stop\n") != 1 {
		t.Errorf("with a broker on it: %s", notes.out)
	}
	if all := kring(t, "", "log", "verify", "-v", b.data).out; strings.Count(all, "not on disk while a broker runs") < 2 {
		t.Errorf("each note on its own: %s", all)
	}
	if held := kring(t, "", "log", "repair", b.data); held.status != exitLocked {
		t.Errorf("with a broker on it: status %d: %s%s", held.status, held.out, held.errOut)
	}
	b.end(syscall.SIGTERM)
	repaired := kring(t, "", "log", "repair", b.data+"/words-0").ok(t)
	lines := strings.Split(repaired, "\n")
	if !strings.HasPrefix(lines[0], file+" at position ") || !strings.Contains(lines[0], ", of records from offset ") ||
		!strings.Contains(lines[1], ": copied bytes ") || !strings.HasSuffix(lines[1], ".damaged, and took them out") ||
		!strings.Contains(lines[2], ": made indexes ") || strings.Contains(repaired, "kring log repair") ||
		!strings.HasPrefix(lines[3], "1 partition mended, 0 findings left, ") || !strings.HasSuffix(lines[3], " kept in 1 .damaged file") {
		t.Errorf("repair: %s", repaired)
	}
	var sum struct {
		Partitions, Findings *int
		Done                 bool
	}
	again := strings.TrimSpace(kring(t, "", "log", "repair", "--json", b.data+"/words-0").ok(t))
	if err := json.Unmarshal([]byte(again), &sum); err != nil || sum.Partitions == nil || *sum.Partitions != 0 || *sum.Findings != 0 || !sum.Done {
		t.Errorf("a second repair, %v: %s", err, again)
	}
	if out := kring(t, "", "log", "verify", b.data).ok(t); !strings.Contains(out, "0 findings, 1 note") {
		t.Errorf("after the repair: %s", out)
	}
	kring(t, "", "log", "repair", "--rebuild", b.data).ok(t)
	if out := kring(t, "", "log", "verify", "-q", b.data).ok(t); strings.Count(out, "\n") != 1 {
		t.Errorf("after a rebuild: %s", out)
	}
	b.run()
	records := strings.Count(b.kring("", "consume", "words", "-p", "0", "--from-beginning", "--exit").ok(t), "\n")
	if records >= 2000 || records < 1900 {
		t.Errorf("%d of 2,000 records are there; only those of one batch may be lost", records)
	}
}

func TestVerifySaysWhatItCannotRead(t *testing.T) {
	for _, args := range [][]string{{"/nowhere"}, {"/proc/version"}} {
		if r := kring(t, "", append([]string{"log", "verify"}, args...)...); r.status != exitData || !strings.Contains(r.errOut, args[0]) {
			t.Errorf("%q: status %d: %s", args, r.status, r.errOut)
		}
	}
}

// Neither pipes nor gigabytes in the place of files hold up a look at a log dir, and a repair mends what a start would pass over.
func TestVerifyAndRepairOddFiles(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	b.kring("", "topics", "create", "words", "-p", "3").ok(t)
	b.kring("a\nb\n", "produce", "words", "-p", "0").ok(t)
	b.end(syscall.SIGTERM)
	pipe, long, points := b.data+"/words-1/partition.metadata", b.data+"/words-0/00000000000000000000.log", b.data+"/recovery-point-offset-checkpoint"
	for name, size := range map[string]int64{long: 8 << 30, points: 8 << 30, b.data + "/replication-offset-checkpoint": 5} {
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	found := kring(t, "", "log", "verify", "-q", b.data)
	for _, name := range []string{pipe, long, points, b.data + "/replication-offset-checkpoint"} {
		if !strings.Contains(found.out, name) {
			t.Errorf("%s is not told of", name)
		}
	}
	if found.status != 1 {
		t.Errorf("status %d: %s%s", found.status, found.out, found.errOut)
	}
	other := b.data + "/words-2/00000000000000000009.log"
	if err := syscall.Mkfifo(other, 0o600); err != nil {
		t.Fatal(err)
	}
	if dump := kring(t, "", "log", "dump", other); dump.status != exitData || !strings.Contains(dump.errOut, other) {
		t.Errorf("dump: status %d: %s", dump.status, dump.errOut)
	}
	if err := errors.Join(os.Remove(pipe), os.Remove(other)); err != nil {
		t.Fatal(err)
	}
	kring(t, "", "log", "repair", b.data).ok(t)
	if info, err := os.Stat(long); err != nil || info.Size() > 1000 {
		t.Error(info, err)
	}
	b.run()
	if out := b.kring("", "consume", "words", "--from-beginning", "--exit").ok(t); out != "a\nb\n" {
		t.Errorf("%q", out)
	}
}
