package ringtest

import (
	"errors"
	"io/fs"
	"time"

	"kring/ring"
)

var fileTests = []test{
	{"what was written is read; short only at the end", readWrite},
	{"a file is gone through in pieces", through},
	{"a write of many pieces is one", writePieces},
	{"a large write and read are whole", writeLarge},
	{"writes at different places run at the same time", writeParallel},
	{"reserved blocks do not show", allocate},
	{"truncate cuts and extends with zeros", truncate},
	{"size tells bytes and time", size},
	{"open flags", openFlags},
	{"a removed file lives until it is closed", removedOpen},
	{"close waits for what is under way", closeBusy},
	{"a range is written out without a word", writeOut},
}

func (w *world) open(t *ring.Task, name string, how ring.OpenFlag) ring.File {
	f, err := t.Open(w.path(name), how)
	w.must("open "+name, err)
	return f
}

// through looks at a file of 1,000 bytes by means of 64, of which it takes no more than 10 at a time.
func through(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		content := pattern(1000, 1)
		w.must("write", t.Write(f, content, 0))
		buf := t.Loop().Alloc(64)
		defer buf.Release()
		for _, c := range []struct{ from, take, end int64 }{
			{0, 10, 1000}, {0, 64, 1000}, {990, 10, 1000}, {5, 0, 5}, {7, -1, 7}, {7, ^12, 19}, {1000, 1, 1000},
		} {
			var got []byte
			end, err := t.Through(f, buf.B[:64], c.from, func(b []byte) int {
				n := int(c.take)
				if n < 0 {
					got = append(got, b[:^n]...)
					return n
				}
				n = min(n, len(b))
				got = append(got, b[:n]...)
				return n
			})
			w.must("going through", err)
			w.equal("end", end, c.end)
			w.equal("content", got, append([]byte(nil), content[c.from:c.end]...))
		}
	})
}

func readWrite(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		content := pattern(10000, 1)
		w.must("write", t.Write(f, content, 0))
		w.must("sync", t.Sync(f))
		for _, c := range []struct{ at, n, want int }{
			{0, 10000, 10000}, {0, 1, 1}, {9999, 1, 1}, {1234, 5000, 5000}, {9000, 5000, 1000}, {10000, 10, 0}, {20000, 10, 0}, {5, 0, 0},
		} {
			b := make([]byte, c.n)
			n, err := t.Read(f, b, int64(c.at))
			w.must("read", err)
			w.equal("length", n, c.want)
			w.equal("content", b[:n], content[min(c.at, 10000):min(c.at+n, 10000)])
		}
	})
}

func writePieces(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		content := pattern(3000, 2)
		// More pieces than one vectored write may have (IOV_MAX is 1024).
		var bufs [][]byte
		for i := range 1500 {
			bufs = append(bufs, content[2*i:2*i+2])
			if i%100 == 0 {
				bufs = append(bufs, nil)
			}
		}
		w.must("write", t.Wait(func(op *ring.Op) { f.Write(bufs, 77, op) }).Err)
		b := make([]byte, 4000)
		n, err := t.Read(f, b, 0)
		w.must("read", err)
		w.equal("length", n, 3077)
		w.equal("gap", b[:77], make([]byte, 77))
		w.equal("content", b[77:n], content)
	})
}

func writeLarge(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		content := pattern(9<<20+123, 3)
		w.must("write", t.Write(f, content, 5))
		b := make([]byte, len(content))
		n, err := t.Read(f, b, 5)
		w.must("read", err)
		w.equal("content", b[:n], content)
	})
}

func writeParallel(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		content := pattern(64<<10, 4)
		left := 64
		t.Suspend(func(wake func()) {
			for i := range 64 {
				at := i << 10
				op := &ring.Op{Done: func(op *ring.Op) {
					w.must("write", op.Err)
					if left--; left == 0 {
						wake()
					}
				}}
				f.Write([][]byte{content[at : at+1<<10]}, int64(at), op)
			}
		})
		b := make([]byte, len(content))
		n, err := t.Read(f, b, 0)
		w.must("read", err)
		w.equal("content", b[:n], content)
	})
}

