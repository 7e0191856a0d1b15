package bench

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// frameMax is the largest answer taken: more than any fetch here asks for.
const frameMax = 256 << 20

// dialMax is long: a broker to which thousands connect at once takes its time.
const dialMax = 30 * time.Second

// conn is one connection with one request under way at a time.
type conn struct {
	net.Conn
	r    *bufio.Reader
	buf  []byte
	corr int32
}

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, dialMax)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: bufio.NewReaderSize(c, 8<<10)}, nil
}

// answer reads one frame without its length; it is valid until the next call.
func (c *conn) answer() ([]byte, error) {
	var h [4]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(h[:])))
	if n < 4 || n > frameMax {
		return nil, fmt.Errorf("answer of %d bytes", n)
	}
	if cap(c.buf) < n {
		c.buf = make([]byte, n)
	}
	b := c.buf[:n]
	_, err := io.ReadFull(c.r, b)
	return b, err
}

// do sends a message and decodes its answer.
func (c *conn) do(req kmsg.Request) (kmsg.Response, error) {
	c.corr++
	if _, err := c.Write(encode(req, c.corr)); err != nil {
		return nil, err
	}
	b, err := c.answer()
	if err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	if b, err = body(b, resp); err != nil {
		return nil, err
	}
	return resp, resp.ReadFrom(b)
}

func encode(req kmsg.Request, correlation int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("kring-bench")).AppendRequest(nil, req, correlation)
}

// body strips the response header: a correlation id and, on flexible versions but for ApiVersions, an empty tag section.
func body(b []byte, resp kmsg.Response) ([]byte, error) {
	head := 4
	if resp.IsFlexible() && resp.Key() != kmsg.ApiVersions.Int16() {
		head = 5
	}
	if len(b) < head {
		return nil, io.ErrUnexpectedEOF
	}
	return b[head:], nil
}
