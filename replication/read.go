package replication

import "kring/segment"

// Isolation says how far a reader may see.
type Isolation uint8

// The isolations of a fetch.
const (
	// ReadUncommitted sees up to the high watermark.
	ReadUncommitted Isolation = iota
	// ReadCommitted sees up to the last stable offset.
	ReadCommitted
	// ReadReplica sees everything: a follower's fetch.
	ReadReplica
)

// Limit is the offset below which a reader may see.
func (p *Partition) Limit(i Isolation) Offset {
	switch i {
	case ReadReplica:
		return p.log.Written()
	case ReadCommitted:
		return p.LastStable()
	default:
		return p.l.hw
	}
}

// Read finds the bytes from offset from on: at most maxBytes, but with firstWhole at least one whole batch. r is left empty
// where there is nothing to see yet. An answer may begin before from (with the batch that holds it) and end inside a batch.
// It returns true if r holds the answer; else r.Done is called later.
func (p *Partition) Read(from Offset, i Isolation, maxBytes int, firstWhole bool, r *segment.Range) bool {
	r.File, r.Len, r.More, r.Err = nil, 0, false, nil
	if from < p.log.Start() || from > p.log.End() {
		r.Err = ErrOutOfRange
		return true
	}
	limit := p.Limit(i)
	if from >= limit || maxBytes <= 0 && !firstWhole {
		return true
	}
	return p.log.Read(from, limit, maxBytes, firstWhole, r)
}

// Aborted appends to dst the aborted transactions that a reader of r, from first on and of what is stable, must know.
func (p *Partition) Aborted(dst []segment.AbortedTxn, first Offset, r *segment.Range) []segment.AbortedTxn {
	return p.log.AbortedIn(dst, first, p.LastStable(), r)
}

// DeleteTo raises the log start to offset, -1 for the high watermark. It answers with the log start.
func (p *Partition) DeleteTo(offset Offset) (Offset, error) {
	if err := p.serves(); err != nil {
		return -1, err
	}
	if offset == -1 {
		offset = p.l.hw
	}
	if offset < 0 || offset > p.l.hw {
		return -1, ErrOutOfRange
	}
	if offset > p.log.Start() {
		if err := p.log.DeleteTo(offset); err != nil {
			return -1, err
		}
		p.wake()
	}
	return p.log.Start(), nil
}

// tell counts the bytes that have come to those who wait for them, where what they may see has grown. With followers the
// bytes below the high watermark are not known: then readers look themselves.
func (p *Partition) tell() {
	n := max(p.bytes-p.told, 1)
	p.told = p.bytes
	stable := p.LastStable()
	grown := stable > p.stable
	p.stable = max(stable, p.stable)
	for r := p.readers.first; r != nil; r = r.next {
		switch {
		case r.Stable && !grown:
		case len(p.l.followers) > 0:
			r.wait.now()
		default:
			r.wait.more(n)
		}
	}
}

// Waiting is the number of readers that wait here.
func (p *Partition) Waiting() (n int) {
	for r := p.readers.first; r != nil; r = r.next {
		n++
	}
	return n
}
