package segment

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"kring/ring"
	"kring/wire/batch"
)

// Finding is something in a log dir that is not as it should be.
type Finding struct {
	File string `json:"file"`
	// Position in the file; -1 for all of it.
	Position int64  `json:"position"`
	What     string `json:"what"`
	Do       string `json:"do"`
	// Harmless: the next start deals with it, and nothing is lost.
	Harmless bool `json:"harmless"`
}

// VerifyOptions say how Verify reaches files; it only reads.
type VerifyOptions struct {
	// Open gives a file by name and its size; if it is an io.Closer it is closed again, if it is a Sparse its holes are not read.
	Open func(name string) (io.ReaderAt, int64, error)
	// List gives what is in a directory, sorted by name.
	List func(dir string) ([]ring.Entry, error)
	// Each is called with everything that is found.
	Each func(Finding)
	// Progress, if set, is called with the bytes of batches that have been read since the last call.
	Progress func(n int64)

	// What the log dir says of the partition: Clean and its checkpoints; -1 for one that is not there.
	Clean                   bool
	RecoveryPoint, LogStart Offset
	// Running: a broker uses the log dir; what it has not written yet is no fault.
	Running bool
}

// Sparse is a file that knows where its holes end.
type Sparse interface {
	// NextData is the first position from at on where there is data; the end of the file if there is none.
	NextData(at int64) (int64, error)
}

// Health is what Verify has found out about one partition's log, for Repair.
type Health struct {
	Start, End Offset // of what can be read
	// Rebuild is the first offset of the earliest segment of which files have to be made anew; -1 for none.
	Rebuild Offset
	damaged []damagedSegment
	epochs  bool // the leader epochs are not those of the batches
}

// Damaged says whether there are bytes in the log that are no records of it.
func (h *Health) Damaged() bool { return len(h.damaged) > 0 }

// damagedSegment is a segment and the ranges of its file that are no batches of it.
type damagedSegment struct {
	base  Offset
	size  int64
	holes []hole
}

// hole is a range of a file that is no batch; zero: it is the file's end, and there is nothing in it.
type hole struct {
	from, to int64
	zero     bool
}

const (
	doRepair  = "kring log repair sets these bytes aside and keeps what stands before and behind them"
	doBefore  = doRepair + "; a start would end the log there"
	doRebuild = "kring log repair makes it anew; so does a start that reads it"
	doNothing = "nothing: the next start deals with it"
)

// verifier looks at one partition's directory.
type verifier struct {
	o      *VerifyOptions
	d      dumper // for reading files
	dir    string
	have   map[string]bool
	bases  []Offset
	snaps  []Offset
	health Health
	epochs epochs
	known  bool // epochs could be read
	prods  producers
	next   Offset

	epoch    int32 // the last batch's
	falls    bool  // a batch has a lower leader epoch than the one before
	stranger epochMismatch
}

// epochMismatch is the first batch whose leader epoch is not what the leader epochs' file says.
type epochMismatch struct {
	file          string // of the batch
	pos           int64
	offset        Offset
	batch, cached int32
}

// VerifyPartition reads a partition's directory and tells of everything in it that is not as it should be. An error means that
// something could not be read.
func VerifyPartition(dir string, o VerifyOptions) (*Health, error) {
	v := &verifier{o: &o, d: dumper{o: DumpOptions{Open: o.Open}}, dir: dir, have: map[string]bool{},
		health: Health{Rebuild: -1}, epoch: noEpoch}
	entries, err := o.List(dir)
	if err != nil {
		return nil, err
	}
	v.names(entries)
	for _, check := range []func() error{v.metadata, v.leaderEpochs, v.snapshots} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	for i := range v.bases {
		if err := v.segment(i); err != nil {
			return nil, err
		}
	}
	v.end()
	return &v.health, nil
}

func (v *verifier) tell(file string, pos int64, do string, what string, args ...any) {
	v.o.Each(Finding{File: v.dir + "/" + file, Position: pos, What: fmt.Sprintf(what, args...), Do: do, Harmless: do == doNothing})
}

// note tells of something that does no harm.
func (v *verifier) note(file, do, what string) {
	v.o.Each(Finding{File: v.dir + "/" + file, Position: -1, What: what, Do: do, Harmless: true})
}

