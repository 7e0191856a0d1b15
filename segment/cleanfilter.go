package segment

import (
	"fmt"

	"kring/wire/batch"
)

// compactor decides what stays of a log that is being cleaned, batch by batch: pure, and used off the loop. The rules are Kafka's
// (LogCleaner, MemoryRecords.filterTo).
type compactor struct {
	now       int64 // Unix ms
	retention int64 // delete.retention.ms
	from      Offset
	upper     Offset // where the part to be cleaned ends
	keys      *keyMap
	txns      cleanTxns
	// last is what must stay of each producer the log remembers, so that its sequence numbers go on.
	last map[int64]lastBatch
	// legacyDeletes: records without a value in batches of an old format stay.
	legacyDeletes bool

	codecs   batch.Codecs
	rewriter batch.Rewriter
	body     []byte
	looks    []keyLook
	keeps    []bool
	kept     []batch.Record // of an old format
	stats    CleanStats
}

// lastBatch is the last offset of a producer's data, or, if that is unknown, the epoch of its markers.
type lastBatch struct {
	last  Offset // -1: unknown
	epoch int16
}

// lastBatches tells of every producer.
func (ps *producers) lastBatches() map[int64]lastBatch {
	all := make(map[int64]lastBatch, len(ps.byID))
	for id, p := range ps.byID {
		b := lastBatch{last: -1, epoch: p.epoch}
		if p.n > 0 {
			b.last = p.batches[p.n-1].last
		}
		all[id] = b
	}
	return all
}

// next gives the first batch of in, checked; nil if there is no whole one.
func (c *compactor) next(in []byte) ([]byte, error) {
	b, _, err := batch.Whole(in)
	if err == batch.ErrShort {
		return nil, nil
	}
	if err == nil {
		err = batch.Verify(b)
	}
	if h := header(b); err == nil && (h.base() < 0 || h.last() < h.base()) {
		err = fmt.Errorf("offsets from %d to %d", h.base(), h.last())
	}
	return b, err
}

// open begins before b's first record. Its bytes are valid until the next one is opened.
func (c *compactor) open(b []byte) (batch.Records, error) {
	h := batch.Header(b)
	if h.Magic() < 2 || h.Codec() == batch.None || h.Count() == 0 {
		return batch.Open(b, decompressedMax)
	}
	body, err := c.codecs.Decompress(c.body[:0], h.Codec(), h[batch.HeaderSize:], decompressedMax)
	if err != nil {
		return batch.Records{}, err
	}
	c.body = body
	return batch.Over(h, body), nil
}

// index puts the keys of in's whole batches into the map. It returns how many bytes it is done with; that is less than there
// are if the map has no room (full), or none for now.
func (c *compactor) index(in []byte) (done int, full bool, err error) {
	for {
		b, err := c.next(in[done:])
		if b == nil || err != nil {
			return done, false, err
		}
		h := header(b)
		if !(h.isV2() && (c.txns.pass(b) || h.v2().Control())) {
			if ok, err := c.indexBatch(b); err != nil || !ok {
				return done, c.keys.short == nil, err
			}
		}
		if h.last() >= c.from {
			c.keys.latest = h.last()
		}
		done += len(b)
		c.stats.IndexedBytes += int64(len(b))
	}
}

func (c *compactor) indexBatch(b []byte) (bool, error) {
	r, err := c.open(b)
	if err != nil {
		return false, err
	}
	c.look(&r)
	for i := range c.looks {
		if l := &c.looks[i]; l.keyed && l.offset >= c.from && !c.keys.putHash(l.lo, l.hi, l.offset) {
			return false, nil
		}
	}
	return true, r.Err
}

// filter goes through in's whole batches and appends what is left of them to out. It returns how many bytes of in it is done with,
// which may be fewer if out has more than room bytes.
func (c *compactor) filter(in, out []byte, room int) (left []byte, done int, err error) {
	for len(out) <= room {
		b, err := c.next(in[done:])
		if b == nil || err != nil {
			return out, done, err
		}
		if header(b).isV2() {
			out, err = c.batch(out, b)
		} else {
			out, err = c.legacy(out, b)
		}
		if err != nil {
			return out, done, err
		}
		done += len(b)
		c.stats.ReadBytes += int64(len(b))
	}
	return out, done, nil
}

