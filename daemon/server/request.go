package server

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring"
)

// Request is one request and, later, its answer. It is pooled: see the package comment for who may touch it when.
type Request struct {
	// Key and Version name the API as the client asked for it; Correlation comes back in the answer.
	Key, Version int16
	Correlation  int32
	// ClientID is the header's client id, nil for null.
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

	// server's own
}

// Begin starts an answer: a slice that holds the size (not yet known) and the response header, with room for at least
// n bytes more. The handler appends the body; if it outgrows the room, append moves it to the Go heap, which is correct but
// slower.
func (r *Request) Begin(n int) []byte { panic("server: not built") }

// Parts lends the request's own slice, empty, for ReplyParts.
func (r *Request) Parts() []ring.Part { panic("server: not built") }

// Reply answers with b, which began as Begin's result.
func (r *Request) Reply(b []byte) { panic("server: not built") }

// ReplyParts answers with several parts; the first one's bytes began as Begin's result. release (may be nil) is called
// once, on this loop, when the parts have left or will never leave: the place to unpin files and to return State to a pool.
func (r *Request) ReplyParts(parts []ring.Part, release func(*Request)) { panic("server: not built") }

// ReplyMessage encodes resp in the request's version and answers with it.
func (r *Request) ReplyMessage(resp kmsg.Response) { panic("server: not built") }

// NoReply ends a request that gets no answer (Produce with acks 0).
func (r *Request) NoReply() { panic("server: not built") }

// Close ends the request without an answer and closes its connection after the answers before it have left. The reason is
// counted.
func (r *Request) Close(reason Reason) { panic("server: not built") }

// Release gives the memory of Body and ClientID back before the answer: for requests that wait long and need it no more.
func (r *Request) Release() { panic("server: not built") }
