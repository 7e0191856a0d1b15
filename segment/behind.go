package segment

import (
	"bytes"
	"errors"

	"kring/wire/batch"
)

// A crash tears what was being written: it seldom leaves whole batches behind the tear. Where there are some, what is taken for a torn
// write may be damage to records that were acknowledged, and so what is cut off is kept.

// behindMost is how many bytes behind the end of a log are searched for a first whole batch, those of checksums included: more than
// damage to one batch takes, and a fraction of a second.
const behindMost = 64 << 20

// behind is what was found behind the first batch that is not whole.
type behind struct {
	batches     int
	first, last Offset
	// unknown: the search was given up before the file's end, among bytes that are not zeros.
	unknown bool
}

// lookBehind looks for whole batches of s behind its end. Nothing but zeros, or a torn batch, is told after a short look; all is read only
// if there is a whole batch, and so all will be copied.
func (r *recovery) lookBehind(s *segment, end int64) (behind, error) {
	b := behind{first: -1, last: -1}
	near := newScan(r.t, s.file, end, min(s.size, end+behindMost), scanLarge)
	zero, err := near.zeros()
	near.release()
	if zero || err != nil {
		return b, err
	}
	sc := newScan(r.t, s.file, end, s.size, scanLarge) // the batch there may be whole, and its offset wrong
	defer sc.release()
	for left := int64(behindMost); ; left = behindMost {
		h, err := sc.resync(s.base, &left)
		if err != nil {
			return b, err
		}
		if h == nil {
			b.unknown = left <= 0
			return b, nil
		}
		if b.batches++; b.first < 0 {
			b.first = h.base()
		}
		b.last = max(b.last, h.last())
		sc.skip(h)
	}
}

// resync goes on to the next whole batch that may belong to the segment at base; nil if there is none before the end, or before as
// many bytes were looked at as are left.
func (sc *scan) resync(base Offset, left *int64) (header, error) {
	const magicAt = 16
	for sc.pos+batch.HeaderSize <= sc.end && *left > 0 {
		if _, err := sc.bytes(sc.pos, batch.HeaderSize); err != nil {
			return nil, err
		}
		b := sc.mem[sc.pos-sc.from:]
		if len(b) < batch.HeaderSize { // it became shorter
			return nil, nil
		}
		step := bytes.IndexByte(b[magicAt:], 2)
		if step < 0 {
			step = len(b) - magicAt
			sc.pos, *left = sc.pos+int64(step), *left-int64(step)
			continue
		}
		sc.pos, *left = sc.pos+int64(step), *left-int64(step)
		h, err := sc.peek()
		if h != nil && h.isV2() && h.base() >= base && h.last()-base <= maxRelative {
			*left -= h.size()
			err = sc.verify(h)
			if err == nil {
				return h, nil
			}
		}
		if err != nil && !errors.Is(err, ErrMalformed) {
			return nil, err
		}
		sc.pos, *left = sc.pos+1, *left-1
	}
	return nil, nil
}

// cutBehind cuts the last segment, or one in front of a gap, off at its end: what was damaged, or may hold records, is kept beside it.
func (r *recovery) cutBehind(s *segment, end int64, damage *bad, keep bool) error {
	l := r.log
	b, err := r.lookBehind(s, end)
	if err != nil {
		return err
	}
	if b.batches == 0 {
		l.warn("cutting a segment off behind its last whole batch", "segment", s.base, "cut", s.size-end, "cause", damage)
		_, err = r.cut(s, end, keep || b.unknown)
		return err
	}
	from, size := min(s.next, b.first), s.size-end
	name, err := r.cut(s, end, true)
	if err != nil {
		return err
	}
	l.warn("damage above the recovery point: the log ends there, whole batches behind it are cut off and kept in another file",
		"segment", s.base, "position", end, "cut", size, "cause", damage, "from", from, "to", b.last, "batches", b.batches, "kept", name)
	return nil
}
