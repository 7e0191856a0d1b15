package segment

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sort"

	"kring/ring"
)

// Log is the log of one partition.
type Log struct {
	// OnWritten is called after Written has risen and the appends' Done were called.
	OnWritten func()
	// OnFail is called once when the log goes offline.
	OnFail func(error)
	// OnFinished is called when a rolled segment is finished, and could be cleaned.
	OnFinished func()
	// OnChange is called, often, when what checkpoint files say of the log, or its high watermark, may have changed.
	OnChange func()

	loop  ring.Loop
	dir   string
	id    TopicID
	conf  Config
	files *Files
	log   *slog.Logger

	segs    []*segment // by base; the last is active
	start   Offset
	end     Offset // of what was appended
	written Offset // of what is on file
	durable Offset // of what was synced
	cleaned Offset // below it the log was cleaned; 0: never

	prods  producers
	epochs epochs
	recent recentBatches

	writing    *segment // whose write is under way
	target     *segment // to whom pending bytes go next
	inflight   [][]byte
	writeBytes int64
	writeEnd   Offset
	writeOp    ring.Op
	turnOp     ring.Op
	turnArmed  bool
	waiters    waitlist // for the write
	syncers    waitlist // for the sync

	syncing    *segment
	syncEnd    Offset // the sync under way makes this durable
	syncWanted Offset
	syncOp     ring.Op
	flushTimer ring.Timer
	flushArmed bool
	namesDirty bool // names in the directory are not durable
	// parentDirty: the directory's own name is not.
	parentDirty bool

	finishing  bool // a task works on rolled segments
	cramped    bool // and has no room to
	spilling   bool // a task writes the active segment's indexes
	removals   int  // tasks that rename deleted segments
	mendArmed  bool // a task makes index files anew
	mendings   int  // and replaces some now
	epochsBusy bool
	epochsNew  bool
	idleEnd    Offset // End at the last Retain
	changed    []func()

	cleaning  bool // a task cleans
	cleanStop bool // and shall end
	swapping  bool // it exchanges segments
	retired   []*retired
	retaining bool // a task finds out what to delete
	cuts      int  // how often the log was cut off

	reverting bool // a full disk is being recovered from
	closing   bool
	closed    bool
	// closedCleanly: the files are as a clean stop leaves them.
	closedCleanly bool
	suspect       bool // what is on file may not be on disk
	failed        error
	tasks         []*ring.Task
}

// Dir is "<logdir>/<topic>-<partition>".
func (l *Log) Dir() string { return l.dir }

// TopicID is that of partition.metadata, zero if there is none.
func (l *Log) TopicID() TopicID { return l.id }

// SetConfig changes the settings from the next append on. A log that is no longer compacted is not cleaned to the end.
func (l *Log) SetConfig(c Config) {
	stop := l.cleaning && l.conf.Compact && !c.Compact
	if l.conf = c; stop {
		l.StopCleaning()
	}
}

// Config is the present one.
func (l *Log) Config() Config { return l.conf }

// Start is the log start offset.
func (l *Log) Start() Offset { return l.start }

// End is the offset the next record gets.
func (l *Log) End() Offset { return l.end }

// Written is the end of what is on file and can be read.
func (l *Log) Written() Offset { return l.written }

// Durable is the offset below which everything survives a power cut.
func (l *Log) Durable() Offset { return l.durable }

// RecoveryPoint is what the checkpoint file must hold: segments wholly below it are trusted after an unclean stop. It is Durable
// but for a segment whose bytes are durable and whose indexes and size are not: that one has to be read again, even if
// others have been begun behind it by then.
func (l *Log) RecoveryPoint() Offset {
	if l.closedCleanly {
		return l.durable
	}
	for _, s := range l.segs {
		if !s.synced {
			if l.durable >= s.next && s.next > s.base {
				return s.next - 1
			}
			break
		}
	}
	return l.durable
}

// StartCheckpoint is the log start offset if the checkpoint file must hold it: it is not the first segment's own.
func (l *Log) StartCheckpoint() (Offset, bool) { return l.start, l.start > l.segs[0].base }

// Size is the bytes of all segments.
func (l *Log) Size() int64 {
	n := int64(0)
	for _, s := range l.segs {
		n += s.size
	}
	return n
}

// Segments is how many segments there are.
func (l *Log) Segments() int { return len(l.segs) }

// SegmentBase is the first offset of the segment that holds o.
func (l *Log) SegmentBase(o Offset) Offset { return l.segs[l.floor(o)].base }

// Failed is nil, or why the log takes no appends: ErrOffline with its cause, or ErrClosed.
func (l *Log) Failed() error {
	if l.failed == nil && l.closed {
		return ErrClosed
	}
	return l.failed
}

// HighWatermark tells the log how far its records are committed: completed transactions below become stable.
func (l *Log) HighWatermark(hw Offset) {
	l.prods.highWatermark(hw)
	l.touched()
}

func (l *Log) touched() {
	if l.OnChange != nil {
		l.OnChange()
	}
}

// FirstUnstable is the first offset of the earliest transaction that is open, or whose marker is not below the high
// watermark; false if there is none. The last stable offset is the lesser of it and the high watermark.
func (l *Log) FirstUnstable() (Offset, bool) {
	o, ok := l.prods.firstUnstable()
	return max(o, l.start), ok
}

// OpenTxns calls told for each transaction that has no marker, in the order of their first offsets.
func (l *Log) OpenTxns(told func(producer int64, first Offset)) {
	for _, x := range l.prods.open {
		told(x.producerID, max(x.first, l.start))
	}
}

