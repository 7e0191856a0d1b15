package simring

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"

	"kring/ring"
)

// Client is the test's end of a connection. It lives on no loop: it is called between steps or from its own callbacks.
type Client struct {
	w      *World
	name   string
	e      *endpoint
	local  netip.AddrPort
	early  []*sending // sent before the connection stood
	in     []byte
	paused bool
	closed bool
	err    error

	// OnReceive is called with each piece that comes; nil: it is kept for Read. It may call the client.
	OnReceive func([]byte)
	// OnClose is called once, last: io.EOF when the other side closed in order.
	OnClose func(error)
}

// Dial connects to "machine:port" or "address:port"; what is sent meanwhile leaves when the connection stands.
func (w *World) Dial(addr string) *Client {
	w.clients++
	c := &Client{w: w, name: fmt.Sprint("client", w.clients)}
	c.local = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(w.clients >> 8), byte(w.clients)}), uint16(20000+w.clients%40000))
	m, at, err := w.resolve(addr)
	if err != nil {
		w.at(w.now, func() { c.end(err) })
		return c
	}
	w.connect(c, m, at)
	return c
}

// Name is what the story calls the client.
func (c *Client) Name() string { return c.name }

// Send queues a copy of b.
func (c *Client) Send(b []byte) {
	if c.closed || len(b) == 0 {
		return
	}
	parts := []ring.Part{{Bytes: append([]byte(nil), b...)}}
	s := &sending{parts: parts}
	if c.e == nil {
		c.early = append(c.early, s)
		return
	}
	c.e.out = append(c.e.out, s)
	c.e.pump()
}

func (c *Client) established() {
	c.e.out = append(c.e.out, c.early...)
	c.early = nil
	c.e.pump()
}

// read takes everything that has come.
func (c *Client) read() {
	e := c.e
	if c.paused || c.closed {
		return
	}
	if b := e.in; len(b) > 0 {
		e.in = nil
		e.peer.pump()
		if c.OnReceive != nil {
			c.OnReceive(b)
		} else {
			c.in = append(c.in, b...)
		}
	}
	switch {
	case c.closed || len(e.in) > 0:
	case e.broken != nil:
		e.close(e.broken)
	case e.eof:
		e.close(nil)
	}
}

// Pause stops reading: the other side sees a full window in the end. Resume goes on.
func (c *Client) Pause() { c.paused = true }

// Resume reads again.
func (c *Client) Resume() {
	c.paused = false
	if c.e != nil {
		c.read()
	}
}

// Close closes in order at once: what has not left is dropped.
func (c *Client) Close() {
	if c.e != nil {
		c.e.close(nil)
	} else {
		c.end(io.EOF)
	}
}

// Finish closes once everything has left.
func (c *Client) Finish() {
	if c.e != nil {
		c.e.finAfter = true
		c.e.pump()
	} else {
		c.w.at(c.w.now+time.Microsecond, c.Finish)
	}
}

// Reset breaks the connection from this side.
func (c *Client) Reset() {
	if e := c.e; e != nil && !c.closed {
		e.gone, e.finished, e.in, e.out = true, true, nil, nil
		e.tell(true)
		c.end(syscall.ECONNRESET)
	}
}

// Lose breaks the connection for both sides: what is on its way is lost.
func (c *Client) Lose() {
	if c.e != nil && !c.closed {
		c.w.note(c.name, "LOST", "", 0, 0, nil, nil)
		c.e.breakBoth()
	}
}

// Closed reports whether the connection has ended, and how.
func (c *Client) Closed() (bool, error) { return c.closed, c.err }

func (c *Client) end(err error) {
	if c.closed {
		return
	}
	c.closed, c.err = true, err
	c.w.note(c.name, "end", "", 0, 0, nil, err)
	if c.OnClose != nil {
		c.OnClose(err)
	}
}

// Buffered is what has come and was not read.
func (c *Client) Buffered() []byte { return c.in }

// Take removes n bytes from the front of what has come.
func (c *Client) Take(n int) []byte {
	b := c.in[:n:n]
	c.in = c.in[n:]
	return b
}

// ErrQuiet: nothing came in time.
var ErrQuiet = errors.New("simring: nothing came in time")

// Read lets the world turn until n bytes have come; with fewer it returns them and why no more come.
func (c *Client) Read(n int, limit time.Duration) ([]byte, error) {
	err := c.w.RunUntil("bytes for "+c.name, limit, func() bool { return len(c.in) >= n || c.closed })
	if len(c.in) >= n {
		return c.Take(n), nil
	}
	if c.closed {
		return c.Take(len(c.in)), c.err
	}
	return c.Take(len(c.in)), errors.Join(ErrQuiet, err)
}
