package ring

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// conn is a connection of a loop. At most one receive and one send are under way, each with its slot.
type conn struct {
	l           *loop
	fd          int
	r           Receiver
	peer, local netip.AddrPort
	next, prev  *conn

	// Receiving.
	asm       Assembler
	recv      uint32 // slot of the receive under way
	multi     bool   // it is multishot
	stopped   bool   // it has been cancelled
	large     bool   // frames are large: no multishot
	small     int    // receives since the last large frame
	direct    *Buf   // memory the receive under way writes to
	paused    bool
	isStarved bool
	// againQueued: goOn is in the loop's ready list.
	againQueued bool
	eof         bool

	// Sending.
	out      opQueue // ops with parts not yet sent
	part     int     // of out.head: parts before are sent
	sentOf   int64   // bytes of that part that are sent
	send     uint32  // slot of the send or poll under way
	buf      *Buf    // what linked reads read into
	reads    []fileRead
	broken   bool // the last linked reads fell short: read one by one
	probed   *file
	probedTo int64 // the range up to here is known to be in memory
	offload  bool  // a helper reads ahead
	ahead    Op
	isDirty  bool

	closing, closed, closeAfter bool
	err                         error
	bye, again                  Op
}

func (c *conn) Peer() netip.AddrPort  { return c.peer }
func (c *conn) Local() netip.AddrPort { return c.local }

// Close ends the connection at once.
func (c *conn) Close() { c.fail(nil) }

// CloseAfterSend closes when everything queued has left.
func (c *conn) CloseAfterSend() {
	c.closeAfter = true
	c.stopReceiving()
	c.makeDirty()
}

// fail begins the end of the connection; nil when it is in order.
func (c *conn) fail(err error) {
	if c.closing {
		return
	}
	c.closing, c.err = true, err
	c.asm.Drop()
	if c.recv != 0 || c.send != 0 {
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
		c.stopReceiving()
		if c.send != 0 {
			c.l.cancel(c.send)
		}
	}
	c.makeDirty()
}

// end closes the socket once nothing of the connection is under way.
func (c *conn) end() {
	if c.closed || c.recv != 0 || c.send != 0 || c.offload {
		return
	}
	c.closed = true
	err := c.err
	if err == nil {
		err = ErrClosed
	}
	for c.out.head != nil {
		c.pop(err)
	}
	if c.buf != nil {
		c.buf.Release()
		c.buf = nil
	}
	unix.Close(c.fd)
	l := c.l
	if c.next != nil {
		c.next.prev = c.prev
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.conns = c.next
	}
	c.next, c.prev = nil, nil
	l.stats.Connections--
	l.ready.push(&c.bye)
}
