package conformance

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// indexDamages are what index files of a stopped broker may look like. do is called with each index file, of all segments; last says which
// are the newest segment's.
var indexDamages = []struct {
	name string
	do   func(d *damaged, name string, last bool)
}{
	{"none", func(*damaged, string, bool) {}},
	{"empty", func(d *damaged, name string, _ bool) { d.must(os.Truncate(name, 0)) }},
	{"all zeros, at the size a new one is given", func(d *damaged, name string, _ bool) {
		d.must(os.Truncate(name, 0))
		d.must(os.Truncate(name, 10485756/24*24))
	}},
	{"zeros behind the newest segment's entries", func(d *damaged, name string, last bool) {
		if last {
			d.must(os.Truncate(name, 10485756/24*24))
		}
	}},
	{"junk", func(d *damaged, name string, _ bool) { d.must(os.WriteFile(name, d.junk(2400), 0o644)) }},
	{"an entry beyond the log", func(d *damaged, name string, _ bool) {
		entry := binary.BigEndian.AppendUint64(nil, 1<<62|1<<30)
		if strings.HasSuffix(name, ".timeindex") {
			entry = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, 1_700_100_000_000), 1<<30)
		}
		d.appendTo(name, entry)
	}},
	{"cut inside an entry", func(d *damaged, name string, _ bool) { d.cut(name, 5) }},
	{"gone", func(d *damaged, name string, _ bool) { d.must(os.Remove(name)) }},
	{"may only be read", func(d *damaged, name string, _ bool) { d.must(os.Chmod(name, 0o444)) }},
	{"leftovers beside them", func(d *damaged, name string, _ bool) {
		d.must(os.WriteFile(name+".deleted", d.junk(100), 0o644))
		d.must(os.WriteFile(name+".cleaned", d.junk(100), 0o644))
		d.must(os.WriteFile(name+".swap", d.junk(100), 0o644))
		d.must(os.WriteFile(name+".bak", d.junk(100), 0o644))
	}},
}

// TestIndexFilesDecideNothing damages the index files of a broker that was stopped, or killed: it starts, finds by offset and by time what
// it found before, takes more, and does so again after another start.
func TestIndexFilesDecideNothing(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		b := start(t, 2, "log.segment.bytes=20000", "log.index.interval.bytes=1000")
		b.create("t", 1)
		before := newHistory(b, "t")
		before.write(t, 500, 400)
		before.read(t, "at first")
		b.await("twenty finished segments", func() bool {
			found, _ := filepath.Glob(b.dir + "/data/t-0/*.snapshot")
			return len(found) >= 20
		})
		b.stop(sig)
		if err := os.Rename(b.dir+"/data", b.dir+"/kept"); err != nil {
			t.Fatal(err)
		}
		for _, x := range indexDamages {
			t.Run(fmt.Sprint(sig, "/", x.name), func(t *testing.T) {
				if out, err := exec.Command("cp", "-a", b.dir+"/kept", b.dir+"/data").CombinedOutput(); err != nil {
					t.Fatalf("%v %s", err, out)
				}
				defer os.RemoveAll(b.dir + "/data")
				d := &damaged{t, b.dir + "/data"}
				newest := strings.TrimSuffix(d.last("t-0/*.log"), ".log")
				d.each("t-0/*index", func(name string) error {
					x.do(d, name, strings.HasPrefix(name, newest))
					return nil
				})
				stands(t, b, *before)
			})
		}
		for _, suffix := range []string{".index", ".timeindex"} {
			t.Run(fmt.Sprint(sig, "/a directory in the place of an ", suffix), func(t *testing.T) {
				if out, err := exec.Command("cp", "-a", b.dir+"/kept", b.dir+"/data").CombinedOutput(); err != nil {
					t.Fatalf("%v %s", err, out)
				}
				defer os.RemoveAll(b.dir + "/data")
				name := (&damaged{t, b.dir + "/data"}).files("t-0/*" + suffix)[2]
				err := os.Remove(name)
				if err == nil {
					err = os.Mkdir(name, 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer func(was *testing.T) { b.t = was }(b.t)
				b.t = t
				b.run()
				defer b.stop(syscall.SIGTERM)
				r := raw{t, b.dial()}
				for o := range int64(len(before.records)) { // what cannot be found is an error, and said
					got, code, err := r.fetch("t", 0, o, 1)
					if one := cutBatch(&got); err != nil || code == 0 && (one == nil || int64(binary.BigEndian.Uint64(one)) != before.batches[o]) {
						t.Fatalf("offset %d: code %d, %d bytes, %v", o, code, len(got), err)
					}
					if code != 0 && !strings.Contains(b.log.String(), name) {
						t.Fatalf("offset %d: code %d, and the broker does not speak of %s:\n%s", o, code, name, b.log)
					}
				}
			})
		}
		b.run() // for the harness to stop
	}
}

// stands starts the broker on what there is, and again after writes: all that was read is there, can be found, and goes on.
func stands(t *testing.T, b *broker, h history) {
	defer func(was *testing.T) { b.t = was }(b.t)
	b.t = t
	for i := range 2 {
		when := fmt.Sprint("start ", i+1)
		b.run()
		h.read(t, when)
		h.find(t, when)
		h.write(t, 5, 400)
		h.read(t, when+", after writes")
		h.find(t, when+", after writes")
		b.stop(syscall.SIGTERM)
	}
}
