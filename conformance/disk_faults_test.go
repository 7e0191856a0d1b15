package conformance

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

var storageError = kerr.KafkaStorageError.Code

// ways are how a disk can end under a broker.
var ways = []struct {
	name, kind string
	broken     func(t *testing.T, d *disk)
}{
	{"syncs fail", "ext4", func(t *testing.T, d *disk) { d.out() }},
	{"the file system becomes read-only", "ext4", func(t *testing.T, d *disk) { shell(t, "mount -o remount,abort "+d.at+" || true") }},
	{"the file system is shut down", "xfs", func(t *testing.T, d *disk) { shell(t, "xfs_io -x -c shutdown "+d.at) }},
	{"the directory is removed", "ext4", func(t *testing.T, d *disk) { shell(t, "mv "+d.at+"/data "+d.at+"/away") }},
}

// TestDiskFails breaks the disk of one of two log dirs. What lies there is refused with KAFKA_STORAGE_ERROR and nothing else, the other log
// dir goes on, the stop marks it alone as clean, and when the disk is back everything acknowledged is there: the topic syncs each batch.
func TestDiskFails(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			kind := w.kind
			d := newDisk(t, kind)
			metrics := stage.FreeAddr(t)
			well := t.TempDir() + "/well"
			bad := d.at + "/data"
			b := start(t, 2, "log.dirs="+well+","+bad, "kring.metrics.address="+metrics, "log.flush.offset.checkpoint.interval.ms=200")
			b.create("t", 8, "flush.messages=1", "segment.bytes=100000")
			gone, kept := in(t, bad, "t"), in(t, well, "t")
			if len(gone) != 4 || len(kept) != 4 {
				t.Fatalf("partitions %v lie in one log dir, %v in the other", gone, kept)
			}
			r := raw{t, b.dial()}
			acked := make([]int64, 8)
			write := func(p int32) int16 {
				o, code := r.produce("t", p, fmt.Sprintf("%08d%s", acked[p], strings.Repeat("x", 9000)))
				if code == 0 && o != acked[p] {
					t.Fatalf("partition %d: offset %d where %d was due", p, o, acked[p])
				}
				if code == 0 {
					acked[p]++
				}
				return code
			}
			for range 20 {
				for p := range int32(8) {
					if code := write(p); code != 0 {
						t.Fatalf("partition %d: code %d", p, code)
					}
				}
			}
			w.broken(t, d)
			within(t, 20*time.Second, "an error", func() bool { return write(gone[0]) != 0 })
			within(t, 20*time.Second, "all of the log dir is offline", func() bool {
				for _, p := range gone {
					if code := write(p); code == 0 {
						return false
					} else if code != storageError {
						t.Fatalf("partition %d: code %d", p, code)
					}
				}
				return true
			})
			for _, p := range gone {
				if _, code := r.values("t", p); code != storageError {
					t.Errorf("fetch of partition %d: code %d", p, code)
				}
			}
			for range 20 {
				for _, p := range kept {
					if code := write(p); code != 0 {
						t.Errorf("partition %d of the other log dir: code %d", p, code)
					}
				}
			}
			dirs := kmsg.NewPtrDescribeLogDirsRequest()
			dirs.Version = 4
			for _, x := range must[*kmsg.DescribeLogDirsResponse](t, r.c, dirs).Dirs {
				if want := map[bool]int16{true: storageError}[x.Dir == bad]; x.ErrorCode != want {
					t.Errorf("log dir %s: code %d", x.Dir, x.ErrorCode)
				}
			}
			if text := page(t, metrics, "/metrics"); !strings.Contains(text, "\nkring_log_dirs_offline 1\n") {
				t.Error("kring_log_dirs_offline is not 1")
			}
			if text := page(t, metrics, "/health"); !strings.Contains(text, "serving") || !strings.Contains(text, bad) {
				t.Errorf("health: %q", text)
			}
			b.create("late", 2)
			if len(in(t, well, "late")) != 2 {
				t.Error("a new topic does not lie in the log dir that is well")
			}
			b.stop(syscall.SIGTERM)
			if s := b.cmd.ProcessState.ExitCode(); s != 0 {
				t.Errorf("the stop ends with status %d", s)
			}
			if exists(bad+"/.kafka_cleanshutdown") || !exists(well+"/.kafka_cleanshutdown") {
				t.Error("the wrong log dir is marked clean")
			}
			if n := strings.Count(b.log.String(), "log dir is offline"); n != 1 {
				t.Errorf("that the log dir is offline was said %d times", n)
			}
			d.mend()
			if w.name == "the directory is removed" {
				shell(t, "mv "+d.at+"/away "+d.at+"/data")
			}
			b.run()
			r.c = b.dial()
			for p := range int32(8) {
				got, code := r.values("t", p)
				if code != 0 || int64(len(got)) < acked[p] {
					t.Errorf("partition %d after a restart: code %d, %d of %d records", p, code, len(got), acked[p])
				}
				if acked[p] = int64(len(got)); write(p) != 0 {
					t.Errorf("partition %d cannot be written after a restart", p)
				}
			}
			if exists(bad + "/kring-log-dir-failed") {
				t.Error("the mark of the failure stays")
			}
			b.stop(syscall.SIGTERM)
			if !exists(bad + "/.kafka_cleanshutdown") {
				t.Error("the log dir that is well again is not marked clean")
			}
		})
	}
}

