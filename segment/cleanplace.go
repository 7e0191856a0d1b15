package segment

import (
	"errors"
	"io/fs"

	"kring/ring"
)

// cleanPlace is a cleaned segment on its way into the log, while the next one is being made.
type cleanPlace struct {
	busy bool
	err  error
}

// place has a task make s durable and put it in the place of its group.
func (k *cleaning) place(group []*segment, s *segment) {
	k.placing.busy = true
	ring.Go(k.l.loop, func(t *ring.Task) {
		err := k.finish(t, s)
		if err == nil {
			err = k.l.swap(t, group, s, k.stopped)
		}
		if err != nil && !s.synced {
			k.discard(t, s)
		} else {
			k.c.stats.Segments += len(group)
			k.c.stats.Groups++
		}
		k.placing = cleanPlace{err: err}
		k.l.notify()
	})
}

// placed waits until nothing is on its way.
func (k *cleaning) placed() error {
	k.l.until(k.t, func() bool { return !k.placing.busy })
	return k.placing.err
}

// finish makes what is copied and its indexes durable, beside each other: that takes fewer commits of the journal.
func (k *cleaning) finish(t *ring.Task, s *segment) error {
	s.addTime()
	files := []func(*ring.Task) error{
		func(t *ring.Task) error { return k.finishLog(t, s) },
		func(t *ring.Task) error { return k.writeIndex(t, s.path(indexSuffix), s.index.mem) },
		func(t *ring.Task) error { return k.writeIndex(t, s.path(timeSuffix), s.times.mem) },
	}
	if len(s.txns) > 0 {
		files = append(files, func(t *ring.Task) error { return k.writeIndex(t, s.path(txnSuffix), s.txns) })
	}
	for _, err := range k.l.sideBySide(t, len(files), func(t *ring.Task, i int) error { return files[i](t) }) {
		if err != nil {
			return err
		}
	}
	return k.stopped()
}

func (k *cleaning) finishLog(t *ring.Task, s *segment) error {
	if err := t.Sync(s.file); err != nil {
		return k.failed("syncing", err)
	}
	// Where no record has a timestamp, retention goes by the file's.
	if err := t.SetTime(s.file, s.modMilli); err != nil {
		return k.failed("dating", err)
	}
	return nil
}

func (k *cleaning) writeIndex(t *ring.Task, path string, content []byte) error {
	if err := writeSynced(t, path+cleanedSuffix, content); err != nil {
		return k.failed("writing", err)
	}
	return nil
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
func (k *cleaning) discard(t *ring.Task, s *segment) {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix, txnSuffix} {
		if err := t.Remove(s.path(suffix) + cleanedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.l.warn("a file of an abandoned cleaning could not be removed; the next start will", "segment", s.base, "cause", err)
		}
	}
}
