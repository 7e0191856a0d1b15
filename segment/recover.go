package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"kring/ring"
)

// recoverSegments finds the end of the log. After an unclean stop every segment from the recovery point on is read, checked and
// indexed anew; the first batch that is not whole ends the log. After a clean stop only the last segment's tail is looked
// at, and what is wrong there is damage, of which nothing is cut off (damage.go). It says whether the log was changed beyond what a
// clean stop promises.
func (l *Log) recoverSegments(t *ring.Task, f *found, o Options, epochsLost bool) (changed bool, err error) {
	if len(l.segs) == 0 {
		return l.beginAtStop(&recovery{log: l, t: t, options: &o, found: f})
	}
	from := len(l.segs)
	if !o.Clean {
		from = l.floor(o.RecoveryPoint)
	}
	if o.rebuild != nil {
		from = min(from, l.floor(*o.rebuild))
	}
	if epochsLost {
		if err := l.scanEpochs(t, from); err != nil {
			return false, err
		}
	}
	for i := range min(from, len(l.segs)) {
		if l.segs[i].txnDirty {
			from = i // its aborted transactions are found by reading
			break
		}
	}
	r := recovery{log: l, t: t, options: &o, found: f, trusted: len(l.segs)}
	if !o.Clean {
		r.trusted = l.floor(o.RecoveryPoint)
	}
	if from == len(l.segs) {
		ok, err := l.trustLast(t)
		if stop := r.stopEnd(); err != nil || ok && (stop < 0 || l.active().next == stop) {
			return false, err
		}
		from--
	}
	if x := o.recovering; x != nil {
		x.take(t)
		defer x.give()
	}
	if l.prods, err = l.producersUpTo(t, f.snapshots, l.segs[from].base); err != nil {
		return false, err
	}
	if r.progress = o.Progress; r.progress == nil {
		r.progress = &Progress{}
	}
	left := len(l.segs) - from
	r.progress.Left += left
	defer func() { r.progress.Left -= left }() // those that are no part of the log any more, or an error kept from being read
	for i := from; i < len(l.segs); i++ {
		if r.progress.GivenUp {
			return false, ErrGivenUp
		}
		if err := r.one(i); err != nil {
			return false, err
		}
		left--
		r.progress.Left--
		r.progress.Segments++
	}
	return true, nil
}

// trustLast loads the last segment as a clean stop left it; false if it is not like that after all.
func (l *Log) trustLast(t *ring.Task) (bool, error) {
	s := l.active()
	if !s.index.saved {
		l.warn("the last segment has no index; reading it", "segment", s.base)
		return false, nil
	}
	if s.size == 0 {
		s.maxKnown = true
		s.index.set(nil)
		s.times.set(nil)
		return true, nil
	}
	if s.times.len() == 0 {
		l.warn("the last segment has no time index; reading it", "segment", s.base)
		return false, nil
	}
	err := l.loadLast(t, s)
	if err != nil && unreadable(err) || errors.Is(err, fs.ErrNotExist) {
		l.warn("the last segment is not as a clean stop leaves it; reading it", "segment", s.base, "cause", err)
		return false, nil
	}
	return err == nil, err
}

func (l *Log) loadLast(t *ring.Task, s *segment) error {
	index, err := s.readIndex(t, indexSuffix, &s.index)
	if err == nil {
		err = offsetIndex(index).check(s.size)
	}
	if err != nil {
		return err
	}
	times, err := s.readIndex(t, timeSuffix, &s.times)
	if err == nil {
		err = timeIndex(times).check()
	}
	if err != nil {
		return err
	}
	ms, relative := timeIndex(times).last()
	s.maxMs, s.maxLast, s.lastMs, s.maxKnown = ms, s.base+Offset(relative), ms, true
	if err := s.open(t); err != nil {
		return err
	}
	s.pin()
	defer s.unpin()
	sc := newScan(t, s.file, 0, s.size, scanSmall)
	defer sc.release()
	h, err := sc.peek()
	if err != nil {
		return err
	}
	s.firstMs = h.maxTime()
	sc.pos = offsetIndex(index).find(maxRelative)
	for {
		h, err := sc.peek()
		if err != nil {
			return err
		}
		if h == nil {
			if err := offsetIndex(index).within(int64(s.next - s.base)); err != nil {
				return err
			}
			return timeIndex(times).within(int64(s.next - s.base))
		}
		if h.last() < s.next-1 || h.last()-s.base > maxRelative {
			return &bad{sc.pos, fmt.Sprintf("offsets end at %d after %d", h.last(), s.next-1)}
		}
		if h.maxTime() > s.maxMs { // a clean stop ends the time index with the largest
			return &bad{sc.pos, fmt.Sprintf("time %d is later than all of the time index", h.maxTime())}
		}
		s.next = h.last() + 1
		sc.skip(h)
	}
}

// gaps says whether s may lack offsets at its end: it was cleaned, or may have been.
func (l *Log) gaps(s *segment) bool { return l.conf.Compact || s.base < l.cleaned }

