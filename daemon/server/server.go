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
	// QueuedBytes bounds the request bytes under way on this loop: above it no more is received.
	QueuedBytes int64
	// UnsentBytes bounds what the answers of one connection keep in memory: above it no more of its requests is taken.
	UnsentBytes int64
	// MemoryBytes bounds what half-received frames may help to fill: while the loop has lent out more, the one that has
	// waited longest is closed.
	MemoryBytes int64
	Log         *slog.Logger
}

// The defaults; the first two are Kafka's.
const (
	defaultRequestBytes = 100 << 20
	defaultIdleMax      = 10 * time.Minute
	defaultPipeline     = 16 // clients keep 5 under way; more would let one connection fill the loop
	defaultQueuedBytes  = 64 << 20
	defaultUnsentBytes  = 128 << 10
	defaultMemoryBytes  = 256 << 20 // well below what a loop of the kernel lends before it stops to receive
	// halfGrace is how long a frame may take to come, even while memory is short.
	halfGrace = time.Second
)

// Server holds the connections of one loop.
type Server struct {
	loop     ring.Loop
	o        Options
	dispatch func(*Request)

	pool    *Request
	held    int64   // request bytes under way
	waiting []*Conn // paused until held sinks
	spare   []*Conn
	// pressure looks after half-received frames while memory is short.
	pressure ring.Timer
	conns    *Conn
	count    int
	busy     int // requests not yet recycled

	counters Counters
	apis     [keys]*API

	told   bool // that a peer misbehaved, at toldAt; untold others have since
	toldAt time.Duration
	untold int
}

// New makes the server of one loop. dispatch is called for each request, in order per connection.
func New(loop ring.Loop, o Options, dispatch func(*Request)) *Server {
	if o.RequestBytes == 0 {
		o.RequestBytes = defaultRequestBytes
	}
	if o.IdleMax == 0 {
		o.IdleMax = defaultIdleMax
	}
	if o.Pipeline == 0 {
		o.Pipeline = defaultPipeline
	}
	if o.QueuedBytes == 0 {
		o.QueuedBytes = defaultQueuedBytes
	}
	if o.UnsentBytes == 0 {
		o.UnsentBytes = defaultUnsentBytes
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultMemoryBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{loop: loop, o: o, dispatch: dispatch}
	s.pressure.Fire = func(*ring.Timer) { s.relieve() }
	return s
}

// Attach makes an accepted socket a connection of this server. listener is the name of the listener it came through. gate
// may be nil; if not, it has admitted the connection, and is told when it ends.
func (s *Server) Attach(socket ring.Socket, peer netip.AddrPort, listener string, gate *Gate) *Conn {
	c := &Conn{Listener: listener, s: s, peer: peer, active: s.loop.Now()}
	c.idle.Fire = func(*ring.Timer) { c.tick() }
	c.leaving.gate, c.leaving.addr = gate, peer.Addr().Unmap()
	c.leaving.Run = c.leaving.run
	c.next = s.conns
	if s.conns != nil {
		s.conns.prev = c
	}
	s.conns = c
	s.count++
	s.counters.Accepted++
	if s.o.IdleMax > 0 {
		s.loop.After(s.o.IdleMax, &c.idle)
	}
	c.conn = s.loop.Attach(socket, c)
	return c
}

// drop takes a closed connection off the books.
func (s *Server) drop(c *Conn) {
	if c.prev == nil {
		s.conns = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	s.count--
	s.counters.Closed[c.reason]++
	if c.reason.bad() {
		s.tell(c)
	}
	if s.conns == nil {
		s.loop.Cancel(&s.pressure)
	}
	if c.leaving.gate != nil {
		c.leaving.gate.loop.Post(&c.leaving.Message)
	}
}

// tellEvery bounds what peers can make us log.
const tellEvery = 10 * time.Second

// tell warns that a connection was closed for what its peer did. Of those that follow soon only the number is told, with the next.
func (s *Server) tell(c *Conn) {
	now := s.loop.Now()
	if s.told && now-s.toldAt < tellEvery {
		s.untold++
		s.o.Log.Debug("connection closed", "peer", c.peer, "listener", c.Listener, "reason", c.reason)
		return
	}
	s.o.Log.Warn("connection closed", "peer", c.peer, "listener", c.Listener, "reason", c.reason, "others", s.untold)
	s.told, s.toldAt, s.untold = true, now, 0
}

// resume lets connections receive again that were stopped for memory.
func (s *Server) resume() {
	woken := s.waiting
	s.waiting, s.spare = s.spare[:0], nil
	for _, c := range woken {
		c.waits = false
		c.flow()
	}
	clear(woken)
	s.spare = woken[:0]
}

// relieve closes the connection whose frame has been incomplete for longest, while the loop lends out too much. It looks
// again while that lasts: when memory is short nothing may be received that would call it.
func (s *Server) relieve() {
	if s.loop.InUse() <= s.o.MemoryBytes {
		return
	}
	var slowest *Conn
	for c := s.conns; c != nil; c = c.next {
		if c.half != 0 && !c.ending && (slowest == nil || c.half < slowest.half) {
			slowest = c
		}
	}
	if slowest == nil {
		return
	}
	if s.loop.Now()-slowest.half >= halfGrace {
		slowest.abort(Slow)
	}
	s.loop.After(halfGrace/4, &s.pressure)
}

// Stop ends all connections: what is under way is answered first, nothing more is taken. Idle connections close at once.
func (s *Server) Stop() {
	for c := s.conns; c != nil; c = c.next {
		c.finish(Stopping)
	}
}

// Abort closes all connections at once.
func (s *Server) Abort() {
	for c := s.conns; c != nil; c = c.next {
		c.abort(Stopping)
	}
}

// Count is the number of connections held.
func (s *Server) Count() int { return s.count }

// Busy is the number of requests under way, those whose connection is gone included.
func (s *Server) Busy() int { return s.busy }

// Held is the number of request bytes under way.
func (s *Server) Held() int64 { return s.held }

// Counters is a snapshot of the server's counters.
func (s *Server) Counters() Counters { return s.counters }
