package segment

import (
	"errors"
	"io/fs"

	"kring/ring"
)

// After a failed sync Linux calls the pages clean that it could not write: they can be read until the kernel wants their memory, and
// no later sync tells that they are not on the disk. A process that starts anew would take them for durable, build on them, and a power
// cut would take them from under what was built. So a log dir that failed is marked, and what a marked dir's logs recover is
// written again, byte for byte, before it is read: then a sync means what it says. The mark need not be durable: a power cut takes the
// page cache, too, and what is read after it is on the disk.

// failedFile marks a log dir in which a write or sync has failed. Kafka passes over plain files it does not know.
const failedFile = "kring-log-dir-failed"

// MarkFailed notes in the log dir, as well as its disk still can, that a write or sync in it has failed.
func (d *Dir) MarkFailed(t *ring.Task, cause error) error {
	f, err := t.Open(d.path+"/"+failedFile, ring.Write|ring.Create)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.Write(f, []byte(cause.Error()+"\n"), 0)
}

// Suspect says whether the log dir failed in an earlier life and was not read and written anew since.
func (d *Dir) Suspect() bool { return d.suspect }

// Trust is called when every log was opened, and so made durable: the mark goes.
func (d *Dir) Trust(t *ring.Task) error {
	if !d.suspect {
		return nil
	}
	if err := t.Remove(d.path + "/" + failedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.suspect = false
	return t.SyncDir(d.path)
}

// writeAnew puts a copy in the place of a segment's file, and makes it durable. The file itself will not do: where the kernel could not
// mark blocks that were reserved as written, as ext4 does behind each write, it does not try again while it has the pages, and the
// blocks read as zeros later. For the same reason the indexes, which are made anew, get new files.
func (s *segment) writeAnew(t *ring.Task) error {
	name := s.path(logSuffix)
	to, err := t.Open(name+tmpSuffix, ring.Write|ring.Create|ring.Cut)
	if err != nil {
		return err
	}
	err = s.copyTo(t, to)
	if err == nil {
		err = t.Sync(to)
	}
	to.Close()
	if err == nil {
		err = t.Rename(name+tmpSuffix, name)
	}
	for _, suffix := range []string{indexSuffix, timeSuffix} {
		if err == nil {
			if err = t.Remove(s.path(suffix)); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
	}
	if err == nil {
		err = t.SyncDir(s.log.dir)
	}
	if err != nil {
		return err
	}
	s.close()
	return s.open(t)
}

func (s *segment) copyTo(t *ring.Task, to ring.File) error {
	buf := t.Loop().Alloc(scanLarge)
	defer buf.Release()
	for at := int64(0); at < s.size; {
		n, err := t.Read(s.file, buf.B[:min(int64(len(buf.B)), s.size-at)], at)
		if err != nil || n == 0 {
			return err
		}
		if err := t.Write(to, buf.B[:n], at); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// Look lists the names in the log dir. An error says what is wrong with the dir itself: it is gone, cannot be read, or is another one
// than was locked.
func (d *Dir) Look(t *ring.Task) (names map[string]bool, err error) {
	entries, err := t.List(d.path)
	if err != nil {
		return nil, err
	}
	names = make(map[string]bool, len(entries))
	for _, e := range entries {
		names[e.Name] = true
	}
	if !names[lockFile] {
		return nil, &fs.PathError{Op: "list", Path: d.path + "/" + lockFile, Err: fs.ErrNotExist}
	}
	return names, nil
}