// recoverBatch takes over what a recovered batch says of leader epochs, producers and transactions; whole is enough of it for a marker.
func (l *Log) recoverBatch(s *segment, h header, whole []byte) {
	if e := h.leaderEpoch(); e >= 0 && e > l.epochs.latest() {
		l.epochsNew = l.epochs.assign(e, h.base()) || l.epochsNew
	}
	if h.hasProducer() {
		l.applyProducer(s, whole)
	}
}

// scanEpochs reads the headers of the segments before number to, for their leader epochs.
func (l *Log) scanEpochs(t *ring.Task, to int) error {
	if to == 0 {
		return nil // all are recovered, and read for that
	}
	end := l.segs[to-1].next
	if to == len(l.segs) {
		end = 1<<63 - 1 // where the last one ends is not known yet
	}
	return l.replay(t, l.segs[0].base, end, scanLarge, func(sc *scan, s *segment, h header) error {
		if e := h.leaderEpoch(); e >= 0 && e > l.epochs.latest() {
			l.epochsNew = l.epochs.assign(e, h.base()) || l.epochsNew
		}
		return nil
	})
}

// replay calls fn with each batch from offset from up to offset to that can be read: the rest of a damaged segment is left out, and
// told of.
func (l *Log) replay(t *ring.Task, from, to Offset, size int, fn func(*scan, *segment, header) error) error {
	for i := l.floor(from); from < to && i < len(l.segs) && l.segs[i].base < to; i++ {
		err := l.replaySegment(t, l.segs[i], from, to, size, fn)
		if l.noted(l.segs[i], err) != nil && !errors.Is(err, ErrMalformed) {
			return err
		}
	}
	return nil
}

func (l *Log) replaySegment(t *ring.Task, s *segment, from, to Offset, size int, fn func(*scan, *segment, header) error) error {
	if s.written == 0 {
		return nil
	}
	at := int64(0)
	if from > s.base {
		if err := l.loadIndex(t, s, s.relative(from)); err != nil {
			return err
		}
		at = offsetIndex(s.index.mem).find(int64(from - s.base))
	}
	if err := s.open(t); err != nil {
		return err
	}
	s.pin()
	defer s.unpin()
	if err := l.knowEnd(t, s); err != nil {
		return err
	}
	sc := newScan(t, s.file, at, s.written, size)
	defer sc.release()
	for {
		h, err := sc.peek()
		if err != nil {
			return fmt.Errorf("%s: %w", s.path(logSuffix), err)
		}
		if h == nil || h.base() >= to {
			return nil
		}
		if h.base() >= from {
			if err := fn(sc, s, h); err != nil {
				return err
			}
		}
		sc.skip(h)
	}
}

// producersUpTo makes the producer state as of offset to: from the newest good snapshot that is not above it, and the batches
// from there on.
func (l *Log) producersUpTo(t *ring.Task, snapshots []Offset, to Offset) (ps producers, err error) {
	ps.end = l.segs[0].base
	for _, o := range slices.Backward(snapshots) {
		if o > to {
			continue
		}
		b, err := t.ReadFile(l.dir+"/"+fileName(o, snapshotSuffix), snapshotMax)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = ps.load(b, o, l.loop.UnixMilli(), l.conf.ProducerExpireMs)
		}
		if err == nil {
			break
		} else if !unreadable(err) {
			return ps, err
		}
		l.warn("removing a producer snapshot that cannot be read", "snapshot", o, "cause", err)
		if err := t.Remove(l.dir + "/" + fileName(o, snapshotSuffix)); err != nil {
			return ps, err
		}
	}
	if ps.end < l.segs[0].base {
		ps = producers{end: l.segs[0].base}
	}
	if err := l.widen(t, &ps); err != nil {
		return ps, err
	}
	err = l.replay(t, ps.end, to, scanLarge, func(sc *scan, s *segment, h header) error {
		if !h.hasProducer() {
			return nil
		}
		whole := []byte(h)
		if h.v2().Control() {
			b, err := sc.control(h)
			if err != nil {
				return err
			}
			whole = b
		}
		ps.apply(whole)
		return nil
	})
	ps.end = to
	return ps, err
}

// loadProducers brings the producer state to the end of the log and removes snapshots nobody will need: those above the end, and
// those that belong to no segment or stand for what was deleted, but for the newest if there are producers.
func (l *Log) loadProducers(t *ring.Task, snapshots []Offset) (err error) {
	if l.prods.end != l.end {
		usable := slices.DeleteFunc(slices.Clone(snapshots), func(o Offset) bool { return o > l.end })
		if l.prods, err = l.producersUpTo(t, usable, l.end); err != nil {
			return err
		}
	}
	newest := Offset(-1)
	for _, o := range snapshots {
		if o <= l.end {
			newest = max(newest, o)
		}
	}
	if newest <= l.start && len(l.prods.byID) == 0 {
		newest = -1
		l.prods.saved = max(l.prods.saved, l.start) // there is nothing to save
	}
	for _, o := range snapshots {
		if o > l.end || o != newest && (o <= l.start || l.segs[l.floor(o)].base != o) {
			if err := t.Remove(l.dir + "/" + fileName(o, snapshotSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
