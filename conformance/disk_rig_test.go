package conformance

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// disk is a file system that can be broken under a running broker, as a second log dir.
type disk struct {
	t    *testing.T
	at   string
	kind string
	loop string // device
	out  func() // break it
	in   func() // and undo that, with the file system unmounted
}

// dataOnly is an ext4 of which only the data cannot be written: the file system itself does not notice.
const dataOnly = "ext4, data only"

func shell(t *testing.T, text string) string {
	t.Helper()
	out, err := exec.Command("sh", "-ec", text).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s(this test needs root and loop devices)", text, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newDisk makes a file system in a file of a small tmpfs, which is smaller than the file pretends to be: when it is full, what the kernel
// writes back later fails with EIO.
func newDisk(t *testing.T, kind string) *disk {
	t.Helper()
	under, at := t.TempDir(), t.TempDir()
	shell(t, "mount -t tmpfs -o size=100m none "+under)
	t.Cleanup(func() { shell(t, "umount "+under) })
	image := under + "/image"
	if kind == dataOnly {
		// The first 40 MiB are there, with the journal in them, and a file that takes most of the rest: what comes later lies behind.
		shell(t, "truncate -s 400m "+image+" && mkfs.ext4 -q -J size=4,location=4M "+image+" && fallocate -l 40m -n "+image)
	} else {
		shell(t, "truncate -s 400m "+image+" && mkfs."+kind+" -q "+image)
	}
	d := &disk{t: t, at: at, kind: kind}
	d.loop = shell(t, "losetup -f --show "+image)
	t.Cleanup(func() { shell(t, "losetup -d "+d.loop) })
	d.mount()
	t.Cleanup(func() { exec.Command("umount", at).Run() })
	if kind == dataOnly {
		shell(t, "fallocate -l 30m "+at+"/within && sync "+at+"/within")
	}
	filler := under + "/filler"
	d.out = func() { shell(t, "dd if=/dev/zero of="+filler+" bs=64k 2>/dev/null || true") }
	d.in = func() { shell(t, "rm -f "+filler) }
	return d
}

func (d *disk) mount()   { d.t.Helper(); shell(d.t, "mount "+d.loop+" "+d.at) }
func (d *disk) unmount() { d.t.Helper(); unmount(d.t, d.at) }

// unmount waits for the kernel to close what a killed broker's ring had open, which it does a little after the process is gone.
func unmount(t *testing.T, at string) {
	t.Helper()
	within(t, 10*time.Second, "umount "+at, func() bool { return exec.Command("umount", at).Run() == nil })
}

// mend does what an operator would: the file system is unmounted and mounted again, and with it goes what only memory had.
func (d *disk) mend() {
	d.t.Helper()
	d.unmount()
	d.in()
	d.mount()
}

// raw speaks to single partitions, and wants to see error codes.
type raw struct {
	t *testing.T
	c net.Conn
}

func (r raw) produce(topic string, partition int32, value string) (offset int64, code int16) {
	r.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 8, -1, 3000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, recordBatch([]byte("k"), []byte(value))
	req.Topics = append(req.Topics, kmsg.ProduceRequestTopic{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{p}})
	got := must[*kmsg.ProduceResponse](r.t, r.c, req).Topics[0].Partitions[0]
	return got.BaseOffset, got.ErrorCode
}

// fetch is one fetch of a partition: the records' bytes and the code, or what ended the connection.
func (r raw) fetch(topic string, partition int32, offset int64, most int32) ([]byte, int16, error) {
	f := kmsg.NewPtrFetchRequest()
	f.Version, f.MaxBytes, f.ReplicaID, f.SessionEpoch = 11, most, -1, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = partition, offset, most, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	f.Topics = append(f.Topics, t)
	resp, err := ask[*kmsg.FetchResponse](r.c, f)
	if err != nil {
		return nil, 0, err
	}
	got := resp.Topics[0].Partitions[0]
	return got.RecordBatches, got.ErrorCode, nil
}

// values reads a partition of single-record batches whose values begin with 8 digits; it ends at the first error.
func (r raw) values(topic string, partition int32) (all []string, code int16) {
	r.t.Helper()
	for at := int64(0); ; {
		b, code, err := r.fetch(topic, partition, at, 1<<20)
		if err != nil {
			r.t.Fatal(err)
		}
		if code != 0 || len(b) == 0 {
			return all, code
		}
		for one := cutBatch(&b); one != nil; one = cutBatch(&b) {
			if o := int64(binary.BigEndian.Uint64(one)); o != at {
				r.t.Fatalf("offset %d of %s-%d where %d was due", o, topic, partition, at)
			}
			all = append(all, recordsOf(r.t, one)...)
			at++
		}
	}
}

// in are the partitions of a topic that lie in a log dir.
func in(t *testing.T, dir, topic string) (all []int32) {
	t.Helper()
	list, err := filepath.Glob(dir + "/" + topic + "-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		var p int32
		if n, _ := fmt.Sscanf(filepath.Base(name), topic+"-%d", &p); n == 1 {
			all = append(all, p)
		}
	}
	return all
}

// page is one of the broker's HTTP pages.
func page(t *testing.T, addr, name string) string {
	t.Helper()
	r, err := http.Get("http://" + addr + name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// within waits for something that must come soon.
func within(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(most); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not within %v: %s", most, what)
		}
	}
}
