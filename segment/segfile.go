package segment

import (
	"kring/ring"
)

// segment is one .log file and its indexes. The last one of a log is active: it takes appends.
type segment struct {
	log  *Log
	base Offset
	next Offset // after the last record
	size int64  // bytes assigned
	// written bytes are on file; what lies behind is pending or being written.
	written int64
	synced  bool // finished: closed, and file and indexes are durable
	closed  bool // takes no more appends
	trimmed bool // closed, and bytes and size are durable
	gone    bool // deleted
	damaged bool // found so, and said
	// endKnown: the file is known to end with its last batch; that of a segment found at the start is looked at when it is read.
	endKnown bool

	file     ring.File
	writable bool
	opening  bool
	create   bool // the file is not there yet
	fresh    bool // nothing was ever written
	waiting  []func(error)
	openOp   ring.Op
	pins     int // ranges and tasks that use the file
	older    *segment
	newer    *segment
	listed   bool

	index    indexFile
	times    indexFile
	txns     txnIndex
	onDisk   bool // index files exist
	mending  mending
	txnDirty bool
	sinceIdx int64 // bytes appended since the last index entry
	firstMs  int64 // largest timestamp of the first batch, what segment.ms counts from
	maxMs    int64 // largest timestamp
	maxLast  Offset
	maxKnown bool
	tailMs   int64 // the largest timestamp behind the offset index's last entry, once that was looked at; else 0
	lastMs   int64 // of the last time entry
	modMilli int64
	jitterMs int64 // taken from segment.ms, so that not all logs roll at once

	pending  [][]byte
	snapshot []byte // producer state as of next, written when the segment is finished

	room preallocation
}

func (l *Log) newSegment(base Offset) *segment {
	jitter := int64(0)
	if most := min(l.conf.SegmentJitterMs, l.conf.SegmentMs); most > 0 {
		jitter = l.loop.Rand().Int64N(most)
	}
	return &segment{
		jitterMs: jitter,
		log:      l, endKnown: true, base: base, next: base, firstMs: noTimestamp, maxMs: noTimestamp, maxLast: base, maxKnown: true,
		index: indexFile{width: indexEntry, absent: true}, times: indexFile{width: timeEntry, absent: true}, modMilli: l.loop.UnixMilli(),
	}
}

func (s *segment) path(suffix string) string { return s.log.dir + "/" + fileName(s.base, suffix) }

func (s *segment) relative(o Offset) int32 { return int32(o - s.base) }

// addIndex adds the entry of a batch that ends at last and begins at position.
func (s *segment) addIndex(last Offset, position int64) {
	s.index.mem = offsetIndex(s.index.mem).add(s.relative(last), int32(position))
	s.addTime()
}

// addTime notes the largest timestamp so far.
func (s *segment) addTime() {
	if s.maxMs > s.lastTime() {
		s.times.mem = timeIndex(s.times.mem).add(s.maxMs, s.relative(s.maxLast))
		s.lastMs = s.maxMs
	}
}

// lastTime is the last time entry's, in memory or not.
func (s *segment) lastTime() int64 {
	if s.times.len() == 0 {
		return noTimestamp
	}
	return s.lastMs
}

// note updates what a batch changes: the largest timestamp.
func (s *segment) note(h header) {
	if ms := h.maxTime(); ms > s.maxMs {
		s.maxMs, s.maxLast = ms, h.last()
	}
}

// noteBatch notes a batch at the end of what there is, with an index entry if more than interval bytes came since the last one.
func (s *segment) noteBatch(h header, interval int64) {
	if s.size == 0 {
		s.firstMs = h.maxTime()
	}
	s.note(h)
	if s.sinceIdx > interval {
		s.addIndex(h.last(), s.size)
		s.sinceIdx = 0
	}
	s.sinceIdx += h.size()
	s.size += h.size()
}

// full says whether an index can take no more.
func (s *segment) full(c *Config) bool {
	return int64(s.index.len()) >= c.IndexMaxBytes/indexEntry || int64(s.times.len()) >= c.IndexMaxBytes/timeEntry-1
}

// whenOpen calls then when the file is open: at once if it is, else later.
func (s *segment) whenOpen(then func(error)) {
	if s.file != nil {
		s.log.files.touch(s)
		then(nil)
		return
	}
	s.waiting = append(s.waiting, then)
	if s.opening {
		return
	}
	s.opening = true
	s.writable = !s.synced
	var how ring.OpenFlag
	if s.writable {
		how = ring.Write
	}
	if s.create {
		how |= ring.Create | ring.Cut
	}
	s.openOp.Done = func(op *ring.Op) {
		s.opening = false
		if op.Err == nil {
			if s.create {
				s.log.namesDirty = true // a sync of the directory that came before has not had the name
			}
			s.file, s.create = op.File, false
			s.log.files.opened(s)
			if s.gone && s.pins == 0 || s.log.closed {
				s.close()
			}
		}
		waiting := s.waiting
		s.waiting = nil
		for _, then := range waiting {
			then(op.Err)
		}
	}
	s.log.loop.Open(s.path(logSuffix), how, &s.openOp)
}

// open is whenOpen for a task.
func (s *segment) open(t *ring.Task) error {
	if s.file != nil {
		s.log.files.touch(s)
		return nil
	}
	var err error
	t.Suspend(func(wake func()) {
		s.whenOpen(func(e error) {
			err = e
			wake()
		})
	})
	if err == nil && s.file == nil {
		return ErrClosed
	}
	return err
}

func (s *segment) pin() { s.pins++ }

func (s *segment) unpin() {
	s.pins--
	if s.pins < 0 {
		panic("segment: unpinned more often than pinned")
	}
	if s.pins == 0 && (s.gone || s.log.closed) {
		s.close()
	}
	if s.pins == 0 && s.log.reverting {
		s.log.notify()
	}
}

// idle says whether the file may be closed and opened again later.
func (s *segment) idle() bool {
	return s.pins == 0 && len(s.pending) == 0 && s.log.writing != s && !s.opening && !s.room.busy && s.log.syncing != s
}

func (s *segment) close() {
	if s.file == nil {
		return
	}
	s.log.files.closed(s)
	s.file.Close()
	s.file = nil
	if s.synced {
		s.index.drop()
		s.times.drop()
	}
}
