package batch

import (
	"bufio"
	"io"
)

// CheckCompressed looks into a compressed batch that Check let pass (Info.MustOpen), as Check does into an uncompressed one,
// and completes info. It decompresses as it goes, in steps of a few ten KB, and gives up with ErrLimit after limit bytes.
//
// It takes milliseconds for large batches: call it off the loop. It reads b and changes nothing.
//
// Unlike Kafka, which would compress the records anew, it refuses offset deltas that are not dense.
func CheckCompressed(b []byte, o *CheckOptions, info *Info, limit int) error {
	h := Header(b[:info.Size])
	r, closer, err := open(h.Codec(), h[HeaderSize:], limit)
	if err != nil {
		return err
	}
	defer closer()
	s := stream{r: bufio.NewReaderSize(r, 32<<10), limit: int64(limit)}
	w := walker{h: h, o: o, max: NoTimestamp, maxDelta: -1}
	for i := int32(0); i < h.Count(); i++ {
		delta, offsetDelta, key := s.record()
		if s.err != nil {
			return s.failure()
		}
		if offsetDelta != i {
			return ErrOffsetDelta
		}
		ts := h.BaseTimestamp() + delta
		if h.LogAppendTime() {
			ts = h.MaxTimestamp()
		}
		if ts > w.max {
			w.max, w.maxDelta = ts, i
		}
		w.judge(i, ts, o.Keys && !key)
	}
	if s.byte(); s.err != io.EOF {
		return ErrRecordCount
	}
	if err := w.verdict(); err != nil {
		return err
	}
	w.into(info)
	return nil
}

// stream reads records from what a codec gives, bounded. After an error it gives zeros.
type stream struct {
	r     *bufio.Reader
	limit int64
	left  int64 // of the record
	err   error
}

func (s *stream) failure() error {
	if s.err == io.EOF || s.err == io.ErrUnexpectedEOF {
		return ErrRecord
	}
	return decompressError(s.err)
}

// spend takes n bytes off the record and the limit.
func (s *stream) spend(n int64) bool {
	s.left -= n
	s.limit -= n
	if s.limit < 0 {
		s.err = ErrLimit
	} else if s.left < 0 {
		s.err = ErrRecord
	}
	return s.err == nil
}

func (s *stream) byte() byte {
	if s.err != nil {
		return 0
	}
	c, err := s.r.ReadByte()
	if err != nil {
		s.err = err
		return 0
	}
	return c
}

func (s *stream) varlong(bits uint) int64 {
	var v uint64
	for shift := uint(0); shift < bits; shift += 7 {
		if !s.spend(1) {
			return 0
		}
		c := s.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(v>>1) ^ -int64(v&1)
		}
	}
	s.err = ErrRecord
	return 0
}

func (s *stream) varint() int32 {
	if s.err != nil {
		return 0
	}
	return int32(s.varlong(35))
}

func (s *stream) skip(n int32) {
	if s.err != nil || n <= 0 || !s.spend(int64(n)) {
		return
	}
	if _, err := s.r.Discard(int(n)); err != nil {
		s.err = err
	}
}

// record reads one record as skim does.
func (s *stream) record() (delta int64, offsetDelta int32, key bool) {
	s.left = 5
	size := s.varint()
	if s.left = int64(size); s.err != nil || size < fieldsAfterLength {
		s.fail()
		return
	}
	s.skip(1)
	if s.err == nil {
		delta = s.varlong(70)
	}
	offsetDelta = s.varint()
	n := s.varint()
	key = n >= 0
	s.skip(n)
	s.skip(s.varint())
	headers := s.varint()
	if headers < 0 || int64(headers) > s.left {
		s.fail()
		return
	}
	for ; headers > 0 && s.err == nil; headers-- {
		if n = s.varint(); n < 0 {
			s.fail()
		}
		s.skip(n)
		s.skip(s.varint())
	}
	if s.left != 0 {
		s.fail()
	}
	return
}

// fail says that the record is malformed, unless something else went wrong before.
func (s *stream) fail() {
	if s.err == nil {
		s.err = ErrRecord
	}
}
