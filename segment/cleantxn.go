package segment

import (
	"slices"

	"kring/wire/batch"
)

// cleanTxns follows transactions while the batches of a log go by in order: what belongs to an aborted one may go, and a marker
// may when nothing of its transaction is left. Below the last stable offset, which cleaning never passes, every transaction is
// decided, so that the aborted ones are known beforehand from the transaction index.
type cleanTxns struct {
	ahead     []AbortedTxn // not reached yet, by first offset
	aborted   map[int64]*cleanAborted
	committed map[int64]bool // producers of which data went by that is not aborted
	kept      txnIndex       // the aborted transactions of which there was data
}

type cleanAborted struct {
	AbortedTxn
	seen bool // data of it went by
}

// expect adds aborted transactions to come; one may be told twice.
func (c *cleanTxns) expect(list []AbortedTxn) {
	if len(list) == 0 {
		return
	}
	c.ahead = append(c.ahead, list...)
	slices.SortStableFunc(c.ahead, func(a, b AbortedTxn) int { return int(a.First - b.First) })
}

// reach takes the transactions that begin at or before o among those under way.
func (c *cleanTxns) reach(o Offset) {
	for len(c.ahead) > 0 && c.ahead[0].First <= o {
		a := c.ahead[0]
		c.ahead = c.ahead[1:]
		if c.aborted == nil {
			c.aborted = map[int64]*cleanAborted{}
		}
		if c.aborted[a.ProducerID] == nil {
			c.aborted[a.ProducerID] = &cleanAborted{AbortedTxn: a}
		}
	}
}

// pass says whether b, the next batch (magic 2), may be discarded as far as transactions go.
func (c *cleanTxns) pass(b []byte) bool {
	h := batch.Header(b)
	c.reach(Offset(h.LastOffset()))
	if h.Control() {
		return c.passMarker(b)
	}
	if !h.Transactional() {
		return false
	}
	if a := c.aborted[h.ProducerID()]; a != nil {
		a.seen = true
		return true
	}
	if c.committed == nil {
		c.committed = map[int64]bool{}
	}
	c.committed[h.ProducerID()] = true
	return false
}

func (c *cleanTxns) passMarker(b []byte) bool {
	h := batch.Header(b)
	if h.Count() == 0 {
		return true // cleaned before
	}
	commit, _, ok := endMarker(b)
	if !ok {
		return false // some other control record
	}
	id := h.ProducerID()
	if commit {
		data := c.committed[id]
		delete(c.committed, id)
		return !data
	}
	a := c.aborted[id]
	delete(c.aborted, id)
	if a == nil || !a.seen {
		return true
	}
	c.kept = c.kept.add(a.AbortedTxn)
	return false
}
