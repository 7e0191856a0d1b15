package conformance

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kring/conformance/stage"
)

// said runs one of kring's client commands, and gives all it prints and whether it succeeded.
func (b *broker) said(stdin string, args ...string) (string, bool) {
	b.t.Helper()
	cmd := exec.Command(stage.Kring(b.t), append(args, "-b", b.addr, "--timeout", "3s")...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &out
	err := cmd.Run()
	return out.String(), err == nil
}

// TestCommandsNameAFullDisk: who produces to a full disk, or makes a topic on one, reads why it does not go; a topic without logs can be
// looked at; and all goes on when there is room.
func TestCommandsNameAFullDisk(t *testing.T) {
	at := mount(t, "ext4", 32)
	b := start(t, 2, "log.dirs="+at+"/data")
	b.create("t", 1)
	filler := fillUp(t, at, 0)
	record := strings.Repeat("no room for this ", 10_000) + "\n"
	if out, ok := b.said(record, "produce", "t"); ok || !strings.Contains(out, "t: KAFKA_STORAGE_ERROR: ") || !strings.Contains(out, "disk is full") {
		t.Errorf("produce: %v\n%.2000s", ok, out)
	}
	out, ok := b.said("", "topics", "create", "late", "-p", "3")
	if ok || !strings.Contains(out, "late: KAFKA_STORAGE_ERROR: ") || !strings.Contains(out, "no space left on device") {
		t.Errorf("topics create: %v\n%s", ok, out)
	}
	within(t, 10*time.Second, "topics describe shows that the topic has no leaders", func() bool {
		out, ok := b.said("", "topics", "describe", "late")
		return ok && strings.Count(out, "none") == 3
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, "the topic is served", func() bool {
		_, ok := b.said(record, "produce", "late")
		return ok
	})
	if out, ok := b.said(record, "produce", "t"); !ok {
		t.Errorf("produce, with room: %s", out)
	}
}