func allocate(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		w.must("write", t.Write(f, []byte("abc"), 0))
		err := t.Allocate(f, 0, 1<<20)
		if err != nil {
			w.t.Skip("this file system reserves nothing: ", err)
		}
		n, _, err := t.Size(f)
		w.must("size", err)
		w.equal("size", n, 3)
		w.must("write", t.Write(f, []byte("def"), 3))
		b := make([]byte, 10)
		got, err := t.Read(f, b, 0)
		w.must("read", err)
		w.equal("content", string(b[:got]), "abcdef")
	})
}

func truncate(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		w.must("write", t.Write(f, []byte("abcdef"), 0))
		w.must("cut", t.Truncate(f, 2))
		w.must("extend", t.Truncate(f, 4))
		b := make([]byte, 10)
		n, err := t.Read(f, b, 0)
		w.must("read", err)
		w.equal("content", string(b[:n]), "ab\x00\x00")
	})
}

func size(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		before := t.Loop().UnixMilli()
		w.must("write", t.Write(f, make([]byte, 4321), 0))
		n, modMilli, err := t.Size(f)
		w.must("size", err)
		w.equal("size", n, 4321)
		if late := modMilli - before; late < -1000 || late > 60_000 {
			w.t.Errorf("the modification time is %d ms off", late)
		}
		w.must("set time", t.SetTime(f, 1_700_000_000_123))
		n, modMilli, err = t.Size(f)
		w.must("size", err)
		w.equal("size", n, 4321)
		w.equal("modification time", modMilli, int64(1_700_000_000_123))
	})
}

func openFlags(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		_, err := t.Open(w.path("none"), ring.Write)
		w.is("open what is not there", err, fs.ErrNotExist)
		_, err = t.Open(w.path("none/x"), ring.Write|ring.Create)
		w.is("create in a directory that is not there", err, fs.ErrNotExist)
		f := w.open(t, "f", ring.Write|ring.Create|ring.Exclusive)
		w.must("write", t.Write(f, []byte("abc"), 0))
		f.Close()
		_, err = t.Open(w.path("f"), ring.Write|ring.Create|ring.Exclusive)
		w.is("exclusive", err, fs.ErrExist)
		var pathErr *fs.PathError
		if !errors.As(err, &pathErr) || pathErr.Path != w.path("f") {
			w.t.Errorf("%v does not name the path", err)
		}
		f = w.open(t, "f", ring.Write|ring.Create)
		n, _, err := t.Size(f)
		w.must("size", err)
		w.equal("create of what is there keeps it", n, 3)
		f.Close()
		f = w.open(t, "f", ring.Write|ring.Create|ring.Cut)
		n, _, err = t.Size(f)
		w.must("size", err)
		w.equal("cut", n, 0)
		f.Close()
		f = w.open(t, "f", 0)
		f.Close()
	})
}

func (w *world) is(what string, err, want error) {
	if !errors.Is(err, want) {
		w.t.Errorf("%s: %v is not %v", what, err, want)
	}
}

func removedOpen(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		w.must("write", t.Write(f, []byte("abc"), 0))
		w.must("remove", t.Remove(w.path("f")))
		b := make([]byte, 3)
		n, err := t.Read(f, b, 0)
		w.must("read", err)
		w.equal("content", string(b[:n]), "abc")
		_, err = t.Open(w.path("f"), 0)
		w.is("open", err, fs.ErrNotExist)
	})
}

func closeBusy(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		content := pattern(1<<20, 9)
		op := t.Wait(func(op *ring.Op) {
			f.Write([][]byte{content}, 0, op)
			f.Close()
		})
		w.must("write", op.Err)
		b, err := t.ReadFile(w.path("f"), 2<<20)
		w.must("read", err)
		w.equal("content", b, content)
	})
}

