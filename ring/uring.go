package ring

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's interface as of linux/io_uring.h; names are the kernel's without their prefix.
const (
	opNop         = 0
	opWritev      = 2
	opFsync       = 3
	opPollAdd     = 6
	opSendmsg     = 9
	opAccept      = 13
	opAsyncCancel = 14
	opFallocate   = 17
	opOpenat      = 18
	opRead        = 22
	opWrite       = 23
	opSend        = 26
	opRecv        = 27
	opRenameat    = 35
	opUnlinkat    = 36
	opMkdirat     = 37
	opMsgRing     = 40
	opFtruncate   = 55 // 6.9

	sqeIOLink         = 1 << 2
	sqeBufferSelect   = 1 << 5
	sqeCQESkipSuccess = 1 << 6

	recvMultishot   = 1 << 1 // ioprio of recv
	acceptMultishot = 1 << 0 // ioprio of accept
	fsyncDatasync   = 1 << 0

	cancelAll = 1 << 0
	cancelAny = 1 << 2

	cqeBuffer      = 1 << 0
	cqeMore        = 1 << 1
	cqeBufferShift = 16

	setupCQSize       = 1 << 3
	setupClamp        = 1 << 4
	setupSubmitAll    = 1 << 7
	setupCoopTaskrun  = 1 << 8
	setupTaskrunFlag  = 1 << 9
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13

	featSingleMmap   = 1 << 0
	featNodrop       = 1 << 1
	featSubmitStable = 1 << 2
	featFastPoll     = 1 << 5
	featExtArg       = 1 << 8

	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3

	sqCQOverflow = 1 << 1

	registerProbe         = 8
	registerIOWQMaxWorker = 19
	registerPbufRing      = 22

	offSQEs = 0x10000000
)

type sqe struct {
	op, flags    uint8
	ioprio       uint16
	fd           int32
	off, addr    uint64
	len, opflags uint32
	user         uint64
	bufGroup     uint16
	personality  uint16
	fileIndex    int32
	pad          [2]uint64
}

type cqe struct {
	user  uint64
	res   int32
	flags uint32
}

type uringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFd uint32
	resv                                                                   [3]uint32
	sq                                                                     struct {
		head, tail, ringMask, ringEntries, flags, dropped, array, resv1 uint32
		resv2                                                           uint64
	}
	cq struct {
		head, tail, ringMask, ringEntries, overflow, cqes, flags, resv1 uint32
		resv2                                                           uint64
	}
}

type timespec struct{ sec, nsec int64 }

type getEventsArg struct {
	sigmask   uint64
	sigmaskSz uint32
	pad       uint32
	ts        uint64
}

// uring is one submission and one completion queue; all its methods belong to the thread that made it.
type uring struct {
	fd              int
	features, flags uint32

	sqHead, sqTail, sqFlags *uint32
	sqMask                  uint32
	sqes                    []sqe
	tail                    uint32 // our end of the submission queue, not yet shown to the kernel
	cqHead, cqTail          *uint32
	cqMask                  uint32
	cqes                    []cqe

	ring, entries []byte // the mappings
	wait          *struct {
		arg getEventsArg
		ts  timespec
	}
	arena arena

	enters, submitted uint64
}

// mapAnon maps n zero bytes outside the Go heap.
func mapAnon(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic("ring: no address space: " + err.Error())
	}
	return b
}

func addr(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// openURing makes a ring on the calling thread.
func openURing(entries, completions, flags uint32) (*uring, error) {
	p := &uringParams{flags: flags | setupCQSize | setupClamp, cqEntries: completions}
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(p)), 0)
	if e != 0 {
		return nil, e
	}
	r := &uring{fd: int(fd), features: p.features, flags: p.flags}
	size := max(int(p.sq.array+p.sqEntries*4), int(p.cq.cqes+p.cqEntries*16))
	var err error
	if r.ring, err = unix.Mmap(r.fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		unix.Close(r.fd)
		return nil, err
	}
	if r.entries, err = unix.Mmap(r.fd, offSQEs, int(p.sqEntries)*int(unsafe.Sizeof(sqe{})),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		unix.Munmap(r.ring)
		unix.Close(r.fd)
		return nil, err
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.ring[off])) }
	r.sqHead, r.sqTail, r.sqFlags, r.sqMask = word(p.sq.head), word(p.sq.tail), word(p.sq.flags), *word(p.sq.ringMask)
	r.cqHead, r.cqTail, r.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.ringMask)
	for i, a := range unsafe.Slice(word(p.sq.array), p.sqEntries) {
		_ = a
		*word(p.sq.array + uint32(i)*4) = uint32(i)
	}
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.entries[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.ring[p.cq.cqes])), p.cqEntries)
	mem := mapAnon(int(unsafe.Sizeof(*r.wait)))
	r.wait = (*struct {
		arg getEventsArg
		ts  timespec
	})(unsafe.Pointer(&mem[0]))
	r.wait.arg.ts = uint64(uintptr(unsafe.Pointer(&r.wait.ts)))
	r.arena.mem = mapAnon(arenaSize)
	return r, nil
}

// close gives the ring back; its memory stays while the kernel may still use some of it.
func (r *uring) close() {
	unix.Munmap(r.entries)
	unix.Munmap(r.ring)
	unix.Close(r.fd) // fd stays: another loop may be about to send a wake there, and is told that it cannot
}

