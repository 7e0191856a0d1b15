package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"kring/metadata"
	"kring/ring"
)

const (
	filePrefix     = "kring-store-"
	logSuffix      = ".log"
	snapshotSuffix = ".snapshot"
	// maxFile bounds what opening reads of one file.
	maxFile = 1 << 32
)

func fileName(zxid metadata.Zxid, suffix string) string {
	return fmt.Sprintf("%s%016x%s", filePrefix, uint64(zxid), suffix)
}

// files are the store's files in a directory, by zxid.
type files struct {
	logs, snapshots []metadata.Zxid
	unfinished      []string
	failed          bool // the last life's sync failed
}

func findFiles(names []string) (f files) {
	for _, name := range names {
		rest, ours := strings.CutPrefix(name, filePrefix)
		if !ours {
			continue
		}
		f.failed = f.failed || name == failedName
		if strings.HasSuffix(rest, ".tmp") {
			f.unfinished = append(f.unfinished, name)
			continue
		}
		number, suffix, _ := strings.Cut(rest, ".")
		zxid, err := strconv.ParseUint(number, 16, 63)
		if err != nil || len(number) != 16 {
			continue
		}
		switch "." + suffix {
		case logSuffix:
			f.logs = append(f.logs, metadata.Zxid(zxid))
		case snapshotSuffix:
			f.snapshots = append(f.snapshots, metadata.Zxid(zxid))
		}
	}
	slices.Sort(f.logs)
	slices.Sort(f.snapshots)
	return f
}

// IsFile tells whether a name in a log dir is one of this store's files.
func IsFile(name string) bool { return strings.HasPrefix(name, filePrefix) }

// InUse tells whether a name in a log dir is one that a store, or the hand-over of one, goes on from: not what an opening or a Replace has
// set aside, nor a snapshot that was not finished.
func InUse(name string) bool {
	_, aside := asideNumber(name)
	return IsFile(name) && !aside && !strings.HasSuffix(name, damagedSuffix) && !strings.HasSuffix(name, ".tmp")
}

// IsTree tells whether a name in a log dir is one of the files that a store's tree is read from.
func IsTree(name string) bool {
	f := findFiles([]string{name})
	return len(f.logs)+len(f.snapshots) > 0
}

// Options say how a store is opened.
type Options struct {
	// Clean: whoever used the directory last stopped cleanly, so nothing in it can be torn.
	Clean bool
	Log   *slog.Logger // may be nil
}

