package batch

import "iter"

// Record is one record, its bytes lying in the batch (or in what it was decompressed to).
type Record struct {
	// Offset is absolute. Timestamp is in Unix ms, NoTimestamp for none.
	Offset, Timestamp int64
	// Key and Value are nil for null.
	Key, Value []byte
	// HeaderCount is the number of headers.
	HeaderCount int
	// Size is the record's length in bytes, its length field included.
	Size int

	headers []byte
	tail    []byte // from the key's length on
}

// Headers gives keys and values, in order; a null value is nil.
func (r *Record) Headers() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		at := 0
		for range r.HeaderCount {
			var k, v []byte
			k, at = field(r.headers, at)
			v, at = field(r.headers, at)
			if at < 0 || !yield(k, v) {
				return
			}
		}
	}
}

// field reads bytes with a varint length; negative is nil.
func field(b []byte, at int) ([]byte, int) {
	n, at := varint(b, at)
	if n < 0 {
		return nil, at
	}
	end := skip(b, at, n)
	if end < 0 {
		return nil, -1
	}
	return b[at:end:end], end
}

// Records goes over the records of one batch, of any magic:
//
//	for r.Next() { ... r.Record ... }
//	if r.Err != nil { ... }
type Records struct {
	// Record is the present one, valid until Next.
	Record
	// Err is why Next ended early.
	Err error

	h    Header
	body []byte
	at   int
	left int32
	old  *legacyRecords
}

// Open begins before the first record of b, one whole batch, which is decompressed first if need be, to at most limit bytes.
// The CRC is not looked at: see Verify.
func Open(b []byte, limit int) (Records, error) {
	if n, err := Next(b); err != nil || n != len(b) {
		return Records{}, ErrLength
	}
	if Header(b).Magic() < magicNow {
		old, err := openLegacy(b, limit)
		return Records{old: old}, err
	}
	h := Header(b)
	body := []byte(h[HeaderSize:])
	if h.Codec() != None && h.Count() > 0 {
		var err error
		if body, err = Decompress(nil, h.Codec(), body, limit); err != nil {
			return Records{}, err
		}
	}
	return Over(h, body), nil
}

// Over begins before the first record of a magic 2 batch whose records, decompressed, are body.
func Over(h Header, body []byte) Records {
	return Records{h: h, body: body, left: h.Count()}
}

// Message is the message of an old format that the record is, as it stands in the batch or came out of it; nil in magic 2.
func (r *Records) Message() Legacy {
	if r.old == nil {
		return nil
	}
	return r.old.one
}

// Next goes to the next record. It is false at the end, which for a batch whose count lies is an error.
func (r *Records) Next() bool {
	if r.old != nil {
		return r.nextLegacy()
	}
	if r.Err != nil {
		return false
	}
	if r.left <= 0 {
		if r.at != len(r.body) {
			r.Err = ErrRecordCount
		}
		return false
	}
	size, at := varint(r.body, r.at)
	if at < 0 || size < fieldsAfterLength || int(size) > len(r.body)-at {
		r.Err = ErrRecord
		return false
	}
	next := at + int(size)
	b, rec := r.body[:next], &r.Record
	delta, at := varlong(b, at+1)
	offsetDelta, at := varint(b, at)
	tail := at
	rec.Key, at = field(b, at)
	rec.Value, at = field(b, at)
	if rec.HeaderCount, rec.headers = 0, nil; at != next-1 || b[at] != 0 { // most records have none
		if !skimHeaders(b, at) {
			r.Err = ErrRecord
			return false
		}
		var n int32
		n, at = varint(b, at)
		rec.HeaderCount, rec.headers = int(n), b[at:]
	}
	rec.Offset, rec.Size, rec.tail = r.h.BaseOffset()+int64(offsetDelta), next-r.at, b[tail:]
	if rec.Timestamp = r.h.BaseTimestamp() + delta; r.h.LogAppendTime() {
		rec.Timestamp = r.h.MaxTimestamp()
	}
	r.left--
	r.at = next
	return true
}

// legacyRecords goes over a legacy message, or over what is compressed in it.
type legacyRecords struct {
	rest []byte
	one  Legacy
	add  int64 // to the relative offsets of magic 1
	top  Legacy
}

func openLegacy(b []byte, limit int) (*legacyRecords, error) {
	m := Legacy(b)
	if m.Codec() == None {
		return &legacyRecords{rest: b}, nil
	}
	_, value, err := m.Fields()
	if err != nil {
		return nil, err
	}
	inner, err := Decompress(nil, m.Codec(), value, limit)
	if err != nil {
		return nil, err
	}
	o := &legacyRecords{rest: inner, top: m}
	if m[16] == 1 {
		last := int64(0)
		for rest := inner; len(rest) > 0; {
			var one []byte
			if one, rest, err = Whole(rest); err != nil {
				return nil, ErrRecord
			}
			last = Legacy(one).Offset()
		}
		o.add = m.Offset() - last
	}
	return o, nil
}

func (r *Records) nextLegacy() bool {
	o := r.old
	if r.Err != nil || len(o.rest) == 0 {
		return false
	}
	one, rest, err := Whole(o.rest)
	if err != nil || Header(one).Magic() >= magicNow {
		r.Err = ErrRecord
		return false
	}
	m := Legacy(one)
	rec := Record{Offset: m.Offset() + o.add, Timestamp: m.Timestamp(), Size: len(one)}
	if o.top != nil && o.top.LogAppendTime() {
		rec.Timestamp = o.top.Timestamp()
	}
	if rec.Key, rec.Value, r.Err = m.Fields(); r.Err != nil {
		return false
	}
	r.Record, o.one, o.rest = rec, m, rest
	return true
}
