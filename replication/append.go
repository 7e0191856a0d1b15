package replication

import (
	"time"

	"kring/ring"
	"kring/segment"
)

// AcksAll asks for every in-sync replica.
const AcksAll int16 = -1

// Append is one batch to be appended and its answer. The caller owns it, sets Begin and Done once and may reuse it from Done on.
type Append struct {
	// Begin is called by Partition.Enter when it is this append's turn: to check the batch and go on with Append or Refuse.
	Begin func(*Append)
	// Done is called once after Append: the fields below are set.
	Done func(*Append)

	// Data is exactly one checked batch; base offset and leader epoch are stamped into it. It must stay until Done.
	Data []byte
	// Acks is 0, 1 or AcksAll; Timeout bounds the wait for replicas.
	Acks    int16
	Timeout time.Duration
	// Origin says who appends; zero is a client.
	Origin segment.Origin

	// Err is why it failed, nil if it did not.
	Err error
	// Base and Last are the batch's offsets; a duplicate's are those of the first time.
	Base, Last Offset
	// Duplicate says that the producer's batch was in the log already; Timestamp is then the largest of the first time (ms).
	Duplicate bool
	Timestamp int64

	p          *Partition
	log        segment.Append
	timer      ring.Timer
	deadline   time.Duration
	next, prev *Append // in line, flying or acking
	counted    bool
}

// Enter begins a's turn: at once, or after the appends whose batches are still being checked. Appends of one producer must
// not overtake each other.
func (p *Partition) Enter(a *Append) {
	a.p = p
	if p.held != nil {
		p.line.push(a)
		return
	}
	a.Begin(a)
}

// Hold says that a, which has begun, is being checked elsewhere: nobody begins until Resume.
func (p *Partition) Hold(a *Append) { p.held = a }

// Resume lets the line go on; the one that was held has gone on before, with Append, or was refused.
func (p *Partition) Resume() {
	p.held = nil
	for p.held == nil && p.line.first != nil {
		next := p.line.first
		p.line.remove(next)
		next.Begin(next)
	}
}

// Admit says whether an append with these acks may be tried at all: what Kafka finds before it looks at the batch.
func (p *Partition) Admit(acks int16) error {
	if err := p.serves(); err != nil {
		return err
	}
	if acks == AcksAll && !p.l.enough() {
		return ErrNotEnoughReplicas
	}
	return nil
}

// Append appends a's batch, which Admit has let in in this same turn. Done may be called before Append returns if the log
// refuses the batch.
func (p *Partition) Append(a *Append) {
	a.p, a.Err, a.Duplicate, a.counted = p, nil, false, false
	a.deadline = p.host.loop.Now() + a.Timeout
	if a.log.Done == nil {
		a.log.Done = func(*segment.Append) { a.written() }
		a.timer.Fire = func(*ring.Timer) { a.late() }
	}
	l := &a.log
	l.Data, l.LeaderEpoch, l.Origin, l.Err, l.Duplicate = a.Data, p.state.LeaderEpoch, a.Origin, nil, false
	p.log.Append(l)
	if l.Err != nil {
		a.finish(l.Err)
		return
	}
	a.Base, a.Last, a.Duplicate, a.Timestamp = l.Base, l.Last, l.Duplicate, l.Timestamp
	p.flying.push(a)
}

// written is the log's answer to an append it took.
func (a *Append) written() {
	p := a.p
	p.flying.remove(a)
	if a.log.Err != nil {
		a.finish(a.log.Err)
		return
	}
	p.count(a)
	p.l.wrote(p.holds())
	if p.leads {
		p.moved = p.l.advance() || p.moved
	}
	a.replicate()
	if p.durable && p.moved { // else the log tells of what is written when all are answered
		p.advance()
	}
}

// count adds a's bytes to those that have come, once.
func (p *Partition) count(a *Append) {
	if !a.counted && !a.Duplicate {
		p.bytes += int64(len(a.Data))
	}
	a.counted = true
}

// replicate answers a, or makes it wait for the high watermark. A duplicate whose original is not yet written waits too.
func (a *Append) replicate() {
	p := a.p
	switch {
	case a.Acks != AcksAll && a.Last < p.l.end:
		a.finish(nil)
	case !p.leads:
		a.finish(ErrNotLeader)
	case a.Last < p.l.hw:
		a.finish(p.replicated())
	default:
		p.acking.insert(a)
		p.host.loop.After(max(a.deadline-p.host.loop.Now(), 0), &a.timer)
	}
}

// late is the timer of an append that waits for the high watermark.
func (a *Append) late() {
	a.p.acking.remove(a)
	a.finish(ErrTimedOut)
}

func (a *Append) finish(err error) {
	a.Err = err
	a.Done(a)
}

// replicated is the answer of an append whose last offset is below the high watermark.
func (p *Partition) replicated() error {
	if !p.l.enough() {
		return ErrNotEnoughReplicasAfterAppend
	}
	return nil
}

// acknowledge answers the appends that the high watermark has passed.
func (p *Partition) acknowledge() {
	for a := p.acking.first; a != nil && a.Last < p.l.hw; a = p.acking.first {
		p.acking.remove(a)
		p.host.loop.Cancel(&a.timer)
		a.finish(p.replicated())
	}
}

// appendList is an intrusive list of appends.
type appendList struct{ first, last *Append }

func (l *appendList) push(a *Append) { l.after(l.last, a) }

// insert puts a behind the last one with no greater offset: nearly always at the end.
func (l *appendList) insert(a *Append) {
	at := l.last
	for at != nil && at.Last > a.Last {
		at = at.prev
	}
	l.after(at, a)
}

func (l *appendList) after(at, a *Append) {
	a.prev = at
	if at == nil {
		a.next, l.first = l.first, a
	} else {
		a.next, at.next = at.next, a
	}
	if a.next == nil {
		l.last = a
	} else {
		a.next.prev = a
	}
}

func (l *appendList) remove(a *Append) {
	if a.prev == nil {
		l.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		l.last = a.prev
	} else {
		a.next.prev = a.prev
	}
	a.next, a.prev = nil, nil
}
