package batch

import (
	"bytes"
	"fmt"
	"testing"
)

// wrapped is a compressed message of n records whose last one has the offset last.
func wrapped(magic byte, codec Codec, appendTime bool, last int64, n int) Legacy {
	attributes := byte(codec)
	if appendTime {
		attributes |= logAppendTimeBit
	}
	var inner []byte
	for i := range n {
		offset := int64(i)
		if magic == 0 {
			offset = last - int64(n-1-i)
		}
		var value []byte
		if i%4 != 3 {
			value = fmt.Appendf(nil, "value %d", i)
		}
		inner = appendMessage(inner, offset, magic, 0, 1000+int64(i*7%5), fmt.Appendf(nil, "key %d", i), value)
	}
	return appendMessage(nil, last, magic, attributes, 5000, nil, new(Codecs).Compress(nil, codec, inner))
}

// What is kept of a compressed message of an old format keeps its offset, key, value and time.
func TestLegacyRewriteKeepsWhatIsKept(t *testing.T) {
	for _, magic := range []byte{0, 1} {
		for _, codec := range []Codec{Gzip, Snappy, LZ4} {
			for _, appendTime := range []bool{false, true} {
				if magic == 0 && (appendTime || codec == LZ4) {
					continue
				}
				t.Run(fmt.Sprint(magic, codec, appendTime), func(t *testing.T) {
					src := wrapped(magic, codec, appendTime, 120, 20)
					var kept []Record
					for i, r := range records(t, src) {
						if i%3 == 1 {
							kept = append(kept, r)
						}
					}
					out := Legacy(AppendLegacy([]byte("before"), src, kept, new(Codecs))[len("before"):])
					got := records(t, out)
					if len(got) != len(kept) {
						t.Fatalf("%d records, want %d", len(got), len(kept))
					}
					newest := NoTimestamp
					for i, g := range got {
						k := kept[i]
						newest = max(newest, k.Timestamp)
						if g.Offset != k.Offset || g.Timestamp != k.Timestamp || !bytes.Equal(g.Key, k.Key) || !bytes.Equal(g.Value, k.Value) ||
							(g.Value == nil) != (k.Value == nil) {
							t.Errorf("record %d is %+v, want %+v", i, g, k)
						}
					}
					if out.Offset() != kept[len(kept)-1].Offset || out.Codec() != codec || out.LogAppendTime() != appendTime ||
						magic == 1 && out.Timestamp() != newest {
						t.Errorf("wrapper % x", []byte(out[:26]))
					}
				})
			}
		}
	}
}
