package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compress returns the codec's attribute bits and the compressed records, as Kafka frames them.
func compress(codec string, records []byte) (int16, []byte, error) {
	var out bytes.Buffer
	switch codec {
	case "", "none":
		return 0, records, nil
	case "gzip":
		w := gzip.NewWriter(&out)
		w.Write(records)
		err := w.Close()
		return 1, out.Bytes(), err
	case "snappy":
		// The xerial stream: magic, version, least version, then blocks with their lengths.
		out.Write([]byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1})
		block := snappy.Encode(nil, records)
		out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(block))))
		out.Write(block)
		return 2, out.Bytes(), nil
	case "lz4":
		w := lz4.NewWriter(&out)
		w.Write(records)
		err := w.Close()
		return 3, out.Bytes(), err
	case "zstd":
		w, err := zstd.NewWriter(nil)
		if err != nil {
			return 0, nil, err
		}
		return 4, w.EncodeAll(records, nil), w.Close()
	}
	return 0, nil, fmt.Errorf("bench: codec %q is none of none, gzip, snappy, lz4, zstd", codec)
}
