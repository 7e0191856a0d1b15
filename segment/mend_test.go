package segment

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"kring/ring"
)

// spoiled are ways in which index files of finished segments may be wrong.
var spoiled = map[string]func(r *rig, dir string, base Offset){
	"no index": func(r *rig, dir string, base Offset) { r.gone(dir, base, indexSuffix) },
	"no time index": func(r *rig, dir string, base Offset) {
		r.gone(dir, base, timeSuffix)
	},
	"neither": func(r *rig, dir string, base Offset) {
		r.gone(dir, base, indexSuffix)
		r.gone(dir, base, timeSuffix)
	},
	"an index cut within an entry": func(r *rig, dir string, base Offset) {
		name := dir + "/" + fileName(base, indexSuffix)
		b, _ := r.m.ReadFile(name)
		r.m.WriteFile(name, b[:len(b)-3])
	},
	"an empty time index, which retention finds": func(r *rig, dir string, base Offset) { r.m.WriteFile(dir+"/"+fileName(base, timeSuffix), nil) },
	"an index that was half replaced": func(r *rig, dir string, base Offset) {
		r.m.WriteFile(dir+"/"+fileName(base, indexSuffix)+tmpSuffix, []byte("half"))
		r.gone(dir, base, indexSuffix)
	},
	"an index of nonsense, which a reader finds": func(r *rig, dir string, base Offset) {
		r.m.WriteFile(dir+"/"+fileName(base, indexSuffix), bytes.Repeat([]byte{0xee}, 80))
	},
}

func (r *rig) gone(dir string, base Offset, suffix string) {
	r.do("remove", func(task *ring.Task) {
		if err := task.Remove(dir + "/" + fileName(base, suffix)); err != nil {
			r.tb.Fatal(err)
		}
	})
}

// mended waits until there is nothing to mend any more.
func (r *rig) mended(l *Log) {
	r.tb.Helper()
	if err := r.w.RunUntil("all is mended", time.Minute, func() bool { return !l.mendArmed && l.still() }); err != nil {
		r.tb.Fatal(err)
	}
}

// mendable makes a log of several finished segments, closed cleanly.
func mendable(t *testing.T, seed uint64) (*rig, Options, *twin) {
	t.Helper()
	r := newRig(t, seed)
	r.m.WriteFile("/data/.lock", nil)
	o := r.options("/data/t-0")
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Config.RetentionMs = 9000, 300, -1
	l := r.open(o)
	w := &twin{}
	appendMany(t, r, l, w, 90, false)
	o.RecoveryPoint = l.End()
	if len(l.segs) < 5 {
		t.Fatalf("only %d segments", len(l.segs))
	}
	r.close(l)
	return r, o, w
}

// Index files that are missing or wrong are made anew behind a start, byte by byte, after a clean stop and after another: the next start
// finds them.
func TestIndexFilesAreMended(t *testing.T) {
	for name, spoil := range spoiled {
		for _, clean := range []bool{true, false} {
			r, o, w := mendable(t, 21)
			want := r.snapshotOf(o.Dir)
			bad := Offset(-1) // a segment whose index is long enough
			for _, file := range r.m.Files(o.Dir) {
				if base, suffix, ok := parseName(file[strings.LastIndexByte(file, '/')+1:]); ok && suffix == indexSuffix && base > 0 && len(want[file]) > 24 {
					bad = base
					break
				}
			}
			spoil(r, o.Dir, bad)
			if err := r.m.Exit(); err != nil {
				t.Fatal(err)
			}
			r.boot()
			o.Files, o.Clean = r.files, clean
			l := r.open(o)
			if err := w.isPrefix(r.readAll(l, 4000)); err != nil {
				t.Fatalf("%s, clean %v: %v", name, clean, err)
			}
			r.do("look for the largest times", func(task *ring.Task) {
				for _, s := range l.segs {
					if err := l.knowMax(task, s); err != nil {
						t.Error(err)
					}
				}
			})
			r.mended(l)
			for _, suffix := range []string{indexSuffix, timeSuffix} {
				file := o.Dir + "/" + fileName(bad, suffix)
				if got, err := r.m.ReadFile(file); err != nil || !bytes.Equal(got, want[file]) {
					t.Errorf("%s, clean %v: %s is %x (%v), not %x", name, clean, file, got, err, want[file])
				}
			}
			r.close(l)
			for _, file := range r.m.Files(o.Dir) {
				if _, ok := want[file]; !ok {
					t.Errorf("%s, clean %v: %s was not there before", name, clean, file)
				}
			}
			if err := r.m.Exit(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A stop at any moment while index files are made anew, and a log that is cut, cleaned, deleted or closed meanwhile, leave a log that holds
// what it held.
func TestMendingIsStopped(t *testing.T) {
	for seed := range uint64(60) {
		r, o, w := mendable(t, seed)
		for _, file := range r.m.Files(o.Dir) {
			if strings.HasSuffix(file, indexSuffix) && seed%2 == 0 || strings.HasSuffix(file, timeSuffix) && seed%3 == 0 {
				r.do("remove", func(task *ring.Task) { _ = task.Remove(file) })
			}
		}
		if err := r.m.Exit(); err != nil {
			t.Fatal(err)
		}
		r.boot()
		o.Files, o.Clean = r.files, true
		l := r.open(o)
		at := time.Duration(r.w.Rand().IntN(5000)) * time.Microsecond
		r.do("a moment", func(task *ring.Task) { task.Sleep(at) })
		switch seed % 5 {
		case 0:
			r.m.Kill()
		case 1:
			r.m.Crash()
		case 2:
			to := header(w.batches[len(w.batches)/2]).base()
			w.batches = w.batches[:len(w.batches)/2]
			r.do("truncate", func(task *ring.Task) {
				if err := l.TruncateTo(task, to); err != nil {
					t.Error(err)
				}
			})
			appendMany(t, r, l, w, 20, false)
			r.close(l)
			o.RecoveryPoint = w.end()
		case 3:
			r.do("delete", func(task *ring.Task) {
				if err := l.DeleteTo(l.segs[3].base); err != nil {
					t.Error(err)
				}
				if _, err := l.Retain(task, r.loop.UnixMilli(), l.End()); err != nil {
					t.Error(err)
				}
			})
			for len(w.batches) > 0 && header(w.batches[0]).base() < l.Start() {
				w.batches = w.batches[1:]
			}
			o.LogStart = l.Start()
			r.close(l)
		case 4:
			r.close(l)
		}
		if seed%5 >= 2 {
			if err := r.m.Exit(); err != nil {
				t.Fatal(err)
			}
		}
		r.boot()
		o.Files, o.Clean = r.files, seed%5 >= 2
		l = r.open(o)
		if err := w.isPrefix(r.readAll(l, 4000)); err != nil || l.End() != w.end() {
			t.Fatalf("seed %d: %v; the log ends at %d, not %d", seed, err, l.End(), w.end())
		}
		r.mended(l)
		r.close(l)
		o.Clean, o.RecoveryPoint = true, w.end()
		if h, found := r.verifyRig(o); h == nil || len(found) > 0 {
			t.Errorf("seed %d: %v", seed, found)
		}
	}
}
