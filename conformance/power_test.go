package conformance

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The power is cut on a disk of which every write and flush is logged (QEMU's blklogwrites, the format of dm-log-writes): what the disk may
// hold after a cut at some entry is all that was written before the last flush, and of what came since any part, in any order.

const (
	diskSize   = 320 << 20 // what XFS wants at least
	logSector  = 512
	flushFlag  = 1
	fuaFlag    = 2
	noDataFlag = 4
)

// logEntry is a write or a flush; at is where its bytes lie in the log.
type logEntry struct {
	sector, sectors, flags uint64
	at                     int64
}

// loggedDisk is a file system on such a disk.
type loggedDisk struct {
	t       *testing.T
	at      string
	log     *os.File
	entries []logEntry
	next    int64
}

func newLoggedDisk(t *testing.T, kind string) *loggedDisk {
	t.Helper()
	dir, at := t.TempDir(), t.TempDir()
	shell(t, fmt.Sprintf("cd %s && truncate -s %d disk.raw && truncate -s 4G log.raw && : > export.img", dir, diskSize))
	qemu := exec.Command("qemu-storage-daemon",
		"--blockdev", "driver=file,node-name=disk,filename="+dir+"/disk.raw", "--blockdev", "driver=file,node-name=logf,filename="+dir+"/log.raw",
		"--blockdev", "driver=blklogwrites,node-name=bl,file=disk,log=logf,log-sector-size=512",
		"--export", "type=fuse,id=e0,node-name=bl,mountpoint="+dir+"/export.img,writable=on")
	qemu.Stderr = os.Stderr
	if err := qemu.Start(); err != nil {
		t.Fatalf("%v (apt-get install qemu-system-common)", err)
	}
	t.Cleanup(func() {
		qemu.Process.Signal(syscall.SIGTERM)
		qemu.Wait()
	})
	within(t, 10*time.Second, "the disk", func() bool {
		info, err := os.Stat(dir + "/export.img")
		return err == nil && info.Size() == diskSize
	})
	loop := shell(t, "losetup -f --show --direct-io=off "+dir+"/export.img")
	t.Cleanup(func() { shell(t, "losetup -d "+loop) })
	shell(t, "mkfs."+kind+" -q "+loop+" && mount "+loop+" "+at)
	t.Cleanup(func() { unmount(t, at) })
	log, err := os.Open(dir + "/log.raw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return &loggedDisk{t: t, at: at, log: log, next: logSector}
}

// now is how many entries the log has.
func (d *loggedDisk) now() int {
	d.t.Helper()
	var head [32]byte
	for {
		if _, err := d.log.ReadAt(head[:], d.next); err != nil {
			d.t.Fatal(err)
		}
		e := logEntry{binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(head[8:]), binary.LittleEndian.Uint64(head[16:]), d.next + logSector}
		if e.sectors == 0 && e.flags == 0 {
			return len(d.entries)
		}
		d.next = e.at
		if e.flags&noDataFlag == 0 {
			d.next += int64(e.sectors) * logSector
		}
		d.entries = append(d.entries, e)
	}
}

// apply writes an entry into an image of the disk.
func (d *loggedDisk) apply(e logEntry, image *os.File) {
	d.t.Helper()
	b := make([]byte, int64(e.sectors)*logSector)
	if e.flags&noDataFlag == 0 && len(b) > 0 {
		if _, err := d.log.ReadAt(b, e.at); err != nil {
			d.t.Fatal(err)
		}
	}
	if _, err := image.WriteAt(b, int64(e.sector)*logSector); err != nil {
		d.t.Fatal(err)
	}
}

// promise is something that was acknowledged when the log had so many entries: a record, or a topic.
type promise struct {
	entries int
	topic   string
	offset  int64
	value   string
}

// TestPowerCut cuts the power at random entries of the disk's log: what topics with flush.messages=1 and the store have acknowledged by then
// is there when a broker starts on what the disk may hold. POWER_CUTS is how often.
func TestPowerCut(t *testing.T) {
	cuts, err := strconv.Atoi(os.Getenv("POWER_CUTS"))
	if err != nil {
		cuts = 5
	}
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) { powerCut(t, kind, cuts) })
	}
}

