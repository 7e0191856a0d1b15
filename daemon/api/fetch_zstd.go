package api

import (
	"kring/ring"
	"kring/wire"
	"kring/wire/batch"
)

// zstdVersion is the first version of Fetch whose clients know zstd (KIP-110).
const zstdVersion = 10

// zstdPiece is how much is read at a time to find batches' headers.
const zstdPiece = 64 << 10

// mustLook says whether the client may get something it cannot read.
func (o *fetched) mustLook() bool {
	return o.share.f.r.Version < zstdVersion && o.r.Err == nil && o.r.Len > 0
}

// look goes through what was read for a client that does not know zstd, and goes on with the share.
func (s *fetchShare) look() {
	ring.Go(s.home.Loop, func(t *ring.Task) {
		s.at.withoutZstd(t)
		s.took()
		s.read()
	})
}

// withoutZstd ends what was read before the first batch in zstd; if nothing is left the client is told why.
func (o *fetched) withoutZstd(t *ring.Task) {
	buf := t.Loop().Alloc(zstdPiece)
	defer buf.Release()
	var have []byte
	from := int64(0) // where have begins
	for at := int64(0); at+batch.HeaderSize <= o.r.Len; {
		if at+batch.HeaderSize > from+int64(len(have)) {
			n, err := t.Read(o.r.File, buf.B[:min(int64(len(buf.B)), o.r.Len-at)], o.r.From+at)
			if err == nil && n < batch.HeaderSize {
				return // the file was cut off; the answer will say so
			}
			if err != nil {
				o.r.Unpin()
				o.r.Err, o.r.Len = err, 0
				return
			}
			have, from = buf.B[:n], at
		}
		h := batch.Header(have[at-from:])
		size, err := batch.Next(h)
		if err != nil {
			return // the client finds it, as in any other version
		}
		if h.Magic() >= 2 && h.Codec() == batch.Zstd {
			if o.r.Len, o.r.More = at, true; at == 0 {
				o.r.Unpin()
				o.fail(wire.UnsupportedCompressionType)
			}
			return
		}
		at += int64(size)
	}
}
