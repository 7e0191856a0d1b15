package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"kring/ring"
)

// Damage is what a torn write cannot explain: bytes that are no batches in a log that was closed cleanly, or below the recovery
// point. Kafka would cut it off, with all that is behind it, or append behind it. Here nothing is cut before its bytes were copied
// into a file beside the log, and offsets that were given once are not given again.

// unreadable says whether a file's content is to blame for err, and not the disk: it is malformed, much too large, or no file at all.
func unreadable(err error) bool {
	return errors.Is(err, ErrMalformed) || errors.Is(err, ring.ErrTooLarge) || errors.Is(err, ring.ErrNotRegular)
}

// stopEnd is the end of the log as the last clean stop left it, by the two witnesses it writes; -1 if they do not agree.
func (r *recovery) stopEnd() Offset {
	n := len(r.found.snapshots)
	if n == 0 || r.found.snapshots[n-1] != r.options.RecoveryPoint {
		return -1
	}
	return r.options.RecoveryPoint
}

// keep ends segment number i, which was to be trusted, behind its last whole batch at end, and leaves its file as it is.
func (r *recovery) keep(i int, damage *bad, end int64) error {
	l := r.log
	s := l.segs[i]
	s.written, s.endKnown = s.size, true
	if i+1 < len(l.segs) {
		if damage != nil {
			l.tellDamage(s, damage, l.segs[i+1].base)
		}
		s.next = l.segs[i+1].base
		l.prods.end = s.next
		s.snapshot = encodeSnapshot(&l.prods)
		return nil
	}
	l.prods.end = s.next
	return r.settleEnd(s, damage, end)
}

// settleEnd decides about what follows the last whole batch of the last segment after a clean stop. If records are known to have been
// there the segment stays as it is and the log goes on in a new one, at the offset where it ended.
func (r *recovery) settleEnd(s *segment, damage *bad, end int64) error {
	l := r.log
	stop := r.stopEnd()
	if end < s.size {
		zero, err := l.zerosFrom(r.t, s, end)
		if err != nil {
			return err
		}
		if zero || stop <= s.next {
			l.warn("cutting a segment off behind its last whole batch", "segment", s.base, "cut", s.size-end, "cause", damage)
			if _, err := r.cut(s, end, !zero); err != nil {
				return err
			}
		}
	}
	s.written = s.size
	if stop <= s.next {
		return nil
	}
	if damage == nil {
		damage = &bad{end, "the file ends"}
	}
	l.tellDamage(s, damage, stop)
	s.closed, s.next = true, stop
	var err error
	if l.prods, err = l.producersUpTo(r.t, r.found.snapshots, stop); err != nil {
		return err
	}
	s.snapshot = encodeSnapshot(&l.prods)
	return l.createFirst(r.t, stop)
}

// beginAtStop begins a log whose segments are all gone where the last clean stop left its end, if it is known.
func (l *Log) beginAtStop(r *recovery) (changed bool, err error) {
	stop := r.stopEnd()
	if !r.options.Clean || stop <= r.options.LogStart {
		return false, nil
	}
	l.logAt(slog.LevelError, "all segments are gone; the log goes on behind what was in them; see kring log verify",
		"from", r.options.LogStart, "to", stop-1)
	return true, l.createFirst(r.t, stop)
}

// tellDamage says which records cannot be read, and where they lay.
func (l *Log) tellDamage(s *segment, damage *bad, to Offset) {
	s.damaged = true
	l.logAt(slog.LevelError, "a segment is damaged; records cannot be read, the log goes on behind them; see kring log verify",
		"file", s.path(logSuffix), "position", damage.pos, "cause", damage.why, "from", s.next, "to", to-1)
}

// cut ends the file of s at end; aside says that what is cut off is copied before, into the file whose name it gives, unless it is zeros.
func (r *recovery) cut(s *segment, end int64, aside bool) (name string, err error) {
	l := r.log
	if aside {
		if zero, err := l.zerosFrom(r.t, s, end); err != nil {
			return "", err
		} else if !zero {
			if name, err = l.setAside(r.t, s, end, s.size); err != nil {
				return "", err
			}
		}
	}
	if err := r.t.Truncate(s.file, end); err != nil {
		return "", err
	}
	s.size, s.written, s.endKnown = end, end, true
	return name, nil
}

func (l *Log) zerosFrom(t *ring.Task, s *segment, pos int64) (bool, error) {
	sc := newScan(t, s.file, pos, s.size, scanLarge)
	defer sc.release()
	return sc.zeros()
}

// asideMost is how many files of damaged bytes from one position are kept.
const asideMost = 100

func asideName(base Offset, pos int64, n int) string {
	name := fmt.Sprintf("%s.%d", fileName(base, logSuffix), pos)
	if n > 0 {
		name += fmt.Sprintf(".%d", n)
	}
	return name + damagedSuffix
}

// setAside copies the bytes of s from pos up to end into a file beside it, durably, and gives its name.
func (l *Log) setAside(t *ring.Task, s *segment, pos, end int64) (name string, err error) {
	var to ring.File
	for n := 0; to == nil; n++ {
		name = l.dir + "/" + asideName(s.base, pos, n)
		f, err := t.Open(name, ring.Write|ring.Create|ring.Exclusive)
		if err != nil && (!errors.Is(err, fs.ErrExist) || n == asideMost) {
			return "", fmt.Errorf("damaged bytes cannot be set aside: %w", err)
		}
		if err == nil {
			to = f
		}
	}
	defer to.Close()
	if err := l.copyRange(t, s.file, to, pos, end, 0); err != nil {
		return "", fmt.Errorf("damaged bytes cannot be set aside: %w", err)
	}
	if err := t.Sync(to); err != nil {
		return "", err
	}
	l.warn("damaged bytes were set aside", "file", name, "from", s.path(logSuffix), "position", pos)
	return name, t.SyncDir(l.dir)
}

// setFileAside gives the file of a whole segment a name under which it is no part of the log.
func (l *Log) setFileAside(t *ring.Task, base Offset) error {
	from := l.dir + "/" + fileName(base, logSuffix)
	for n := 0; ; n++ {
		name := l.dir + "/" + asideName(base, 0, n)
		f, err := t.Open(name, ring.Write|ring.Create|ring.Exclusive)
		if errors.Is(err, fs.ErrExist) && n < asideMost {
			continue
		}
		if err != nil {
			return fmt.Errorf("a segment cannot be set aside: %w", err)
		}
		f.Close()
		l.warn("a segment behind damage was set aside", "file", name)
		return t.Rename(from, name)
	}
}