// next is a zeroed submission entry; it leaves with the next enter. Entries that name memory of the arena, and those that
// must follow one another in one enter, reserve first.
func (r *uring) next() *sqe {
	if r.waiting() > r.sqMask {
		r.flush()
	}
	s := &r.sqes[r.tail&r.sqMask]
	*s = sqe{}
	r.tail++
	return s
}

// reserve makes sure that n entries and so many bytes of the arena can be had without an enter between them.
func (r *uring) reserve(n uint32, bytes int) {
	if r.waiting()+n > r.sqMask+1 || r.arena.used+bytes > arenaSize {
		r.flush()
		r.arena.used = 0
	}
}

// waiting is the number of entries the kernel has not taken.
func (r *uring) waiting() uint32 { return r.tail - atomic.LoadUint32(r.sqHead) }

// flush hands over what is queued without waiting.
func (r *uring) flush() {
	for try := 0; r.waiting() > 0; try++ {
		e := r.enter(0, 0)
		if e != 0 && e != unix.EINTR && e != unix.EBUSY && e != unix.EAGAIN || try > 1000 {
			panic("ring: io_uring_enter does not take what is queued: " + e.Error())
		}
	}
}

// enter submits what is queued and, with want > 0, waits for a completion by a raw system call: at most ns nanoseconds,
// or not at all with ns 0. The processor is kept.
func (r *uring) enter(want uint32, ns int64) unix.Errno {
	r.enters++
	n := r.show()
	if want == 0 {
		_, _, e := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), 0, enterGetEvents, 0, 0)
		r.taken()
		return e
	}
	r.wait.ts = timespec{ns / 1e9, ns % 1e9}
	_, _, e := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), uintptr(want),
		enterGetEvents|enterExtArg, uintptr(unsafe.Pointer(&r.wait.arg)), unsafe.Sizeof(r.wait.arg))
	r.taken()
	return e
}

// sleep waits for a completion by an ordinary system call, which gives the processor away: ns nanoseconds, or for ever with -1.
func (r *uring) sleep(ns int64) unix.Errno {
	r.enters++
	n := r.show()
	r.wait.arg.ts = 0
	if ns >= 0 {
		r.wait.ts = timespec{ns / 1e9, ns % 1e9}
		r.wait.arg.ts = uint64(uintptr(unsafe.Pointer(&r.wait.ts)))
	}
	_, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), 1,
		enterGetEvents|enterExtArg, uintptr(unsafe.Pointer(&r.wait.arg)), unsafe.Sizeof(r.wait.arg))
	r.wait.arg.ts = uint64(uintptr(unsafe.Pointer(&r.wait.ts)))
	r.taken()
	return e
}

// show makes the queued entries visible.
func (r *uring) show() uint32 {
	r.submitted += uint64(r.tail - *r.sqTail)
	atomic.StoreUint32(r.sqTail, r.tail)
	return r.waiting()
}

// taken frees the arena once every entry that names it has been read (IORING_FEAT_SUBMIT_STABLE).
func (r *uring) taken() {
	if r.waiting() == 0 {
		r.arena.used = 0
	}
}

// pending is the number of completions at hand.
func (r *uring) pending() uint32 { return atomic.LoadUint32(r.cqTail) - *r.cqHead }

// seen gives the entry of the oldest completion back.
func (r *uring) seen() { atomic.StoreUint32(r.cqHead, *r.cqHead+1) }

// overflown says that the kernel keeps completions which only an enter brings.
func (r *uring) overflown() bool { return atomic.LoadUint32(r.sqFlags)&sqCQOverflow != 0 }

func (r *uring) register(what uintptr, arg unsafe.Pointer, n uintptr) unix.Errno {
	_, _, e := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), what, uintptr(arg), n, 0, 0)
	return e
}

// supports asks which operations the kernel knows.
func (r *uring) supports() (ops [256]bool) {
	type probe struct {
		last, n uint8
		resv    uint16
		resv2   [3]uint32
		ops     [256]struct {
			op, resv uint8
			flags    uint16
			resv2    uint32
		}
	}
	p := &probe{}
	if r.register(registerProbe, unsafe.Pointer(p), 256) != 0 {
		return ops
	}
	for _, o := range p.ops[:p.n] {
		ops[o.op] = o.flags&1 != 0
	}
	return ops
}

const arenaSize = 256 << 10

// arena is memory for what entries point to besides payload: iovecs, headers, names. The kernel has read it when it has taken
// the entry, so it is used anew after each enter.
type arena struct {
	mem  []byte
	used int
}

// take is n reserved bytes, 8-aligned.
func (r *uring) take(n int) []byte {
	at := r.arena.used
	if at+n > arenaSize {
		panic("ring: bytes of the arena were not reserved")
	}
	r.arena.used += (n + 7) &^ 7
	return r.arena.mem[at : at+n : at+n]
}

// iovec is the kernel's. Its address is a number, not a pointer: it lies outside the Go heap, where the write barrier would take
// what an earlier use has left there for a pointer that still counts.
type iovec struct{ base, len uint64 }

const iovecSize = int(unsafe.Sizeof(iovec{}))

// iovecs is room for n of them, reserved.
func (r *uring) iovecs(n int) []iovec {
	return unsafe.Slice((*iovec)(unsafe.Pointer(&r.take(n * iovecSize)[0])), n)
}

// name is s, reserved, ended by a zero byte.
func (r *uring) name(s string) uint64 {
	b := r.take(len(s) + 1)
	copy(b, s)
	b[len(s)] = 0
	return addr(b)
}
