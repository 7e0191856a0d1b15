package replication

import "fmt"

// Verify is check for the simulator and other tests.
func (p *Partition) Verify() error { return p.check() }

// bounds is the cheapest part of check, made after every advance: a high watermark above what is written would serve what
// is not there.
func (p *Partition) bounds() {
	if written := p.log.Written(); p.l.hw > written || p.log.Start() > p.l.hw {
		panic(fmt.Sprintf("replication: %s-%d: start %d, high watermark %d, written %d", p.Topic, p.Index, p.log.Start(), p.l.hw, written))
	}
}

// check holds the truths of a partition:
//
//  1. logStart <= highWatermark <= written <= end
//  2. lastStable <= highWatermark
//  3. an append that waits has its last offset at or above the high watermark, and they wait in order of offsets
//  4. nobody waits for replicas where nobody leads
//  5. every reader's place belongs to a wait that is parked
//  6. nobody stands in line unless a batch is being checked
func (p *Partition) check() error {
	start, written, end := p.log.Start(), p.log.Written(), p.log.End()
	hw := p.l.hw
	if p.leads && (start > hw || hw > written || written > end) {
		return fmt.Errorf("replication: %s-%d: start %d, high watermark %d, written %d, end %d", p.Topic, p.Index, start, hw, written, end)
	}
	if p.LastStable() > hw {
		return fmt.Errorf("replication: %s-%d: last stable offset %d above the high watermark %d", p.Topic, p.Index, p.LastStable(), hw)
	}
	last := hw
	for a := p.acking.first; a != nil; a = a.next {
		if a.Last < last {
			return fmt.Errorf("replication: %s-%d: an append up to %d waits behind %d", p.Topic, p.Index, a.Last, last)
		}
		last = a.Last
	}
	if !p.leads && p.acking.first != nil {
		return fmt.Errorf("replication: %s-%d: an append waits without a leader", p.Topic, p.Index)
	}
	for r := p.readers.first; r != nil; r = r.next {
		if !r.wait.parked || r.Partition != p {
			return fmt.Errorf("replication: %s-%d: a reader's place without a parked wait", p.Topic, p.Index)
		}
	}
	if p.held == nil && p.line.first != nil {
		return fmt.Errorf("replication: %s-%d: an append stands in line for nobody", p.Topic, p.Index)
	}
	return nil
}
