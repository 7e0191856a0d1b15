package segment

import (
	"fmt"

	"kring/ring"
)

// index puts the keys from d.From up to d.To into the map, as far as they go, and returns where that is.
func (k *cleaning) index(d Dirt) (Offset, error) {
	l := k.l
	k.c.txns.expect(l.Aborted(nil, d.From, d.To))
	var work []*segment
	for i := l.floor(d.From); i < len(l.segs) && l.segs[i].base < d.To; i++ {
		work = append(work, l.segs[i])
	}
	for i, s := range work {
		next := d.To
		if i+1 < len(work) {
			next = work[i+1].base
		}
		full, err := k.indexSegment(s, d.From)
		if err != nil || full {
			return k.c.keys.latest + 1, err
		}
		k.c.keys.latest = next - 1 // over a gap at its end
	}
	return k.c.keys.latest + 1, nil
}

// indexSegment puts the keys of one segment into the map; full says that there was no room for all.
func (k *cleaning) indexSegment(s *segment, from Offset) (full bool, err error) {
	s.pin()
	defer s.unpin()
	defer abandonIf(&s.gone, &err)
	pos := int64(0)
	if from > s.base {
		if err := k.l.loadIndex(k.t, s, s.relative(from)); err != nil {
			return false, err
		}
		pos = offsetIndex(s.index.mem).find(int64(from - s.base))
	}
	if err := s.open(k.t); err != nil {
		return false, err
	}
	if err := k.l.knowEnd(k.t, s); err != nil {
		return false, err
	}
	k.read.begin(s, pos)
	full, err = k.indexBatches()
	k.read.end()
	if err != nil {
		return false, k.damage(s, err)
	}
	return full, k.stopped()
}

// abandonIf turns an error of a segment that is no part of the log any more into what it means: its files may be away.
func abandonIf(gone *bool, err *error) {
	if *err != nil && *gone {
		*err = ErrAbandoned
	}
}

// indexBatches puts what is read into the map, getting memory for it when it asks for some.
func (k *cleaning) indexBatches() (full bool, err error) {
	for k.read.more() && !full {
		k.read.start(func(b []byte) (n int, more bool) {
			k.c.keys.grow()
			n, full, err = k.c.index(b)
			return n, err == nil && !full && k.c.keys.short == nil
		})
		read := k.read.wait()
		k.c.keys.supply(k.l.loop)
		switch {
		case read != nil:
			return false, read
		case err != nil:
			return false, &bad{k.read.pos, err.Error()}
		}
	}
	return full, nil
}

// damage names the file that an error is about, unless the cleaning has to end anyway.
func (k *cleaning) damage(s *segment, err error) error {
	if stopped := k.stopped(); stopped != nil {
		return stopped
	}
	return fmt.Errorf("%s: %w", s.path(logSuffix), err)
}

// cleanGroups divides segments into groups that together make one segment at most. Below to everything may be cleaned.
func (l *Log) cleanGroups(segs []*segment, to Offset) [][]*segment {
	var groups [][]*segment
	for i := 0; i < len(segs); {
		first := segs[i]
		size, index, times := first.size, first.index.bytes(), first.times.bytes()
		n := 1
		for ; i+n < len(segs); n++ {
			s := segs[i+n]
			last := to - 1
			if i+n+1 < len(segs) {
				last = segs[i+n+1].base - 1
			}
			size, index, times = size+s.size, index+s.index.bytes(), times+s.times.bytes()
			if size > l.conf.SegmentBytes || index > l.conf.IndexMaxBytes || times > l.conf.IndexMaxBytes ||
				s.size > 0 && last-first.base > maxRelative {
				break
			}
		}
		groups = append(groups, segs[i:i+n])
		i += n
	}
	return groups
}

func (x *indexFile) bytes() int64 { return int64(x.len() * x.width) }

// group makes one segment of a group and has it put in their place. Until then its files end in .cleaned. horizon is when what is
// from before it loses its deletes, in old formats (Unix ms).
func (k *cleaning) group(group []*segment, horizon int64) error {
	if err := k.stopped(); err != nil {
		return err
	}
	last := group[len(group)-1]
	s := k.l.newSegment(group[0].base)
	s.closed, s.next, s.modMilli = true, last.next, last.modMilli
	err := k.make(s, group, horizon)
	if err == nil {
		err = k.placed() // one after the other: a start completes exchanges below the first that was not begun
	}
	if err != nil {
		k.discard(k.t, s)
		return err
	}
	k.place(group, s)
	return nil
}

// make copies what is left of a group into a new file.
func (k *cleaning) make(s *segment, group []*segment, horizon int64) error {
	f, err := k.t.Open(s.path(logSuffix)+cleanedSuffix, ring.Write|ring.Create|ring.Cut)
	if err != nil {
		return k.failed("creating", err)
	}
	s.file, s.writable = f, true
	k.c.last, k.c.txns.kept = k.l.prods.lastBatches(), nil
	k.write.begin(s)
	for _, from := range group {
		if err := k.copySegment(from, horizon); err != nil {
			return err
		}
	}
	s.txns = k.c.txns.kept
	return k.write.end()
}

// copySegment appends what is left of one segment to what is being made.
func (k *cleaning) copySegment(from *segment, horizon int64) (err error) {
	from.pin()
	defer from.unpin()
	defer abandonIf(&from.gone, &err)
	if err := from.open(k.t); err != nil {
		return err
	}
	if err := k.l.knowEnd(k.t, from); err != nil {
		return err
	}
	k.c.txns.expect(k.l.Aborted(nil, from.base, from.next))
	k.c.legacyDeletes = from.modMilli > horizon
	k.read.begin(from, 0)
	err = k.copyBatches()
	k.read.end()
	if err != nil {
		return k.damage(from, err)
	}
	return k.stopped()
}

// copyBatches has a helper gather what is left of what it reads, while the loop writes what was gathered before.
func (k *cleaning) copyBatches() (err error) {
	w := &k.write
	for k.read.more() {
		k.read.start(func(b []byte) (n int, more bool) {
			w.out, n, err = k.c.filter(b, w.out, w.room)
			return n, err == nil && len(w.out) <= w.room
		})
		wrote := w.flush()
		read := k.read.wait()
		switch {
		case wrote != nil:
			return wrote
		case read != nil:
			return read
		case err != nil:
			return &bad{k.read.pos, err.Error()}
		}
		if len(w.out) > w.room/2 {
			w.turn()
		}
	}
	return nil
}