// Open reads or creates the store in dir (which must exist) and begins a new session: ephemeral nodes of the last one are
// gone. Damage that is not at the end of the last log is a *DamageError.
func Open(t *ring.Task, dir string, o Options) (*Store, error) {
	entries, err := t.List(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.Dir {
			names = append(names, e.Name)
		}
	}
	f := findFiles(names)
	tr, end, err := load(&f, func(name string) ([]byte, error) { return t.ReadFile(dir+"/"+name, maxFile) })
	if err == nil {
		err = settleTail(t, dir, &end, o)
	}
	if err != nil {
		return nil, in(dir, err)
	}
	end.ended(dir, tr, o)
	s := newStore(t.Loop(), dir, tr)
	s.told = o.Log
	if err := s.begin(t, f, end.at); err != nil {
		return nil, err
	}
	if f.failed {
		f.unfinished = append(f.unfinished, failedName)
	}
	for _, name := range f.unfinished {
		if err := t.Remove(dir + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return s, nil
}

// load reads the newest snapshot and replays the logs behind it. end is that of the last log; a last log whose header was never
// finished moves from f.logs to f.unfinished.
func load(f *files, read func(name string) ([]byte, error)) (tr *tree, end ending, err error) {
	if tr, err = loadSnapshot(f, read); err == nil {
		end, err = replayLogs(f, read, tr)
	}
	return tr, end, err
}

// loadSnapshot reads the newest snapshot; without one the tree is as at the very first start.
func loadSnapshot(f *files, read func(string) ([]byte, error)) (*tree, error) {
	if len(f.snapshots) == 0 {
		return newTree(), nil
	}
	zxid := f.snapshots[len(f.snapshots)-1]
	name := fileName(zxid, snapshotSuffix)
	b, err := read(name)
	if err != nil {
		return nil, err
	}
	tr, at, err := decodeSnapshot(b)
	if err == nil && tr.zxid != zxid {
		at, err = 0, fmt.Errorf("holds the state of %d", tr.zxid)
	}
	if err != nil {
		return nil, &DamageError{name, at, err.Error()}
	}
	if len(f.logs) == 0 {
		return nil, &DamageError{name, 0, "the log that was begun before this snapshot is missing"}
	}
	return tr, nil
}

func replayLogs(f *files, read func(string) ([]byte, error), tr *tree) (end ending, err error) {
	snapshot, first := tr.zxid, 0
	// A log whose successor begins at or before the snapshot holds nothing new.
	for first+1 < len(f.logs) && f.logs[first+1] <= snapshot {
		first++
	}
	if err := f.dropEmpty(first, read); err != nil {
		return end, err
	}
	for i := first; i < len(f.logs); i++ {
		name, last := fileName(f.logs[i], logSuffix), i == len(f.logs)-1
		b, err := read(name)
		if err != nil {
			return end, err
		}
		base, err := readHeader(b, logMagic)
		if err != nil && last && len(b) <= headerSize && snapshot == 0 && f.logs[i] == 0 {
			f.logs, f.unfinished = f.logs[:i], append(f.unfinished, name) // the store's first start was not finished
			return end, nil
		}
		if err == nil && base != f.logs[i] {
			err = fmt.Errorf("begins behind %d", base)
		}
		if err == nil && base > tr.zxid {
			err = fmt.Errorf("begins behind %d, the state before it ends at %d", base, tr.zxid)
		}
		if err != nil {
			return end, &DamageError{name, 0, err.Error()}
		}
		at, err := replayLog(b, name, last, snapshot, tr)
		if err != nil {
			return end, err
		}
		end = ending{name, at, b[at:]}
	}
	return end, nil
}

// dropEmpty moves logs that hold no change to the unfinished ones, but for the first: the store may have failed to begin such a
// log and gone on with the one before, which then is the one that can be torn.
func (f *files) dropEmpty(first int, read func(string) ([]byte, error)) error {
	var kept []metadata.Zxid
	for i, zxid := range f.logs {
		name := fileName(zxid, logSuffix)
		if i > first {
			b, err := read(name)
			if err != nil {
				return err
			}
			if len(b) <= headerSize {
				f.unfinished = append(f.unfinished, name)
				continue
			}
		}
		kept = append(kept, zxid)
	}
	f.logs = kept
	return nil
}

// replayLog applies the frames of one log. Transactions up to the snapshot's are in the tree already.
func replayLog(b []byte, name string, last bool, snapshot metadata.Zxid, tr *tree) (end int64, err error) {
	at := headerSize
	for at < len(b) {
		mark, payload, err := readFrame(b[at:], int64(at))
		if err == nil && mark != frameMark {
			err = fmt.Errorf("frame with mark %#x in a log", mark)
		}
		if err != nil {
			next, searched := laterFrame(b, at+1)
			if next >= 0 {
				err = fmt.Errorf("%w, though a whole frame follows at %d", err, next)
			} else if searched != nil {
				err = fmt.Errorf("%w; %w", err, searched)
			}
			if !last || next >= 0 || searched != nil {
				return 0, &DamageError{name, int64(at), err.Error()}
			}
			break
		}
		if err := tr.replay(payload, snapshot); err != nil {
			return 0, &DamageError{name, int64(at), err.Error()}
		}
		at += frameHead + len(payload)
	}
	return int64(at), nil
}

// begin opens the log for writing, cuts a torn end, and makes the new session durable.
func (s *Store) begin(t *ring.Task, f files, end int64) error {
	var err error
	if len(f.logs) == 0 {
		s.log, err = createLog(t, s.dir, s.tree.zxid)
		s.logSize = headerSize
	} else {
		name := fileName(f.logs[len(f.logs)-1], logSuffix)
		if f.failed {
			err = copyAnew(t, s.dir, name, end)
		}
		if err == nil {
			s.log, err = t.Open(s.dir+"/"+name, ring.Write)
		}
		if err == nil {
			s.logSize = end
			err = cut(t, s.log, end)
			hold(t, s.log, end)
		}
	}
	if err != nil {
		return err
	}
	s.tree.session++
	stale := s.tree.stale()
	zxid, now := s.tree.zxid+1, s.loop.UnixMilli()
	for i := range stale {
		if _, err := s.tree.apply(&stale[i], zxid, now, nil); err != nil {
			panic("embedded: an ephemeral node cannot be removed: " + err.Error())
		}
	}
	s.tree.zxid = zxid
	frame := appendTxn(beginFrame(nil), zxid, now, s.tree.session, stale)
	endFrame(frame, s.logSize, frameMark)
	if err = t.Write(s.log, frame, s.logSize); err == nil {
		err = t.Sync(s.log)
	}
	if err != nil {
		s.log.Close()
		return err
	}
	s.logSize += int64(len(frame))
	s.syncedZxid, s.writingZxid = zxid, zxid
	return nil
}

// failedName is a file that tells the next opening that a sync has failed: what it left in the page cache looks durable and is not.
const failedName = filePrefix + "failed"

// mark leaves word for the next opening, as well as the disk still can.
func (s *Store) mark(op *ring.Op) {
	op.Done = func(op *ring.Op) {
		if op.Err == nil {
			op.File.Close()
		}
	}
	s.loop.Open(s.dir+"/"+failedName, ring.Write|ring.Create, op)
}

// copyAnew puts a copy in the place of a log, durably, up to end. The file itself will not do: see segment's suspect.go.
func copyAnew(t *ring.Task, dir, name string, end int64) error {
	b, err := t.ReadFile(dir+"/"+name, maxFile)
	if err == nil && int64(len(b)) < end {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = t.WriteFile(dir, name, b[:end])
	}
	return err
}

// cut takes off what stands behind end. A file that ends there is left alone: cutting it would give up its reserve.
func cut(t *ring.Task, log ring.File, end int64) error {
	size, _, err := t.Size(log)
	if err == nil && size != end {
		err = t.Truncate(log, end)
	}
	return err
}

// hold reserves room behind end; without, the log works as long as there is room.
func hold(t *ring.Task, log ring.File, end int64) { _ = t.Allocate(log, end, reserve) }

// createLog makes an empty log behind zxid, durably. One of that name that was never finished is replaced.
func createLog(t *ring.Task, dir string, zxid metadata.Zxid) (ring.File, error) {
	log, err := t.Open(dir+"/"+fileName(zxid, logSuffix), ring.Write|ring.Create|ring.Cut)
	if err != nil {
		return nil, err
	}
	hold(t, log, 0)
	if err = t.Write(log, appendHeader(nil, logMagic, zxid), 0); err == nil {
		err = t.Sync(log)
	}
	if err == nil {
		err = t.SyncDir(dir)
	}
	if err != nil {
		log.Close()
		return nil, err
	}
	return log, nil
}
