package ring

import (
	"io/fs"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	vecsMost  = 1024 // IOV_MAX
	slowWrite = time.Millisecond
	smallFile = 64 << 10
)

// file is an open file. Its count is atomic because a connection on another loop may send from it.
type file struct {
	l    *loop
	fd   int
	name string
	refs atomic.Int32
	path writePath
	busy int // writes in the ring

	closed   bool
	small    bool         // so it was when it was looked at, and nothing was written
	appended atomic.Int64 // end of what was written last
	when     atomic.Int64 // loop time of that

	dirty, outFrom int64 // bytes written and not written out, and where they begin
	outBusy        bool
	out            Op
}

func (f *file) retain() { f.refs.Add(1) }

// release drops a use; the last one closes the descriptor on a helper, since closing a removed file frees its blocks. A small file's
// are few, and a start reads thousands of them.
func (f *file) release() {
	if f.refs.Add(-1) == 0 {
		if f.small {
			unix.Close(f.fd)
			return
		}
		f.l.k.helpers.do(job{work: func() { unix.Close(f.fd) }})
	}
}

// Close gives the descriptor back once no op or send uses it.
func (f *file) Close() {
	if !f.closed {
		f.closed = true
		f.clean()
		f.release()
	}
}

// begin is what every op does first; false: the file is closed, and op says so.
func (f *file) begin(op *Op, what string) bool {
	if f.closed {
		f.l.finish(op, 0, &fs.PathError{Op: what, Path: f.name, Err: fs.ErrClosed})
		return false
	}
	f.retain()
	return true
}

// Read fills b from at.
func (f *file) Read(b []byte, at int64, op *Op) {
	if !f.begin(op, "read") {
		return
	}
	i, s := f.l.newSlot()
	s.kind, s.op, s.file, s.b, s.at = kindRead, op, f, b, at
	f.l.armRead(i)
}

const ioMost = 1 << 30 // bytes of one read or write; the kernel stops at 2 GiB

func (l *loop) armRead(i uint32) {
	s := &l.slots[i]
	b := s.b[s.done:]
	e := l.r.next()
	e.op, e.fd, e.off, e.addr, e.len, e.user = opRead, int32(s.file.fd), uint64(s.at+s.done), addr(b), uint32(min(len(b), ioMost)), l.user(i)
}

func (l *loop) readDone(i uint32, res int32) {
	s := &l.slots[i]
	e := errnoOf(res)
	s.done += int64(max(res, 0))
	if res > 0 && s.done < int64(len(s.b)) || e == unix.EINTR || e == unix.EAGAIN {
		l.armRead(i)
		return
	}
	op, f, n := s.op, s.file, s.done
	l.drop(i)
	l.finishPath(op, n, "read", f.name, e)
	f.release()
}

// Through reads on a helper, where what was read is in the processor's cache when look sees it.
func (f *file) Through(b []byte, at int64, look func([]byte) int, op *Op) {
	if !f.begin(op, "read") {
		return
	}
	f.l.help(op, func() (int64, []Entry, error) {
		defer f.release()
		for n := 0; ; {
			got, err := unix.Pread(f.fd, b[n:], at+int64(n))
			if err == unix.EINTR {
				continue
			}
			if n += max(got, 0); err != nil {
				return at, nil, pathError("read", f.name, err)
			}
			used := 0
			if n > 0 {
				used = look(b[:n])
			}
			if used < 0 {
				return at + int64(^used), nil, nil
			}
			if used == 0 && (got == 0 || n == len(b)) {
				return at, nil, nil
			}
			at += int64(used)
			n = copy(b, b[used:n])
		}
	})
}

// writePath is how a file's writes reach the disk.
type writePath uint8

const (
	byCall   writePath = iota // pwritev2 on the loop's thread, which may have to wait for the disk
	byRing                    // the ring
	byEither                  // pwritev2 with RWF_NOWAIT, and by the ring what that does not take
)

