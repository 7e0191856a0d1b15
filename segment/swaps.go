package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"kring/ring"
)

// swaps is what a compaction or a deletion that a stop interrupted has left in a partition's directory.
type swaps struct {
	l    *Log
	t    *ring.Task
	have map[string]bool  // names that are there
	size map[string]int64 // their bytes
	list []string         // the same, in order
}

// settleSwaps removes deleted and half-cleaned files and completes a finished compaction: .swap files take the place of the
// segments they were made from. A .swap file that is not whole takes nobody's place.
func (l *Log) settleSwaps(t *ring.Task, entries []ring.Entry) ([]ring.Entry, error) {
	w := swaps{l: l, t: t, have: map[string]bool{}, size: map[string]int64{}}
	unfinished, any := Offset(1<<63-1), false
	for _, e := range entries {
		if e.Dir {
			continue
		}
		w.have[e.Name], w.size[e.Name] = true, e.Size
		w.list = append(w.list, e.Name)
		base, suffix, ok := parseName(e.Name)
		if ok && strings.HasSuffix(suffix, cleanedSuffix) {
			unfinished = min(unfinished, base)
		}
		any = any || strings.HasSuffix(e.Name, tmpSuffix) || ok && (strings.HasSuffix(suffix, deletedSuffix) ||
			strings.HasSuffix(suffix, cleanedSuffix) || strings.HasSuffix(suffix, swapSuffix))
	}
	if !any {
		return entries, nil
	}
	for _, name := range w.list {
		if base, suffix, ok := parseName(name); ok && strings.HasSuffix(suffix, swapSuffix) && base >= unfinished {
			if err := w.remove(name); err != nil {
				return nil, err
			}
		}
	}
	if err := w.swapIn(); err != nil {
		return nil, err
	}
	for _, name := range w.list {
		_, suffix, ok := parseName(name)
		if !w.have[name] || !strings.HasSuffix(name, tmpSuffix) &&
			!(ok && (strings.HasSuffix(suffix, deletedSuffix) || strings.HasSuffix(suffix, cleanedSuffix))) {
			continue
		}
		if err := w.remove(name); err != nil {
			return nil, err
		}
	}
	return t.List(l.dir)
}

// swapIn puts the output of a finished compaction in the place of what it was made from.
func (w *swaps) swapIn() error {
	from, to := Offset(1<<63-1), Offset(-1)
	any := false
	for _, name := range w.list {
		base, suffix, ok := parseName(name)
		if !ok || suffix != logSuffix+swapSuffix || !w.have[name] {
			continue
		}
		next, why, err := w.l.wholeFile(w.t, name, base)
		if err != nil {
			return err
		}
		if w.size[name] == 0 && why == nil {
			why = w.emptied(base)
		}
		if why != nil {
			if err := w.refuse(name, base, why); err != nil {
				return err
			}
			continue
		}
		from, to, any = min(from, base), max(to, next, base+1), true
	}
	for _, name := range w.list {
		base, suffix, ok := parseName(name)
		if any && ok && w.have[name] && base >= from && base < to && suffix != snapshotSuffix &&
			(suffix == logSuffix || suffix == indexSuffix || suffix == timeSuffix || suffix == txnSuffix) {
			if err := w.remove(name); err != nil {
				return err
			}
		}
	}
	changed, err := w.name(logSuffix+swapSuffix, any)
	if err == nil { // an index belongs to a log that is there
		changed, err = w.name("", changed)
	}
	if err != nil || !changed {
		return err
	}
	return w.t.SyncDir(w.l.dir)
}

// emptied says why an empty .swap file is not what a cleaning has left of a segment: its indexes, which get this name before the
// originals lose theirs, are there then, and empty as well.
func (w *swaps) emptied(base Offset) error {
	for _, suffix := range []string{indexSuffix, timeSuffix} {
		if x := fileName(base, suffix+swapSuffix); !w.have[x] || w.size[x] > 0 {
			return &bad{0, "it is empty, and " + x + " is not there or is not empty"}
		}
	}
	return nil
}

