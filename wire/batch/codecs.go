package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codecs keeps what compressors and decompressors need, for one user who goes through many batches. The zero value is ready.
type Codecs struct {
	in    bytes.Reader
	block []byte // of snappy

	gzipReader *gzip.Reader
	gzipWriter *gzip.Writer
	lz4Reader  *lz4.Reader
	lz4Writer  *lz4.Writer
	zstdReader *zstd.Decoder
	zstdMost   uint64 // what zstdReader may give
	zstdWriter *zstd.Encoder
}

// Decompress is the function of that name, without making a decompressor for each batch.
func (c *Codecs) Decompress(dst []byte, codec Codec, src []byte, limit int) ([]byte, error) {
	c.in.Reset(src)
	switch codec {
	case Gzip:
		if c.gzipReader == nil {
			r, err := gzip.NewReader(&c.in)
			if err != nil {
				return dst, ErrCompressed
			}
			c.gzipReader = r
		} else if c.gzipReader.Reset(&c.in) != nil {
			return dst, ErrCompressed
		}
		return readAll(dst, c.gzipReader, limit)
	case LZ4:
		if c.lz4Reader == nil {
			c.lz4Reader = lz4.NewReader(&c.in)
		} else {
			c.lz4Reader.Reset(&c.in)
		}
		return readAll(dst, c.lz4Reader, limit)
	case Zstd:
		return c.decodeZstd(dst, src, limit)
	}
	return Decompress(dst, codec, src, limit)
}

// decodeZstd decodes all in one go: what that takes is bounded by what comes out, not by the window a header asks for.
func (c *Codecs) decodeZstd(dst, src []byte, limit int) ([]byte, error) {
	var h zstd.Header
	if len(src) == 0 || h.Decode(src) != nil {
		return dst, ErrCompressed
	}
	if h.HasFCS && h.FrameContentSize > uint64(limit) {
		return dst, ErrLimit
	}
	if most := max(uint64(limit), zstdWindowLargest); c.zstdReader == nil || c.zstdMost != most {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(most))
		if err != nil {
			return dst, err
		}
		c.zstdReader, c.zstdMost = r, most
	}
	out, err := c.zstdReader.DecodeAll(src, dst)
	switch {
	case err != nil:
		return dst, decompressError(err)
	case len(out)-len(dst) > limit:
		return dst, ErrLimit
	}
	return out, nil
}

// xerialBlock is the block size Kafka's clients use.
const xerialBlock = 32 << 10

// Compress appends src in the given codec, at the level Kafka has where none is set. It panics on a codec that does not exist,
// and if a compressor fails, which none does when it writes to memory.
func (c *Codecs) Compress(dst []byte, codec Codec, src []byte) []byte {
	buf := bytes.NewBuffer(dst)
	switch codec {
	case None:
		return append(dst, src...)
	case Gzip:
		if c.gzipWriter == nil {
			c.gzipWriter = gzip.NewWriter(buf)
		} else {
			c.gzipWriter.Reset(buf)
		}
		must(c.gzipWriter.Write(src))
		must(0, c.gzipWriter.Close())
	case Snappy:
		return c.encodeSnappy(dst, src)
	case LZ4:
		if c.lz4Writer == nil {
			c.lz4Writer = lz4.NewWriter(buf)
			must(0, c.lz4Writer.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)))
		} else {
			c.lz4Writer.Reset(buf)
		}
		must(c.lz4Writer.Write(src))
		must(0, c.lz4Writer.Close())
	case Zstd:
		if c.zstdWriter == nil {
			w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
			must(0, err)
			c.zstdWriter = w
		}
		return c.zstdWriter.EncodeAll(src, dst)
	default:
		panic(fmt.Sprintf("batch: no codec %d", codec))
	}
	return buf.Bytes()
}

func (c *Codecs) encodeSnappy(dst, src []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = append(dst, 0, 0, 0, 1, 0, 0, 0, 1)
	if c.block == nil {
		c.block = make([]byte, snappy.MaxEncodedLen(xerialBlock))
	}
	for len(src) > 0 {
		n := min(len(src), xerialBlock)
		block := snappy.Encode(c.block, src[:n])
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
		dst = append(dst, block...)
		src = src[n:]
	}
	return dst
}

func must(_ int, err error) {
	if err != nil {
		panic("batch: " + err.Error())
	}
}
