package segment

import (
	"io"
	"log/slog"

	"kring/ring"
)

// DirOptions say what a log dir should be.
type DirOptions struct {
	// ClusterID and BrokerID must be those of meta.properties; it is written if absent. An empty ClusterID and a negative
	// BrokerID are not compared (see Dir.Meta).
	ClusterID string
	BrokerID  int32
	Log       *slog.Logger
}

// Meta is meta.properties.
type Meta struct {
	ClusterID string
	BrokerID  int32
}

// Partition is a partition's name.
type Partition struct {
	Topic string
	Index int32
}

// Checkpoint is a line of a checkpoint file.
type Checkpoint struct {
	Partition
	Offset Offset
}

// Dir is a log dir, owned by the loop that opened it. It holds .lock until Close or Abandon.
type Dir struct{}

// ReadMeta reads meta.properties of a log dir; false if there is none.
func ReadMeta(t *ring.Task, path string) (Meta, bool, error) { panic("todo") }

// OpenDir makes (if absent), locks and reads a log dir, removes its clean-stop marker and lists its partitions. Every error is
// a reason not to start, in one line.
func OpenDir(t *ring.Task, path string, o DirOptions) (*Dir, error) { panic("todo") }

// WriteMeta writes meta.properties if it is absent. (OpenDir with an empty ClusterID does not: the cluster's id is only known
// once the store, which lies in the dir, is open.)
func (d *Dir) WriteMeta(t *ring.Task, m Meta) error { return nil }

// Path is the log dir's path.
func (d *Dir) Path() string { return "" }

// Clean says whether the last stop was clean.
func (d *Dir) Clean() bool { return false }

// Partitions lists the partitions found, sorted by name.
func (d *Dir) Partitions() []Partition { return nil }

// Options are those to open a partition's log with, found or new; Config, Files and TopicID are the caller's.
func (d *Dir) Options(p Partition) Options { return Options{} }

// HighWatermarks are those checkpointed at the last stop.
func (d *Dir) HighWatermarks() map[Partition]Offset { return nil }

// DeleteLeftovers removes the "-delete" directories found at start after delayMs; it returns at once.
func (d *Dir) DeleteLeftovers(delayMs int64) {}

// WriteRecoveryPoints writes recovery-point-offset-checkpoint; WriteLogStarts and WriteHighWatermarks likewise.
func (d *Dir) WriteRecoveryPoints(t *ring.Task, all []Checkpoint) error { return nil }

// WriteLogStarts writes log-start-offset-checkpoint: only logs whose start is not that of their first segment.
func (d *Dir) WriteLogStarts(t *ring.Task, all []Checkpoint) error { return nil }

// WriteHighWatermarks writes replication-offset-checkpoint.
func (d *Dir) WriteHighWatermarks(t *ring.Task, all []Checkpoint) error { return nil }

// Close writes the clean-stop marker (only if every log was closed without error: clean) and lets the lock go.
func (d *Dir) Close(t *ring.Task, clean bool) error { return nil }

// OpenAll opens logs, parallel at a time, on the calling loop; opened is called after each, finished last.
func OpenAll(loop ring.Loop, all []Options, parallel int, opened func(i int, l *Log, err error), finished func()) {
}

// DumpOptions are those of kafka-dump-log.
type DumpOptions struct {
	PrintDataLog      bool
	DeepIteration     bool
	IndexSanity       bool
	VerifyIndexOnly   bool
	SkipBatchMetadata bool
	// Open gives a file by name and its size.
	Open func(name string) (io.ReaderAt, int64, error)
}

// Dump prints files as Kafka's DumpLogSegments does.
func Dump(w io.Writer, files []string, o DumpOptions) error { return nil }
