package conformance

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fillUp leaves a file system so many bytes.
func fillUp(t *testing.T, at string, left int64) (filler string) {
	t.Helper()
	filler = filepath.Join(at, "filler")
	shell(t, "dd if=/dev/zero of="+filler+" bs=64k 2>/dev/null || dd if=/dev/zero of="+filler+".2 bs=1k 2>/dev/null || true; rm -f "+filler+".2")
	shell(t, "dd if=/dev/zero of="+filler+" bs=1k oflag=append conv=notrunc 2>/dev/null || true; sync -f "+filler)
	info, err := os.Stat(filler)
	if err == nil {
		err = os.Truncate(filler, info.Size()-left)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filler
}

// triedAgain waits until logs for which there was no room, if there are any, have been tried so many times again.
func triedAgain(b *broker, times int) {
	b.t.Helper()
	within(b.t, startMax, "logs without room are tried again", func() bool {
		said := b.log.String()
		return !strings.Contains(said, "logs cannot be opened for want of room") || strings.Contains(said, "logs could be opened at last") ||
			strings.Count(said, "there is still no room for logs") >= times
	})
}

// TestDiskFillsUpDuringRecovery kills a broker in the middle of writes, tears a log, and lets it recover beside a disk with no or little
// room, more than once. No start may take the stop before for clean that was not: when there is room everything acknowledged is there and
// the torn batch is not.
func TestDiskFillsUpDuringRecovery(t *testing.T) {
	for _, left := range []int64{0, 12 << 10, 100 << 10, 1 << 20} {
		t.Run(fmt.Sprint("left=", left), func(t *testing.T) {
			at := mount(t, "ext4", 64)
			data := at + "/data"
			b := start(t, 2, "log.dirs="+data, "log.segment.bytes=40000", "log.index.interval.bytes=100", "kring.log.level=debug")
			b.create("t", 20)
			w := newWriter(b, "t")
			for i := range int32(1000) {
				if w.partition = i % 20; w.write(2000) != nil {
					t.Fatal("a write fails")
				}
			}
			stop := make(chan struct{})
			for i := int32(0); w.write(2000) == nil; i++ {
				if w.partition = i % 20; i == 30 {
					go func() { // it dies in the middle of a write, or soon after
						b.cmd.Process.Kill()
						close(stop)
					}()
				}
			}
			<-stop
			b.stop(syscall.SIGKILL)
			logs, err := filepath.Glob(data + "/t-7/*.log")
			if err != nil || len(logs) < 2 {
				t.Fatalf("%v: %v", logs, err)
			}
			f, err := os.OpenFile(logs[len(logs)-1], os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				torn := recordBatch([]byte("k"), make([]byte, 1000))
				_, err = f.Write(torn[:500])
				f.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			filler := fillUp(t, at, left)
			for round := range 3 {
				serves := b.tryRun()
				if serves {
					triedAgain(b, round)
					b.stop([]syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM}[round])
				}
				said := b.log.String()
				if whole := serves && !strings.Contains(said, "cannot be opened"); exists(data+"/.kafka_cleanshutdown") && !whole {
					t.Errorf("round %d: the stop is marked clean though not all was recovered:\n%s", round, tail(said, 2000))
				}
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			b.run()
			w.check("when there is room again")
			for i := range int32(20) {
				w.partition = i
				if err := w.write(500); err != nil {
					t.Errorf("partition %d cannot be written: %v", i, err)
				}
			}
			w.check("at the end")
			b.stop(syscall.SIGTERM)
			if !exists(data + "/.kafka_cleanshutdown") {
				t.Error("a stop with room is not marked clean")
			}
		})
	}
}

// TestFullDiskOfOneLogDir: groups commit and two topics are written, of which one lies on a disk that fills up. Its appends and the commits
// that lie there are refused, the other log dir goes on, nothing that was acknowledged is lost, and all goes on by itself when there is
// room; also if the broker was killed meanwhile, and started on the full disk.
func TestFullDiskOfOneLogDir(t *testing.T) {
	small := mount(t, "ext4", 64)
	well, full := t.TempDir()+"/well", small+"/data"
	b := start(t, 2, "log.dirs="+well+","+full, "offsets.topic.num.partitions=4", "log.segment.bytes=2000000")
	b.create("t", 4)
	gone := in(t, full, "t")
	w := newWriter(b, "t")
	c := b.dial()
	groups := map[string]int64{} // offsets acknowledged
	findCoordinator(t, c, "g0")
	commits := func() (refused int) {
		for i := range 8 {
			g := fmt.Sprint("g", i)
			resp, err := commitOnce(c, g, "t", 0, groups[g]+1)
			switch {
			case err != nil:
				t.Fatal(err)
			case resp == 0:
				groups[g]++
			default:
				refused++
				if e := kerr.ErrorForCode(resp); e != kerr.NotCoordinator && e != kerr.CoordinatorNotAvailable && e != kerr.KafkaStorageError &&
					e != kerr.CoordinatorLoadInProgress {
					t.Errorf("a commit on a full disk: %v", e)
				}
			}
		}
		return refused
	}
	within(t, 10*time.Second, "commits", func() bool { return commits() == 0 })
	filler := fillUp(t, small, 300<<10)
	failed := 0
	for i := 0; failed < 30; i++ {
		if w.partition = int32(i % 4); w.write(30_000) != nil {
			failed++
		}
		commits()
		if i > 2000 {
			t.Fatal("the disk is never full")
		}
	}
	check := func(when string) {
		t.Helper()
		w.check(when)
		for g, o := range groups {
			got, err := fetchOffsets(b.dial(), g, "t", 1)
			if err != nil || got.ErrorCode != 0 || o > 0 && got.Topics[0].Partitions[0].Offset < o {
				t.Errorf("%s: group %s committed %d and has %+v, %v", when, g, o, got, err)
			}
		}
	}
	within(t, 10*time.Second, "reads beside a full disk", func() bool { check("while the disk is full"); return true })
	if n := strings.Count(b.log.String(), "no room"); n == 0 || n > 4 {
		t.Errorf("%d lines say that there is no room", n)
	}
	if err := os.Truncate(filler, 1<<20); err != nil {
		t.Fatal(err)
	}
	for _, p := range gone {
		w.partition = p
		w.goesOn()
	}
	within(t, 20*time.Second, "commits go on", func() bool { return commits() == 0 })
	within(t, 10*time.Second, "the end is told", func() bool { w.goesOn(); return strings.Contains(b.log.String(), "there is room again") })
	filler = fillUp(t, small, 100<<10)
	for failed := 0; failed < 10; {
		if w.write(30_000) != nil {
			failed++
		}
		commits()
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		b.stop(sig)
		b.run() // the store lies in the other log dir
		c = b.dial()
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for p := range int32(4) {
		w.partition = p
		w.goesOn()
	}
	within(t, 20*time.Second, "commits go on", func() bool { return commits() == 0 })
	check("at the end")
}

// commitOnce is the code a commit is answered with.
func commitOnce(c net.Conn, group, topic string, partition int32, offset int64) (int16, error) {
	resp, err := ask[*kmsg.OffsetCommitResponse](c, commitRequest(group, topic, partition, offset))
	if err != nil {
		return 0, err
	}
	return resp.Topics[0].Partitions[0].ErrorCode, nil
}