// names sorts out what is there.
func (v *verifier) names(entries []ring.Entry) {
	for _, e := range entries {
		if !e.Dir && !e.Special {
			v.have[e.Name] = true
		}
	}
	for _, e := range entries {
		base, suffix, ok := parseName(e.Name)
		switch {
		case (e.Dir || e.Special) && isOurs(e.Name):
			v.tell(e.Name, -1, "move it away: the partition is not served with it", "it is no regular file")
		case e.Special:
			v.note(e.Name, "move it away if it is not wanted", "it is no regular file")
		case e.Dir:
			v.note(e.Name, "move it away: it goes when the partition is deleted", "a directory of a foreign name")
		case strings.HasSuffix(e.Name, damagedSuffix):
			v.note(e.Name, "remove it when nobody wants to look at it any more", "damaged bytes that a start or a repair has set aside")
		case ok && suffix == logSuffix:
			v.bases = append(v.bases, base)
		case ok && suffix == snapshotSuffix:
			v.snaps = append(v.snaps, base)
		case ok && (suffix == indexSuffix || suffix == timeSuffix || suffix == txnSuffix):
			switch {
			case v.have[fileName(base, logSuffix)]:
			case v.o.Clean && suffix == indexSuffix: // a clean stop has ended every deletion
				v.tell(fileName(base, logSuffix), -1, "restore it from a copy or another replica; a start goes on without it",
					"the segment is gone, though its index is there after a clean stop")
			default:
				v.tell(e.Name, -1, doNothing, "an index without its segment")
			}
		case ok && (strings.HasSuffix(suffix, deletedSuffix) || strings.HasSuffix(suffix, cleanedSuffix) ||
			strings.HasSuffix(suffix, swapSuffix)), strings.HasSuffix(e.Name, tmpSuffix):
			if v.o.Running {
				v.note(e.Name, "nothing: it goes file.delete.delay.ms after that, or when that is done", "of a compaction, a deletion or a write")
				continue
			}
			v.tell(e.Name, -1, doNothing, "left by a compaction, a deletion or a write that a stop has interrupted")
		case e.Name == epochsFile, e.Name == metadataFile:
		default:
			v.note(e.Name, "move it away if it is not wanted", "a file of a foreign name")
		}
	}
	slices.Sort(v.bases)
	slices.Sort(v.snaps)
	if len(v.bases) > 0 {
		v.next = v.bases[0]
	}
	v.health.Start = max(v.o.LogStart, v.next)
}

// small reads a whole small file; nil and false if it is not there.
func (v *verifier) small(name string) ([]byte, bool, error) {
	if !v.have[name] {
		return nil, false, nil
	}
	f, err := v.d.open(v.dir + "/" + name)
	if err != nil {
		return nil, false, err
	}
	defer f.close()
	b, err := f.all()
	return b, true, err
}

func (v *verifier) metadata() error {
	b, ok, err := v.small(metadataFile)
	if err == nil && ok {
		_, err = decodeMetadata(b)
	}
	if err != nil && !unreadable(err) {
		return err
	} else if err != nil {
		v.tell(metadataFile, -1, "remove it: the next start writes the topic's id anew", "%v", err)
	}
	return nil
}

func (v *verifier) leaderEpochs() error {
	b, ok, err := v.small(epochsFile)
	if err == nil && ok {
		v.epochs, err = decodeEpochs(b)
	}
	if err != nil && !unreadable(err) || err == nil && !ok {
		return err
	} else if err != nil {
		v.tell(epochsFile, -1, doNothing, "%v; a start collects the leader epochs from the batches", err)
		return nil
	}
	v.known = true
	return nil
}

func (v *verifier) snapshots() error {
	for _, o := range v.snaps {
		name := fileName(o, snapshotSuffix)
		b, _, err := v.small(name)
		var beyond Offset = -1
		if err == nil {
			err = decodeSnapshot(b, func(p *producer) {
				if p.n > 0 && p.batches[p.n-1].last >= o {
					beyond = p.batches[p.n-1].last
				}
			})
		}
		switch {
		case err != nil && !unreadable(err):
			return err
		case err != nil:
			v.tell(name, -1, doNothing, "%v; a start makes the producers' state of the batches", err)
		case beyond >= 0:
			v.tell(name, -1, doNothing, "it knows of a record at %d, which lies behind it; a start makes the producers' state of the batches",
				beyond)
		case len(v.bases) > 0 && o == v.bases[0]:
			_ = v.prods.load(b, o, 0, 1<<62)
		}
	}
	return nil
}

// end looks at where the log ends.
func (v *verifier) end() {
	v.health.End = v.next
	switch x := v.stranger; {
	case x.file == "":
	case v.falls:
		v.o.Each(Finding{File: v.dir + "/" + x.file, Position: x.pos, Do: "nothing: no record depends on it", Harmless: true,
			What: fmt.Sprintf("the batch of offset %d says leader epoch %d, which was %d; no checksum covers it", x.offset, x.batch, x.cached)})
	default:
		v.health.epochs = true
		v.tell(epochsFile, -1, "kring log repair collects the leader epochs from the batches",
			"offset %d belongs to leader epoch %d here, the batch says %d", x.offset, x.cached, x.batch)
	}
	n := len(v.snaps)
	if v.o.Clean && n > 0 && v.snaps[n-1] == v.o.RecoveryPoint && v.next < v.o.RecoveryPoint {
		last := v.o.LogStart // there may be no log at all
		if len(v.bases) > 0 {
			last = v.bases[len(v.bases)-1]
		}
		v.tell(fileName(last, logSuffix), -1, "restore it from a copy or another replica; a start goes on behind what is missing",
			"records from %d to %d are missing: the last stop was clean, and left the log's end there", v.next, v.o.RecoveryPoint-1)
	}
	if len(v.bases) > 0 && v.o.LogStart > v.next {
		v.tell(fileName(v.bases[0], logSuffix), -1, "compare "+logStartFile+": a start begins the log anew there",
			"the log ends at %d, before its start at %d", v.next, v.o.LogStart)
	}
	if last := v.epochs.latest(); v.known && last >= 0 && v.epochs[len(v.epochs)-1].start > v.next {
		v.tell(epochsFile, -1, doNothing, "leader epoch %d begins at %d, behind the log's end at %d",
			last, v.epochs[len(v.epochs)-1].start, v.next)
	}
}

