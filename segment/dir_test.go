package segment

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kring/ring"
)

const dirPath = "/data"

func (r *rig) openDir(o DirOptions) (*Dir, error) {
	r.tb.Helper()
	var d *Dir
	var err error
	r.do("open the dir", func(t *ring.Task) { d, err = OpenDir(t, dirPath, o) })
	return d, err
}

var ours = DirOptions{ClusterID: "cluster", BrokerID: 1}

func TestNewDir(t *testing.T) {
	r := newRig(t, 20)
	d, err := r.openDir(ours)
	if err != nil || d.Clean() || len(d.Partitions()) != 0 {
		t.Fatalf("%v, %+v", err, d)
	}
	for name, want := range map[string]string{
		propertiesFile: "#\n#Sun Nov 30 03:56:40 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=cluster\n",
		recoveryFile:   "", logStartFile: "", watermarkFile: "", cleanerFile: "", lockFile: "",
	} {
		b, err := r.m.ReadFile(dirPath + "/" + name)
		if err != nil || name != propertiesFile && string(b) != want || !strings.HasSuffix(string(b), want[strings.LastIndex(want, "UTC")+1:]) {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
	if _, err := r.openDir(ours); err == nil || !strings.Contains(err.Error(), lockFile) {
		t.Errorf("a second start on the same dir: %v", err)
	}
	all := []Checkpoint{{Partition{"b", 0}, 7}, {Partition{"a", 10}, 3}, {Partition{"a", 2}, 1}}
	r.do("checkpoints and close", func(task *ring.Task) {
		for _, write := range []func(*ring.Task, []Checkpoint) error{d.WriteRecoveryPoints, d.WriteLogStarts, d.WriteHighWatermarks} {
			if err := write(task, all); err != nil {
				t.Error(err)
			}
		}
		if err := d.Close(task, true); err != nil {
			t.Error(err)
		}
	})
	if b, _ := r.m.ReadFile(dirPath + "/" + recoveryFile); string(b) != "0\n3\na 2 1\na 10 3\nb 0 7\n" {
		t.Errorf("%q", b)
	}
	if b, _ := r.m.ReadFile(dirPath + "/" + cleanFile); string(b) != `{"version":0,"brokerEpoch":-1}` {
		t.Errorf("%q", b)
	}
	if _, err := r.m.ReadFile(dirPath + "/" + lockFile); err == nil {
		t.Error("the lock file is still there")
	}
	if d, err = r.openDir(ours); err != nil || !d.Clean() {
		t.Fatalf("clean %v, %v", d != nil && d.Clean(), err)
	}
	if o := d.Options(Partition{"b", 0}); o.RecoveryPoint != 7 || o.LogStart != 7 || !o.Clean || o.Dir != dirPath+"/b-0" {
		t.Errorf("%+v", o)
	}
	if o, ok := d.HighWatermark(Partition{"a", 10}); !ok || o != 3 {
		t.Errorf("high watermark %d, %v", o, ok)
	}
	if _, err := r.m.ReadFile(dirPath + "/" + cleanFile); err == nil {
		t.Error("the clean-stop marker is still there while running")
	}
	r.do("give up", func(task *ring.Task) { _ = d.GiveUp(task) })
	if d, err = r.openDir(ours); err != nil || !d.Clean() {
		t.Errorf("a start that failed took the marker away")
	}
	r.on(d.Abandon)
	if d, err = r.openDir(ours); err != nil || d.Clean() {
		t.Errorf("a killed process left a clean dir")
	}
}

// What must stop a start does so with one line that says what and where; the marker stays.
func TestDirRefusals(t *testing.T) {
	const good = "broker.id=1\nversion=0\ncluster.id=cluster\n"
	for _, c := range []struct{ name, file, content, want string }{
		{"another broker", propertiesFile, "broker.id=2\nversion=0\ncluster.id=cluster\n", "broker.id=2"},
		{"another cluster", propertiesFile, "broker.id=1\nversion=0\ncluster.id=other\n", "cluster.id=other"},
		{"KRaft's", propertiesFile, "node.id=1\nversion=1\ncluster.id=cluster\n", "version"},
		{"no numbers", propertiesFile, "\x00\xff", "meta.properties"},
		{"a foreign directory", "lost+found/x", "", "lost+found"},
		{"a directory of ours", "embedded/x", "", "embedded"},
		{"a move between log dirs", "t-0.0123456789abcdef0123456789abcdef-future/x", "", "future"},
		{"no partition number", "topic-/x", "", "topic-"},
		{"a partition number too large", "topic-4294967296/x", "", "topic-4294967296"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 21)
			r.m.WriteFile(dirPath+"/"+propertiesFile, []byte(good))
			r.m.WriteFile(dirPath+"/"+cleanFile, nil)
			r.m.WriteFile(dirPath+"/"+c.file, []byte(c.content))
			_, err := r.openDir(ours)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dirPath) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v", err)
			}
			if _, err := r.m.ReadFile(dirPath + "/" + cleanFile); err != nil {
				t.Error("the clean-stop marker is gone")
			}
			if err := r.m.Exit(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDirToleratesAndCleans(t *testing.T) {
	r := newRig(t, 22)
	left := dirPath + "/gone-0.0123456789abcdef0123456789abcdef-delete"
	r.m.WriteFile(dirPath+"/notes.txt", []byte("foreign"))
	r.m.WriteFile(dirPath+"/"+recoveryFile, []byte("not a checkpoint"))
	r.m.WriteFile(dirPath+"/"+logStartFile, []byte("0\n1\na.b-c 3 9\n"))
	r.m.WriteFile(dirPath+"/__cluster_metadata-0/x", nil)
	r.m.WriteFile(dirPath+"/a.b-c-3/x", nil)
	r.m.WriteFile(left+"/"+fileName(0, logSuffix), nil)
	d, err := r.openDir(ours)
	if err != nil {
		t.Fatal(err)
	}
	if p := d.Partitions(); len(p) != 1 || p[0] != (Partition{"a.b-c", 3}) || d.Options(p[0]).LogStart != 9 {
		t.Errorf("%v", p)
	}
	r.on(func() { d.DeleteLeftovers(1000) })
	r.w.RunFor(900 * time.Millisecond)
	if len(r.m.Files(left)) == 0 {
		t.Error("deleted too early")
	}
	r.w.RunFor(time.Second)
	if got := r.m.Files(left); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// Many logs are opened some at a time, and each is told of.
func TestOpenAll(t *testing.T) {
	r := newRig(t, 23)
	var all []Options
	for i := range 20 {
		o := r.options(fmt.Sprintf("/data/t-%d", i))
		if i == 7 {
			r.m.WriteFile(o.Dir+"/"+metadataFile, []byte("nonsense"))
		}
		all = append(all, o)
	}
	seen := map[int]bool{}
	finished := false
	r.on(func() {
		OpenAll(r.loop, all, 3, func(i int, l *Log, err error) {
			if seen[i] || finished {
				t.Errorf("%d twice or late", i)
			}
			seen[i] = true
			if bad := i == 7; bad != errors.Is(err, ErrMalformed) || bad != (l == nil) {
				t.Errorf("%d: %v", i, err)
			}
		}, func() { finished = true })
	})
	if err := r.w.RunUntil("all", time.Minute, func() bool { return finished }); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 20 {
		t.Errorf("%d told of", len(seen))
	}
}

// What a compaction leaves half done is settled as Kafka settles it.
func TestSwapFiles(t *testing.T) {
	r := newRig(t, 24)
	dir := "/data/t-0/"
	part := func(base, n int) []byte {
		var all []byte
		for i := range n {
			b := records(1, epoch, "v")
			stampAt(b, Offset(base+i))
			all = append(all, b...)
		}
		return all
	}
	r.m.WriteFile(dir+fileName(0, logSuffix), part(0, 10))
	r.m.WriteFile(dir+fileName(10, logSuffix), part(10, 10))
	r.m.WriteFile(dir+fileName(20, logSuffix), part(20, 5))
	r.m.WriteFile(dir+fileName(0, logSuffix+swapSuffix), part(5, 12)) // finished: replaces both
	r.m.WriteFile(dir+fileName(0, indexSuffix+swapSuffix), nil)
	r.m.WriteFile(dir+fileName(20, logSuffix+cleanedSuffix), part(20, 1)) // unfinished
	r.m.WriteFile(dir+fileName(3, logSuffix+deletedSuffix), part(3, 1))
	o := r.options("/data/t-0")
	o.Config.Compact = true
	l := r.open(o)
	if l.Segments() != 2 || l.End() != 25 {
		t.Fatalf("%d segments up to %d", l.Segments(), l.End())
	}
	if got := r.readAll(l, 1<<20); len(got) != 17 || header(got[0]).base() != 5 || header(got[12]).base() != 20 {
		t.Errorf("%d batches from %d", len(got), header(got[0]).base())
	}
	for _, f := range r.m.Files("/data/t-0") {
		if strings.HasSuffix(f, swapSuffix) || strings.HasSuffix(f, cleanedSuffix) || strings.HasSuffix(f, deletedSuffix) {
			t.Errorf("%s is still there", f)
		}
	}
}

func stampAt(b []byte, o Offset) {
	for i := range 8 {
		b[i] = byte(o >> (56 - 8*i))
	}
}

// Logs recovered side by side with fewer files allowed than logs keep the ones they read open.
func TestOpenAllWithFewFiles(t *testing.T) {
	r := newRig(t, 25)
	var all []Options
	for i := range 6 {
		o := r.options(fmt.Sprintf("/data/t-%d", i))
		l := r.open(o)
		for range 10 {
			r.append(l, records(3, epoch, strings.Repeat("v", 100_000)))
		}
		all = append(all, o)
	}
	for _, clean := range []bool{false, true} {
		r.m.Kill()
		r.boot()
		r.files = NewFiles(r.loop, 1)
		finished := false
		var logs []*Log
		for i := range all {
			all[i].Files, all[i].Clean = r.files, clean
		}
		r.on(func() {
			OpenAll(r.loop, all, 5, func(i int, l *Log, err error) {
				if err != nil || l.End() != 30 {
					t.Errorf("%d: %v", i, err)
				}
				logs = append(logs, l)
			}, func() { finished = true })
		})
		if err := r.w.RunUntil("all", time.Minute, func() bool { return finished }); err != nil {
			t.Fatal(err)
		}
		for _, l := range logs {
			if got := r.readAll(l, 1_000_000); len(got) != 10 {
				t.Errorf("%s: %d batches", l.Dir(), len(got))
			}
			r.close(l)
		}
	}
}
