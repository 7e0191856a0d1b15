package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestStopIsCleanAndNothingIsLost(t *testing.T) {
	everyLoops(t, func(t *testing.T, b *running) {
		b.kring("", "topics", "create", "words", "-p", "3").ok(t)
		b.kring(strings.Repeat("word\n", 500), "produce", "words").ok(t)
		before := b.kring("", "topics", "describe", "words", "--json").ok(t)
		if status := b.end(syscall.SIGTERM); status != 0 {
			t.Errorf("status %d", status)
		}
		if !exists(b.data, ".kafka_cleanshutdown") || exists(b.data, ".lock") {
			t.Error("a clean stop leaves the marker and no lock")
		}
		b.run()
		if exists(b.data, ".kafka_cleanshutdown") || !exists(b.data, ".lock") {
			t.Error("a running broker holds the lock and has taken the marker away")
		}
		if after := b.kring("", "topics", "describe", "words", "--json").ok(t); strings.Replace(after, `"leaderEpoch":1`, `"leaderEpoch":0`, 3) !=
			strings.Replace(before, `"leaderEpoch":1`, `"leaderEpoch":0`, 3) {
			t.Errorf("before %s after %s", before, after)
		}
		if n := len(parseSeen(t, b.kring("", "consume", "words", "--from-beginning", "-e", "--json").ok(t))); n != 500 {
			t.Errorf("%d records, want 500", n)
		}
	})
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// TestKilledBrokerKeepsWhatItAcknowledged restarts at once and on the same port, as a supervisor does.
func TestKilledBrokerKeepsWhatItAcknowledged(t *testing.T) {
	everyLoops(t, func(t *testing.T, b *running) {
		b.args = append(b.args, "--override", "listeners=PLAINTEXT://"+b.addr)
		b.kring("", "topics", "create", "words", "-p", "3", "-c", "segment.bytes=6000").ok(t)
		for round := range 3 {
			var in strings.Builder
			for i := range 300 {
				fmt.Fprintf(&in, "%d-%d\n", round, i)
			}
			b.kring(in.String(), "produce", "words").ok(t)
			b.end(syscall.SIGKILL)
			b.run()
			if !strings.Contains(b.said.String(), "the last stop was not clean: logs are recovered") {
				t.Errorf("a recovery is not told:\n%s", b.said.String())
			}
		}
		seen := map[string]int{}
		for _, s := range parseSeen(t, b.kring("", "consume", "words", "--from-beginning", "-e", "--json").ok(t)) {
			seen[*s.Value]++
		}
		for round := range 3 {
			for i := range 300 {
				if v := fmt.Sprintf("%d-%d", round, i); seen[v] != 1 {
					t.Errorf("%s is there %d times", v, seen[v])
				}
			}
		}
	})
}

// TestBrokerOutlivesTheReaderOfItsOutput closes the pipe that the broker logs to.
func TestBrokerOutlivesTheReaderOfItsOutput(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, t.TempDir()+"/data")
	b.end(syscall.SIGTERM)
	cmd := exec.Command(program, append(b.args, "--override", "listeners=PLAINTEXT://"+b.addr)...)
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	for s := bufio.NewScanner(read); s.Scan() && !strings.Contains(s.Text(), "Ctrl-C stops"); {
	}
	read.Close()
	b.kring("", "topics", "create", "words", "-c", "compression.type=gzip").ok(t) // which is logged
	b.kring("a\n", "produce", "words").ok(t)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSecondSignalEndsAtOnce holds up the drain by a client that asked for much and does not read it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	b.kring(strings.Repeat(strings.Repeat("x", 900_000)+"\n", 40), "produce", "big", "-p", "0").ok(t)
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(fetchAll("big")); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil || binary.BigEndian.Uint32(size) < 30_000_000 {
		t.Fatalf("an answer of %d bytes does not hold up anything (%v)", binary.BigEndian.Uint32(size), err)
	}
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	if !b.said.wait("broker stops", b.done) {
		t.Fatal("the first signal does not stop the broker")
	}
	if status := b.end(syscall.SIGTERM); status != exitKilled || strings.Contains(b.said.String(), "broker stopped") {
		t.Errorf("status %d", status)
	}
	b.run()
	if n := len(parseSeen(t, b.kring("", "consume", "big", "--from-beginning", "-e", "--json").ok(t))); n != 40 {
		t.Errorf("%d records, want 40", n)
	}
}

// TestSignalsAtOnceAreSaid: two signals that come together end the broker with a line that says so, or it was through before the second.
func TestSignalsAtOnceAreSaid(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	status, said := b.end(syscall.SIGINT), ""
	if said = b.said.String(); strings.Contains(said, "broker stopped") {
		return
	}
	if status != exitKilled || !strings.Contains(said, "a second signal ends the broker at once") {
		t.Errorf("status %d, said: %s", status, said)
	}
}

// fetchAll is a request for all that partition 0 of a topic holds.
func fetchAll(topic string) []byte {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 11
	req.ReplicaID, req.MaxBytes, req.SessionEpoch = -1, 50<<20, -1
	rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	rt.Topic, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = topic, 50<<20, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 1)
}
