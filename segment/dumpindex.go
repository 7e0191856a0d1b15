package segment

import (
	"fmt"
	"slices"
	"strings"
)

// beside opens the file of the same segment with another suffix; nil if there is none.
func (d *dumper) beside(f *dumpFile, from, to string) *dumpFile {
	g, err := d.open(strings.TrimSuffix(f.name, from) + to)
	if err != nil {
		return nil
	}
	return g
}

// index prints an offset index and compares each entry with the batch it points to.
func (d *dumper) index(f *dumpFile, base Offset) error {
	b, err := f.all()
	if err != nil {
		return err
	}
	x := offsetIndex(b[:len(b)/indexEntry*indexEntry])
	if x.len() == 0 {
		fmt.Fprintf(d.w, "%s is empty.\n", f.name)
		return nil
	}
	if d.o.IndexSanity {
		used := offsetIndex(live(x, indexEntry, func(i int) int32 { r, _ := x.at(i); return r }))
		return d.sanity(f, len(b)%indexEntry == 0 && used.check(1<<40) == nil)
	}
	log := d.beside(f, indexSuffix, logSuffix)
	if log != nil {
		defer log.close()
	} else {
		d.say("%s has no log file beside it; nothing was compared", f.name)
	}
	var wrong []string
	for i := range x.len() {
		r, p := x.at(i)
		if r == 0 && i > 0 {
			break // the rest of a file that was never cut to its size
		}
		if log != nil {
			h, err := log.header(int64(p))
			if err != nil {
				return err
			}
			found := Offset(-1)
			if h != nil {
				found = h.last()
			}
			if o := base + Offset(r); found != o {
				wrong = append(wrong, fmt.Sprintf("  Index offset: %d, log offset: %d", o, found))
			}
		}
		if !d.o.VerifyIndexOnly {
			fmt.Fprintf(d.w, "offset: %d position: %d\n", base+Offset(r), p)
		}
	}
	slices.Reverse(wrong) // Kafka's tool tells the last one first
	d.tell(indexMismatch, "Mismatches in :"+f.name, wrong)
	return nil
}

// live cuts off the zero entries of a file that was never cut to its size.
func live(b []byte, width int, relative func(int) int32) []byte {
	n := 0
	for n*width < len(b) && (n == 0 || relative(n) != 0) {
		n++
	}
	return b[:n*width]
}

func (d *dumper) sanity(f *dumpFile, ok bool) error {
	if !ok {
		return fmt.Errorf("%w: it does not pass the sanity check", ErrMalformed)
	}
	fmt.Fprintf(d.w, "%s passed sanity check.\n", f.name)
	return nil
}

// times prints a time index and compares each entry with the batch it names.
func (d *dumper) times(f *dumpFile, base Offset) error {
	b, err := f.all()
	if err != nil {
		return err
	}
	x := timeIndex(b[:len(b)/timeEntry*timeEntry])
	if d.o.IndexSanity {
		used := timeIndex(live(x, timeEntry, func(i int) int32 { _, r := x.at(i); return r }))
		return d.sanity(f, len(b)%timeEntry == 0 && used.check() == nil)
	}
	log := d.beside(f, timeSuffix, logSuffix)
	if log != nil {
		defer log.close()
	} else {
		d.say("%s has no log file beside it; nothing was compared", f.name)
	}
	index := offsetIndex(nil)
	if g := d.beside(f, timeSuffix, indexSuffix); g != nil {
		index, err = g.all()
		g.close()
		if err != nil {
			return err
		}
		index = live(index[:len(index)/indexEntry*indexEntry], indexEntry, func(i int) int32 { r, _ := index.at(i); return r })
	}
	before := int64(noTimestamp)
	var wrong [dumpKinds][]string
	for i := range x.len() {
		ms, r := x.at(i)
		if r == 0 && i > 0 {
			break
		}
		o := base + Offset(r)
		if log != nil {
			if err := compareTime(&wrong, log, index.find(int64(r)), o, ms, before); err != nil {
				return err
			}
		}
		if !d.o.VerifyIndexOnly {
			fmt.Fprintf(d.w, "timestamp: %d offset: %d\n", ms, o)
		}
		before = ms
	}
	d.tell(timeMismatch, "Found timestamp mismatch in :"+f.name, wrong[timeMismatch])
	d.tell(timeOrder, "Found out of order timestamp in :"+f.name, wrong[timeOrder])
	d.tell(timeWithoutBatch, "The following indexed offsets are not found in the log.", wrong[timeWithoutBatch])
	return nil
}

// compareTime looks for the batch that ends at o, from a position on, and compares its largest timestamp.
func compareTime(wrong *[dumpKinds][]string, log *dumpFile, pos int64, o Offset, ms, before int64) error {
	tell := func(kind int, format string, args ...any) {
		wrong[kind] = append(wrong[kind], fmt.Sprintf(format, args...))
	}
	for {
		h, err := log.header(pos)
		switch {
		case err != nil:
			return err
		case h == nil:
			tell(timeWithoutBatch, "Indexed offset: %d, found log offset: -1", o)
			return nil
		case h.last() < o:
			pos += h.size()
			continue
		case h.last() > o:
			tell(timeWithoutBatch, "Indexed offset: %d, found log offset: %d", o, h.last())
			return nil
		}
		if h.maxTime() != ms {
			tell(timeMismatch, "  Index timestamp: %d, log timestamp: %d", ms, h.maxTime())
		}
		if before >= ms {
			tell(timeOrder, "  Index timestamp: %d, Previously indexed timestamp: %d", ms, before)
		}
		return nil
	}
}

func (d *dumper) txns(f *dumpFile, base Offset) error {
	b, err := f.all()
	if err != nil {
		return err
	}
	x := txnIndex(b)
	if err := x.check(base); err != nil {
		return err
	}
	for i := range x.len() {
		a := x.at(i)
		fmt.Fprintf(d.w, "version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n",
			a.ProducerID, a.First, a.Last, a.LastStable)
	}
	return nil
}

func (d *dumper) snapshot(f *dumpFile) error {
	b, err := f.all()
	if err != nil {
		return err
	}
	err = decodeSnapshot(b, func(p *producer) {
		txn := "OptionalLong.empty"
		if p.txnFirst >= 0 {
			txn = fmt.Sprintf("OptionalLong[%d]", p.txnFirst)
		}
		fmt.Fprintf(d.w, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d ",
			p.id, p.epoch, p.coordinatorEpoch, txn, p.timestamp)
		if p.n > 0 {
			last := p.batches[p.n-1]
			fmt.Fprintf(d.w, "firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				last.firstSeq(), last.lastSeq, last.last, last.delta, last.timestamp)
		}
		fmt.Fprintln(d.w)
	})
	if err != nil {
		d.say("%s: %v", f.name, err)
	}
	return nil
}