// Write writes bufs from at on. A file with a write in the ring sends the next ones after it.
func (f *file) Write(bufs [][]byte, at int64, op *Op) {
	if !f.begin(op, "write") {
		return
	}
	l := f.l
	l.stats.Writes++
	f.small = false
	done, e := int64(0), unix.EAGAIN
	switch {
	case f.path == byCall:
		done, e = f.writeNow(bufs, at, 0)
	case f.path == byEither && f.busy == 0:
		if done, e = f.writeNow(bufs, at, unix.RWF_NOWAIT); e == unix.EAGAIN {
			l.stats.Punts++
		}
	}
	if f.path != byCall && (e == unix.EAGAIN || e == unix.EOPNOTSUPP) {
		l.stats.RingWrites++
		f.busy++
		i, s := l.newSlot()
		s.kind, s.op, s.file, s.bufs, s.at, s.done = kindWrite, op, f, bufs, at, done
		l.armWrite(i)
		return
	}
	f.wrote(at, done)
	l.finishPath(op, done, "write", f.name, e)
	f.release()
}

// writeNow writes on the loop's own thread.
func (f *file) writeNow(bufs [][]byte, at int64, flags uintptr) (done int64, e unix.Errno) {
	l := f.l
	for {
		l.r.reserve(0, vecsMost*iovecSize)
		vecs := l.r.iovecs(vecsMost)
		n := fillVecs(vecs, bufs, done)
		l.r.arena.used -= vecsMost * iovecSize
		if n == 0 {
			break
		}
		// Raw: it takes microseconds. If the disk makes it wait, the loop could do nothing meanwhile anyhow; a collection waits
		// with it. An ordinary call would let Go's watchdog take the processor away in every other preemption, and that costs
		// a tenth of what the loop needs at 5,000 requests/s.
		got, _, err := unix.RawSyscall6(unix.SYS_PWRITEV2, uintptr(f.fd), uintptr(unsafe.Pointer(&vecs[0])), uintptr(n),
			uintptr(at+done), 0, flags)
		runtime.KeepAlive(bufs)
		if err != 0 && err != unix.EINTR {
			e = err
			break
		}
		if err == 0 {
			if got == 0 {
				e = unix.EIO
				break
			}
			done += int64(got)
		}
	}
	l.timeWrite()
	return done, e
}

// timeWrite counts slow writes with one look at the clock for each: what passed since the last look, or the turn's begin, is
// taken for the write's, so that other work of the turn may count too when it is slow itself.
func (l *loop) timeWrite() {
	now := time.Since(l.start)
	took := now - max(l.wroteAt, l.now)
	l.wroteAt = now
	if took > slowWrite {
		l.stats.SlowWrites++
		l.stats.SlowestWrite = max(l.stats.SlowestWrite, took)
	}
}

// fillVecs describes bufs without their first skip bytes; it returns how many vectors it took.
func fillVecs(vecs []iovec, bufs [][]byte, skip int64) (n int) {
	for _, b := range bufs {
		if skip >= int64(len(b)) {
			skip -= int64(len(b))
			continue
		}
		if n == len(vecs) {
			break
		}
		vecs[n] = vec(b[skip:])
		n++
		skip = 0
	}
	return n
}

func (l *loop) armWrite(i uint32) {
	r := l.r
	s := &l.slots[i]
	most := min(len(s.bufs), vecsMost)
	r.reserve(1, most*iovecSize)
	vecs := r.iovecs(max(most, 1))
	n := fillVecs(vecs, s.bufs, s.done)
	if n == 0 {
		l.writeEnds(i, 0)
		return
	}
	e := r.next()
	e.fd, e.off, e.user = int32(s.file.fd), uint64(s.at+s.done), l.user(i)
	if n == 1 {
		e.op, e.addr, e.len = opWrite, vecs[0].base, uint32(min(vecs[0].len, ioMost))
	} else {
		e.op, e.addr, e.len = opWritev, uint64(uintptr(unsafe.Pointer(&vecs[0]))), uint32(n)
	}
}

func (l *loop) writeDone(i uint32, res int32) {
	s := &l.slots[i]
	switch e := errnoOf(res); {
	case e == unix.EINTR || e == unix.EAGAIN:
		l.armWrite(i)
	case e != 0:
		l.writeEnds(i, e)
	case res == 0:
		l.writeEnds(i, unix.EIO)
	default:
		s.done += int64(res)
		l.armWrite(i) // or ends it, when nothing is left
	}
}

func (l *loop) writeEnds(i uint32, e unix.Errno) {
	s := &l.slots[i]
	op, f, n := s.op, s.file, s.done
	f.wrote(s.at, n)
	f.busy--
	l.drop(i)
	l.finishPath(op, n, "write", f.name, e)
	f.release()
}

