package api

import (
	"fmt"
	"time"
)

// noTransactions is what a client is told where the answer has room for words.
const noTransactions = "transactions are not supported yet"

const (
	// refusedNamed bounds the transactional ids that are kept, and so told of once.
	refusedNamed = 1000
	// refusedLines bounds the lines in one refusedSpan: applications may make up a new id at each start.
	refusedLines = 10
	refusedSpan  = 10 * time.Second
)

// refusedTxns are the transactional ids that a line of the log has named; it belongs to loop 0.
type refusedTxns struct {
	named map[string]struct{}
	since time.Duration // the beginning of the span that lines counts for
	lines int
}

// tell says whether a refusal of id is worth a line now: the first of each, and few at a time.
func (r *refusedTxns) tell(id string, now time.Duration) bool {
	if _, known := r.named[id]; known || len(r.named) >= refusedNamed {
		return false
	}
	if r.lines == 0 || now-r.since >= refusedSpan {
		r.since, r.lines = now, 0
	}
	if r.lines >= refusedLines {
		return false
	}
	if r.named == nil {
		r.named = map[string]struct{}{}
	}
	r.named[id] = struct{}{}
	r.lines++
	return true
}

// txnRefused tells the operator of a transactional producer: what its client is answered, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, is the
// one code that every client takes as final, and names a cause that is none.
func (c *Context) txnRefused(id, client string) {
	home := c.Contexts[0]
	home.On(c, func() {
		if home.data.refusedTxns.tell(id, home.Loop.Now()) {
			home.Log.Warn(fmt.Sprintf("transactional id %.200s refused: %s", id, noTransactions), "client", client)
		}
	})
}
