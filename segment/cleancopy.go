package segment

import (
	"errors"
	"fmt"
	"io/fs"

	"kring/ring"
	"kring/wire/batch"
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

// indexBatches puts what is read into the map.
func (k *cleaning) indexBatches() (full bool, err error) {
	for {
		if more, err := k.read.more(); err != nil || !more {
			return false, err
		}
		if full, err := k.indexPiece(); err != nil || full {
			return full, err
		}
	}
}

// indexPiece goes through what is there, getting memory for the map when it asks for some.
func (k *cleaning) indexPiece() (full bool, err error) {
	for {
		n := 0
		k.help(func() {
			k.c.keys.grow()
			n, full, err = k.c.index(k.read.left)
		})
		k.read.done(n)
		short := k.c.keys.short != nil
		k.c.keys.supply(k.l.loop)
		if stopped := k.stopped(); stopped != nil {
			return false, stopped
		}
		switch {
		case err != nil:
			return false, &bad{k.read.pos, err.Error()}
		case !short:
			return full, nil
		}
	}
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

// group makes one segment of a group and puts it in their place. Until then its files end in .cleaned. horizon is when what is
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
		err = k.l.swap(k.t, group, s, k.stopped)
	}
	if err != nil && !s.synced {
		if s.file != nil {
			s.file.Close()
			s.file = nil
		}
		k.discard(s)
		return err
	}
	k.c.stats.Segments += len(group)
	k.c.stats.Groups++
	return err
}

// make copies what is left of a group into a new file, with its indexes.
func (k *cleaning) make(s *segment, group []*segment, horizon int64) error {
	f, err := k.t.Open(s.path(logSuffix)+cleanedSuffix, ring.Write|ring.Create|ring.Cut)
	if err != nil {
		return k.failed("creating", err)
	}
	s.file, s.writable = f, true
	k.c.last, k.c.txns.kept = k.l.prods.lastBatches(), nil
	for _, from := range group {
		if err := k.copySegment(from, s, horizon); err != nil {
			return err
		}
	}
	s.txns = k.c.txns.kept
	return k.finish(s)
}

// copySegment appends what is left of one segment to another.
func (k *cleaning) copySegment(from, to *segment, horizon int64) error {
	from.pin()
	defer from.unpin()
	if err := from.open(k.t); err != nil {
		return err
	}
	if err := k.l.knowEnd(k.t, from); err != nil {
		return err
	}
	k.c.txns.expect(k.l.Aborted(nil, from.base, from.next))
	k.c.legacyDeletes = from.modMilli > horizon
	k.read.begin(from, 0)
	err := k.copyBatches(to)
	k.read.end()
	if err != nil {
		return k.damage(from, err)
	}
	return k.stopped()
}

// copyBatches appends what is left of what is read. Small pieces of it are gathered for one write.
func (k *cleaning) copyBatches(to *segment) error {
	room := len(k.write.B) / 2
	k.out = k.write.B[:0]
	for {
		more, err := k.read.more()
		if err != nil {
			return err
		}
		for again := more; again; {
			done := 0
			k.help(func() { k.out, done, err = k.c.filter(k.read.left, k.out, room) })
			k.read.done(done)
			if err != nil {
				return &bad{k.read.pos, err.Error()}
			}
			if again = len(k.out) > room; again || len(k.out) > room/2 {
				if err := k.flush(to); err != nil {
					return err
				}
			}
		}
		if !more {
			return k.flush(to)
		}
		if err := k.stopped(); err != nil {
			return err
		}
	}
}

// flush writes what was gathered.
func (k *cleaning) flush(to *segment) error {
	out := k.out
	k.out = k.write.B[:0]
	return k.append(to, out)
}

// append writes batches and notes them in the indexes.
func (k *cleaning) append(s *segment, out []byte) error {
	if err := k.stopped(); err != nil || len(out) == 0 {
		return err
	}
	if s.size+int64(len(out)) > maxRelative {
		return fmt.Errorf("%s: what is left of its group does not fit into one segment", s.path(logSuffix))
	}
	for at := 0; at < len(out); { // in bites, as each may be written on the loop's own time, within the turn that asks
		if at > 0 {
			k.t.Sleep(0)
		}
		n := min(len(out)-at, writeMost)
		if err := k.t.Write(s.file, out[at:at+n], s.size+int64(at)); err != nil {
			return k.failed("writing", err)
		}
		at += n
		if err := k.stopped(); err != nil {
			return err
		}
	}
	for rest := out; len(rest) > 0; {
		b, after, err := batch.Whole(rest)
		if err != nil {
			k.l.broken(10, "a cleaned batch: %v", err)
		}
		rest = after
		if header(b).last()-s.base > maxRelative {
			return fmt.Errorf("%s: offset %d is too far from its group's first", s.path(logSuffix), header(b).last())
		}
		s.noteBatch(header(b), k.l.conf.IndexIntervalBytes)
	}
	s.written = s.size
	k.c.stats.WrittenBytes += int64(len(out))
	return k.pay(len(out))
}

const writeMost = 256 << 10

// finish makes what is copied and its indexes durable.
func (k *cleaning) finish(s *segment) error {
	s.addTime()
	if err := k.t.Sync(s.file); err != nil {
		return k.failed("syncing", err)
	}
	// Where no record has a timestamp, retention goes by the file's.
	if err := k.t.SetTime(s.file, s.modMilli); err != nil {
		return k.failed("dating", err)
	}
	for _, x := range []struct {
		suffix  string
		content []byte
	}{{indexSuffix, s.index.mem}, {timeSuffix, s.times.mem}, {txnSuffix, s.txns}} {
		if x.suffix == txnSuffix && len(s.txns) == 0 {
			continue
		}
		if err := writeSynced(k.t, s.path(x.suffix)+cleanedSuffix, x.content); err != nil {
			return k.failed("writing", err)
		}
		if err := k.stopped(); err != nil {
			return err
		}
	}
	return k.stopped()
}

// failed is an error of the disk. A full one is survived: there will be room again. Any other may be more than what is being
// cleaned has to suffer from, as with any write.
func (k *cleaning) failed(what string, err error) error {
	if stopped := k.stopped(); stopped != nil {
		return stopped
	}
	if !ring.NoSpace(err) {
		k.l.fail(what+" a cleaned segment", err)
		return k.l.failed
	}
	return err
}

// discard removes what was being made.
func (k *cleaning) discard(s *segment) {
	for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix} {
		if err := k.t.Remove(s.path(suffix) + cleanedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.l.warn("a file of an abandoned cleaning could not be removed; the next start will", "segment", s.base, "cause", err)
		}
	}
}
