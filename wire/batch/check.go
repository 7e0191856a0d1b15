package batch

import "math"

// CheckOptions say what the topic and the request allow.
type CheckOptions struct {
	// BytesMax is the largest batch (max.message.bytes); 0 is no limit.
	BytesMax int
	// Keys: the topic is compacted, every record must have a key.
	Keys bool
	// LogAppendTime: the topic stamps the time itself (message.timestamp.type); timestamps are not looked at.
	LogAppendTime bool
	// Window: refuse timestamps before Now-Before or after Now+After (ms; message.timestamp.before/after.max.ms, which are
	// unlimited by default: leave Window false then).
	Window             bool
	Now, Before, After int64
}

// Info is what Check learned.
type Info struct {
	// Size is the batch's size; bytes after it are no batch and are dropped, as Kafka does.
	Size int
	// Count is the number of records.
	Count int32
	// MaxTimestamp is the true largest timestamp if Walked (-1 if none is larger), else what the header says.
	MaxTimestamp int64
	// MaxDelta is the offset delta of the first record with MaxTimestamp, -1 if there is none; the last one's if the batch
	// was not walked.
	MaxDelta int32
	// Walked says that every record was seen: the batch is uncompressed, or CheckCompressed looked.
	Walked bool
	// Restamp says that the header's maxTimestamp or timestamp type is wrong for a CreateTime topic: StampCreateTime.
	Restamp bool
	// MustOpen says that the batch is compressed and its keys must be seen: CheckCompressed, off the loop.
	MustOpen bool
}

// Single checks the frame alone: that b holds exactly one batch of magic 2. A producer's request is refused for this before
// anything else is looked at. zstd says whether the request may use it (Produce 7 and later). It returns the batch's size.
//
// Bytes after the batch which are too few for another are no error: Kafka does not see them either.
func Single(b []byte, zstd bool) (int, error) {
	size, err := Next(b)
	if err == ErrShort || err == nil && len(b) < size {
		return 0, ErrNoBatch
	}
	if err != nil {
		return 0, err
	}
	if Header(b).Magic() != magicNow {
		return 0, ErrOldMagic
	}
	if !zstd && Header(b).Codec() == Zstd {
		return 0, ErrCodec
	}
	if len(b) == size {
		return size, nil
	}
	next, err := Next(b[size:])
	switch {
	case err == ErrShort || err == nil && len(b)-size < next:
		return size, nil
	case err != nil:
		return 0, err
	}
	return 0, ErrManyBatches
}

// Check decides whether the leader may append b, which a client sent; the order of the checks is Kafka's, so that a batch
// wrong in two ways gets Kafka's answer. Uncompressed records are walked in place.
//
// Beyond Kafka it refuses uncompressed batches whose offset deltas are not dense: they would give records offsets that
// are not theirs.
func Check(b []byte, o *CheckOptions) (Info, error) {
	size, err := Single(b, true)
	if err != nil {
		return Info{}, err
	}
	h := Header(b[:size])
	info := Info{Size: size, Count: h.Count(), MaxTimestamp: h.MaxTimestamp(), MaxDelta: h.LastOffsetDelta()}
	switch {
	case h.BaseOffset() != 0:
		return info, ErrBaseOffset
	case o.BytesMax > 0 && size > o.BytesMax:
		return info, ErrTooLarge
	case h.CRC() != h.Sum():
		return info, ErrCRC
	case h.Codec() > Zstd:
		return info, ErrUnknownCodec
	case h.Count() <= 0 || h.LastOffsetDelta() < 0 || h.LastOffsetDelta() == math.MaxInt32 || h.Count() != h.LastOffsetDelta()+1:
		return info, ErrCount
	case h.Control():
		return info, ErrControl
	case h.HasProducer() && h.BaseSequence() < 0:
		return info, ErrSequence
	}
	if h.Codec() != None {
		return info, checkClosed(h, o, &info)
	}
	w := walker{h: h, o: o}
	if err := w.walk(h[HeaderSize:]); err != nil {
		return info, err
	}
	w.into(&info)
	return info, nil
}

// checkClosed judges a compressed batch by its header alone.
func checkClosed(h Header, o *CheckOptions, info *Info) error {
	info.MustOpen = o.Keys
	info.Restamp = !o.LogAppendTime && h.LogAppendTime()
	w := walker{h: h, o: o}
	if h.LogAppendTime() || o.Window {
		// The header's times stand for the records': the largest, and the first one's.
		w.judge(0, h.MaxTimestamp(), false)
		if !h.LogAppendTime() && h.BaseTimestamp() != h.MaxTimestamp() {
			w.judge(0, h.BaseTimestamp(), false)
		}
	}
	return w.verdict()
}
