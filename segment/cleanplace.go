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

// finish makes what is copied and its indexes durable.
func (k *cleaning) finish(t *ring.Task, s *segment) error {
	s.addTime()
	if err := t.Sync(s.file); err != nil {
		return k.failed("syncing", err)
	}
	// Where no record has a timestamp, retention goes by the file's.
	if err := t.SetTime(s.file, s.modMilli); err != nil {
		return k.failed("dating", err)
	}
	for _, x := range []struct {
		suffix  string
		content []byte
	}{{indexSuffix, s.index.mem}, {timeSuffix, s.times.mem}, {txnSuffix, s.txns}} {
		if x.suffix == txnSuffix && len(s.txns) == 0 {
			continue
		}
		if err := writeSynced(t, s.path(x.suffix)+cleanedSuffix, x.content); err != nil {
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
