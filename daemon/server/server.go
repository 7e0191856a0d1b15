package server

import (
	"log/slog"
	"net/netip"
	"time"

	"kring/ring"
)

// Options are a server's limits. Zero means the default.
type Options struct {
	// RequestBytes is the largest request taken (socket.request.max.bytes).
	RequestBytes int
	// IdleMax is how long a connection may be silent (connections.max.idle.ms).
	IdleMax time.Duration
	// Pipeline is how many requests of one connection may be under way.
	Pipeline int
	// QueuedBytes bounds the request bytes under way on this loop: above it no more is received (queued.max.request.bytes).
	QueuedBytes int64
	Log         *slog.Logger
}

// Server holds the connections of one loop.
type Server struct {
	loop     ring.Loop
	o        Options
	dispatch func(*Request)
}

// New makes the server of one loop. dispatch is called for each request, in order per connection.
func New(loop ring.Loop, o Options, dispatch func(*Request)) *Server {
	return &Server{loop: loop, o: o, dispatch: dispatch}
}

// Attach makes an accepted socket a connection of this server. listener is the name of the listener it came through. gate
// may be nil.
func (s *Server) Attach(socket ring.Socket, peer netip.AddrPort, listener string, gate *Gate) { panic("server: not built") }

// Conn is one connection.
type Conn struct {
	// Listener is the name of the listener the connection came through.
	Listener string
	// State is the owner's of per-connection facts (daemon/api).
	State any
}

// Gate counts connections over all loops; it lives on the loop that accepts.
type Gate struct{}

// Reason says why a connection was closed; each is counted.
type Reason uint8
