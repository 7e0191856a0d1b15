package ring

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const namesRoom = 2*unix.PathMax + 16

// help runs work on a helper and gives op its results.
func (l *loop) help(op *Op, work func() (int64, []Entry, error)) {
	l.Offload(func() { op.N, op.Entries, op.Err = work() }, op)
}

// Open opens a file by the ring. It does not wait for the other end of a pipe that has the file's name.
func (l *loop) Open(name string, how OpenFlag, op *Op) {
	flags := unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_RDONLY
	if how&Write != 0 {
		flags = unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_RDWR
	}
	if how&Create != 0 {
		flags |= unix.O_CREAT
	}
	if how&Exclusive != 0 {
		flags |= unix.O_EXCL
	}
	if how&Cut != 0 {
		flags |= unix.O_TRUNC
	}
	if !l.fits(op, "open", name) {
		return
	}
	i, s := l.newSlot()
	s.kind, s.op, s.name = kindOpen, op, &nameOp{name: name}
	if how&(Create|Cut) != 0 {
		l.stats.HandOffs++
	}
	l.r.reserve(1, namesRoom)
	e := l.r.next()
	e.op, e.fd, e.addr, e.len, e.opflags, e.user = opOpenat, unix.AT_FDCWD, l.r.name(name), 0o644, uint32(flags), l.user(i)
}

// fits refuses a name the kernel would refuse.
func (l *loop) fits(op *Op, what, name string) bool {
	if len(name) >= unix.PathMax {
		l.finishPath(op, 0, what, name, unix.ENAMETOOLONG)
		return false
	}
	return true
}

func (l *loop) opened(i uint32, res int32) {
	s := &l.slots[i]
	op, name := s.op, s.name.name
	l.drop(i)
	op.File = nil
	if res == -int32(unix.ENXIO) { // a socket, or a device that is not there
		l.finish(op, 0, pathError("open", name, ErrNotRegular))
		return
	}
	if res >= 0 {
		if err := regular(int(res)); err != nil {
			unix.Close(int(res))
			l.finish(op, 0, pathError("open", name, err))
			return
		}
		f := &file{l: l, fd: int(res), name: name, path: l.k.pathOf(name)}
		f.refs.Store(1)
		op.File = f
	}
	l.finishPath(op, 0, "open", name, errnoOf(res))
}

// regular refuses what is no file, and takes back O_NONBLOCK: the ring would hand EAGAIN to a read that has to wait for the disk.
func regular(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0)
		return err
	case unix.S_IFDIR:
		return unix.EISDIR
	}
	return ErrNotRegular
}

// submitName submits an op on names; op's result is an error.
func (l *loop) submitName(op *Op, opcode uint8, what, name, to string, flags uint32) {
	if !l.fits(op, what, name) || !l.fits(op, what, to) {
		return
	}
	i, s := l.newSlot()
	s.kind, s.op, s.name = kindName, op, &nameOp{what, name, flags}
	l.stats.HandOffs++
	l.r.reserve(1, namesRoom)
	e := l.r.next()
	e.op, e.fd, e.addr, e.user = opcode, unix.AT_FDCWD, l.r.name(name), l.user(i)
	switch opcode {
	case opRenameat:
		at := int32(unix.AT_FDCWD)
		e.len, e.off = uint32(at), l.r.name(to)
	case opUnlinkat:
		e.opflags = flags
	case opMkdirat:
		e.len = 0o755
	}
}

func (l *loop) named(i uint32, res int32) {
	s := &l.slots[i]
	op, what, name, flags, e := s.op, s.name.what, s.name.name, s.name.flags, errnoOf(res)
	l.drop(i)
	switch {
	case what == "remove" && flags == 0 && (e == unix.EISDIR || e == unix.EPERM):
		l.submitName(op, opUnlinkat, what, name, "", unix.AT_REMOVEDIR)
	case what == "mkdir" && e != 0:
		l.help(op, func() (int64, []Entry, error) { return 0, nil, os.MkdirAll(name, 0o755) })
	default:
		l.finishPath(op, 0, what, name, e)
	}
}

// Rename renames.
func (l *loop) Rename(from, to string, op *Op) { l.submitName(op, opRenameat, "rename", from, to, 0) }

// Remove removes a file or an empty directory.
func (l *loop) Remove(name string, op *Op) { l.submitName(op, opUnlinkat, "remove", name, "", 0) }

// MakeDir makes a directory; its parents, or the truth about what is in the way, are a helper's work.
func (l *loop) MakeDir(name string, op *Op) { l.submitName(op, opMkdirat, "mkdir", name, "", 0) }

// List reads a directory on a helper.
func (l *loop) List(dir string, op *Op) {
	l.help(op, func() (int64, []Entry, error) {
		names, err := os.ReadDir(dir)
		if err != nil {
			return 0, nil, err
		}
		list := make([]Entry, 0, len(names))
		for _, d := range names {
			if d.IsDir() { // of which nobody asks more, and a log dir has thousands
				list = append(list, Entry{Name: d.Name(), Dir: true})
				continue
			}
			info, err := d.Info()
			link := err == nil && info.Mode()&fs.ModeSymlink != 0
			if link { // what it leads to counts; one that leads nowhere is a file
				if to, err := os.Stat(dir + "/" + d.Name()); err == nil {
					info, link = to, false
				}
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			} else if err != nil {
				return 0, nil, err
			}
			list = append(list, Entry{d.Name(), info.IsDir(), !link && !info.IsDir() && !info.Mode().IsRegular(), info.Size(), info.ModTime()})
		}
		slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
		return int64(len(list)), list, nil
	})
}

// SyncDir makes names in dir durable, on a helper. It waits a little for a descriptor: who asks has written already, and could only take
// it for a disk that fails.
func (l *loop) SyncDir(dir string, op *Op) {
	l.help(op, func() (int64, []Entry, error) {
		d, err := os.Open(dir)
		for tries := 0; tries < 100 && NoDescriptors(err); tries++ {
			time.Sleep(20 * time.Millisecond)
			d, err = os.Open(dir)
		}
		if err != nil {
			return 0, nil, err
		}
		defer d.Close()
		return 0, nil, d.Sync()
	})
}

// Space is what is free for us on dir's file system, and its size.
func (l *loop) Space(dir string, op *Op) {
	l.help(op, func() (int64, []Entry, error) {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			return 0, nil, pathError("statfs", dir, err)
		}
		return int64(st.Bavail) * st.Bsize, []Entry{{Size: int64(st.Blocks) * st.Bsize}}, nil
	})
}

// dirOf is the log dir that name lies in, "" if in none.
func dirOf(dirs []string, name string) string {
	best := ""
	for _, d := range dirs {
		if rel, err := filepath.Rel(d, name); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") && len(d) > len(best) {
			best = d
		}
	}
	return best
}
