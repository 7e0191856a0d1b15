package segment

import (
	"bytes"
	"fmt"

	"kring/wire/batch"
)

// segmentCheck is one segment being verified.
type segmentCheck struct {
	*verifier
	base, bound Offset
	last        bool
	name        string
	w           walker
	index       offsetIndex
	times       timeIndex
	at, timeAt  int // entries that were compared
	pending     Offset
	maxMs       int64
	aborted     []AbortedTxn
	holes       []hole
	wrong       bool // an index is
	noTimes     bool // the time index is empty
}

// segment verifies segment number i: its batches first, and its indexes by them.
func (v *verifier) segment(i int) error {
	s := &segmentCheck{verifier: v, base: v.bases[i], bound: 1<<63 - 1, last: i+1 == len(v.bases), maxMs: noTimestamp, pending: -1}
	s.name = fileName(s.base, logSuffix)
	if n := len(v.snaps); !s.last {
		s.bound = v.bases[i+1]
	} else if v.o.Clean && n > 0 && v.snaps[n-1] == v.o.RecoveryPoint {
		s.bound = v.o.RecoveryPoint
	}
	f, err := v.d.open(v.dir + "/" + s.name)
	if err != nil {
		return err
	}
	defer f.close()
	s.w = walker{f: f, read: v.o.Progress}
	if err := s.loadIndexes(); err != nil {
		return err
	}
	v.next = max(v.next, s.base)
	if err := s.batches(); err != nil {
		return err
	}
	if s.at < s.index.len() || s.pending >= 0 {
		s.indexWrong(indexSuffix, s.at, "an entry points to no batch")
	}
	if there := s.have[fileName(s.base, timeSuffix)]; there && s.noTimes && s.maxMs >= 0 && (!s.last || s.o.Clean) {
		s.indexWrong(timeSuffix, 0, "it is empty")
	}
	if s.timeAt < s.times.len() {
		s.indexWrong(timeSuffix, s.timeAt, "an entry names no batch")
	}
	if err := s.transactions(); err != nil {
		return err
	}
	if len(s.holes) > 0 {
		v.health.damaged = append(v.health.damaged, damagedSegment{s.base, f.size, s.holes})
		v.rebuild(s.base)
	}
	if s.wrong {
		v.rebuild(s.base)
	}
	return nil
}

func (s *segmentCheck) indexWrong(suffix string, entry int, what string) {
	do := doRebuild
	if s.o.Running && !s.o.Clean && s.bound > s.o.RecoveryPoint && entry < 0 {
		s.note(fileName(s.base, suffix), "nothing: it is made at a roll or a stop", "not on disk while a broker runs")
		return
	}
	if !s.o.Clean && s.bound > s.o.RecoveryPoint {
		do = doNothing // a start reads this segment and makes its indexes anew; until a broker closes it they are in memory
	} else {
		s.wrong = true
	}
	pos := int64(-1)
	switch {
	case entry < 0: // the whole file
	case suffix == indexSuffix:
		pos = int64(entry * indexEntry)
	case suffix == timeSuffix:
		pos = int64(entry * timeEntry)
	}
	s.tell(fileName(s.base, suffix), pos, do, "%s", what)
}

// loadIndexes reads both indexes; what a broker that did not close them has left behind their last entry is zeros.
func (s *segmentCheck) loadIndexes() error {
	for _, suffix := range []string{indexSuffix, timeSuffix} {
		b, there, err := s.small(fileName(s.base, suffix))
		if err != nil && !unreadable(err) {
			return err
		} else if err != nil {
			s.indexWrong(suffix, 0, err.Error())
			continue
		}
		if !there {
			if s.w.f.size > 0 {
				s.indexWrong(suffix, -1, "it is missing")
			}
			continue
		}
		if suffix == indexSuffix {
			s.index = b[:len(b)/indexEntry*indexEntry]
			s.index = live(s.index, indexEntry, func(i int) int32 { r, _ := s.index.at(i); return r })
			if err := s.index.check(max(s.w.f.size, 1)); err != nil {
				s.indexWrong(suffix, 0, err.Error())
				s.index = nil
			}
			continue
		}
		s.times = b[:len(b)/timeEntry*timeEntry]
		s.times = live(s.times, timeEntry, func(i int) int32 { _, r := s.times.at(i); return r })
		if s.times.len() == 1 && isZero(s.times) {
			s.times = nil
		}
		s.noTimes = s.times.len() == 0
		if err := s.times.check(); err != nil {
			s.indexWrong(suffix, 0, err.Error())
			s.times = nil
		}
	}
	if s.index.len() == 1 && isZero(s.index) {
		s.index = nil
	}
	return nil
}

