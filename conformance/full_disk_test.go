package conformance

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

// mount makes a file system of so many MiB in a file and mounts it.
func mount(t *testing.T, kind string, mib int64) string {
	t.Helper()
	image, at := filepath.Join(t.TempDir(), kind), t.TempDir()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, mib<<20); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range [][]string{{"mkfs." + kind, "-q", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s(this test needs root, loop devices and mkfs.%s)", cmd, err, out, kind)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount %s: %v %s", at, err, out)
		}
	})
	return at
}

// fill writes a file of so many MiB.
func fill(t *testing.T, name string, mib int64) {
	t.Helper()
	f, err := os.Create(name)
	if err == nil {
		err = syscall.Fallocate(int(f.Fd()), 0, 0, mib<<20)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tryCreate makes a topic of one partition.
func (b *broker) tryCreate(topic string) error {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	admin := kadm.NewClient(b.client())
	admin.SetTimeoutMillis(500)
	r, err := admin.CreateTopic(ctx, 1, 1, nil, topic)
	if err == nil {
		err = r.Err
	}
	return err
}

// goesOn waits until w can write again.
func (w *writer) goesOn() {
	w.b.t.Helper()
	until := time.Now().Add(20 * time.Second)
	for ok := 0; ok < 20; {
		if err := w.write(1000); err == nil {
			ok++
		} else if time.Now().After(until) {
			w.b.t.Fatalf("there is room and %s cannot be written: %v", w.topic, err)
		}
	}
}

// tryRun starts the process again on a disk that may be too full for that: then it must say so and end with the status for log
// dirs that cannot be written.
func (b *broker) tryRun() bool {
	b.t.Helper()
	b.log = new(journal)
	b.cmd = exec.Command(stage.Kring(b.t), b.args...)
	b.cmd.Dir, b.cmd.Stdout, b.cmd.Stderr = b.dir, b.log, b.log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan error) { done <- cmd.Wait() }(b.cmd, b.done)
	for until := time.After(startMax); ; {
		c, err := net.DialTimeout("tcp", b.addr, time.Second)
		if err == nil {
			_, err = roundTrip(c, encode(kmsg.NewPtrApiVersionsRequest()))
			c.Close()
		}
		if err == nil {
			return true
		}
		select {
		case err := <-b.done:
			b.done <- err
			if b.cmd.ProcessState.ExitCode() != 7 || !strings.Contains(b.log.String(), "no space left on device") {
				b.t.Fatalf("the broker ended at start beside a full disk: %v\n%s", err, b.log)
			}
			return false
		case <-until:
			b.t.Fatalf("the broker does not answer on %s: %v\n%s", b.addr, err, b.log)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestFullDisk fills the disk of a broker, kills it, starts it while the disk is full, and makes room: nothing acknowledged is
// lost, reads go on, and writes do by themselves when there is room.
func TestFullDisk(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs"} {
		for _, path := range []string{"ring", "pwrite"} {
			t.Run(kind+"/"+path, func(t *testing.T) { fullDisk(t, kind, path) })
		}
	}
}

func fullDisk(t *testing.T, kind, path string) {
	at := mount(t, kind, 320) // what XFS wants at least
	filler := filepath.Join(at, "filler")
	var fs syscall.Statfs_t
	if err := syscall.Statfs(at, &fs); err != nil {
		t.Fatal(err)
	}
	fill(t, filler, int64(fs.Bavail)*fs.Bsize>>20-20)
	b := start(t, 2, "log.dirs="+at+"/data", "kring.write.path="+path, "log.segment.bytes=2000000", "log.index.interval.bytes=1000",
		"log.flush.offset.checkpoint.interval.ms=100")
	b.create("t", 1)
	b.create("u", 1)
	w, u := newWriter(b, "t"), newWriter(b, "u")
	full := 0
	for i := 0; full < 20; i++ {
		if err := w.write(60_000); err != nil {
			full++
		}
		if err := u.write(1 + i%300); err != nil {
			full++
		}
		if i > 2000 {
			t.Fatal("the disk is never full")
		}
	}
	w.check("while the disk is full")
	u.check("while the disk is full")
	late := b.tryCreate("late")
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		b.stop(sig)
		if !b.tryRun() {
			break
		}
		w.check(fmt.Sprint("started beside a full disk, after ", sig))
		u.check(fmt.Sprint("started beside a full disk, after ", sig))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.done: // it did not start
	default:
		w.goesOn()
		u.goesOn()
		b.stop(syscall.SIGTERM)
	}
	b.run()
	w.goesOn()
	u.goesOn()
	w.check("at the end")
	u.check("at the end")
	if late != nil {
		late = b.tryCreate("late") // it may be there: then it must have come to life
	}
	l := newWriter(b, "late")
	l.goesOn()
	l.check(fmt.Sprint("created beside a full disk, ", late))
}
