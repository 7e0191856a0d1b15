package segment

import (
	"slices"

	"kring/wire/batch"
)

// sequenceWindow is how many batches of a producer are known again.
const sequenceWindow = 5

type producerBatch struct {
	last      Offset
	timestamp int64
	lastSeq   int32
	delta     int32 // last offset less first, and so last sequence less first
}

func (b producerBatch) firstSeq() int32 { return sequenceBefore(b.lastSeq, b.delta) }

// producer is what the log knows of one producer id.
type producer struct {
	id               int64
	timestamp        int64
	txnFirst         Offset // of the open transaction, -1 if none
	batches          [sequenceWindow]producerBatch
	n                int8
	epoch            int16
	coordinatorEpoch int32
}

func newProducer(id int64) *producer {
	return &producer{id: id, epoch: noEpoch, coordinatorEpoch: -1, txnFirst: -1, timestamp: noTimestamp}
}

func (p *producer) lastSeq() int32 {
	if p.n == 0 {
		return noSequence
	}
	return p.batches[p.n-1].lastSeq
}

// duplicate finds the batch with exactly these sequences.
func (p *producer) duplicate(epoch int16, first, last int32) (producerBatch, bool) {
	if epoch != p.epoch {
		return producerBatch{}, false
	}
	for _, b := range p.batches[:p.n] {
		if b.firstSeq() == first && b.lastSeq == last {
			return b, true
		}
	}
	return producerBatch{}, false
}

func (p *producer) setEpoch(epoch int16) {
	if p.epoch != epoch {
		p.epoch, p.n = epoch, 0
	}
}

func (p *producer) add(epoch int16, b producerBatch) {
	p.setEpoch(epoch)
	if p.n == sequenceWindow {
		copy(p.batches[:], p.batches[1:])
		p.n--
	}
	p.batches[p.n] = b
	p.n++
	p.timestamp = b.timestamp
}

// sequenceBefore takes n from a sequence number; before 0 comes 2^31-1.
func sequenceBefore(seq, n int32) int32 {
	if seq < n {
		return int32(int64(maxRelative) - (int64(n) - int64(seq)) + 1)
	}
	return seq - n
}

// openTxn is a transaction that is not yet stable: last is its marker's offset once it has one.
type openTxn struct {
	producerID  int64
	first, last Offset
}

// producers is the producer state of a log as of the offset end.
type producers struct {
	byID map[int64]*producer
	// open are the transactions without a marker, unreplicated those whose marker is not yet below the high watermark;
	// both rise by first offset.
	open, unreplicated []openTxn
	end                Offset
	// saved is the offset of the snapshot file this was read from or is written to: what is saved is not written again.
	saved Offset
}

func (ps *producers) get(id int64) *producer { return ps.byID[id] }

func (ps *producers) make(id int64) *producer {
	p := ps.byID[id]
	if p == nil {
		if ps.byID == nil {
			ps.byID = make(map[int64]*producer)
		}
		p = newProducer(id)
		ps.byID[id] = p
	}
	return p
}

// sorted gives the producers by id, since the order of a map must not be seen.
func (ps *producers) sorted() []*producer {
	all := make([]*producer, 0, len(ps.byID))
	for _, p := range ps.byID {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *producer) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return all
}

// Producer is what a log remembers of a producer: its id and epoch, the sequence of its last record (-1: none), the largest
// timestamp of its last batch in Unix ms, and what the transaction coordinator has said of it (-1: nothing).
type Producer struct {
	ID               int64
	Epoch            int16
	LastSequence     int32
	Timestamp        int64
	CoordinatorEpoch int32
	TxnFirst         Offset // of its open transaction, -1 if none
}

// Producers are the producers the log remembers, by id.
func (l *Log) Producers() []Producer {
	all := make([]Producer, 0, len(l.prods.byID))
	for _, p := range l.prods.sorted() {
		all = append(all, Producer{p.id, p.epoch, p.lastSeq(), p.timestamp, p.coordinatorEpoch, p.txnFirst})
	}
	return all
}

// ExpireProducers forgets producers that were silent for producer.id.expiration.ms; now is ms of wall clock.
func (l *Log) ExpireProducers(now int64) { l.prods.expire(now, l.conf.ProducerExpireMs) }