func isZero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(noBytes))
		if !bytes.Equal(b[:n], noBytes[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

var noBytes [4096]byte

// batches goes through the log.
func (s *segmentCheck) batches() error {
	before, beforeAt := s.next, int64(-1) // the batch at hand
	for pos := int64(0); pos < s.w.f.size; {
		b, why, err := s.w.batch(pos)
		if err != nil {
			return err
		}
		if why == "" {
			if o := header(b).base(); o < s.next && o >= before && beforeAt >= 0 {
				s.next = before // no checksum covers an offset: the one that does not fit is the one before
				if err := s.damage(beforeAt, pos, fmt.Sprintf("an offset which %d cannot follow", o)); err != nil {
					return err
				}
			}
			switch h := header(b); {
			case h.base() < s.next || h.last() < h.base():
				why = fmt.Sprintf("offsets from %d to %d after %d", h.base(), h.last(), s.next-1)
			case h.last() >= s.bound:
				why = fmt.Sprintf("offset %d is not below %d, where the segment ends", h.last(), s.bound)
			case h.last()-s.base > maxRelative:
				why = fmt.Sprintf("offset %d is too far from %d", h.last(), s.base)
			}
		}
		if why == "" {
			before, beforeAt = s.next, pos
			s.batch(b, pos)
			pos += int64(len(b))
			continue
		}
		to, err := s.w.resync(pos+1, s.next, s.bound)
		if err != nil {
			return err
		}
		if err := s.damage(pos, to, why); err != nil {
			return err
		}
		pos = to
	}
	return nil
}

// damage tells of bytes that are no batch.
func (s *segmentCheck) damage(pos, to int64, why string) error {
	zero, err := s.w.zeros(pos, to)
	if err != nil {
		return err
	}
	offsets, err := s.lost(to)
	if err != nil {
		return err
	}
	tail := to == s.w.f.size && s.last
	switch {
	case zero && to == s.w.f.size && to > maxRelative:
		s.tell(s.name, pos, "kring log repair cuts them off; the partition is not served until then",
			"%d zeros behind the last batch, and more than a segment may have", to-pos)
	case zero && to == s.w.f.size:
		s.tell(s.name, pos, doNothing, "%d zeros behind the last batch", to-pos)
	case tail && !s.o.Clean && s.next >= s.o.RecoveryPoint:
		s.tell(s.name, pos, doNothing, "%s; the last stop was not clean, and a start cuts a torn write off", why)
	case tail:
		s.tell(s.name, pos, doRepair, "%s; %d bytes up to the file's end, %s", why, to-pos, offsets)
	case !s.o.Clean && s.bound > s.o.RecoveryPoint:
		s.tell(s.name, pos, doBefore, "%s; %d bytes, %s", why, to-pos, offsets)
	default:
		s.tell(s.name, pos, doRepair, "%s; %d bytes, %s", why, to-pos, offsets)
	}
	s.holes = append(s.holes, hole{pos, to, zero && to == s.w.f.size})
	return nil
}

// lost says which offsets may be those of bytes that are no batch and end at a position.
func (s *segmentCheck) lost(to int64) (string, error) {
	end := s.bound - 1
	if to < s.w.f.size {
		b, err := s.w.bytes(to, batch.HeaderSize)
		if err != nil {
			return "", err
		}
		if len(b) == batch.HeaderSize {
			end = header(b).base() - 1
		}
	}
	switch {
	case end < s.next:
		return "of no record that the log lacks", nil
	case end == s.next:
		return fmt.Sprintf("of offset %d", end), nil
	case end-s.base > maxRelative: // nothing bounds it
		return fmt.Sprintf("of records from offset %d on", s.next), nil
	}
	return fmt.Sprintf("of records from offset %d to %d", s.next, end), nil
}

// batch holds the indexes, the leader epochs and the transactions against one batch.
func (s *segmentCheck) batch(b []byte, pos int64) {
	h := header(b)
	s.maxMs = max(s.maxMs, h.maxTime())
	for s.at < s.index.len() {
		r, p := s.index.at(s.at)
		if s.pending >= 0 || int64(p) > pos {
			break
		}
		if o := s.base + Offset(r); int64(p) < pos || o < h.last() {
			s.indexWrong(indexSuffix, s.at, fmt.Sprintf("entry of offset %d points to position %d; the batch there ends at %d", o, p, h.last()))
			s.index = nil
		} else {
			s.pending = o // Kafka names the last batch of those that came together
		}
		s.at++
	}
	if s.pending >= 0 && h.last() >= s.pending {
		if h.last() > s.pending {
			s.indexWrong(indexSuffix, s.at-1, fmt.Sprintf("entry of offset %d, at which no batch ends", s.pending))
			s.index = nil
		}
		s.pending = -1
	}
	for s.timeAt < s.times.len() {
		ms, r := s.times.at(s.timeAt)
		o := s.base + Offset(r)
		if o > h.last() {
			break
		}
		if o < h.base() && o != s.base || ms != s.maxMs {
			s.indexWrong(timeSuffix, s.timeAt, fmt.Sprintf("entry of time %d at offset %d; the largest time up to there is %d", ms, o, s.maxMs))
			s.times = nil
			break
		}
		s.timeAt++
	}
	if e := h.leaderEpoch(); e >= 0 {
		s.falls, s.epoch = s.falls || e < s.epoch, e
		if at := s.epochs.at(h.base()); s.known && e != at && h.base() >= s.health.Start && s.stranger.file == "" {
			s.stranger = epochMismatch{s.name, pos, h.base(), e, at}
		}
	}
	if h.hasProducer() {
		if a, ok := s.prods.apply(b); ok {
			s.aborted = append(s.aborted, a)
		}
	}
	s.next = h.last() + 1
}

// transactions holds the transaction index against the markers: whoever reads committed records only must be told of every aborted one.
func (s *segmentCheck) transactions() error {
	name := fileName(s.base, txnSuffix)
	b, there, err := s.small(name)
	x := txnIndex(b)
	if err == nil {
		err = x.check(s.base)
	}
	if err != nil && !unreadable(err) {
		return err
	} else if err != nil {
		s.indexWrong(txnSuffix, 0, err.Error())
		return nil
	}
	for _, a := range s.aborted {
		found := false
		for i := range x.len() {
			e := x.at(i)
			found = found || e.ProducerID == a.ProducerID && e.Last == a.Last && e.First <= a.First
		}
		if !found && (there || !s.last || s.o.Clean) {
			s.indexWrong(txnSuffix, 0, fmt.Sprintf("the aborted transaction of producer %d from %d to %d is missing", a.ProducerID, a.First, a.Last))
			return nil
		}
	}
	return nil
}
