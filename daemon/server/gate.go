package server

import (
	"net/netip"

	"kring/ring"
)

// Gate counts connections over all loops and says whether one more may come; it belongs to the loop that accepts.
type Gate struct {
	// Refused counts the connections turned away.
	Refused uint64

	loop       ring.Loop
	most       int
	perIP      int
	exceptions map[netip.Addr]int
	count      int
	counts     map[netip.Addr]int
}

// NewGate makes a gate on the accepting loop; see Limit.
func NewGate(loop ring.Loop, most, perIP int, exceptions map[netip.Addr]int) *Gate {
	g := &Gate{loop: loop, counts: map[netip.Addr]int{}}
	g.Limit(most, perIP, exceptions)
	return g
}

// Limit sets the limits from the next connection on: at most most connections (max.connections), at most perIP from one
// address (max.connections.per.ip) unless exceptions says otherwise (max.connections.per.ip.overrides).
func (g *Gate) Limit(most, perIP int, exceptions map[netip.Addr]int) {
	g.most, g.perIP, g.exceptions = most, perIP, exceptions
}

// Admit counts a connection from addr in, unless a limit is reached.
func (g *Gate) Admit(addr netip.Addr) bool {
	most, special := g.exceptions[addr]
	if !special {
		most = g.perIP
	}
	if g.count >= g.most || g.counts[addr] >= most {
		g.Refused++
		return false
	}
	g.count++
	g.counts[addr]++
	return true
}

// Count is the number of connections admitted and not ended.
func (g *Gate) Count() int { return g.count }

// leave tells the gate of an ended connection.
type leave struct {
	ring.Message
	gate *Gate
	addr netip.Addr
}

func (l *leave) run(*ring.Message) {
	g := l.gate
	g.count--
	if g.counts[l.addr]--; g.counts[l.addr] == 0 {
		delete(g.counts, l.addr)
	}
}

// Turn refuses an accepted socket on this loop.
func Turn(loop ring.Loop, socket ring.Socket) { loop.Attach(socket, turned{}).Close() }

// turned receives nothing.
type turned struct{}

func (turned) Received(data []byte, _ *ring.Buf) (consumed, need int) { return len(data), 0 }
func (turned) Closed(error)                                           {}
