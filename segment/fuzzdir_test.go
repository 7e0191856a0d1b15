package segment

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"kring/ring"
	"kring/wire/batch"
)

// goldenPart is one partition of a golden log dir with the log dir's own files, or these with two small partitions. Names are without
// the log dir's.
type goldenPart struct {
	names   []string // of files, in order
	files   map[string][]byte
	written map[string]bool // every batch in it, from the part of it on that its checksum covers
}

// goldenParts cuts a log dir into pieces that are quickly started on: logs do not know of each other.
func goldenParts(tb testing.TB, archive string) []*goldenPart {
	var all []*goldenPart
	for _, dirs := range [][]string{{"rolls-0"}, {"txn-0"}, {"compacted-0"}, {"prealloc-0"}, {"epochs-0"}, {"deleted-records-0", "txn-1"}} {
		g := &goldenPart{files: map[string][]byte{}, written: map[string]bool{}}
		for name, b := range unpack(tb, "logdir-"+archive+".tar.gz") {
			name = strings.TrimPrefix(name, "logdir-"+archive+"/")
			dir, _, inside := strings.Cut(name, "/")
			if inside && !slices.Contains(dirs, dir) {
				continue
			}
			g.files[name] = b
			for {
				one, rest, err := batch.Whole(b)
				if err != nil {
					break
				}
				g.written[string(one[batch.BodyStart:])] = true
				b = rest
			}
			if inside || len(dirs) > 1 {
				g.names = append(g.names, name)
			}
		}
		slices.Sort(g.names)
		all = append(all, g)
	}
	return all
}

// damaged is b with one thing wrong with it, nil if it is not there at all; other is some other file's content.
func damaged(b []byte, kind byte, at uint16, with, other []byte) []byte {
	from := min(int(at), len(b))
	switch kind % 6 {
	case 0: // other bytes
		b = bytes.Clone(b)
		copy(b[from:], with)
		return b
	case 1: // another end
		return slices.Concat(b[:from], with)
	case 2: // put in between
		return slices.Concat(b[:from], with, b[from:])
	case 3: // taken out
		return slices.Concat(b[:from], b[min(from+len(with), len(b)):])
	case 4:
		return append([]byte{}, other...)
	}
	return nil
}

// FuzzLogDir damages one file of a log dir that was stopped cleanly or killed, puts a file of any name and content into it, and
// starts on it twice. Whatever they are: the start does not crash, names what is wrong if it refuses, and serves no record that was not written.
func FuzzLogDir(f *testing.F) {
	parts := map[bool][]*goldenPart{true: goldenParts(f, "clean"), false: goldenParts(f, "killed")}
	for _, clean := range []bool{true, false} {
		for n, g := range parts[clean] {
			for i, name := range g.names {
				if n == 0 && i > 3 || !clean && i%3 != 0 { // one segment is like the next, and a killed log dir like a stopped one
					continue
				}
				kind := byte(i % 6)
				f.Add(clean, byte(n), byte(i), kind, uint16(17), []byte{0x7f, 0xff}, "")
				if strings.HasSuffix(name, logSuffix) {
					f.Add(clean, byte(n), byte(i), byte(0), uint16(8), []byte{0x7f, 0xff, 0xff, 0xff}, "")
				}
			}
		}
	}
	junk := []byte("what is this, a batch? It is neither that nor an index, nor anything else")
	for i, name := range []string{"00000000000000000000.log.swap", "00000000000000000000.index.swap", "00000000000000000015.log.cleaned",
		"00000000000000000007.log", "00000000000000000099.snapshot", "00000000000000000000.txnindex", "leader-epoch-checkpoint.tmp",
		"x.log", "5.log", ".log", "-1.log"} {
		f.Add(i%2 == 0, byte(1+i%5), byte(0), byte(0), uint16(1<<15), junk, name)
	}
	f.Fuzz(func(t *testing.T, clean bool, part, which, kind byte, at uint16, with []byte, extra string) {
		g := parts[clean][int(part)%len(parts[clean])]
		r := newRig(t, 1)
		name := g.names[int(which)%len(g.names)]
		for _, n := range slices.Sorted(maps.Keys(g.files)) {
			b := g.files[n]
			if n == name {
				b = damaged(b, kind, at, with, g.files[g.names[(int(which)+1+int(at)%(len(g.names)-1))%len(g.names)]])
			}
			if b != nil || n != name {
				r.m.WriteFile("/d/"+n, b)
			}
		}
		if extra != "" && extra != "." && extra != ".." && !strings.ContainsAny(extra, "/\x00") && len(extra) < 200 &&
			extra != "deleted-records-0" && extra != "txn-1" {
			r.m.WriteFile("/d/"+name[:strings.LastIndexByte(name, '/')+1]+extra, with)
		}
		for start := range 2 {
			if !startOn(t, r, "/d", g.written, start == 0) {
				return
			}
		}
	})
}

// startOn opens every log of a dir, reads it and closes it; false if the dir is refused.
func startOn(t *testing.T, r *rig, dir string, written map[string]bool, cleanly bool) bool {
	t.Helper()
	var d *Dir
	var err error
	r.do("open the dir", func(task *ring.Task) { d, err = OpenDir(task, dir, DirOptions{BrokerID: -1, Log: quiet(t)}) })
	if err != nil {
		if !strings.Contains(err.Error(), dir+"/") {
			t.Fatalf("refused without a word on the file: %v", err)
		}
		return false
	}
	spoiled := false
	for _, p := range d.Partitions() {
		o := d.Options(p)
		o.Files = r.files
		o.Config.IndexMaxBytes = 4096
		var l *Log
		r.do("open", func(task *ring.Task) { l, err = Open(task, o) })
		if err != nil {
			if !strings.Contains(err.Error(), o.Dir) {
				t.Fatalf("not opened without a word on the file: %v", err)
			}
			spoiled = true
			continue
		}
		serves(t, r, l, written)
		r.do("close", func(task *ring.Task) { spoiled = l.Close(task) != nil || spoiled })
	}
	r.do("close the dir", func(task *ring.Task) {
		if err := d.Close(task, cleanly && !spoiled); err != nil {
			t.Fatal(err)
		}
	})
	return true
}

// serves reads all of a log, also behind damage; a batch whose checksum holds, which is what a client believes, must have been written.
func serves(t *testing.T, r *rig, l *Log, written map[string]bool) {
	t.Helper()
	missed := 0
	for at, reads := l.Start(), 0; at < l.Written() && reads < 300; reads++ {
		b, err := r.read(l, at, l.Written(), 1<<20, true)
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatalf("%s at %d: %v", l.Dir(), at, err)
		}
		next := at + 1
		for len(b) > 0 {
			one, rest, err := batch.Whole(b)
			if err != nil {
				break
			}
			if batch.Verify(one) == nil && !written[string(one[batch.BodyStart:])] {
				t.Fatalf("%s at %d: a batch that nobody wrote", l.Dir(), at)
			}
			next, b = max(next, header(one).last()+1), rest
		}
		if missed++; next > at+1 {
			missed = 0
		} else if missed == 8 { // the next segment is as good as the next offset
			if missed = 0; l.behind(l.segs[l.floor(at)]) == nil {
				return
			}
			next = max(next, l.behind(l.segs[l.floor(at)]).base)
		}
		at = next
	}
}
