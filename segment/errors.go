package segment

import "errors"

// Why an append was refused. Nothing has changed then.
var (
	// ErrCorrupt: the bytes are not whole record batches.
	ErrCorrupt = errors.New("not whole record batches")
	// ErrTooLarge: the batches do not fit into one segment.
	ErrTooLarge = errors.New("record batches larger than a segment")
	// ErrOutOfOrder: the producer's sequence number does not follow its last one.
	ErrOutOfOrder = errors.New("sequence number out of order")
	// ErrProducerFenced: a newer epoch of this producer has written.
	ErrProducerFenced = errors.New("producer epoch is old")
	// ErrCoordinatorFenced: a newer transaction coordinator has written a marker.
	ErrCoordinatorFenced = errors.New("transaction coordinator epoch is old")
	// ErrTxnState: a batch outside a transaction while its producer has one open.
	ErrTxnState = errors.New("producer has an open transaction")
	// ErrOffsets: a replica's batches begin before the end of the log.
	ErrOffsets = errors.New("offsets before the end of the log")
)

// What is wrong with the log.
var (
	// ErrOffline: a write or sync failed; the log takes and gives nothing until it is opened and verified anew.
	ErrOffline = errors.New("log is offline after an I/O error")
	// ErrGivenUp: the log was not opened, since that was given up.
	ErrGivenUp = errors.New("the opening of the log was given up")
	// ErrNoSpace: the disk is full; the append was taken back, reads go on.
	ErrNoSpace = errors.New("no space left for the log")
	// ErrClosed: the log was closed or removed.
	ErrClosed = errors.New("log is closed")
	// ErrOutOfRange: the offset lies before the start or behind the end of the log.
	ErrOutOfRange = errors.New("offset out of range")
	// ErrTopicID: the directory belongs to another topic of the same name.
	ErrTopicID = errors.New("topic id differs from partition.metadata")
	// ErrMalformed: a file is not what its name says.
	ErrMalformed = errors.New("malformed file")
)
