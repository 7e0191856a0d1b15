package segment

import "kring/ring"

type segment struct{}

// Files is the open files of a loop's logs.
type Files struct{}

// Log is the log of one partition.
type Log struct {
	// OnWritten is called after Written has risen and the appends' Done were called.
	OnWritten func()
	// OnFail is called once when the log goes offline.
	OnFail func(error)
}

// NewFiles makes the shared set of open files of a loop: at most limit are kept open while nothing uses them.
func NewFiles(loop ring.Loop, limit int) *Files { panic("todo") }

// Open opens or creates the log in o.Dir, recovering it if the stop was not clean.
func Open(t *ring.Task, o Options) (*Log, error) { panic("todo") }

// Append assigns offsets and queues a's batches; see Append's fields.
func (l *Log) Append(a *Append) { panic("todo") }

// Read finds the batches from offset from on, below upTo, at most maxBytes (the first batch is given whole all the same if
// firstWhole). It returns true if r holds the answer now; else r.Done is called later.
func (l *Log) Read(from, upTo Offset, maxBytes int, firstWhole bool, r *Range) bool { panic("todo") }

// Unpin lets the range's file go; it may be called on an empty range.
func (r *Range) Unpin() {}

// Dir is "<logdir>/<topic>-<partition>".
func (l *Log) Dir() string { return "" }

// TopicID is that of partition.metadata, zero if there is none.
func (l *Log) TopicID() TopicID { return TopicID{} }

// SetTopicID writes partition.metadata if there is none; ErrTopicID if it says otherwise.
func (l *Log) SetTopicID(t *ring.Task, id TopicID) error { return nil }

// SetConfig changes the settings from the next append on.
func (l *Log) SetConfig(c Config) {}

// Config is the present one.
func (l *Log) Config() Config { return Config{} }

// Start is the log start offset.
func (l *Log) Start() Offset { return 0 }

// End is the offset the next record gets.
func (l *Log) End() Offset { return 0 }

// Written is the end of what is on file and can be read.
func (l *Log) Written() Offset { return 0 }

// Durable is the recovery point: everything below survives a power cut.
func (l *Log) Durable() Offset { return 0 }

// Size is the bytes of all segments.
func (l *Log) Size() int64 { return 0 }

// SegmentBase is the first offset of the segment that holds o.
func (l *Log) SegmentBase(o Offset) Offset { return 0 }

// Failed is nil, ErrOffline's cause wrapped, or ErrClosed.
func (l *Log) Failed() error { return nil }

// HighWatermark tells the log how far its records are committed: completed transactions below become stable.
func (l *Log) HighWatermark(hw Offset) {}

// FirstUnstable is the first offset of the earliest transaction that is open, or whose marker is not below the high
// watermark; false if there is none. The last stable offset is the lesser of it and the high watermark.
func (l *Log) FirstUnstable() (Offset, bool) { return 0, false }

// Aborted appends to dst the aborted transactions that overlap the offsets from first up to, not including, end.
func (l *Log) Aborted(dst []AbortedTxn, first, end Offset) []AbortedTxn { return dst }

// AssignEpoch notes that leader epoch begins at the end of the log (a new leader does so, with or without records).
func (l *Log) AssignEpoch(epoch int32) {}

// LatestEpoch is the last leader epoch known, -1 for none.
func (l *Log) LatestEpoch() int32 { return -1 }

// EpochAt is the leader epoch of the record at o, -1 if unknown.
func (l *Log) EpochAt(o Offset) int32 { return -1 }

// EndOffsetForEpoch answers OffsetsForLeaderEpoch.
func (l *Log) EndOffsetForEpoch(epoch int32) EpochEnd { return EpochEnd{} }

// OffsetForTime finds the first record whose timestamp is ms or later.
func (l *Log) OffsetForTime(t *ring.Task, ms int64) (TimeOffset, error) { panic("todo") }

// MaxTimestamp finds the first record that has the largest timestamp of the log.
func (l *Log) MaxTimestamp(t *ring.Task) (TimeOffset, error) { panic("todo") }

// DeleteTo raises the log start offset (DeleteRecords); ErrOutOfRange beyond Written. Segments go with the next Retain.
func (l *Log) DeleteTo(o Offset) error { return nil }

// Retain deletes segments by age, size and log start, none that reaches above the high watermark; now is ms of wall clock.
// It returns how many went.
func (l *Log) Retain(t *ring.Task, now int64, highWatermark Offset) (int, error) { return 0, nil }

// Roll begins a new segment at the end of the log, if the active one holds anything.
func (l *Log) Roll() {}

// Flush makes everything appended so far durable.
func (l *Log) Flush(t *ring.Task) error { return nil }

// TruncateTo takes back every record from o on (a follower does so, never a leader).
func (l *Log) TruncateTo(t *ring.Task, o Offset) error { return nil }

// Close flushes and closes the log so that a clean start may trust it.
func (l *Log) Close(t *ring.Task) error { return nil }

// Abandon closes the files and nothing else: the next start recovers.
func (l *Log) Abandon() {}

// Remove renames the directory to "<topic>-<partition>.<uuid>-delete" and removes it after file.delete.delay.ms.
func (l *Log) Remove(t *ring.Task) error { return nil }
