package ring

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func random(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 5))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestFilesAreWrittenAndReadByBothPaths(t *testing.T) {
	for _, path := range []string{"ring", "pwrite", "auto", "either"} {
		t.Run(path, func(t *testing.T) {
			dir := t.TempDir()
			o := Options{WritePath: path, Dirs: []string{dir}, WriteOutBytes: 1 << 20}
			if path == "either" {
				o.WritePath = ""
			}
			k := onLoops(t, 1, o)
			on(t, k.Loops()[0], func(task *Task) {
				if path == "either" {
					k.paths[dir] = byEither // where the file system knows no RWF_NOWAIT, each write falls to the ring
				}
				name := filepath.Join(dir, "a")
				f, err := task.Open(name, Write|Create|Exclusive)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				if _, err := task.Open(name, Write|Create|Exclusive); !errors.Is(err, fs.ErrExist) {
					t.Error("exclusive:", err)
				}
				if err := task.Allocate(f, 0, 8<<20); err != nil {
					t.Error("allocate:", err)
				}
				if size, _, err := task.Size(f); size != 0 || err != nil {
					t.Error("allocated size", size, err)
				}
				// More pieces than one call takes, some of them empty.
				var bufs [][]byte
				var all []byte
				for i := range 3000 {
					b := random(i%2000, uint64(i))
					bufs, all = append(bufs, b), append(all, b...)
				}
				if op := task.Wait(func(op *Op) { f.Write(bufs, 100, op) }); op.Err != nil || op.N != int64(len(all)) {
					t.Error("write:", op.N, op.Err)
				}
				if st := StatsOf(task.Loop()); path == "ring" && st.RingWrites != st.Writes || path == "pwrite" && st.RingWrites != 0 || st.WriteOuts == 0 {
					t.Errorf("%d writes, %d by the ring, written out %d times", st.Writes, st.RingWrites, st.WriteOuts)
				}
				if op := task.Wait(func(op *Op) { f.Write(nil, 0, op) }); op.Err != nil || op.N != 0 {
					t.Error("empty write:", op.N, op.Err)
				}
				if err := task.Sync(f); err != nil {
					t.Error("sync:", err)
				}
				size, mod, err := task.Size(f)
				if size != int64(100+len(all)) || mod == 0 || err != nil {
					t.Error("size:", size, mod, err)
				}
				got := make([]byte, len(all)+50)
				if n, err := task.Read(f, got, 100); n != len(all) || err != nil || !bytes.Equal(got[:n], all) {
					t.Error("read:", n, err)
				}
				if err := task.Truncate(f, 150); err != nil {
					t.Error("truncate:", err)
				}
				if n, err := task.Read(f, got, 100); n != 50 || err != nil || !bytes.Equal(got[:n], all[:50]) {
					t.Error("read of a cut file:", n, err)
				}
				if n, err := task.Read(f, got, 1<<30); n != 0 || err != nil {
					t.Error("read behind the end:", n, err)
				}
			})
		})
	}
}

