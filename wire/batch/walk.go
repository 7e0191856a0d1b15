package batch

// walker judges the records of one batch.
type walker struct {
	h        Header
	o        *CheckOptions
	max      int64
	maxDelta int32
	rejected *Rejected
}

// walk goes over the uncompressed records; body must hold exactly them.
func (w *walker) walk(body []byte) error {
	base, count, appended := w.h.BaseTimestamp(), w.h.Count(), w.h.LogAppendTime()
	if appended {
		base = w.h.MaxTimestamp()
	}
	w.max, w.maxDelta = NoTimestamp, -1
	judged := appended || w.o.Window
	at := 0
	for i := int32(0); i < count; i++ {
		next, delta, offsetDelta, key, ok := skim(body, at)
		if !ok {
			return ErrRecord
		}
		if offsetDelta != i {
			return ErrOffsetDelta
		}
		at = next
		ts := base + delta
		if appended {
			ts = base
		}
		if ts > w.max {
			w.max, w.maxDelta = ts, i
		}
		if judged || w.o.Keys && !key {
			w.judge(i, ts, w.o.Keys && !key)
		}
	}
	if at != len(body) {
		return ErrRecordCount
	}
	return w.verdict()
}

// judge looks at one record's key and timestamp.
func (w *walker) judge(i int32, ts int64, noKey bool) {
	e := RecordError{Index: i}
	switch {
	case noKey:
		e.Kind = ErrInvalid
	case !w.o.LogAppendTime && ts != NoTimestamp:
		age := w.o.Now - ts
		if !w.o.Window || age <= w.o.Before && -age <= w.o.After {
			return
		}
		e.Kind, e.Timestamp = ErrTimestamp, ts
		e.Min, e.Max = w.o.Now-w.o.Before, w.o.Now+w.o.After
	case w.h.LogAppendTime():
		e.Kind, e.AppendType = ErrTimestamp, true
	default:
		return
	}
	if w.rejected == nil {
		w.rejected = new(Rejected)
	}
	w.rejected.add(e)
}

// verdict keeps a nil *Rejected from becoming an error that is not nil.
func (w *walker) verdict() error {
	if w.rejected != nil {
		return w.rejected
	}
	return nil
}

// into tells what a walk that ended well has found.
func (w *walker) into(info *Info) {
	info.Walked, info.MustOpen = true, false
	info.MaxTimestamp, info.MaxDelta = w.max, w.maxDelta
	info.Restamp = !w.o.LogAppendTime && (w.h.LogAppendTime() || w.max != w.h.MaxTimestamp())
}

// skim reads the record at b[at:] without unpacking it: where the next one begins, its timestamp and offset deltas, and whether
// it has a key.
func skim(b []byte, at int) (next int, tsDelta int64, offsetDelta int32, key, ok bool) {
	size, at := varint(b, at)
	if at < 0 || size < fieldsAfterLength || int(size) > len(b)-at {
		return
	}
	next = at + int(size)
	b = b[:next]
	tsDelta, at = varlong(b, at+1)
	offsetDelta, at = varint(b, at)
	n, at := varint(b, at)
	if key = n >= 0; key {
		at = skip(b, at, n)
	}
	n, at = varint(b, at)
	if n >= 0 {
		at = skip(b, at, n)
	}
	if at == next-1 && b[at] == 0 {
		return next, tsDelta, offsetDelta, key, true // no headers: most records
	}
	return next, tsDelta, offsetDelta, key, skimHeaders(b, at)
}

// skimHeaders says whether headers, with their count, are what b holds from at on.
func skimHeaders(b []byte, at int) bool {
	headers, at := varint(b, at)
	if at < 0 || headers < 0 || int(headers) > len(b)-at {
		return false
	}
	for ; headers > 0; headers-- {
		var n int32
		if n, at = varint(b, at); n < 0 {
			return false
		}
		at = skip(b, at, n)
		if n, at = varint(b, at); n >= 0 {
			at = skip(b, at, n)
		}
	}
	return at == len(b)
}

// skip goes n bytes on, or to -1, which all readers here hand on.
func skip(b []byte, at int, n int32) int {
	if at < 0 || int(n) > len(b)-at {
		return -1
	}
	return at + int(n)
}

// varint reads a zigzag number of at most five bytes; bits over 32 are dropped, as Kafka does. The position is -1 when the
// bytes end early or the number does not.
func varint(b []byte, at int) (int32, int) {
	if uint(at) < uint(len(b)) && b[at] < 0x80 {
		v := uint32(b[at])
		return int32(v>>1) ^ -int32(v&1), at + 1
	}
	return varintSlow(b, at)
}

func varintSlow(b []byte, at int) (int32, int) {
	if at < 0 {
		return 0, -1
	}
	var v uint32
	for shift := uint(0); shift <= 28 && at < len(b); shift += 7 {
		c := b[at]
		at++
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(v>>1) ^ -int32(v&1), at
		}
	}
	return 0, -1
}

// varlong is varint for 64 bits and ten bytes.
func varlong(b []byte, at int) (int64, int) {
	if at < 0 {
		return 0, -1
	}
	var v uint64
	for shift := uint(0); shift <= 63 && at < len(b); shift += 7 {
		c := b[at]
		at++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(v>>1) ^ -int64(v&1), at
		}
	}
	return 0, -1
}
