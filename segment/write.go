package segment

import (
	"path"
	"time"

	"kring/ring"
)

// Writing. One write per log is under way; what comes meanwhile is gathered for the next. So positions need no order among
// completions, and a slow disk makes the writes larger, not more.

// armTurn sees to it that what is pending leaves at the end of this turn.
func (l *Log) armTurn() {
	if l.turnArmed {
		return
	}
	l.turnArmed = true
	l.loop.AtTurnEnd(&l.turnOp)
}

func (l *Log) onTurnEnd(*ring.Op) {
	l.turnArmed = false
	l.settle() // duplicates of what is written already
	l.pump()
	l.sync() // which a duplicate may want of what was written in an earlier life
}

// pump starts the next write if there is one to do and none under way.
func (l *Log) pump() {
	if l.writing != nil || l.failed != nil || l.closed || l.reverting {
		return
	}
	s := l.target
	for len(s.pending) == 0 && s.closed {
		s = l.after(s)
		l.target = s
	}
	if len(s.pending) == 0 {
		return
	}
	if s.file == nil {
		s.whenOpen(l.onOpen)
		return
	}
	if l.conf.Preallocate && s.fresh {
		l.preset(s)
		return
	}
	if s.holdsBack(s.size) {
		return // afterReserve goes on
	}
	s.fresh = false
	l.writing = s
	l.writeBytes, l.writeEnd = s.size-s.written, s.next
	l.inflight, s.pending = s.pending, l.inflight
	s.file.Write(l.inflight, s.written, &l.writeOp)
	s.reserve(&l.conf)
}

// after is the segment behind s.
func (l *Log) after(s *segment) *segment { return l.segs[l.floor(s.base)+1] }

func (l *Log) onOpen(err error) {
	switch {
	case err == nil:
		l.pump()
		l.sync()
		l.startFinishing()
	case ring.NoSpace(err), ring.NoDescriptors(err):
		l.revert(err)
	default:
		l.fail("opening a segment", err)
	}
}

// preset gives a new file its full size, as preallocate=true asks for.
func (l *Log) preset(s *segment) {
	r := &s.room
	if r.busy {
		return
	}
	r.busy = true
	r.op.Done = func(op *ring.Op) {
		r.busy = false
		switch {
		case op.Err == nil:
			r.preset, r.end, s.fresh = true, l.conf.SegmentBytes, false
			l.pump()
		case ring.NoSpace(op.Err):
			l.revert(op.Err)
		default:
			l.fail("presetting a segment", op.Err)
		}
		l.afterReserve()
	}
	s.file.Truncate(l.conf.SegmentBytes, &r.op)
}

// afterReserve goes on with what waited for a reservation to end.
func (l *Log) afterReserve() {
	l.pump()
	l.notify()
}

func (l *Log) onWritten(op *ring.Op) {
	s := l.writing
	l.writing = nil
	clear(l.inflight)
	l.inflight = l.inflight[:0]
	switch {
	case l.closed, l.failed != nil:
		l.refuseAll(l.Failed())
		l.notify()
		return
	case ring.NoSpace(op.Err):
		l.revert(op.Err)
		return
	case op.Err != nil:
		l.fail("a write", op.Err)
		return
	}
	s.written += l.writeBytes
	l.written = l.writeEnd
	l.files.touch(s)
	if len(l.files.cramped) > 0 {
		l.roomAgain()
	}
	l.settle()
	if l.OnWritten != nil {
		l.OnWritten()
	}
	l.sync()
	l.armFlush()
	if s.closed && len(s.pending) == 0 {
		l.startFinishing()
	}
	if l.target.size > l.target.written || l.target.closed {
		l.armTurn()
	}
	l.check()
	l.notify()
}

// settle answers the appends that have what they waited for.
func (l *Log) settle() {
	for l.waiters.head != nil && l.waiters.head.Last < l.written {
		a := l.waiters.pop()
		if a.needSync && a.Last >= l.durable {
			l.syncers.push(a)
			continue
		}
		a.Done(a)
	}
	for l.syncers.head != nil && l.syncers.head.Last < l.durable {
		a := l.syncers.pop()
		a.Done(a)
	}
}

// sync starts a sync of the first segment with bytes that are not durable, if one is wanted. Rolled segments are synced by
// finish, too, but that may be held up by a full disk.
func (l *Log) sync() {
	if l.syncWanted <= l.durable || l.written <= l.durable || l.syncing != nil || l.failed != nil || l.closed || l.reverting {
		return
	}
	i := l.floor(l.durable)
	for l.segs[i].closed && l.durable >= l.segs[i].next {
		i++
	}
	s := l.segs[i]
	if s.file == nil {
		s.whenOpen(l.onOpen)
		return
	}
	l.syncing, l.syncEnd = s, l.written
	if s.closed {
		l.syncEnd = min(l.written, s.next)
	}
	s.file.Sync(&l.syncOp)
}

func (l *Log) onSynced(op *ring.Op) {
	s := l.syncing
	if op.Err == nil && l.namesDirty && !l.closed && l.failed == nil {
		l.namesDirty = false
		l.loop.SyncDir(l.dir, &l.syncOp)
		return
	}
	if op.Err == nil && l.parentDirty && !l.closed && l.failed == nil {
		l.parentDirty = false
		l.loop.SyncDir(path.Dir(l.dir), &l.syncOp)
		return
	}
	l.syncing = nil
	if l.closed || l.failed != nil || s == nil {
		l.notify()
		return
	}
	if op.Err != nil {
		l.fail("a sync", op.Err)
		return
	}
	l.raiseDurable(l.syncEnd)
}

// raiseDurable notes that everything below o survives a power cut.
func (l *Log) raiseDurable(o Offset) {
	if o > l.durable {
		l.durable = o
		l.settle()
		l.check()
	}
	l.sync()
	l.notify()
}

// armFlush sets the timer of flush.ms if there is something to flush.
func (l *Log) armFlush() {
	if l.flushArmed || l.conf.FlushMs > 1<<40 || l.durable >= l.written {
		return
	}
	l.flushArmed = true
	l.loop.After(time.Duration(l.conf.FlushMs)*time.Millisecond, &l.flushTimer)
}

func (l *Log) onFlushTimer(*ring.Timer) {
	l.flushArmed = false
	if l.failed != nil || l.closed {
		return
	}
	l.syncWanted = max(l.syncWanted, l.written)
	l.sync()
	l.armFlush()
}
