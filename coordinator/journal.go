package coordinator

// Record is a record of the journal. A nil Value is a tombstone: the key has no value any longer.
type Record struct {
	Key, Value []byte
}

// Batch is what is written at once, as one record batch.
type Batch struct {
	Records   []Record
	UnixMilli int64 // the records' timestamp

	// Commit marks a batch of committed offsets: its base sequence is 0, where all others have -1, as Kafka writes them.
	Commit bool

	// Transactional commits are in force once the producer's commit marker is in the journal.
	Transactional bool
	ProducerID    int64 // -1 if not Transactional
	ProducerEpoch int16 // -1 if not Transactional
}

// Journal is what a Shard writes to: a partition of __consumer_offsets, or a test's list.
type Journal interface {
	// Takes is false if records that make no less than so many bytes in a batch are certain to be refused for their size.
	Takes(bytes int) bool
	// Append writes b for all in-sync replicas. It keeps neither b's records nor their bytes once it has returned. done is called
	// exactly once, later and never inside Append, in the order of the Append calls: with the time, and the batch's base offset or
	// one of the ErrJournal errors (any other counts as ErrUnknown).
	Append(b Batch, done func(base int64, err error, now Now))
}

// Entry is a record as it is read back, in the order of offsets.
type Entry struct {
	Offset        int64
	ProducerID    int64
	ProducerEpoch int16
	Transactional bool
	Key, Value    []byte // not kept
}