func powerCut(t *testing.T, kind string, cuts int) {
	d := newLoggedDisk(t, kind)
	b := start(t, 2, "log.dirs="+d.at+"/data", "log.segment.bytes=100000")
	first := d.now()
	b.create("t", 2, "flush.messages=1")
	b.create("noise", 1)
	promises := []promise{{d.now(), "t", -1, ""}}
	r := raw{t, b.dial()}
	for i := range 150 {
		value := fmt.Sprintf("%08d%s", i, strings.Repeat("x", 100+i*50))
		o, code := r.produce("t", int32(i%2), value)
		if code != 0 {
			t.Fatal(code)
		}
		promises = append(promises, promise{d.now(), "t", o, value})
		if r.produce("noise", 0, value); i%30 == 7 {
			name := fmt.Sprint("topic-", i)
			b.create(name, 1)
			promises = append(promises, promise{d.now(), name, -1, ""})
		}
	}
	last := d.now()
	b.stop(syscall.SIGKILL)
	t.Logf("%d entries, %d of them after the start; %d promises", last, last-first, len(promises))
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewSource(seed))
	var at []int
	for range cuts {
		at = append(at, first+rnd.Intn(last-first))
	}
	sort.Ints(at)
	base, err := os.Create(t.TempDir() + "/base")
	if err == nil {
		err = base.Truncate(diskSize)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	done := 0 // entries in base
	for _, n := range at {
		flushed := n
		for flushed > 0 && d.entries[flushed-1].flags&flushFlag == 0 {
			flushed--
		}
		for ; done < flushed; done++ {
			d.apply(d.entries[done], base)
		}
		image := t.TempDir() + "/image"
		shell(t, "cp --sparse=always "+base.Name()+" "+image)
		f, err := os.OpenFile(image, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range d.entries[flushed:n] {
			if e.flags&fuaFlag != 0 || rnd.Intn(2) == 0 {
				d.apply(e, f)
			}
		}
		f.Close()
		t.Run(fmt.Sprint("entry ", n), func(t *testing.T) { afterCut(t, image, n, promises) })
	}
}

// afterCut starts a broker on what a disk holds after a cut at entry n.
func afterCut(t *testing.T, image string, n int, promises []promise) {
	at := t.TempDir()
	loop := shell(t, "losetup -f --show "+image)
	t.Cleanup(func() { shell(t, "losetup -d "+loop) })
	shell(t, "mount "+loop+" "+at+" || mount -o nouuid "+loop+" "+at) // XFS sees that the first one is mounted
	t.Cleanup(func() { unmount(t, at) })
	b := start(t, 2, "log.dirs="+at+"/data")
	r := raw{t, b.dial()}
	all := kmsg.NewPtrMetadataRequest()
	all.Version = 9
	there := map[string]bool{}
	for _, topic := range must[*kmsg.MetadataResponse](t, r.c, all).Topics {
		there[*topic.Topic] = true
	}
	got := map[string]bool{}
	if there["t"] {
		for p := range int32(2) {
			values, code := r.values("t", p)
			if code != 0 {
				t.Fatalf("partition %d: code %d", p, code)
			}
			for _, v := range values {
				got[v] = true
			}
		}
	}
	kept := 0
	for _, x := range promises {
		if x.entries > n {
			continue
		}
		kept++
		if !there[x.topic] {
			t.Errorf("topic %s was created by entry %d, and is not there after a cut at %d", x.topic, x.entries, n)
		}
		if x.offset >= 0 && !holds(got, x.value) {
			t.Errorf("record %.8s was acknowledged by entry %d, and is not there after a cut at %d", x.value, x.entries, n)
		}
	}
	t.Logf("%d promises were kept", kept)
}

// holds looks for a value among records as recordsOf prints them.
func holds(got map[string]bool, value string) bool {
	for v := range got {
		if strings.Contains(v, `"`+value+`"`) {
			return true
		}
	}
	return false
}