// What is no file is refused where it is opened, and told apart in a list: nothing waits for the other end of a pipe.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]uint32{"pipe": unix.S_IFIFO, "socket": unix.S_IFSOCK} {
		if err := unix.Mknod(dir+"/"+name, mode|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("pipe", dir+"/link"), os.Symlink("nowhere", dir+"/dangling"), os.Symlink("/dev/null", dir+"/device"),
		os.WriteFile(dir+"/file", []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	k := onLoops(t, 1, Options{})
	on(t, k.Loops()[0], func(task *Task) {
		for name, want := range map[string]error{"pipe": ErrNotRegular, "socket": ErrNotRegular, "link": ErrNotRegular, "device": ErrNotRegular,
			"dangling": fs.ErrNotExist, "": unix.EISDIR, "file": nil} {
			for _, how := range []OpenFlag{0, Write} {
				f, err := task.Open(dir+"/"+name, how)
				if !errors.Is(err, want) || want == nil && err != nil || want != nil && !OfNames(err) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
				if f != nil {
					if flags, err := unix.FcntlInt(uintptr(f.(*file).fd), unix.F_GETFL, 0); flags&unix.O_NONBLOCK != 0 || err != nil {
						t.Errorf("%s: flags %#x, %v", name, flags, err)
					}
					f.Close()
				}
			}
		}
		list, err := task.List(dir)
		if err != nil {
			t.Error(err)
		}
		special := ""
		for _, e := range list {
			if e.Special {
				special += e.Name + " "
			}
		}
		if special != "device link pipe socket " {
			t.Error("special:", special)
		}
	})
}

// A pipe in the place of a temporary file keeps nothing from being written, nor waits for who reads it.
func TestWriteFileInThePlaceOfAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/f.tmp", 0o600); err != nil {
		t.Fatal(err)
	}
	k := onLoops(t, 1, Options{})
	on(t, k.Loops()[0], func(task *Task) {
		if err := task.WriteFile(dir, "f", []byte("content")); err != nil {
			t.Error(err)
		}
	})
	if b, err := os.ReadFile(dir + "/f"); string(b) != "content" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	k := onLoops(t, 1, Options{})
	on(t, k.Loops()[0], func(task *Task) {
		at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
		must := func(what string, err error) {
			if err != nil {
				t.Error(what, err)
			}
		}
		is := func(what string, err, want error) {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		must("make with parents", task.MakeDir(at("x", "y", "z")))
		must("make what is there", task.MakeDir(at("x", "y")))
		must("write whole", task.WriteFile(at("x"), "b", []byte("hello")))
		must("write whole again", task.WriteFile(at("x"), "b", []byte("hello again")))
		must("write empty", task.WriteFile(at("x"), "a", nil))
		if task.MakeDir(at("x", "a")) == nil {
			t.Error("a directory was made where a file is")
		}
		b, err := task.ReadFile(at("x", "b"), 100)
		if string(b) != "hello again" || err != nil {
			t.Error("read whole", b, err)
		}
		_, err = task.ReadFile(at("x", "b"), 3)
		is("too large", err, ErrTooLarge)
		list, err := task.List(at("x"))
		if len(list) != 3 || list[0].Name != "a" || list[1].Name != "b" || list[2].Name != "y" || !list[2].Dir || list[1].Size != 11 {
			t.Error("list", list, err)
		}
		must("rename", task.Rename(at("x", "b"), at("x", "y", "c")))
		is("rename what is not there", task.Rename(at("x", "b"), at("q")), fs.ErrNotExist)
		_, err = task.Open(at("x", "b"), 0)
		is("open what is not there", err, fs.ErrNotExist)
		var pe *fs.PathError
		if !errors.As(err, &pe) || pe.Path != at("x", "b") {
			t.Error("no path in", err)
		}
		_, err = task.List(at("nowhere"))
		is("list what is not there", err, fs.ErrNotExist)
		must("remove a file", task.Remove(at("x", "y", "c")))
		must("remove a directory", task.Remove(at("x", "y", "z")))
		if task.Remove(at("x")) == nil {
			t.Error("a full directory was removed")
		}
		must("sync a directory", task.SyncDir(at("x")))
		op := task.Wait(func(op *Op) { task.Loop().Space(dir, op) })
		if op.N <= 0 || op.Err != nil {
			t.Error("space", op.N, op.Err)
		}
		long := string(bytes.Repeat([]byte("n"), 5000))
		if _, err := task.Open(long, 0); err == nil {
			t.Error("a name of 5000 bytes was opened")
		}
	})
}

// A closed file refuses further ops but finishes those under way.
func TestFileClosesWhenNothingUsesIt(t *testing.T) {
	dir := t.TempDir()
	k := onLoops(t, 1, Options{})
	content := random(1<<20, 1)
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	on(t, k.Loops()[0], func(task *Task) {
		f, err := task.Open(name, 0)
		if err != nil {
			t.Error(err)
			return
		}
		got := make([]byte, len(content))
		op := task.Wait(func(op *Op) {
			f.Read(got, 0, op)
			f.Close()
		})
		if op.Err != nil || !bytes.Equal(got, content) {
			t.Error("the read under way when the file was closed:", op.Err)
		}
		if _, err := task.Read(f, got, 0); !errors.Is(err, fs.ErrClosed) {
			t.Error("read of a closed file:", err)
		}
	})
}

func TestLockFileKeepsOtherProcessesAndOurselvesOut(t *testing.T) {
	name := filepath.Join(os.Getenv("RING_LOCK_DIR"), ".lock")
	k := onLoops(t, 1, Options{})
	l := k.Loops()[0]
	if os.Getenv("RING_LOCK_DIR") != "" {
		on(t, l, func(*Task) {
			if _, err := l.LockFile(name); err != nil {
				fmt.Println("refused:", err)
			} else {
				fmt.Println("locked")
			}
		})
		return
	}
	dir := t.TempDir()
	name = filepath.Join(dir, ".lock")
	other := func() string {
		c := exec.Command(os.Args[0], "-test.run=TestLockFileKeepsOtherProcessesAndOurselvesOut", "-test.v")
		c.Env = append(os.Environ(), "RING_LOCK_DIR="+dir)
		out, err := c.Output()
		if err != nil {
			t.Error(err, string(out))
		}
		return string(out)
	}
	on(t, l, func(*Task) {
		unlock, err := l.LockFile(name)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := l.LockFile(name); err == nil {
			t.Error("locked twice by one process")
		}
		if out := other(); !bytes.Contains([]byte(out), []byte("refused:")) {
			t.Error("another process got the lock:", out)
		}
		unlock()
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Error("the file is still there:", err)
		}
		if out := other(); !bytes.Contains([]byte(out), []byte("locked")) {
			t.Error("the lock was not given up:", out)
		}
	})
}

// A partition, or a file of one, may be a link to another disk: what it leads to counts.
func TestListSeesWhatLinksLeadTo(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "f"), make([]byte, 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"a": other, "b": filepath.Join(other, "f"), "c": filepath.Join(other, "nowhere")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	on(t, onLoops(t, 1, Options{}).Loops()[0], func(task *Task) {
		list, err := task.List(dir)
		if err != nil || len(list) != 3 || !list[0].Dir || list[1].Dir || list[1].Size != 1000 || list[2].Dir {
			t.Errorf("%v, %v", list, err)
		}
	})
}
