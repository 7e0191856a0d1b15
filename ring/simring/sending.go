package simring

import (
	"hash/crc32"
	"io"

	"kring/ring"
)

// newSending pins the file ranges and remembers what the bytes are, to find out if anyone changes them under way.
func newSending(l *loop, parts []ring.Part, op *ring.Op) *sending {
	s := &sending{parts: parts, op: op, l: l, sums: make([]uint32, len(parts))}
	for i, p := range parts {
		if p.File == nil {
			s.sums[i] = crc32.Checksum(p.Bytes, castagnoli)
			s.bytes += int64(len(p.Bytes))
			continue
		}
		f := p.File.(*file)
		f.mustBeOpen("Send") // by its owner: a connection of another loop may send from it
		f.busy++
		f.node.pin(p.From, p.Len)
		s.bytes += p.Len
	}
	return s
}

// take takes up to limit bytes from the front. What it takes of a file stays pinned until it has arrived.
func (s *sending) take(limit int) ([]byte, *pin, error) {
	p := s.parts[s.part]
	if p.File == nil {
		if len(p.Bytes) <= checkAlways {
			s.check(s.part)
		}
		n := min(int64(limit), int64(len(p.Bytes))-s.from)
		b := p.Bytes[s.from : s.from+n]
		s.advance(n, int64(len(p.Bytes)))
		return b, nil, nil
	}
	f := p.File.(*file)
	n := min(int64(limit), p.Len-s.from)
	at := p.From + s.from
	if err := s.l.p.m.fault("read", f.name, s.l.p.m.Faults.Read); err != nil && n > 0 {
		return nil, nil, pathError("sendfile", f.name, err)
	}
	if at+n > int64(len(f.node.data)) {
		return nil, nil, pathError("sendfile", f.name, io.ErrUnexpectedEOF)
	}
	b := f.node.data[at : at+n]
	held := f.node.pin(at, n)
	s.advance(n, p.Len)
	return b, held, nil
}

func (s *sending) advance(n, of int64) {
	s.from += n
	if s.from == of {
		s.part, s.from = s.part+1, 0
	}
}

// checkAlways is the length up to which bytes are checked with each piece that leaves, beyond it only at the end.
const checkAlways = 4 << 10

func (s *sending) check(i int) {
	if p := s.parts[i]; s.l != nil && p.File == nil && crc32.Checksum(p.Bytes, castagnoli) != s.sums[i] {
		panic("simring: bytes were changed while they were being sent on loop " + s.l.by)
	}
}

// finish ends the send: the parts are the caller's again. A client's send has nobody to tell.
func (s *sending) finish(err error) {
	if s.l == nil {
		return
	}
	if err == nil {
		for i := range s.parts {
			s.check(i)
		}
	}
	s.unpin()
	s.op.Err = err
	s.l.done(s.op)
}

func (s *sending) unpin() {
	for _, p := range s.parts {
		if p.File == nil {
			continue
		}
		f := p.File.(*file)
		f.node.unpin(p.From, p.Len)
		f.idle()
	}
	s.parts = nil
}
