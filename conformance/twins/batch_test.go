package twins

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

// record is one record; a nil key or value is null.
type record struct {
	key, value []byte
	ms         int64
	headers    []kmsg.Header
}

// batch is a record batch as a client sends it. The zero producer is none.
type batch struct {
	records       []record
	codec         int8 // Kafka's number
	producer      int64
	epoch         int16
	sequence      int32
	transactional bool
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (b batch) bytes(t *testing.T) []byte {
	t.Helper()
	var body []byte
	first, last := b.records[0].ms, b.records[0].ms
	for i, r := range b.records {
		last = max(last, r.ms)
		k := kmsg.NewRecord()
		k.TimestampDelta64, k.OffsetDelta, k.Key, k.Value, k.Headers = r.ms-first, int32(i), r.key, r.value, r.headers
		k.Length = int32(len(k.AppendTo(nil)) - 1)
		body = k.AppendTo(body)
	}
	h := kmsg.NewRecordBatch()
	h.PartitionLeaderEpoch, h.Magic, h.LastOffsetDelta, h.NumRecords = -1, 2, int32(len(b.records)-1), int32(len(b.records))
	h.FirstTimestamp, h.MaxTimestamp = first, last
	h.ProducerID, h.ProducerEpoch, h.FirstSequence = -1, -1, -1
	if b.producer != 0 {
		h.ProducerID, h.ProducerEpoch, h.FirstSequence = b.producer, b.epoch, b.sequence
	}
	h.Attributes = int16(b.codec)
	if b.transactional {
		h.Attributes |= 0x10
	}
	h.Records = compress(t, b.codec, body)
	h.Length = int32(49 + len(h.Records))
	raw := h.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], castagnoli))
	return raw
}

// codecs are Kafka's, by number.
var codecs = []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(),
	kgo.Lz4Compression(), kgo.ZstdCompression()}

func compress(t *testing.T, codec int8, body []byte) []byte {
	t.Helper()
	if codec == 0 {
		return body
	}
	c, err := kgo.DefaultCompressor(codecs[codec])
	if err != nil {
		t.Fatal(err)
	}
	out, used := c.Compress(new(bytes.Buffer), body)
	if int8(used) != codec {
		t.Fatalf("compressed by codec %d, not %d", used, codec)
	}
	return bytes.Clone(out)
}

// some makes n records of about so many bytes from ms on, the same for the same seed. Times go back now and then.
func some(seed, n, size int, ms int64) (all []record) {
	for i := range n {
		r := record{key: fmt.Appendf(nil, "key %d", (seed*7+i*3)%40), value: stage.Noise(seed*1000+i, size), ms: ms + int64(i*13%7)}
		switch (seed + i) % 11 {
		case 3:
			r.key = nil
		case 5:
			r.value = nil
		case 7:
			r.headers = []kmsg.Header{{Key: "h", Value: []byte{byte(i)}}, {Key: "", Value: nil}}
		}
		all = append(all, r)
	}
	return all
}
