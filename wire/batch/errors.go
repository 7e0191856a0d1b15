package batch

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of refusal, one for each way a broker answers. Every error of this package wraps one of them or ErrShort.
var (
	// ErrCorrupt: the bytes are not what was sent (framing, magic, CRC). Kafka: CORRUPT_MESSAGE.
	ErrCorrupt = errors.New("corrupt batch")
	// ErrInvalid: well-formed bytes that say something wrong. Kafka: INVALID_RECORD.
	ErrInvalid = errors.New("invalid record")
	// ErrTimestamp: a timestamp out of the window the topic allows. Kafka: INVALID_TIMESTAMP.
	ErrTimestamp = errors.New("invalid timestamp")
	// ErrTooLarge: larger than the topic allows. Kafka: MESSAGE_TOO_LARGE.
	ErrTooLarge = errors.New("batch too large")
	// ErrCodec: a codec this request may not use. Kafka: UNSUPPORTED_COMPRESSION_TYPE.
	ErrCodec = errors.New("unsupported compression type")
	// ErrUnknownCodec: a codec number that means nothing. Kafka fails on it with UNKNOWN_SERVER_ERROR.
	ErrUnknownCodec = errors.New("unknown compression codec")
	// ErrShort: the batch goes on after the bytes at hand. No refusal: read more.
	ErrShort = errors.New("batch is not complete")
	// ErrLimit: decompression would give more than its limit.
	ErrLimit = errors.New("decompressed size over the limit")
)

// fault is a refusal with its kind; all are made once, so that a flood of bad batches allocates nothing.
type fault struct {
	kind error
	text string
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.kind }

// The refusals, in the order Check looks for them.
var (
	ErrNoBatch     error = &fault{ErrInvalid, "no whole batch"}
	ErrManyBatches error = &fault{ErrInvalid, "more than one batch"}
	ErrOldMagic    error = &fault{ErrInvalid, "batch magic is less than 2"}
	ErrMagic       error = &fault{ErrCorrupt, "unknown batch magic"}
	ErrLength      error = &fault{ErrCorrupt, "batch length is less than its header"}
	ErrBaseOffset  error = &fault{ErrInvalid, "base offset is not 0"}
	ErrCRC         error = &fault{ErrCorrupt, "crc does not match"}
	ErrCount       error = &fault{ErrInvalid, "record count does not fit the last offset delta"}
	ErrControl     error = &fault{ErrInvalid, "control batch from a client"}
	ErrSequence    error = &fault{ErrInvalid, "negative sequence with a producer id"}
	ErrRecord      error = &fault{ErrInvalid, "record is malformed"}
	ErrRecordCount error = &fault{ErrInvalid, "record count is not the number of records"}
	ErrOffsetDelta error = &fault{ErrInvalid, "offset deltas are not 0, 1, 2 and so on"}
	ErrCompressed  error = &fault{ErrInvalid, "compressed records are malformed"}
)

// RecordError says why one record is refused, as Produce v8 and later tell it.
type RecordError struct {
	// Index is the record's number in the batch, from 0.
	Index int32
	// Kind is ErrInvalid (no key on a compacted topic) or ErrTimestamp.
	Kind error
	// Timestamp (Unix ms) and the window it is not in, if Kind is ErrTimestamp. AppendType tells the other reason: the
	// producer set the timestamp type to LogAppendTime.
	Timestamp, Min, Max int64
	AppendType          bool
}

// Message is the text Kafka puts into the answer for this record.
func (r RecordError) Message(topic string, partition int32) string {
	switch {
	case r.Kind != ErrTimestamp:
		return fmt.Sprintf("Compacted topic cannot accept message without key in topic partition %s-%d", topic, partition)
	case r.AppendType:
		return "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
	}
	return fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
		r.Timestamp, r.Index, r.Min, r.Max)
}

// rejectedMax bounds how many records an answer names: a batch of a million bad records must not make an answer of 100 MB.
const rejectedMax = 1000

// Rejected refuses a batch for what single records say; it is the only refusal whose records the answer names.
type Rejected struct {
	// Total counts the refused records; Records holds the first ones, at most 1000.
	Total   int
	Records []RecordError
	kind    error
}

func (r *Rejected) Error() string { return fmt.Sprintf("%d records refused: %v", r.Total, r.kind) }

// Unwrap is ErrTimestamp if any record's timestamp was refused, else ErrInvalid.
func (r *Rejected) Unwrap() error { return r.kind }

// Message is the text Kafka puts into the answer for the partition.
func (r *Rejected) Message(topic string, partition int32) string {
	if r.kind == ErrTimestamp {
		return "One or more records have been rejected due to invalid timestamp"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "One or more records have been rejected due to %d record errors in total, "+
		"and only showing the first three errors at most: [", r.Total)
	for i, e := range r.Records[:min(3, len(r.Records))] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "RecordError(batchIndex=%d, message='%s')", e.Index, e.Message(topic, partition))
	}
	b.WriteByte(']')
	return b.String()
}

func (r *Rejected) add(e RecordError) {
	if r.kind == nil || e.Kind == ErrTimestamp {
		r.kind = e.Kind
	}
	if r.Total++; len(r.Records) < rejectedMax {
		r.Records = append(r.Records, e)
	}
}
