package ring

import (
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	inlineRange = 16 << 10  // file ranges up to here are read into the reply, larger ones sent by sendfile
	sendVecs    = 64        // pieces of one send
	sendReads   = 16        // reads linked before one send
	sendMost    = 1 << 20   // bytes of one send
	turnMost    = 512 << 10 // bytes sendfile may hand over for one connection in one turn
)

// fileRead is a file range that a linked read puts into the reply.
type fileRead struct {
	f  *file
	at int64
	b  []byte
}

// msghdr is the kernel's on 64-bit systems.
type msghdr struct {
	name       uint64
	namelen    uint32
	_          uint32
	iov        uint64
	iovlen     uint64
	control    uint64
	controllen uint64
	flags      uint32
	_          uint32
}

const msghdrSize = int(unsafe.Sizeof(msghdr{}))

// Send queues parts.
func (c *conn) Send(parts []Part, op *Op) {
	if c.closing {
		err := c.err
		if err == nil {
			err = ErrClosed
		}
		c.l.finish(op, 0, err)
		return
	}
	op.parts = parts
	for i := range parts {
		if f := parts[i].File; f != nil {
			f.(*file).retain()
		}
	}
	c.out.push(op)
	c.makeDirty()
}

// pop ends the oldest op.
func (c *conn) pop(err error) {
	op := c.out.head
	c.out.head = op.next
	if op.next == nil {
		c.out.tail = nil
	}
	for i := range op.parts {
		if f := op.parts[i].File; f != nil {
			f.(*file).release()
		}
	}
	op.parts = nil
	c.part, c.sentOf = 0, 0
	c.l.finish(op, 0, err)
}

func (c *conn) makeDirty() {
	if !c.isDirty {
		c.isDirty = true
		c.l.dirty = append(c.l.dirty, c)
	}
}

func (l *loop) pumpAll() {
	list := l.dirty
	l.dirty = l.spareDirty[:0]
	for i, c := range list {
		list[i] = nil
		c.isDirty = false
		c.pump()
	}
	l.spareDirty = list[:0]
}

// pump sends what is queued, as far as that goes now.
func (c *conn) pump() {
	budget := int64(turnMost)
	for c.send == 0 && !c.offload && !c.closing {
		c.skipEmpty()
		if c.out.head == nil {
			if c.closeAfter {
				c.fail(nil)
			}
			break
		}
		p := &c.out.head.parts[c.part]
		if p.File == nil || p.Len <= inlineRange {
			c.sendGathered()
			continue
		}
		if budget <= 0 {
			c.poll() // the socket takes more, but others shall have their turn
			return
		}
		n := c.sendRange(p, budget)
		budget -= n
	}
	if c.closing {
		c.end()
	}
}

func partLen(p *Part) int64 {
	if p.File != nil {
		return p.Len
	}
	return int64(len(p.Bytes))
}

// skipEmpty ends ops and parts of which nothing is left to send.
func (c *conn) skipEmpty() {
	for c.out.head != nil {
		parts := c.out.head.parts
		for c.part < len(parts) && c.sentOf >= partLen(&parts[c.part]) {
			c.part++
			c.sentOf = 0
		}
		if c.part < len(parts) {
			return
		}
		c.pop(nil)
	}
}

// advance notes that n more bytes left.
func (c *conn) advance(n int64) {
	c.l.stats.SentBytes += uint64(n)
	for n > 0 {
		parts := c.out.head.parts
		left := partLen(&parts[c.part]) - c.sentOf
		if n < left {
			c.sentOf += n
			break
		}
		n -= left
		c.part++
		c.sentOf = 0
		c.skipEmpty()
	}
	c.skipEmpty()
}

// gather collects what can leave in one send: bytes, and small ranges as reads into c.buf. more: a large range follows.
func (c *conn) gather(vecs []iovec) (n int, more bool) {
	total := int64(0)
	c.reads = c.reads[:0]
	c.measureReads()
	room := 0
	part, skip := c.part, c.sentOf
	for op := c.out.head; op != nil; op = op.next {
		for ; part < len(op.parts); part++ {
			p := &op.parts[part]
			left := partLen(p) - skip
			if left == 0 {
				skip = 0
				continue
			}
			if n == len(vecs) || total >= sendMost {
				return n, false
			}
			if p.File == nil {
				vecs[n] = vec(p.Bytes[skip:])
			} else {
				if left > inlineRange {
					return n, true
				}
				if len(c.reads) == sendReads || c.broken && len(c.reads) == 1 {
					return n, false
				}
				b := c.buf.B[room : room+int(left)]
				room += int(left)
				c.reads = append(c.reads, fileRead{p.File.(*file), p.From + skip, b})
				vecs[n] = vec(b)
			}
			n++
			total += left
			skip = 0
		}
		part = 0
	}
	return n, false
}