// Aborted appends to dst the aborted transactions that overlap the offsets from first up to, not including, end.
func (l *Log) Aborted(dst []AbortedTxn, first, end Offset) []AbortedTxn {
	for _, s := range l.segs[l.floor(first):] {
		for i := range s.txns.len() {
			a := s.txns.at(i)
			if a.Last >= first && a.First < end {
				dst = append(dst, a)
			}
			if a.LastStable >= end {
				return dst
			}
		}
	}
	return dst
}

// AbortedIn is Aborted for who reads r, from first on and below upTo. How far r reaches is told by the newest batches, roughly by
// the index, or by the end of the segment: what of them is in memory.
func (l *Log) AbortedIn(dst []AbortedTxn, first, upTo Offset, r *Range) []AbortedTxn {
	s := r.seg
	if s == nil || r.Len == 0 {
		return dst
	}
	end := s.next
	x := offsetIndex(s.index.mem)
	if i, ok := l.recent.reach(first); ok {
		behind := func(b recentBatch) bool {
			return b.base >= s.next || b.base >= s.base && int64(b.position) >= r.From+r.Len
		}
		if i += sort.Search(l.recent.n-i, func(n int) bool { return behind(l.recent.at(i + n)) }); i < l.recent.n {
			end = min(end, l.recent.at(i).base)
		}
	} else if n := sort.Search(x.len(), func(i int) bool { _, p := x.at(i); return int64(p) >= r.From+r.Len }); n < x.len() {
		relative, _ := x.at(n)
		end = s.base + Offset(relative)
	}
	return l.Aborted(dst, first, min(end, upTo))
}

func (l *Log) active() *segment { return l.segs[len(l.segs)-1] }

// floor is the index of the segment that holds o, the first if o lies before it.
func (l *Log) floor(o Offset) int {
	n := len(l.segs)
	if n == 1 || o >= l.segs[n-1].base {
		return n - 1
	}
	return max(sort.Search(n, func(i int) bool { return l.segs[i].base > o })-1, 0)
}

// fail takes the log offline for ever: every waiter is told, nothing is tried again.
func (l *Log) fail(what string, cause error) {
	if l.failed != nil || l.closed {
		return
	}
	l.warn("the log is offline until it is opened again", "what", what, "cause", cause)
	l.offline(fmt.Errorf("%w: %s of %s: %w", ErrOffline, what, l.dir, cause))
}

// Fail takes the log offline because something else in its log dir has failed, as if it were a write of its own.
func (l *Log) Fail(cause error) {
	if l.failed == nil && !l.closed {
		l.offline(fmt.Errorf("%w: the log dir of %s: %w", ErrOffline, l.dir, cause))
	}
}

func (l *Log) offline(err error) {
	l.failed = err
	l.refuseAll(l.failed)
	if l.OnFail != nil {
		l.OnFail(l.failed)
	}
	l.notify()
}

// refuseAll answers every append that waits with err, but for those whose bytes the kernel still reads: they follow when their
// write is over.
func (l *Log) refuseAll(err error) {
	for l.syncers.head != nil {
		a := l.syncers.pop()
		a.Err = err
		a.Done(a)
	}
	l.refuseUnwritten(err)
}

func (l *Log) refuseUnwritten(err error) {
	var keep waitlist
	for a := l.waiters.takeAll(); a != nil; {
		next := a.next
		if l.writing != nil && a.Last < l.writeEnd {
			keep.push(a)
		} else {
			a.next, a.Err = nil, err
			a.Done(a)
		}
		a = next
	}
	if keep.head != nil {
		if keep.tail.next = l.waiters.head; l.waiters.tail == nil { // a Done may have appended again
			l.waiters.tail = keep.tail
		}
		l.waiters.head = keep.head
	}
}

func (l *Log) warn(text string, args ...any) { l.logAt(slog.LevelWarn, text, args...) }

func (l *Log) logAt(level slog.Level, text string, args ...any) {
	if l.log != nil {
		l.log.With("log", l.dir).Log(context.Background(), level, text, args...)
	}
}

// notify wakes what waits for something to change.
func (l *Log) notify() {
	l.touched()
	woken := l.changed
	l.changed = nil
	for _, wake := range woken {
		wake()
	}
}

// until waits in t until ok holds; it is looked at again after each step of the log.
func (l *Log) until(t *ring.Task, ok func() bool) {
	for !ok() {
		t.Suspend(func(wake func()) { l.changed = append(l.changed, wake) })
	}
}

// later runs fn as a task that may sleep for long; it is stopped when the log is closed.
func (l *Log) later(fn func(*ring.Task)) {
	l.tasks = slices.DeleteFunc(l.tasks, (*ring.Task).Finished)
	if t := ring.Go(l.loop, fn); !t.Finished() {
		l.tasks = append(l.tasks, t)
	}
}

// waitlist is a queue of appends.
type waitlist struct{ head, tail *Append }

func (w *waitlist) push(a *Append) {
	a.next = nil
	if w.tail == nil {
		w.head = a
	} else {
		w.tail.next = a
	}
	w.tail = a
}

func (w *waitlist) pop() *Append {
	a := w.head
	w.head = a.next
	if w.head == nil {
		w.tail = nil
	}
	a.next = nil
	return a
}

func (w *waitlist) takeAll() *Append {
	a := w.head
	w.head, w.tail = nil, nil
	return a
}
