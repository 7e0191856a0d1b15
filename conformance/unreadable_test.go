package conformance

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/sys/unix"
)

// physical is where the first byte of a file lies on its device.
func physical(t *testing.T, name string) int64 {
	t.Helper()
	text := shell(t, "filefrag -b1 -v "+name+" | sed -n 's/^ *0: *0\\.\\. *[0-9]*: *\\([0-9]*\\)\\.\\..*/\\1/p'")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// forget takes a file out of the page cache.
func forget(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err == nil {
		defer f.Close()
		if err = f.Sync(); err == nil {
			err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// readable reads the records of topic t, whose values begin with their offsets, one by one, and says how many could be read. The others
// must be errors: no other bytes, and not nothing.
func readable(t *testing.T, b *broker, partition int32, count int64) (read int64) {
	t.Helper()
	for o := range count {
		r := raw{t, b.dial()}
		got, code, err := r.fetch("t", partition, o, 40_000)
		r.c.Close()
		switch {
		case err != nil, code == storageError, code == kerr.CorruptMessage.Code:
		case code != 0 || len(got) == 0:
			t.Fatalf("offset %d: code %d, %d bytes", o, code, len(got))
		default:
			one := cutBatch(&got)
			if base := int64(binary.BigEndian.Uint64(one)); base != o || !strings.Contains(recordsOf(t, one)[0], fmt.Sprintf("%08d", o)) {
				t.Fatalf("offset %d: another record, at %d", o, base)
			}
			read++
		}
	}
	return read
}

// TestUnreadableSegments takes the end of a disk away, so that some segments cannot be read (EIO) and others can. Who asks for those gets
// an error or loses the connection, never other bytes and never nothing; everybody else is served, and so are they when the disk is back.
func TestUnreadableSegments(t *testing.T) {
	at, under := t.TempDir(), t.TempDir()
	image := under + "/image"
	shell(t, "truncate -s 200m "+image+" && mkfs.ext4 -q "+image)
	loop := shell(t, "losetup -f --show "+image)
	t.Cleanup(func() { shell(t, "losetup -d "+loop) })
	shell(t, "mount "+loop+" "+at)
	t.Cleanup(func() { shell(t, "umount "+at) })
	well, bad := t.TempDir()+"/well", at+"/data"
	b := start(t, 2, "log.dirs="+well+","+bad, "log.segment.bytes=1000000")
	b.create("t", 2)
	p := in(t, bad, "t")[0]
	r := raw{t, b.dial()}
	const count = 400
	for i := range count {
		if _, code := r.produce("t", p, fmt.Sprintf("%08d%s", i, strings.Repeat("x", 30_000))); code != 0 {
			t.Fatal(code)
		}
	}
	// What is in memory would be read from there.
	b.stop(syscall.SIGTERM)
	b.run()
	segments, err := filepath.Glob(fmt.Sprintf("%s/t-%d/*.log", bad, p))
	if err != nil || len(segments) < 8 {
		t.Fatalf("%v, %v", segments, err)
	}
	sort.Slice(segments, func(i, j int) bool { return physical(t, segments[i]) < physical(t, segments[j]) })
	cut := physical(t, segments[len(segments)/2])
	shell(t, "sync -f "+at+" && cp --sparse=always "+image+" "+image+".whole")
	for _, name := range segments {
		forget(t, name)
	}
	if err := os.Truncate(image, cut); err != nil {
		t.Fatal(err)
	}
	look := func() int64 { return readable(t, b, p, count) }
	n := look()
	t.Logf("%d of %d records can be read", n, count)
	if n == 0 || n == count {
		t.Errorf("%d of %d records can be read", n, count)
	}
	r.c = b.dial()
	if _, code := r.produce("t", 1-p, "other"); code != 0 {
		t.Errorf("the other log dir: code %d", code)
	}
	shell(t, fmt.Sprintf("truncate -s 200m %s && dd if=%s.whole of=%s bs=1M iflag=skip_bytes oflag=seek_bytes skip=%d seek=%d conv=notrunc status=none",
		image, image, image, cut, cut))
	if n := look(); n != count {
		t.Errorf("when the disk is back %d of %d records can be read", n, count)
	}
	r.c = b.dial()
	if _, code := r.produce("t", p, "after"); code != 0 {
		t.Errorf("when the disk is back: code %d", code)
	}
}

// TestSegmentsTakenAway removes one closed segment of a running broker and cuts another in half: what is gone cannot be read, the rest can,
// new records are taken, and so it is after a restart.
func TestSegmentsTakenAway(t *testing.T) {
	b := start(t, 2, "log.segment.bytes=100000")
	b.create("t", 1)
	r := raw{t, b.dial()}
	const count = 200
	for i := range count {
		if _, code := r.produce("t", 0, fmt.Sprintf("%08d%s", i, strings.Repeat("x", 9_000))); code != 0 {
			t.Fatal(code)
		}
	}
	b.stop(syscall.SIGTERM)
	b.run() // so that it has none of them open
	segments, err := filepath.Glob(b.dir + "/data/t-0/*.log")
	if err != nil || len(segments) < 10 {
		t.Fatalf("%v, %v", segments, err)
	}
	sort.Strings(segments)
	if err := os.Remove(segments[3]); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(segments[6], 45_000); err != nil {
		t.Fatal(err)
	}
	n := readable(t, b, 0, count)
	t.Logf("%d of %d records can be read", n, count)
	if n < count-22 || n == count {
		t.Errorf("%d of %d records can be read", n, count)
	}
	r.c = b.dial()
	if o, code := r.produce("t", 0, "after"); code != 0 || o != count {
		t.Errorf("a new record: offset %d, code %d", o, code)
	}
	b.stop(syscall.SIGTERM)
	b.run()
	r.c = b.dial()
	if o, code := r.produce("t", 0, "after"); code != 0 || o != count+1 {
		t.Errorf("a new record after a restart: offset %d, code %d", o, code)
	}
}
