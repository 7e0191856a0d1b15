package api

import "kring/daemon/server"

// row is one API. A handler is called on the connection's loop and answers r exactly once, now or later.
type row struct {
	key, min, max int16
	handle        func(*Context, *server.Request)
	// most is the largest request body taken; 0 is socket.request.max.bytes. A decoded message may take tens of times its
	// bytes, so only those read in place may be large.
	most int
}

var table [128]*row

// rows is the table, in order of keys. The lowest versions are those of KIP-896, the highest those of Kafka 3.9.
func rows() []row {
	return []row{
		{0, 3, 11, produce, 0},
		{1, 4, 17, fetch, 4 << 20},
		{2, 1, 9, listOffsets, 1 << 20},
		{21, 0, 2, deleteRecords, 1 << 20},
		{22, 0, 5, initProducerID, 1 << 20},
		{23, 2, 4, offsetForLeaderEpoch, 1 << 20},
	}
}

func init() {
	for _, r := range rows() {
		table[r.key] = &r
	}
}

func dispatch(c *Context, r *server.Request) { table[r.Key].handle(c, r) }