// checkBatch says whether a batch with producer id may be appended; h is its header, b the batch.
func (ps *producers) checkBatch(b []byte, origin Origin) error {
	h := batch.Header(b)
	p := ps.get(h.ProducerID())
	if h.Control() {
		_, coordinatorEpoch, ok := endMarker(b)
		switch {
		case !ok:
			return ErrCorrupt
		case p != nil && h.ProducerEpoch() < p.epoch:
			return ErrProducerFenced
		case p != nil && coordinatorEpoch < p.coordinatorEpoch:
			return ErrCoordinatorFenced
		}
		return nil
	}
	if p == nil {
		return nil
	}
	if h.ProducerEpoch() < p.epoch {
		return ErrProducerFenced
	}
	if origin == FromClient {
		if err := p.checkSequence(h.ProducerEpoch(), h.BaseSequence()); err != nil {
			return err
		}
	}
	if p.txnFirst >= 0 && !h.Transactional() {
		return ErrTxnState
	}
	return nil
}

func (p *producer) checkSequence(epoch int16, first int32) error {
	if p.epoch == noEpoch {
		return nil
	}
	if epoch != p.epoch {
		if first != 0 {
			return ErrOutOfOrder
		}
		return nil
	}
	last := p.lastSeq()
	if first == last+1 && last != maxRelative || first == 0 && last == maxRelative {
		return nil
	}
	return ErrOutOfOrder
}

// apply notes a batch that has a producer id and its final offsets. It returns the transaction it aborts, if it does.
func (ps *producers) apply(b []byte) (AbortedTxn, bool) {
	h := batch.Header(b)
	if h.Control() {
		return ps.applyMarker(b)
	}
	p := ps.make(h.ProducerID())
	first, last := Offset(h.BaseOffset()), Offset(h.LastOffset())
	p.add(h.ProducerEpoch(), producerBatch{
		last: last, timestamp: h.MaxTimestamp(), lastSeq: h.LastSequence(), delta: h.LastOffsetDelta(),
	})
	if p.txnFirst < 0 && h.Transactional() {
		p.txnFirst = first
		ps.open = append(ps.open, openTxn{producerID: p.id, first: first, last: -1})
	}
	return AbortedTxn{}, false
}

func (ps *producers) applyMarker(b []byte) (AbortedTxn, bool) {
	h := batch.Header(b)
	commit, coordinatorEpoch, ok := endMarker(b)
	if !ok { // an empty control batch, all that compaction left of a transaction
		return AbortedTxn{}, false
	}
	p := ps.make(h.ProducerID())
	first := p.txnFirst
	p.setEpoch(h.ProducerEpoch())
	p.coordinatorEpoch, p.timestamp, p.txnFirst = coordinatorEpoch, h.MaxTimestamp(), -1
	if first < 0 {
		return AbortedTxn{}, false
	}
	a := AbortedTxn{ProducerID: p.id, First: first, Last: Offset(h.LastOffset()), LastStable: Offset(h.NextOffset())}
	for _, o := range ps.open {
		if o.producerID != p.id {
			a.LastStable = o.first
			break
		}
	}
	ps.open = slices.DeleteFunc(ps.open, func(o openTxn) bool { return o.producerID == p.id })
	ps.addUnreplicated(openTxn{producerID: p.id, first: first, last: a.Last})
	return a, !commit
}

func (ps *producers) addUnreplicated(o openTxn) {
	i, _ := slices.BinarySearchFunc(ps.unreplicated, o, func(a, b openTxn) int { return int(a.first - b.first) })
	ps.unreplicated = slices.Insert(ps.unreplicated, i, o)
}

// highWatermark drops completed transactions whose marker is below hw.
func (ps *producers) highWatermark(hw Offset) {
	if len(ps.unreplicated) > 0 {
		ps.unreplicated = slices.DeleteFunc(ps.unreplicated, func(o openTxn) bool { return o.last < hw })
	}
}

// firstUnstable is the first offset of the earliest transaction not yet stable.
func (ps *producers) firstUnstable() (Offset, bool) {
	switch {
	case len(ps.open) == 0 && len(ps.unreplicated) == 0:
		return 0, false
	case len(ps.open) == 0:
		return ps.unreplicated[0].first, true
	case len(ps.unreplicated) == 0:
		return ps.open[0].first, true
	}
	return min(ps.open[0].first, ps.unreplicated[0].first), true
}

// expire forgets producers that were silent for age ms and have no open transaction.
func (ps *producers) expire(now, age int64) {
	for id, p := range ps.byID {
		if p.txnFirst < 0 && now-p.timestamp >= age {
			delete(ps.byID, id)
		}
	}
}

func (ps *producers) addOpen(o openTxn) {
	i, _ := slices.BinarySearchFunc(ps.open, o, func(a, b openTxn) int { return int(a.first - b.first) })
	ps.open = slices.Insert(ps.open, i, o)
}
