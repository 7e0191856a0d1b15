package segment

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"kring/ring"
	"kring/wire/batch"
)

// dirFiles are the files a fuzzed log dir is made of, in a fixed order.
func dirFiles(tb testing.TB, archive string) (names []string, files map[string][]byte) {
	files = unpack(tb, "logdir-"+archive+".tar.gz")
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, files
}

// FuzzLogDir damages one file of a whole log dir, which was stopped cleanly or killed, puts a file of any name and content into it,
// and starts on it twice. Whatever they are: the start does not crash, names what is wrong if it refuses, and serves no record that was not written.
func FuzzLogDir(f *testing.F) {
	names, _ := dirFiles(f, "clean")
	for i := range names {
		f.Add(true, uint16(i), uint32(17), []byte{0xff}, "")
		f.Add(true, uint16(i), uint32(8), []byte{0x7f, 0xff, 0xff, 0xff}, "")
		f.Add(false, uint16(i), uint32(3), []byte{}, "")
	}
	junk := []byte("what is this, a batch? It is neither that nor an index, nor anything else")
	for _, name := range []string{"00000000000000000000.log.swap", "00000000000000000000.index.swap", "00000000000000000015.log.cleaned",
		"00000000000000000007.log", "00000000000000000099.snapshot", "00000000000000000000.txnindex", "leader-epoch-checkpoint.tmp",
		"x.log", "5.log", ".log", "-1.log"} {
		f.Add(true, uint16(0), uint32(1<<31), junk, "rolls-0/"+name)
		f.Add(false, uint16(0), uint32(1<<31), []byte(nil), "txn-0/"+name)
	}
	f.Fuzz(func(t *testing.T, clean bool, which uint16, at uint32, with []byte, extra string) {
		archive := "killed"
		if clean {
			archive = "clean"
		}
		names, files := dirFiles(t, archive)
		name := names[int(which)%len(names)]
		r := newRig(t, 1)
		r.put("logdir-" + archive + ".tar.gz")
		if b := bytes.Clone(files[name]); int(at) < len(b) {
			if len(with) == 0 {
				b = b[:at]
			} else {
				copy(b[at:], with)
			}
			r.m.WriteFile("/"+name, b)
		}
		if strings.Count(extra, "/") == 1 && strings.HasPrefix(extra, "rolls-0/") || strings.HasPrefix(extra, "txn-0/") {
			rest := extra[strings.IndexByte(extra, '/')+1:]
			if rest != "" && rest != "." && rest != ".." && !strings.ContainsAny(rest, "/\x00") && len(rest) < 200 {
				r.m.WriteFile("/logdir-"+archive+"/"+extra, bytes.Clone(with))
			}
		}
		written := map[string]bool{}
		for name, b := range files {
			if strings.HasSuffix(name, logSuffix) {
				for {
					one, rest, err := batch.Whole(b)
					if err != nil {
						break
					}
					written[string(one[batch.BodyStart:])] = true
					b = rest
				}
			}
		}
		for start := range 2 {
			if !startOn(t, r, "/logdir-"+archive, written, start == 0) {
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
		at = next
	}
}
