package conformance

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kring/conformance/stage"
)

// damage is what happened to a log dir between two starts. The partition is t-0, in segments of 20 kB.
type damage struct {
	name string
	do   func(d *damaged)
	// refused: the start must end with exit status 7 and a line that holds this; else the broker must serve.
	refused string
	// said is what a broker that serves must say of it, if anything.
	said string
	// least of the records must be there, in per cent, from the first on and without a gap.
	least int
}

// damaged is the log dir in question.
type damaged struct {
	t   *testing.T
	dir string
}

func (d *damaged) files(pattern string) []string {
	found, err := filepath.Glob(d.dir + "/" + pattern)
	if err != nil || len(found) == 0 {
		d.t.Fatalf("no %s: %v", pattern, err)
	}
	return found
}

func (d *damaged) last(pattern string) string { all := d.files(pattern); return all[len(all)-1] }

func (d *damaged) must(err error) {
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *damaged) junk(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

func (d *damaged) appendTo(name string, b []byte) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(b)
		f.Close()
	}
	d.must(err)
}

func (d *damaged) write(name, text string) { d.must(os.WriteFile(d.dir+"/"+name, []byte(text), 0o644)) }

func (d *damaged) cut(name string, n int64) {
	st, err := os.Stat(name)
	d.must(err)
	d.must(os.Truncate(name, max(st.Size()-n, 0)))
}

// breakLength makes nonsense of the length of the batch that lies back bytes before the end.
func (d *damaged) breakLength(name string, back int) {
	b, err := os.ReadFile(name)
	d.must(err)
	at := 0
	for next := at; next < len(b)-back; next += 12 + int(binary.BigEndian.Uint32(b[next+8:])) {
		at = next
	}
	b[at+8] ^= 0x40
	d.must(os.WriteFile(name, b, 0o644))
}

// cutBatch cuts the last batch off.
func (d *damaged) cutBatch(name string) {
	b, err := os.ReadFile(name)
	d.must(err)
	at := 0
	for next := 0; next < len(b); next += 12 + int(binary.BigEndian.Uint32(b[next+8:])) {
		at = next
	}
	d.must(os.Truncate(name, int64(at)))
}

func (d *damaged) each(pattern string, fn func(name string) error) {
	for _, name := range d.files(pattern) {
		d.must(fn(name))
	}
}

var damages = []damage{
	{name: "none", do: func(*damaged) {}, least: 100},
	{name: "junk behind the log", do: func(d *damaged) { d.appendTo(d.last("t-0/*.log"), d.junk(100)) }, said: "cutting a segment off", least: 100},
	{name: "a dangling .swap", do: func(d *damaged) { d.write("t-0/00000000000000000000.log.swap", "hello") }, said: ".log.swap", least: 100},
	{name: "an empty .swap", do: func(d *damaged) { d.write("t-0/00000000000000000000.log.swap", "") }, said: ".log.swap", least: 100},
	{name: "a dangling index.swap", do: func(d *damaged) { d.write("t-0/00000000000000000000.index.swap", "hello") }, least: 100},
	{name: "a dangling .cleaned", do: func(d *damaged) { d.write("t-0/00000000000000000000.log.cleaned", "hello") }, least: 100},
	{name: "zeros behind the log", do: func(d *damaged) { d.appendTo(d.last("t-0/*.log"), make([]byte, 5000)) }, said: "cutting a segment off", least: 100},
	{name: "the log's end is gone", do: func(d *damaged) { d.cut(d.last("t-0/*.log"), 37) }, said: "segment", least: 90},
	{name: "the log's end is cut at a batch", do: func(d *damaged) { d.cutBatch(d.last("t-0/*.log")) }, least: 90},
	{name: "a length in the last segment", do: func(d *damaged) { d.breakLength(d.last("t-0/*.log"), 1500) }, said: "segment", least: 85},
	{name: "an old segment is cut", do: func(d *damaged) { d.cut(d.files("t-0/*.log")[1], 37) }, said: "segment", least: 5},
	{name: "indexes are junk", do: func(d *damaged) {
		d.each("t-0/*index", func(n string) error { return os.WriteFile(n, d.junk(333), 0o644) })
	}, least: 100},
	{name: "indexes are gone", do: func(d *damaged) { d.each("t-0/*index", os.Remove) }, least: 100},
	{name: "indexes are empty", do: func(d *damaged) {
		d.each("t-0/*index", func(n string) error { return os.Truncate(n, 0) })
	}, least: 100},
	{name: "snapshots are junk", do: func(d *damaged) {
		d.each("t-0/*.snapshot", func(n string) error { return os.WriteFile(n, d.junk(100), 0o644) })
	}, least: 100},
	{name: "checkpoints are junk", do: func(d *damaged) {
		d.each("*-checkpoint", func(n string) error { return os.WriteFile(n, []byte("hello\n"), 0o644) })
	}, said: "-offset-checkpoint", least: 100},
	{name: "the recovery point is beyond the end", do: func(d *damaged) {
		d.write("recovery-point-offset-checkpoint", "0\n1\nt 0 999999999\n")
		d.appendTo(d.last("t-0/*.log"), d.junk(100))
	}, said: "cutting a segment off", least: 100},
	{name: "leader epochs are junk", do: func(d *damaged) { d.write("t-0/leader-epoch-checkpoint", "xx") }, said: "leader epochs", least: 100},
	{name: "the topic id is gone", do: func(d *damaged) { d.each("t-0/partition.metadata", os.Remove) }, least: 100},
	{name: "strange files", do: func(d *damaged) {
		d.write("README", "hello")
		d.write("t-0/stranger.log", "hello")
		d.must(os.Mkdir(d.dir+"/t-0/sub", 0o755))
	}, least: 100},
	{name: "another's partition", do: func(d *damaged) {
		d.must(os.Mkdir(d.dir+"/other-0", 0o755))
		d.write("other-0/00000000000000000000.log", "hello")
	}, least: 100},
	{name: "a strange directory", do: func(d *damaged) { d.must(os.Mkdir(d.dir+"/strange", 0o755)) }, refused: "data/strange"},
	{name: "meta.properties is junk", do: func(d *damaged) { d.write("meta.properties", "xx") }, refused: "meta.properties"},
	{name: "another cluster's", do: func(d *damaged) {
		d.write("meta.properties", "version=0\nbroker.id=1001\ncluster.id=abc\n")
	}, refused: "meta.properties"},
	{name: "the store is gone", do: func(d *damaged) { d.each("kring-store-*", os.Remove) }, refused: "meta.properties"},
	{name: "the store is damaged", do: func(d *damaged) {
		name := d.last("kring-store-*.log")
		b, err := os.ReadFile(name)
		d.must(err)
		b[100] ^= 1
		d.must(os.WriteFile(name, b, 0o644))
	}, refused: "kring-store-"},
	{name: "the store's end is torn", do: func(d *damaged) { d.appendTo(d.last("kring-store-*.log"), d.junk(50)) }, least: 100},
}