// rebuild notes that files of the segment at base have to be made anew.
func (v *verifier) rebuild(base Offset) {
	if v.health.Rebuild < 0 {
		v.health.Rebuild = base
	}
}

// walker reads the batches of a file whole, through a window.
type walker struct {
	f    *dumpFile
	from int64
	mem  []byte
	read func(int64)
}

const walkerWindow = 1 << 20

// bytes gives n bytes at pos, fewer at the end of the file.
func (w *walker) bytes(pos, n int64) ([]byte, error) {
	n = min(n, w.f.size-pos)
	if pos < w.from || pos+n > w.from+int64(len(w.mem)) {
		b, err := w.f.at(pos, max(n, walkerWindow))
		if err != nil {
			return nil, err
		}
		if w.read != nil {
			w.read(max(pos+int64(len(b))-max(pos, w.from+int64(len(w.mem))), 0))
		}
		w.from, w.mem = pos, b
	}
	at := pos - w.from
	return w.mem[at:min(at+n, int64(len(w.mem)))], nil
}

// batchMagicAt is where a batch has its magic.
const batchMagicAt = 16

// behindHole is the next position from at on that may hold something but zeros.
func (w *walker) behindHole(at int64) (int64, error) {
	s, ok := w.f.r.(Sparse)
	if !ok || at >= w.f.size {
		return at, nil
	}
	next, err := s.NextData(at)
	if err == nil && w.read != nil {
		w.read(max(next-at, 0))
	}
	return max(next, at), err
}

// zeros says whether all bytes from one position up to another are zero.
func (w *walker) zeros(pos, to int64) (bool, error) {
	for pos < to {
		b, err := w.bytes(pos, min(walkerWindow, to-pos))
		if err != nil || !isZero(b) {
			return false, err
		}
		if pos, err = w.behindHole(pos + int64(len(b))); err != nil {
			return false, err
		}
	}
	return true, nil
}

// batch gives the whole batch at pos, checked; or says why there is none.
func (w *walker) batch(pos int64) (b []byte, why string, err error) {
	if b, err = w.bytes(pos, batch.HeaderSize); err != nil {
		return nil, "", err
	}
	size, err := batch.Next(b)
	switch {
	case err != nil:
		return nil, err.Error(), nil
	case pos+int64(size) > w.f.size:
		return nil, fmt.Sprintf("a batch of %d bytes is cut off after %d", size, w.f.size-pos), nil
	case size > dumpBatchMax:
		return nil, fmt.Sprintf("a batch of %d bytes", size), nil
	}
	if b, err = w.bytes(pos, int64(size)); err != nil {
		return nil, "", err
	}
	if err := batch.Verify(b); err != nil {
		return nil, err.Error(), nil
	}
	return b, "", nil
}

// resync looks for the next batch that is whole, from pos on, with offsets from next up to bound; the end of the file if there is none.
func (w *walker) resync(pos int64, next, bound Offset) (int64, error) {
	for ; pos+batch.HeaderSize <= w.f.size; pos++ {
		if pos+batch.HeaderSize > w.from+int64(len(w.mem)) {
			if _, err := w.bytes(pos, walkerWindow); err != nil {
				return 0, err
			}
		}
		b, err := w.bytes(pos, w.from+int64(len(w.mem))-pos)
		if err != nil || len(b) == 0 { // it became shorter
			return w.f.size, err
		}
		// The magic is 2; what lies before the next 2 needs no look.
		if at := bytes.IndexByte(b[min(batchMagicAt, len(b)):], 2); at < 0 {
			from := pos + int64(len(b))
			if isZero(b) {
				if from, err = w.behindHole(from); err != nil {
					return 0, err
				}
			}
			pos = max(pos, from-batchMagicAt-1)
			continue
		} else if pos += int64(at); pos+batch.HeaderSize > w.f.size {
			break
		} else if b, err = w.bytes(pos, batch.HeaderSize); err != nil {
			return 0, err
		}
		if h := header(b); len(b) < batch.HeaderSize || b[batchMagicAt] != 2 || h.base() < next || h.last() < h.base() || h.last() >= bound {
			continue
		}
		whole, _, err := w.batch(pos)
		if err != nil {
			return 0, err
		}
		if whole != nil {
			return pos, nil
		}
	}
	return w.f.size, nil
}