// wrote keeps count of dirty bytes; beyond a limit a helper starts to write them out, so that no write has to wait for the
// disk. When many files are dirty the larger ones go early.
func (f *file) wrote(at, n int64) {
	l := f.l
	l.stats.WrittenBytes += uint64(n)
	f.appended.Store(at + n)
	f.when.Store(int64(l.now))
	if f.dirty == 0 {
		f.outFrom = at
	}
	f.outFrom = min(f.outFrom, at)
	f.dirty += n
	l.dirtyBytes += n
	if f.dirty >= l.k.writeOut || l.dirtyBytes >= dirtyFiles*l.k.writeOut && f.dirty >= l.k.writeOut/dirtyFiles {
		if !f.outBusy {
			f.WriteOut(f.outFrom, at+n-f.outFrom)
			f.clean()
		}
	}
}

// dirtyFiles is how many files' worth of dirty bytes a loop leaves to the kernel.
const dirtyFiles = 8

// clean forgets what was dirty.
func (f *file) clean() {
	f.l.dirtyBytes -= f.dirty
	f.dirty = 0
}

// appendedLately says that from is among what was written last, so that its pages are in memory.
func (f *file) appendedLately(from int64, now time.Duration) bool {
	end := f.appended.Load()
	return from >= end-lately && end > 0 && now-time.Duration(f.when.Load()) < latelyTime
}

// WriteOut starts write-back of a range. One at a time: what comes meanwhile is written out with the next.
func (f *file) WriteOut(at, n int64) {
	if f.outBusy || f.closed {
		return
	}
	f.outBusy = true
	f.retain()
	f.l.stats.WriteOuts++
	f.out.Done = func(*Op) {
		f.outBusy = false
		f.release()
	}
	f.l.Offload(func() { unix.SyncFileRange(f.fd, at, n, unix.SYNC_FILE_RANGE_WRITE) }, &f.out)
}

// simple submits an op whose only result is an error.
func (f *file) simple(op *Op, what *nameOp) *sqe {
	i, s := f.l.newSlot()
	s.kind, s.op, s.file, s.name = kindFile, op, f, what
	f.l.stats.HandOffs++
	e := f.l.r.next()
	e.fd, e.user = int32(f.fd), f.l.user(i)
	return e
}

// Sync is fdatasync.
func (f *file) Sync(op *Op) {
	if f.begin(op, "fdatasync") {
		e := f.simple(op, syncing)
		e.op, e.opflags = opFsync, fsyncDatasync
		f.clean()
	}
}

// Allocate reserves blocks without changing the size.
func (f *file) Allocate(at, n int64, op *Op) {
	if f.begin(op, "fallocate") {
		e := f.simple(op, allocating)
		e.op, e.off, e.addr, e.len = opFallocate, uint64(at), uint64(n), unix.FALLOC_FL_KEEP_SIZE
	}
}

// Truncate sets the size.
func (f *file) Truncate(size int64, op *Op) {
	if !f.begin(op, "truncate") {
		return
	}
	if f.l.ops[opFtruncate] {
		e := f.simple(op, truncating)
		e.op, e.off = opFtruncate, uint64(size)
		return
	}
	f.l.help(op, func() (int64, []Entry, error) {
		defer f.release()
		return 0, nil, pathError("truncate", f.name, unix.Ftruncate(f.fd, size))
	})
}

// Size is a look at the inode in memory.
func (f *file) Size(op *Op) {
	if !f.begin(op, "stat") {
		return
	}
	var st unix.Stat_t
	err := unix.Fstat(f.fd, &st)
	f.small = err == nil && st.Size <= smallFile && f.appended.Load() == 0
	op.Entries = append(op.Entries[:0], Entry{Name: f.name, Size: st.Size, ModTime: time.Unix(st.Mtim.Unix())})
	f.l.finish(op, st.Size, pathError("stat", f.name, err))
	f.release()
}

// SetTime sets the modification time, on a helper (futimens).
func (f *file) SetTime(modMilli int64, op *Op) {
	if !f.begin(op, "utimensat") {
		return
	}
	f.l.help(op, func() (int64, []Entry, error) {
		defer f.release()
		times := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(modMilli * int64(time.Millisecond))}
		_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(f.fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
		if e != 0 {
			return 0, nil, pathError("utimensat", f.name, e)
		}
		return 0, nil, nil
	})
}

func pathError(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: what, Path: name, Err: err}
}
