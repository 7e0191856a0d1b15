package api

import (
	"errors"

	"kring/coordinator"
	"kring/replication"
	"kring/ring"
	"kring/segment"
	"kring/wire/batch"
)

// journal is where the groups of one partition write: the partition's own log. It answers in the order in which it was asked, at
// the end of a turn.
type journal struct {
	g           *GroupShard
	part        *replication.Partition // nil while this broker does not lead it
	builder     *batch.Builder
	first, last *entry // not yet told
	free        *entry
	op          ring.Op
	armed       bool
}

// entry is one batch on its way into the log. It is pooled with its bytes.
type entry struct {
	replication.Append
	j     *journal
	done  func(base int64, err error, now coordinator.Now)
	buf   []byte
	err   error
	cause error // err, as the log says it
	// marker is a transaction's end, which waits for every replica whatever commits wait for.
	marker bool
	base   int64
	ended  bool
	after  []func() // to be called when it has been told
	next   *entry
}

// entryKept is how many bytes an entry may keep for the next batch.
const entryKept = 16 << 10

func (j *journal) start(g *GroupShard) {
	j.g, j.builder = g, batch.NewBuilder(batch.None)
	j.op.Done = func(*ring.Op) { j.tell() }
}

// Takes implements coordinator.Journal. What compression makes of the records is not known before.
func (j *journal) Takes(bytes int) bool {
	return j.part == nil || batch.Codec(j.g.c.Config().Groups.Codec) != batch.None || bytes <= j.part.Config().MaxMessageBytes
}

// Append implements coordinator.Journal.
func (j *journal) Append(b coordinator.Batch, done func(base int64, err error, now coordinator.Now)) {
	e := j.take()
	e.buf = j.build(e.buf[:0], &b)
	j.enter(e, done)
}

// Mark ends a producer's transaction: its marker takes its place among the commits, and the groups follow when it is in the
// log. done is called then, with the log's own error.
func (j *journal) Mark(m *marker, done func(error)) {
	e := j.take()
	e.marker = true
	e.buf = m.appendTo(e.buf[:0], j.g.c, j.part)
	j.enter(e, func(_ int64, err error, _ coordinator.Now) {
		if err == nil {
			j.g.CompleteTransaction(m.producer, m.commit)
		}
		done(e.cause)
	})
}

// enter puts a batch into the partition's line.
func (j *journal) enter(e *entry, done func(base int64, err error, now coordinator.Now)) {
	e.done, e.err, e.cause, e.base, e.ended = done, nil, nil, -1, false
	if j.last == nil {
		j.first = e
	} else {
		j.last.next = e
	}
	j.last = e
	if j.part == nil {
		e.end(coordinator.ErrJournalNotLeader)
		return
	}
	j.part.Enter(&e.Append)
}

// build encodes a batch as Kafka's coordinator does.
func (j *journal) build(dst []byte, b *coordinator.Batch) []byte {
	w := j.builder
	w.Reset()
	w.Codec = batch.Codec(j.g.c.Config().Groups.Codec)
	w.ProducerID, w.ProducerEpoch, w.BaseSequence, w.Transactional = batch.NoProducer, -1, -1, b.Transactional
	if b.Transactional {
		w.ProducerID, w.ProducerEpoch = b.ProducerID, b.ProducerEpoch
	}
	if b.Commit {
		w.BaseSequence = 0
	}
	for i := range b.Records {
		w.Add(b.UnixMilli, b.Records[i].Key, b.Records[i].Value)
	}
	dst = w.AppendTo(dst)
	if j.part != nil && j.part.Config().LogAppendTime {
		batch.StampAppendTime(dst, b.UnixMilli)
	}
	return dst
}

func (j *journal) take() *entry {
	e := j.free
	if e == nil {
		e = &entry{j: j}
		e.Begin, e.Done, e.Origin = func(*replication.Append) { e.begin() }, func(*replication.Append) { e.end(e.Err) }, segment.FromCoordinator
		return e
	}
	j.free, e.next = e.next, nil
	return e
}

// begin is e's turn in the partition's line.
func (e *entry) begin() {
	p, conf := e.j.part, &e.j.g.c.Config().Groups
	if p == nil {
		e.end(coordinator.ErrJournalNotLeader)
		return
	}
	acks, timeout := conf.CommitAcks, conf.CommitTimeout
	if e.marker {
		acks, timeout = replication.AcksAll, e.j.g.c.Config().RequestTimeout
	}
	if err := p.Admit(acks); err != nil {
		e.end(err)
		return
	}
	if len(e.buf) > p.Config().MaxMessageBytes {
		e.end(coordinator.ErrJournalTooLarge)
		return
	}
	e.Data, e.Acks, e.Timeout = e.buf, acks, timeout
	p.Append(&e.Append)
}

// end notes the answer of the log.
func (e *entry) end(err error) {
	e.ended, e.cause, e.err = true, err, journalError(err)
	if err == nil {
		e.base = int64(e.Base)
	}
	if e.Data = nil; !e.j.armed {
		e.j.armed = true
		e.j.g.c.Loop.AtTurnEnd(&e.j.op)
	}
}

// journalError is an error of the log as the coordinator knows it. What is not named is a log that is gone, offline or led
// elsewhere.
func journalError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, coordinator.ErrJournalTooLarge), errors.Is(err, segment.ErrTooLarge):
		return coordinator.ErrJournalTooLarge
	case errors.Is(err, replication.ErrNotEnoughReplicas), errors.Is(err, replication.ErrNotEnoughReplicasAfterAppend):
		return coordinator.ErrJournalUnavailable
	case errors.Is(err, replication.ErrTimedOut):
		return coordinator.ErrJournalTimedOut
	}
	return coordinator.ErrJournalNotLeader
}

// settled calls fn when all that was appended by now has been told: at once, or at the end of a later turn.
func (j *journal) settled(fn func()) {
	if j.last == nil {
		fn()
		return
	}
	j.last.after = append(j.last.after, fn)
}

// tell passes on the answers that are there, in order.
func (j *journal) tell() {
	j.armed = false
	now := j.g.c.now()
	for j.first != nil && j.first.ended {
		e := j.first
		if j.first = e.next; j.first == nil {
			j.last = nil
		}
		done := e.done
		e.next, e.done, e.marker = nil, nil, false
		if cap(e.buf) > entryKept {
			e.buf = nil
		}
		done(e.base, e.err, now)
		for i, fn := range e.after {
			e.after[i] = nil
			fn()
		}
		e.after = e.after[:0]
		e.next, j.free = j.free, e
	}
	j.g.settle()
}