// TestDamagedFiles damages a log dir between two starts, after a stop in order and after a crash: the broker says which file is
// bad and refuses or recovers; nothing is lost but what was damaged, and nothing served that was not written.
func TestDamagedFiles(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		b := start(t, 2, "log.segment.bytes=20000", "log.index.interval.bytes=500")
		b.create("t", 1)
		w := newWriter(b, "t")
		for range 150 {
			if err := w.write(700); err != nil {
				t.Fatal(err)
			}
		}
		b.await("a finished segment", func() bool { // its snapshot is one of the files to be damaged
			found, _ := filepath.Glob(b.dir + "/data/t-0/*.snapshot")
			return len(found) > 0
		})
		b.stop(sig)
		if err := os.Rename(b.dir+"/data", b.dir+"/kept"); err != nil {
			t.Fatal(err)
		}
		for _, x := range damages {
			t.Run(fmt.Sprint(sig, "/", x.name), func(t *testing.T) {
				if out, err := exec.Command("cp", "-a", b.dir+"/kept", b.dir+"/data").CombinedOutput(); err != nil {
					t.Fatalf("%v %s", err, out)
				}
				defer os.RemoveAll(b.dir + "/data")
				x.do(&damaged{t, b.dir + "/data"})
				x.check(t, b, w)
			})
		}
		b.run() // for the harness to stop
	}
}

func (x *damage) check(t *testing.T, b *broker, w *writer) {
	defer func(before *testing.T) { b.t = before }(b.t)
	b.t = t
	if x.refused != "" {
		cmd := exec.Command(stage.Kring(t), b.args...)
		out, _ := cmd.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if last := lines[len(lines)-1]; cmd.ProcessState.ExitCode() != 7 || !strings.Contains(last, x.refused) {
			t.Fatalf("exit status %d, not 7 with a word on %s:\n%s", cmd.ProcessState.ExitCode(), x.refused, out)
		}
		return
	}
	b.run()
	defer b.stop(syscall.SIGTERM)
	n := int64(0)
	for _, v := range b.readable("t") {
		if want := w.acked[place{0, n}]; v != want {
			t.Fatalf("at offset %d is %.20q where %.20q was written", n, v, want)
		}
		n++
	}
	if int(n) < x.least*len(w.acked)/100 {
		t.Errorf("%d of %d records are there, of which %d %% must be\n%s", n, len(w.acked), x.least, b.log)
	}
	if !strings.Contains(b.log.String(), x.said) {
		t.Errorf("the broker does not say %q:\n%s", x.said, b.log)
	}
}

// readable are the values of partition 0 from offset 0 on, up to the end or the first that cannot be read.
func (b *broker) readable(topic string) (all []string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cl := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.KeepRetryableFetchErrors())
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	end, _ := ends.Lookup(topic, 0)
	if err != nil || end.Err != nil {
		b.t.Fatal(err, end.Err)
	}
	for int64(len(all)) < end.Offset {
		f := cl.PollFetches(ctx)
		f.EachRecord(func(r *kgo.Record) {
			if r.Offset != int64(len(all)) {
				b.t.Fatalf("offset %d where %d was due", r.Offset, len(all))
			}
			all = append(all, string(r.Value))
		})
		if f.Err() != nil {
			break
		}
	}
	return all
}

// await waits until ok holds.
func (b *broker) await(what string, ok func() bool) {
	b.t.Helper()
	for until := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			b.t.Fatalf("%s does not come", what)
		}
	}
}
