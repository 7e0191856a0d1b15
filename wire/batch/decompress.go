package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// DecompressedMax is a limit that suits a broker: a batch of the default 1 MiB may shrink to 1/128, and a helper that opens
// one holds no more memory than this.
const DecompressedMax = 128 << 20

// zstdWindowMax is the largest zstd window that is streamed; a frame that asks for more is decompressed in one go, so that
// memory is bounded by what comes out and not by what the frame's header asks for.
const zstdWindowMax = 8 << 20

// zstdWindowLargest is the largest window Kafka's clients can ask for (compression.zstd.level 22); more is refused.
const zstdWindowLargest = 128 << 20

// Decompress appends what src holds, the records of a batch of this codec, to dst. More than limit bytes are ErrLimit; then,
// and with any other error, dst comes back as it was.
func Decompress(dst []byte, c Codec, src []byte, limit int) ([]byte, error) {
	if c == None {
		if len(src) > limit {
			return dst, ErrLimit
		}
		return append(dst, src...), nil
	}
	r, closer, err := open(c, src, limit)
	if err != nil {
		return dst, err
	}
	defer closer()
	return readAll(dst, r, limit)
}

// readAll appends what r gives to dst, at most limit bytes.
func readAll(dst []byte, r io.Reader, limit int) ([]byte, error) {
	start, out := len(dst), dst
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if len(out)-start > limit {
			return dst, ErrLimit
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return dst, decompressError(err)
		}
	}
}

// decompressError keeps our own errors and makes the rest one.
func decompressError(err error) error {
	if errors.Is(err, ErrLimit) || errors.Is(err, ErrInvalid) {
		return err
	}
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return ErrLimit
	}
	return ErrCompressed
}

func nothing() {}

// open gives a reader of what src holds, and a function that frees what the reader holds.
func open(c Codec, src []byte, limit int) (io.Reader, func(), error) {
	switch c {
	case Gzip:
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return nil, nil, ErrCompressed
		}
		return r, nothing, nil
	case Snappy:
		r, err := newXerial(src, limit)
		return r, nothing, err
	case LZ4:
		return lz4.NewReader(bytes.NewReader(src)), nothing, nil
	case Zstd:
		return openZstd(src, limit)
	}
	return nil, nil, ErrUnknownCodec
}

func openZstd(src []byte, limit int) (io.Reader, func(), error) {
	var h zstd.Header
	if len(src) == 0 || h.Decode(src) != nil {
		return nil, nil, ErrCompressed
	}
	if h.HasFCS && h.FrameContentSize > uint64(limit) {
		return nil, nil, ErrLimit
	}
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(max(uint64(limit), zstdWindowLargest))}
	if h.WindowSize > zstdWindowMax || h.SingleSegment {
		d, err := zstd.NewReader(nil, options...)
		if err != nil {
			return nil, nil, err
		}
		out, err := d.DecodeAll(src, nil)
		d.Close()
		if err != nil {
			return nil, nil, decompressError(err)
		}
		return bytes.NewReader(out), nothing, nil
	}
	d, err := zstd.NewReader(bytes.NewReader(src), append(options, zstd.WithDecoderMaxWindow(zstdWindowMax))...)
	if err != nil {
		return nil, nil, decompressError(err)
	}
	return d, d.Close, nil
}

// xerialMagic begins the framing Kafka's clients put around snappy, followed by two version numbers. Without it the whole is
// one raw snappy block.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

// xerial reads snappy blocks: each a length i32 and a raw block.
type xerial struct {
	src, out, block []byte
	left            int // of the limit
}

func newXerial(src []byte, limit int) (*xerial, error) {
	x := &xerial{left: limit}
	if len(src) >= xerialHeader && bytes.HasPrefix(src, xerialMagic) {
		x.src = src[xerialHeader:]
		return x, nil
	}
	return x, x.decode(src)
}

func (x *xerial) Read(p []byte) (int, error) {
	for len(x.out) == 0 {
		if len(x.src) == 0 {
			return 0, io.EOF
		}
		if bytes.HasPrefix(x.src, xerialMagic) && len(x.src) >= xerialHeader {
			x.src = x.src[xerialHeader:] // streams may follow one another
			continue
		}
		if len(x.src) < 4 {
			return 0, ErrCompressed
		}
		n := int64(binary.BigEndian.Uint32(x.src))
		if n > int64(len(x.src)-4) {
			return 0, ErrCompressed
		}
		block := x.src[4 : 4+n]
		x.src = x.src[4+n:]
		if err := x.decode(block); err != nil {
			return 0, err
		}
	}
	n := copy(p, x.out)
	x.out = x.out[n:]
	return n, nil
}

func (x *xerial) decode(block []byte) error {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return ErrCompressed
	}
	// A byte of snappy makes at most 64/3 bytes: a length beyond that is a lie, not to be allocated for.
	if n > x.left {
		return ErrLimit
	}
	if n > 22*len(block) {
		return ErrCompressed
	}
	x.left -= n
	if x.block, err = snappy.Decode(x.block, block); err != nil {
		return ErrCompressed
	}
	x.out = x.block
	return nil
}
