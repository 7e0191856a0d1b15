package ring

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	lately     = 64 << 20         // of what a file was appended last, so much is taken to be in memory
	latelyTime = 20 * time.Second // for so long
	probeMost  = 4 << 20          // how far ahead of sendfile a probe looks
	sampleStep = 16 << 10
)

// inMemory says whether sendfile can take n bytes of f at from without waiting for the disk. If not, a helper reads them and
// the connection goes on after that.
func (c *conn) inMemory(f *file, from, n int64) bool {
	if f.appendedLately(from, c.l.now) || c.probed == f && from+n <= c.probedTo && from >= c.probedTo-probeMost {
		return true
	}
	p := &c.out.head.parts[c.part]
	n = min(max(n, p.Len-c.sentOf), probeMost)
	if f.resident(c.l, from, n) {
		c.probed, c.probedTo = f, from+n
		return true
	}
	c.l.stats.ReadAheads++
	c.offload = true
	f.retain()
	c.ahead.Done = func(*Op) {
		f.release()
		c.offload = false
		// Whatever could not be read, sendfile will say.
		c.probed, c.probedTo = f, from+n
		c.makeDirty()
	}
	c.l.Offload(func() { f.readAhead(from, n) }, &c.ahead)
	return false
}

type cachestatRange struct{ off, len uint64 }

type cachestat struct{ cache, dirty, writeback, evicted, recently uint64 }

// resident asks the kernel whether all pages of a range are in memory: cachestat (6.5), else a sample of reads that do not wait.
func (f *file) resident(l *loop, from, n int64) bool {
	first, last := from/pageSize, (from+n-1)/pageSize
	if !l.noCachestat {
		l.statRange = cachestatRange{uint64(first) * pageSize, uint64(last-first+1) * pageSize}
		_, _, e := unix.RawSyscall6(unix.SYS_CACHESTAT, uintptr(f.fd), uintptr(unsafe.Pointer(&l.statRange)),
			uintptr(unsafe.Pointer(&l.statResult)), 0, 0, 0)
		if e == 0 {
			return int64(l.statResult.cache) >= last-first+1
		}
		l.noCachestat = true
	}
	for at := from; at < from+n; at += sampleStep {
		var b [1]byte
		l.sample[0] = unix.Iovec{Base: unsafe.SliceData(l.eventBuf[8:]), Len: uint64(len(b))}
		_, _, e := unix.RawSyscall6(unix.SYS_PREADV2, uintptr(f.fd), uintptr(unsafe.Pointer(&l.sample[0])), 1, uintptr(at), 0, unix.RWF_NOWAIT)
		if e == unix.EAGAIN {
			return false
		}
	}
	return true
}

// readAhead brings a range into memory, and has the disk begin with the next; it runs on a helper.
func (f *file) readAhead(from, n int64) {
	defer unix.Fadvise(f.fd, from+n, n, unix.FADV_WILLNEED)
	b := make([]byte, 256<<10)
	for n > 0 {
		got, err := unix.Pread(f.fd, b[:min(n, int64(len(b)))], from)
		if got <= 0 || err != nil {
			return
		}
		from += int64(got)
		n -= int64(got)
	}
}
