package server

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring"
	"kring/wire"
)

// stage is where a request is in its life.
type stage uint8

const (
	free     stage = iota // in the pool
	handling              // the handler's
	answered              // waits for its turn, or is being sent
	silent                // ended without an answer
)

// Request is one request and, later, its answer. It is pooled: see the package comment for who may touch it when.
type Request struct {
	// Key and Version name the API as the client asked for it; Correlation comes back in the answer.
	Key, Version int16
	Correlation  int32
	// ClientID is the header's client id, empty for null.
	ClientID []byte
	// Body is what follows the request header.
	Body []byte
	// Buf is the memory Body lies in. A handler that keeps bytes of Body past its answer retains it (on this loop only).
	Buf *ring.Buf
	// Conn is where it came from.
	Conn *Conn
	// State is the handler's own.
	State any
	// Gone, if set, is called once when the connection ends before the answer was given: a chance to stop waiting. The
	// handler must answer all the same (at once or later).
	Gone func(*Request)
	// Flexible says whether the request (and answer) use tagged fields.
	Flexible bool

	next    *Request // in the connection's order, or in the pool
	stage   stage
	charged int64 // bytes counted in Server.held
	unsent  int64 // bytes counted in Conn.unsent
	api     *API  // where it is counted; nil where the header could not be read
	began   time.Duration
	out     *ring.Buf
	parts   []ring.Part
	release func(*Request)
	op      ring.Op
}

// Begin starts an answer: a slice that holds the size (not yet known) and the response header, with room for at least
// n bytes more. The handler appends the body; if it outgrows the room, append moves it to the Go heap, which is correct but
// slower. It may be called again, which forgets what was begun before.
func (r *Request) Begin(n int) []byte {
	if r.out != nil {
		r.out.Release()
	}
	r.out = r.Conn.s.loop.Alloc(n + responseHeaderMost)
	b := append(r.out.B[:0], 0, 0, 0, 0)
	return wire.AppendResponseHeader(b, r.Key, r.Version, r.Correlation)
}

// Parts lends the request's own slice, empty, for ReplyParts.
func (r *Request) Parts() []ring.Part { return r.parts[:0] }

// Reply answers with b, which began as Begin's result.
func (r *Request) Reply(b []byte) { r.ReplyParts(append(r.parts[:0], ring.Part{Bytes: b}), nil) }

// ReplyParts answers with several parts; the first one's bytes began as Begin's result. release (may be nil) is called
// once, on this loop, when the parts have left or will never leave: the place to unpin files and to return State to a pool.
func (r *Request) ReplyParts(parts []ring.Part, release func(*Request)) {
	r.end(answered)
	more := int64(0)
	r.unsent = int64(len(parts[0].Bytes))
	for _, p := range parts[1:] {
		if p.File == nil {
			more += int64(len(p.Bytes))
			r.unsent += int64(len(p.Bytes))
		} else {
			more += p.Len
		}
	}
	r.Conn.unsent += r.unsent
	r.api.ResponseBytes += uint64(int64(len(parts[0].Bytes)) + more)
	wire.PutFrameSize(parts[0].Bytes, more)
	r.parts, r.release = parts, release
	r.Conn.ready(r)
}

// ReplyMessage encodes resp in the request's version and answers with it.
func (r *Request) ReplyMessage(resp kmsg.Response) {
	resp.SetVersion(r.Version)
	r.countErrors(resp)
	r.Reply(resp.AppendTo(r.Begin(messageRoom)))
}

// NoReply ends a request that gets no answer (Produce with acks 0).
func (r *Request) NoReply() {
	r.end(silent)
	r.api.Latency.add(r.Conn.s.loop.Now() - r.began)
	r.Conn.ready(r)
}

// Close ends the request without an answer and closes its connection after the answers before it have left. The reason is
// counted.
func (r *Request) Close(reason Reason) {
	r.end(silent)
	r.Conn.finish(reason)
	r.Conn.ready(r)
}

// Release gives the memory of Body and ClientID back before the answer: for requests that wait long and need it no more.
func (r *Request) Release() {
	if r.Buf != nil {
		r.Buf.Release()
		r.Buf, r.Body, r.ClientID = nil, nil, nil
		r.Conn.s.uncharge(r)
	}
}

// Charge counts n bytes more against the loop's limit until the answer is given: what a decoded message takes.
func (r *Request) Charge(n int64) {
	r.charged += n
	r.Conn.s.held += n
}

// end leaves the handler's hands.
func (r *Request) end(to stage) {
	if r.stage != handling {
		panic("server: a request was answered twice")
	}
	r.stage = to
	r.Gone = nil
	r.Release()
	r.Conn.s.uncharge(r)
}

// parse reads the request header; the rest is Body.
func (r *Request) parse(frame []byte) Reason {
	h, n, err := wire.ParseRequestHeader(frame)
	r.Key, r.Version, r.Correlation, r.ClientID, r.Flexible = h.Key, h.Version, h.CorrelationID, h.ClientID, h.Flexible
	r.Body = frame[n:]
	switch {
	case err == nil:
		return 0
	case errors.Is(err, wire.ErrKey):
		return BadKey
	case errors.Is(err, wire.ErrVersion):
		return BadVersion
	}
	return BadHeader
}

// left is called when the answer has left or failed to.
func (r *Request) left() {
	c := r.Conn
	c.active = c.s.loop.Now()
	r.api.Latency.add(c.active - r.began)
	c.unsent -= r.unsent
	c.s.recycle(r)
	c.count--
	c.drain()
}

// take gives a clean request from the pool.
func (s *Server) take(c *Conn) *Request {
	r := s.pool
	if r == nil {
		r = &Request{}
		r.op.Done = func(*ring.Op) { r.left() }
	} else {
		s.pool = r.next
	}
	r.next, r.Conn, r.stage = nil, c, handling
	s.busy++
	return r
}

// recycle ends what the request still holds and returns it to the pool.
func (s *Server) recycle(r *Request) {
	if release := r.release; release != nil {
		r.release = nil
		release(r)
	}
	if r.out != nil {
		r.out.Release()
		r.out = nil
	}
	clear(r.parts)
	if cap(r.parts) > partsKept {
		r.parts = nil
	}
	r.State, r.Conn, r.stage, r.unsent, r.api = nil, nil, free, 0, nil
	s.busy--
	r.next, s.pool = s.pool, r
}

// uncharge takes what r was counted for off the loop's account.
func (s *Server) uncharge(r *Request) {
	s.held -= r.charged
	r.charged = 0
	if len(s.waiting) > 0 && s.held <= s.o.QueuedBytes/4*3 {
		s.resume()
	}
}
