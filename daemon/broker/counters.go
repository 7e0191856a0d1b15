package broker

import (
	"kring/daemon/server"
	"kring/ring"
)

// Counters is what one loop has counted since the start, and what it holds now.
type Counters struct {
	server.Counters
	// Connections is the number of connections, Busy that of requests under way, Held their bytes.
	Connections, Busy int
	Held              int64
	// Lent is the bytes of buffers the loop has lent out.
	Lent int64
	// Partitions is the number of partitions that live on the loop.
	Partitions int
}

// Counters gathers every loop's counters, by loop; t is on loop 0.
func (b *Broker) Counters(t *ring.Task) []Counters {
	all := make([]Counters, len(b.shards))
	b.each(t, func(s *shard, done func()) {
		all[s.id] = Counters{Counters: s.server.Counters(), Connections: s.server.Count(), Busy: s.server.Busy(), Held: s.server.Held(),
			Lent: s.loop.InUse(), Partitions: len(s.byName)}
		done()
	})
	return all
}

// Refused is the number of connections turned away by max.connections and max.connections.per.ip.
func (b *Broker) Refused() uint64 { return b.gate.Refused }