// measureReads lends the memory that gather's reads need.
func (c *conn) measureReads() {
	size, reads := 0, 0
	part, skip := c.part, c.sentOf
	for op := c.out.head; op != nil && reads < sendReads; op = op.next {
		for ; part < len(op.parts) && reads < sendReads; part++ {
			if p := &op.parts[part]; p.File != nil {
				if p.Len-skip > inlineRange {
					reads = sendReads
				} else {
					size += int(p.Len - skip)
					reads++
				}
			}
			skip = 0
		}
		part = 0
	}
	if size > 0 {
		c.buf = c.l.Alloc(size)
	}
}

func vec(b []byte) iovec { return iovec{addr(b), uint64(len(b))} }

// sendGathered submits one send, linked behind the reads it needs. What goes before a large range is marked as having more behind
// it, and the range follows when it has left.
func (c *conn) sendGathered() {
	l := c.l
	r := l.r
	r.reserve(sendReads+1, sendVecs*iovecSize+msghdrSize+64)
	vecs := r.iovecs(sendVecs)
	n, more := c.gather(vecs)
	i, s := l.newSlot()
	s.kind, s.conn = kindSend, c
	c.send = i
	l.stats.Sends++
	for _, rd := range c.reads {
		e := r.next()
		e.op, e.fd, e.off, e.addr, e.len = opRead, int32(rd.f.fd), uint64(rd.at), addr(rd.b), uint32(len(rd.b))
		e.flags, e.user = sqeIOLink|sqeCQESkipSuccess, l.user(i)|tagRead<<tagShift
	}
	e := r.next()
	e.fd, e.user, e.opflags = int32(c.fd), l.user(i), unix.MSG_NOSIGNAL|unix.MSG_WAITALL
	if more {
		e.opflags |= unix.MSG_MORE
	}
	if n == 1 {
		e.op, e.addr, e.len = opSend, vecs[0].base, uint32(vecs[0].len)
		return
	}
	e.op, e.addr, e.len = opSendmsg, header(r, vecs[:n]), 1
}

// header puts a msghdr for vecs into the arena.
func header(r *uring, vecs []iovec) uint64 {
	m := r.take(msghdrSize)
	h := (*msghdr)(unsafe.Pointer(&m[0]))
	*h = msghdr{iov: uint64(uintptr(unsafe.Pointer(&vecs[0]))), iovlen: uint64(len(vecs))}
	return addr(m)
}

// sendRange hands a large range to the socket by sendfile; it returns how much.
func (c *conn) sendRange(p *Part, most int64) int64 {
	f := p.File.(*file)
	from, left := p.From+c.sentOf, p.Len-c.sentOf
	n := min(left, most)
	if !c.inMemory(f, from, n) {
		return 0
	}
	off := from
	l := c.l
	l.offset[0] = off
	// Raw: the socket does not block and the pages are there, so the processor need not be given away.
	sent, _, e := unix.RawSyscall6(unix.SYS_SENDFILE, uintptr(c.fd), uintptr(f.fd), uintptr(unsafe.Pointer(&l.offset[0])), uintptr(n), 0, 0)
	switch {
	case e == 0 && sent == 0:
		c.fail(io.ErrUnexpectedEOF) // the range reaches behind the end of the file
	case e == 0:
		l.stats.Sendfiles++
		l.stats.SendfileBytes += uint64(sent)
		c.advance(int64(sent))
		if int64(sent) < n {
			c.poll()
		}
		return int64(sent)
	case e == unix.EAGAIN:
		c.poll()
	case e == unix.EINTR:
	default:
		c.fail(e)
	}
	return 0
}

// poll waits until the socket takes more.
func (c *conn) poll() {
	l := c.l
	i, s := l.newSlot()
	s.kind, s.conn = kindPoll, c
	c.send = i
	e := l.r.next()
	e.op, e.fd, e.opflags, e.user = opPollAdd, int32(c.fd), unix.POLLOUT, l.user(i)
}

func (c *conn) polled(i uint32) {
	c.l.drop(i)
	c.send = 0
	c.makeDirty()
}

// sent is the completion of a send, or of a read linked before it: only a read that fell short or failed shows itself, and
// what is linked behind it then does not.
func (c *conn) sent(i uint32, q cqe) {
	c.l.drop(i)
	c.send = 0
	if c.buf != nil {
		c.buf.Release()
		c.buf = nil
	}
	e := errnoOf(q.res)
	switch {
	case c.closing || e == unix.EINTR || e == unix.EAGAIN:
	case q.user>>tagShift == tagRead:
		c.readsBroke(e)
	case e != 0:
		c.fail(e)
	default:
		c.broken = false
		c.advance(int64(q.res))
	}
	c.makeDirty()
}

// readsBroke decides what a broken chain means: once, the reads are tried one by one; a range that cannot be read then ends
// the connection, for its length has been announced.
func (c *conn) readsBroke(e unix.Errno) {
	c.l.stats.BrokenReads++
	switch {
	case e != 0:
		c.fail(e)
	case c.broken:
		c.fail(io.ErrUnexpectedEOF)
	default:
		c.broken = true
	}
}
