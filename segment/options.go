package segment

import (
	"log/slog"

	"kring/ring"
)

// Offset is the place of a record in a partition.
type Offset int64

// TopicID is Kafka's topic id; zero means none.
type TopicID [16]byte

// Config is what a topic's settings say about its logs; field names follow Kafka's keys.
type Config struct {
	SegmentBytes       int64   // segment.bytes
	SegmentMs          int64   // segment.ms
	SegmentJitterMs    int64   // segment.jitter.ms
	IndexIntervalBytes int64   // index.interval.bytes
	IndexMaxBytes      int64   // segment.index.bytes
	RetentionMs        int64   // retention.ms, -1 for ever
	RetentionBytes     int64   // retention.bytes, -1 no limit
	DeleteRetained     bool    // cleanup.policy contains delete
	Compact            bool    // cleanup.policy contains compact: offsets may have gaps
	DeleteRetentionMs  int64   // delete.retention.ms
	MinDirtyRatio      float64 // min.cleanable.dirty.ratio; for those who choose what to clean
	MinLagMs           int64   // min.compaction.lag.ms
	MaxLagMs           int64   // max.compaction.lag.ms
	FlushMessages      int64   // flush.messages
	FlushMs            int64   // flush.ms
	FileDeleteDelayMs  int64   // file.delete.delay.ms
	ProducerExpireMs   int64   // producer.id.expiration.ms
	Preallocate        bool    // preallocate
	// RollDirtyBytes, if not 0, lets the active segment end when it is larger than this and than all that was cleaned, so that
	// it can be cleaned, too. Kafka has no such thing.
	RollDirtyBytes int64
}

// DefaultConfig is Kafka's.
func DefaultConfig() Config {
	return Config{
		SegmentBytes: 1 << 30, SegmentMs: 7 * 24 * 3600 * 1000, IndexIntervalBytes: 4096, IndexMaxBytes: 10 << 20,
		RetentionMs: 7 * 24 * 3600 * 1000, RetentionBytes: -1, DeleteRetained: true,
		FlushMessages: 1<<63 - 1, FlushMs: 1<<63 - 1, FileDeleteDelayMs: 60_000, ProducerExpireMs: 24 * 3600 * 1000,
		DeleteRetentionMs: 24 * 3600 * 1000, MaxLagMs: 1<<63 - 1,
	}
}

// Options say how to open a log. Dir.Options fills in all but Config, Files and TopicID.
type Options struct {
	// Dir is the partition's directory, "<logdir>/<topic>-<partition>"; it is made if absent.
	Dir string
	// Config may be changed later by SetConfig.
	Config Config
	// TopicID, if not zero, must be that of partition.metadata, which is written if absent.
	TopicID TopicID
	// Clean says that the log dir had its clean-stop marker: the files are trusted.
	Clean bool
	// Suspect says that the log dir failed in an earlier life (Dir.Suspect): the page cache may show what the disk never got. What is
	// recovered is written anew, and durable before anybody relies on it.
	Suspect bool
	// RecoveryPoint and LogStart are the checkpointed offsets (Log.RecoveryPoint, Log.StartCheckpoint), 0 if there are none.
	RecoveryPoint, LogStart Offset
	// Cleaned is the checkpointed offset below which the log was cleaned (Log.Cleaned), 0 if it never was.
	Cleaned Offset
	// Files is shared by all logs of a loop; nil gives the log its own.
	Files *Files
	// Log is where warnings go; nil is nowhere.
	Log *slog.Logger

	// Progress, if set, counts what is recovered; logs of one loop may share it.
	Progress *Progress

	// rebuild has all segments from that offset on read and their indexes made anew, whatever the stop was; nil: none.
	rebuild    *Offset
	recollect  bool   // the leader epochs, from the batches
	recovering *turns // nil: as many at a time as there are
}

// Progress is how recovery gets on.
type Progress struct {
	// Left is how many segments are still to be read, of the logs that are being recovered; Segments how many have been.
	Left, Segments int
	// Bytes have been read and checked.
	Bytes int64
	// GivenUp is set to end it: a log that is being recovered then fails with ErrGivenUp as soon as the piece at hand is read, and OpenAll
	// opens no further one. What they were recovered from is as good as before.
	GivenUp bool
}

// Origin says who appends, which decides what is checked.
type Origin uint8

const (
	// FromClient: offsets are assigned, sequences checked, duplicates answered.
	FromClient Origin = iota
	// FromCoordinator: offsets are assigned, epochs checked, sequences not; control batches are allowed.
	FromCoordinator
	// FromLeader: a replica's copy: offsets and leader epochs are in the batches, producers are followed, not checked.
	FromLeader
)

// Append is one request to append; the caller owns it and may reuse it once Done has begun.
type Append struct {
	// Data is one or more whole record batches, already checked. Their offsets and leader epoch are stamped in place;
	// it must stay unchanged until Done.
	Data []byte
	// LeaderEpoch is stamped into the batches.
	LeaderEpoch int32
	// Origin decides about offsets and checks.
	Origin Origin
	// Done is called once, never inside Append, unless Append refused (Err is set on return): with Err nil the bytes are
	// written, and durable if this append reached flush.messages.
	Done func(*Append)

	// Base and Last are the first and last offset, those of the original for a duplicate.
	Base, Last Offset
	// Duplicate: the producer sent this batch before; nothing was appended.
	Duplicate bool
	// Timestamp is, for a duplicate, the original batch's largest timestamp in ms.
	Timestamp int64
	// Err says why it was refused or has failed.
	Err error

	next     *Append
	needSync bool
}

// Range is an answer of Read: a piece of a segment file, pinned until Unpin.
type Range struct {
	// Done is called if Read returned false, later on the loop.
	Done func(*Range)

	// File, From and Len say where the bytes are; Len may be 0 and File nil then. From is the start of a batch. The last
	// batch may be cut off by the byte limit, as Kafka's is.
	File ring.File
	From int64
	Len  int64
	// Base is the first offset of the first batch, not greater than the offset asked for (but for gaps).
	Base Offset
	// More says that readable batches were left out: there was no room for them, or they lie in another segment.
	More bool
	// Err is ErrOutOfRange, ErrOffline, ErrClosed or an I/O error.
	Err error

	seg *segment
}

// AbortedTxn is an aborted transaction: skip the producer's transactional records from First on, up to its marker.
type AbortedTxn struct {
	ProducerID  int64
	First, Last Offset
	LastStable  Offset
}

// TimeOffset is a record found by time: Timestamp in ms, its offset, and the leader epoch of its batch. Offset is -1 if
// there is none.
type TimeOffset struct {
	Timestamp   int64
	Offset      Offset
	LeaderEpoch int32
}

// EpochEnd is an answer to the question where a leader epoch ended; -1 and -1 if unknown.
type EpochEnd struct {
	Epoch int32
	End   Offset
}
