package ring

import "golang.org/x/sys/unix"

// kind is what a slot's operation is.
type kind uint8

const (
	kindFree kind = iota
	kindIgnored
	kindEvent
	kindAccept
	kindReceive // multishot or one piece
	kindDirect
	kindSend
	kindPoll
	kindRead
	kindWrite
	kindOpen
	kindName // rename, unlink, mkdir
	kindFile // sync, allocate, truncate
)

// A completion's user_data is the slot's index (32 bits), its generation (24) and a tag (8).
const (
	genMask  = 1<<24 - 1
	tagShift = 56
	tagRead  = 1 // the read of a file part, linked before a send
	tagWake  = 2 // with slot 0: a wake of the loop whose index stands for the generation
)

// slot is an operation under way. It keeps reachable what the kernel reads or writes.
type slot struct {
	gen  uint32
	kind kind
	next uint32 // of the free list
	conn *conn
	lis  *listener
	op   *Op
	file *file
	b    []byte
	bufs [][]byte
	at   int64
	done int64
	name *nameOp
}

// nameOp is what the rarer operations have besides.
type nameOp struct {
	what, name string
	flags      uint32
}

// What a file's simple operations are called in errors.
var (
	syncing    = &nameOp{what: "fdatasync"}
	allocating = &nameOp{what: "fallocate"}
	truncating = &nameOp{what: "truncate"}
)

// newSlot is a free slot; pointers into slots hold until the next call.
func (l *loop) newSlot() (uint32, *slot) {
	l.live++
	i := l.freeSlot
	if i == 0 {
		l.slots = append(l.slots, slot{})
		i = uint32(len(l.slots) - 1)
	} else {
		l.freeSlot = l.slots[i].next
	}
	return i, &l.slots[i]
}

// user is the user_data of slot i.
func (l *loop) user(i uint32) uint64 { return uint64(l.slots[i].gen)<<32 | uint64(i) }

// drop frees a slot; completions that still come for it are not looked at.
func (l *loop) drop(i uint32) {
	s := &l.slots[i]
	*s = slot{gen: (s.gen + 1) & genMask, next: l.freeSlot}
	l.freeSlot = i
	l.live--
}

func (l *loop) complete(i uint32, c cqe) {
	s := &l.slots[i]
	switch s.kind {
	case kindReceive:
		s.conn.received(i, c)
	case kindDirect:
		s.conn.receivedDirect(i, c)
	case kindSend:
		s.conn.sent(i, c)
	case kindPoll:
		s.conn.polled(i)
	case kindRead:
		l.readDone(i, c.res)
	case kindWrite:
		l.writeDone(i, c.res)
	case kindFile:
		op, f, what := s.op, s.file, s.name.what
		l.drop(i)
		l.finishPath(op, 0, what, f.name, errnoOf(c.res))
		f.release()
	case kindOpen:
		l.opened(i, c.res)
	case kindName:
		l.named(i, c.res)
	case kindAccept:
		s.lis.accepted(i, c)
	case kindEvent:
		l.drop(i)
		if !l.stopping {
			l.armEvent()
		}
	default:
		panic("ring: a completion for a slot without an operation")
	}
}

func errnoOf(res int32) unix.Errno {
	if res < 0 {
		return unix.Errno(-res)
	}
	return 0
}

// armEvent reads the eventfd others wake the loop with.
func (l *loop) armEvent() {
	i, s := l.newSlot()
	s.kind = kindEvent
	e := l.r.next()
	e.op, e.fd, e.addr, e.len, e.user = opRead, int32(l.in.event), addr(l.eventBuf), 8, l.user(i)
}

// cancel asks the kernel to end the operation of slot i; its completion comes all the same.
func (l *loop) cancel(i uint32) {
	e := l.r.next()
	e.op, e.fd, e.addr, e.flags = opAsyncCancel, -1, l.user(i), sqeCQESkipSuccess
}