func writeOut(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		w.must("write", t.Write(f, make([]byte, 100000), 0))
		f.WriteOut(0, 65536)
		f.WriteOut(65536, 1<<30)
		t.Sleep(3 * time.Millisecond)
		w.must("sync", t.Sync(f))
	})
}

var dirTests = []test{
	{"list is sorted and knows directories and sizes", list},
	{"rename replaces, and moves directories", rename},
	{"remove removes files and empty directories", remove},
	{"directories are made with their parents, twice is no error", makeDir},
	{"space is a number", space},
	{"a lock is exclusive and leaves no file", lockFile},
}

func list(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		for _, name := range []string{"b", "a", "a.b", "C", "z9", "z10"} {
			w.must("write", t.WriteFile(w.Dir(), name, []byte(name)))
		}
		w.must("mkdir", t.MakeDir(w.path("dir")))
		entries, err := t.List(w.Dir())
		w.must("list", err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name)
			w.equal(e.Name+" is a directory", e.Dir, e.Name == "dir")
			if !e.Dir {
				w.equal("size of "+e.Name, e.Size, len(e.Name))
			}
		}
		w.equal("names", got, []string{"C", "a", "a.b", "b", "dir", "z10", "z9"})
		_, err = t.List(w.path("none"))
		w.is("list what is not there", err, fs.ErrNotExist)
	})
}

func rename(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		w.must("write", t.WriteFile(w.Dir(), "a", []byte("new")))
		w.must("write", t.WriteFile(w.Dir(), "b", []byte("old")))
		w.must("rename", t.Rename(w.path("a"), w.path("b")))
		b, err := t.ReadFile(w.path("b"), 10)
		w.must("read", err)
		w.equal("content", string(b), "new")
		w.is("rename what is gone", t.Rename(w.path("a"), w.path("c")), fs.ErrNotExist)
		w.must("mkdir", t.MakeDir(w.path("d")))
		w.must("write", t.WriteFile(w.path("d"), "x", []byte("inside")))
		f := w.open(t, "d/x", ring.Write)
		defer f.Close()
		w.must("rename", t.Rename(w.path("d"), w.path("e")))
		w.must("write through the open file", t.Write(f, []byte("INSIDE"), 0))
		b, err = t.ReadFile(w.path("e/x"), 10)
		w.must("read", err)
		w.equal("content", string(b), "INSIDE")
	})
}

func remove(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		w.must("mkdir", t.MakeDir(w.path("d")))
		w.must("write", t.WriteFile(w.path("d"), "x", nil))
		if t.Remove(w.path("d")) == nil {
			w.t.Error("a directory with a file in it was removed")
		}
		w.must("remove", t.Remove(w.path("d/x")))
		w.must("remove", t.Remove(w.path("d")))
		w.is("remove again", t.Remove(w.path("d")), fs.ErrNotExist)
	})
}

func makeDir(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		w.must("mkdir", t.MakeDir(w.path("a/b/c")))
		w.must("mkdir", t.MakeDir(w.path("a/b/c")))
		entries, err := t.List(w.path("a/b"))
		w.must("list", err)
		w.equal("entries", len(entries), 1)
		w.must("write", t.WriteFile(w.Dir(), "f", nil))
		if t.MakeDir(w.path("f/x")) == nil {
			w.t.Error("a directory was made below a file")
		}
	})
}

func space(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		op := t.Wait(func(op *ring.Op) { l.Space(w.Dir(), op) })
		w.must("space", op.Err)
		if op.N <= 0 || op.Entries[0].Size < op.N {
			w.t.Errorf("%d bytes free of %d", op.N, op.Entries[0].Size)
		}
	})
}

func lockFile(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		unlock, err := l.LockFile(w.path(".lock"))
		w.must("lock", err)
		w.open(t, ".lock", 0).Close()
		unlock()
		if f, err := t.Open(w.path(".lock"), 0); err == nil {
			f.Close()
			w.t.Error("the lock file is left")
		}
		unlock, err = l.LockFile(w.path(".lock"))
		w.must("lock again", err)
		unlock()
	})
}