// batch appends what is left of one of magic 2.
func (c *compactor) batch(out, b []byte) ([]byte, error) {
	h := batch.Header(b)
	discard := c.txns.pass(b)
	emptyMarker := discard && h.Control()
	if h.Control() { // a marker stays for a while after the last of its transaction
		discard = discard && h.DeleteHorizon() && h.BaseTimestamp() <= c.now
	}
	kept, tombstones, all := 0, false, false
	if !discard {
		var err error
		if kept, tombstones, all, err = c.choose(b); err != nil {
			return out, err
		}
	}
	horizon := noTimestamp
	if h.DeleteHorizon() {
		horizon = h.BaseTimestamp()
	}
	begins := (tombstones || emptyMarker) && !h.DeleteHorizon()
	switch {
	case kept > 0 && all && !begins:
		return append(out, b...), nil
	case kept > 0:
		if begins {
			horizon = c.now + c.retention
		}
		return c.rewrite(out, b, horizon)
	case c.mustStay(h):
		return batch.AppendEmpty(out, h), nil
	}
	return out, nil
}

// mustStay says whether a batch stays even without records: as the last one of its producer, or of the part that is cleaned.
func (c *compactor) mustStay(h batch.Header) bool {
	if Offset(h.NextOffset()) == c.upper {
		return true
	}
	l, ok := c.last[h.ProducerID()]
	switch {
	case !ok || !h.HasProducer():
		return false
	case l.last >= 0:
		return Offset(h.LastOffset()) == l.last
	}
	return h.Control() && h.ProducerEpoch() == l.epoch
}

// choose notes in c.keeps which records of b stay.
func (c *compactor) choose(b []byte) (kept int, tombstones, all bool, err error) {
	h := batch.Header(b)
	r, err := c.open(b)
	if err != nil {
		return 0, false, false, err
	}
	c.look(&r)
	c.keeps, all = c.keeps[:0], true
	deletes := !h.DeleteHorizon() || c.now < h.BaseTimestamp()
	for i := range c.looks {
		l := &c.looks[i]
		keep := h.Control() || c.stays(l, deletes)
		c.keeps = append(c.keeps, keep)
		if keep {
			kept++
			tombstones = tombstones || !l.valued
		} else {
			all = false
		}
	}
	c.stats.ReadRecords += int64(len(c.keeps))
	c.stats.KeptRecords += int64(kept)
	return kept, tombstones, all, r.Err
}

// look fills c.looks with what is left of r.
func (c *compactor) look(r *batch.Records) {
	c.looks = c.looks[:0]
	for r.Next() {
		c.looks = append(c.looks, c.lookOf(&r.Record))
	}
	c.keys.touch(c.looks)
}

func (c *compactor) lookOf(r *batch.Record) keyLook {
	l := keyLook{offset: Offset(r.Offset), keyed: r.Key != nil, valued: r.Value != nil}
	if l.keyed {
		l.lo, l.hi = c.keys.hash.sum(r.Key)
	}
	return l
}

// stays says whether a record does: none with its key comes after it, and it has a value or deletes stay. One without a key
// does not.
func (c *compactor) stays(l *keyLook, deletes bool) bool {
	switch {
	case l.offset > c.keys.latest:
		return true
	case !l.keyed:
		c.stats.InvalidRecords++
		return false
	case l.offset < c.keys.getHash(l.lo, l.hi):
		return false
	}
	return l.valued || deletes
}

// rewrite appends b with the records of c.keeps.
func (c *compactor) rewrite(out, b []byte, horizon int64) ([]byte, error) {
	h := batch.Header(b)
	var r batch.Records
	if h.Codec() == batch.None {
		r = batch.Over(h, b[batch.HeaderSize:])
	} else {
		r = batch.Over(h, c.body)
	}
	c.rewriter.Begin(h, horizon)
	for _, keep := range c.keeps {
		if !r.Next() {
			return out, r.Err
		}
		if keep {
			c.rewriter.Keep(&r.Record)
		}
	}
	return c.rewriter.AppendTo(out, &c.codecs), nil
}

// legacy appends what is left of a message of magic 0 or 1. A compressed one of which nothing stays, but which is the last of what is
// cleaned, stays whole: there are no empty ones.
func (c *compactor) legacy(out, b []byte) ([]byte, error) {
	r, err := c.open(b)
	if err != nil {
		return out, err
	}
	n := 0
	c.kept = c.kept[:0]
	for ; r.Next(); n++ {
		l := c.lookOf(&r.Record)
		if c.stays(&l, c.legacyDeletes) {
			c.kept = append(c.kept, r.Record)
		}
	}
	if r.Err != nil {
		return out, r.Err
	}
	c.stats.ReadRecords += int64(n)
	c.stats.KeptRecords += int64(len(c.kept))
	m := batch.Legacy(b)
	switch {
	case len(c.kept) == 0 && header(b).last()+1 != c.upper:
		return out, nil
	case len(c.kept) == 0, len(c.kept) == n, b[16] == 0 && m.Codec() == batch.LZ4: // whose frames of magic 0 are their own
		return append(out, b...), nil
	}
	return batch.AppendLegacy(out, m, c.kept, &c.codecs), nil
}