// name gives the .swap files their names: those with a suffix, or all.
func (w *swaps) name(only string, changed bool) (bool, error) {
	for _, name := range w.list {
		base, suffix, ok := parseName(name)
		if !ok || !strings.HasSuffix(suffix, swapSuffix) || !w.have[name] || only != "" && suffix != only {
			continue
		}
		into := strings.TrimSuffix(name, swapSuffix)
		if suffix != logSuffix+swapSuffix && (w.have[into] || !w.have[fileName(base, logSuffix)]) {
			w.l.warn("removing an index that belongs to no compaction", "file", w.l.dir+"/"+name)
			if err := w.remove(name); err != nil {
				return changed, err
			}
			continue
		}
		if err := w.rename(name, into); err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}

// refuse sets a .swap file aside that is not whole, with its indexes, and brings back what it was made from, if that is there yet.
// A file that an earlier one reaches into was taken out of the log before, and stays out.
func (w *swaps) refuse(name string, base Offset, why error) error {
	w.l.logAt(slog.LevelError, "a compacted segment is damaged and takes no place in the log", "file", w.l.dir+"/"+name, "cause", why)
	for _, suffix := range []string{indexSuffix, timeSuffix, txnSuffix} {
		if err := w.remove(fileName(base, suffix+swapSuffix)); err != nil {
			return err
		}
	}
	aside := name + damagedSuffix
	for n := 1; w.have[aside]; n++ {
		aside = fmt.Sprintf("%s.%d%s", name, n, damagedSuffix)
	}
	if err := w.rename(name, aside); err != nil {
		return err
	}
	next := Offset(1<<63 - 1)
	for _, x := range w.list {
		if b, suffix, ok := parseName(x); ok && suffix == logSuffix && w.have[x] {
			if b == base {
				return nil
			}
			if b > base {
				next = min(next, b)
			}
		}
	}
	for _, x := range slices.Clone(w.list) {
		b, suffix, ok := parseName(x)
		if !ok || !w.have[x] || suffix != logSuffix+deletedSuffix || b < base || b >= next {
			continue
		}
		end, _, err := w.l.wholeFile(w.t, x, b)
		if err != nil {
			return err
		}
		if err := w.rename(x, strings.TrimSuffix(x, deletedSuffix)); err != nil {
			return err
		}
		base = max(b+1, end)
	}
	return w.t.SyncDir(w.l.dir)
}

func (w *swaps) remove(name string) error {
	if !w.have[name] {
		return nil
	}
	w.have[name] = false
	if err := w.t.Remove(w.l.dir + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (w *swaps) rename(from, to string) error {
	w.have[from], w.have[to] = false, true
	return w.t.Rename(w.l.dir+"/"+from, w.l.dir+"/"+to)
}

// wholeFile reads a log file that is not part of the log yet: the offset after its last batch, or why it is not whole.
func (l *Log) wholeFile(t *ring.Task, name string, base Offset) (next Offset, why, err error) {
	f, err := t.Open(l.dir+"/"+name, 0)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	size, _, err := t.Size(f)
	if err != nil {
		return 0, nil, err
	}
	sc := newScan(t, f, 0, size, scanLarge)
	defer sc.release()
	for next = base; ; {
		h, err := sc.peek()
		if err == nil && h == nil {
			return next, nil, nil
		}
		if err == nil {
			err = sc.verify(h)
		}
		if err == nil && (h.base() < next || h.last()-base > maxRelative) {
			err = &bad{sc.pos, fmt.Sprintf("offset %d after %d", h.base(), next-1)}
		}
		if errors.Is(err, ErrMalformed) {
			return next, err, nil
		}
		if err != nil {
			return 0, nil, err
		}
		next = h.last() + 1
		sc.skip(h)
	}
}