// TestOnlyDiskFails: a broker without a log dir ends, with a status of its own and a last line that says why, and never says that its stop
// was clean.
func TestOnlyDiskFails(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			d := newDisk(t, w.kind)
			at := d.at + "/data"
			b := start(t, 2, "log.dirs="+at, "log.flush.offset.checkpoint.interval.ms=200")
			b.create("t", 1, "flush.messages=1")
			r := raw{t, b.dial()}
			acked := 0
			for ; acked < 50; acked++ {
				if _, code := r.produce("t", 0, fmt.Sprintf("%08d%s", acked, strings.Repeat("x", 9000))); code != 0 {
					t.Fatalf("code %d", code)
				}
			}
			w.broken(t, d)
			c := b.dial()
			for ended := false; !ended; {
				req := produceFrame("t", "c", recordBatch([]byte("k"), []byte(fmt.Sprintf("%08d%s", acked, strings.Repeat("x", 9000)))))
				answer, err := roundTrip(c, frame(req[4:]))
				if err == nil && decodeProduce(t, answer).Topics[0].Partitions[0].ErrorCode == 0 {
					acked++
				}
				select {
				case err := <-b.done:
					b.done <- err
					ended = true
				case <-time.After(10 * time.Millisecond):
				}
				if acked > 100_000 {
					t.Fatal("the broker goes on")
				}
			}
			if s := b.cmd.ProcessState.ExitCode(); s != 9 {
				t.Errorf("status %d", s)
			}
			lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, "kring: ") || !strings.Contains(last, at) {
				t.Errorf("the last line is %q", last)
			}
			if exists(at + "/.kafka_cleanshutdown") {
				t.Error("it is marked clean")
			}
			d.mend()
			if w.name == "the directory is removed" {
				shell(t, "mv "+d.at+"/away "+d.at+"/data")
			}
			b.run()
			r.c = b.dial()
			if got, code := r.values("t", 0); code != 0 || len(got) < acked {
				t.Errorf("after a restart: code %d, %d of %d records", code, len(got), acked)
			}
		})
	}
}

// TestRemovedPartition: who removes a partition's directory loses that partition, and the broker says so.
func TestRemovedPartition(t *testing.T) {
	b := start(t, 2, "log.flush.offset.checkpoint.interval.ms=200")
	b.create("t", 4)
	r := raw{t, b.dial()}
	for p := range int32(4) {
		if _, code := r.produce("t", p, "00000000"); code != 0 {
			t.Fatal(code)
		}
	}
	if err := os.RemoveAll(b.dir + "/data/t-1"); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "the removed partition is offline", func() bool {
		_, code := r.produce("t", 1, "00000001")
		return code == storageError
	})
	for _, p := range []int32{0, 2, 3} {
		if _, code := r.produce("t", p, "00000001"); code != 0 {
			t.Errorf("partition %d: code %d", p, code)
		}
	}
	b.stop(syscall.SIGTERM)
	if exists(b.dir + "/data/.kafka_cleanshutdown") {
		t.Error("it is marked clean")
	}
	b.run()
	r.c = b.dial()
	for p := range int32(4) {
		if _, code := r.produce("t", p, "00000002"); code != 0 {
			t.Errorf("partition %d after a restart: code %d", p, code)
		}
	}
}

// TestFailedSyncThenRestart: after a failed sync the kernel shows what it could not write until it wants the memory. A broker that starts
// then must not build on that: what it acknowledges survives when the page cache goes, whether it marked the log dir for itself or not.
func TestFailedSyncThenRestart(t *testing.T) {
	for _, marked := range []bool{true, false} {
		t.Run(fmt.Sprint("marked=", marked), func(t *testing.T) {
			d := newDisk(t, dataOnly)
			at := d.at + "/data"
			b := start(t, 2, "log.dirs="+at)
			b.create("t", 1, "flush.messages=20")
			r := raw{t, b.dial()}
			acked := 0
			value := func() string { return fmt.Sprintf("%08d%s", acked, strings.Repeat("x", 90_000)) }
			for ; acked < 39; acked++ { // the first 20 are synced
				if _, code := r.produce("t", 0, value()); code != 0 {
					t.Fatalf("code %d", code)
				}
			}
			d.out()
			for {
				if _, code := r.produce("t", 0, value()); code != 0 {
					break
				}
				if acked++; acked > 10_000 {
					t.Fatal("syncs go on")
				}
			}
			<-b.done
			b.done <- nil
			mark := at + "/kring-log-dir-failed"
			if !exists(mark) {
				t.Fatal("the log dir is not marked")
			}
			if !marked {
				if err := os.Remove(mark); err != nil {
					t.Fatal(err)
				}
			}
			d.in()
			b.run()
			r.c = b.dial()
			got, code := r.values("t", 0)
			if code != 0 || len(got) < acked {
				t.Fatalf("after the restart: code %d, %d of %d", code, len(got), acked)
			}
			acked = len(got)
			for range 20 {
				if _, code := r.produce("t", 0, value()); code != 0 {
					t.Fatalf("after the restart: code %d", code)
				}
				acked++
			}
			b.stop(syscall.SIGKILL)
			d.mend()
			b.run()
			r.c = b.dial()
			got, code = r.values("t", 0)
			t.Logf("%d of %d records are left when the page cache is gone", len(got), acked)
			if marked && (code != 0 || len(got) < acked) {
				t.Errorf("code %d, %d of %d records", code, len(got), acked)
			}
		})
	}
}
