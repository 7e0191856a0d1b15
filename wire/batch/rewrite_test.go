package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// source makes a batch of n records; every third is a tombstone, and timestamps go back and forth.
func source(codec Codec, n int) []byte {
	b := NewBuilder(codec)
	b.BaseOffset, b.LeaderEpoch, b.ProducerID, b.ProducerEpoch, b.BaseSequence = 100, 7, 5, 2, 40
	for i := range n {
		value := []byte(fmt.Sprintf("value %d", i))
		if i%3 == 2 {
			value = nil
		}
		b.Add(1_000_000+int64(i*37%11)*1000, []byte(fmt.Sprintf("key %d", i)), value, RecordHeader{"h", []byte{byte(i)}})
	}
	return b.AppendTo(nil)
}

func records(t *testing.T, b []byte) []Record {
	t.Helper()
	if err := Verify(b); err != nil {
		t.Fatal(err)
	}
	r, err := Open(b, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var all []Record
	for r.Next() {
		all = append(all, r.Record)
	}
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return all
}

// What is kept of a batch are the same records at the same offsets and times, whatever the codec and with or without a horizon.
func TestRewriteKeepsWhatIsKept(t *testing.T) {
	codecs := new(Codecs)
	for codec := None; codec <= Zstd; codec++ {
		for _, horizon := range []int64{NoTimestamp, 1_800_000_000_000} {
			t.Run(fmt.Sprint(codec, horizon), func(t *testing.T) {
				src := source(codec, 100)
				var w Rewriter
				w.Begin(Header(src), horizon)
				var want []Record
				newest := NoTimestamp
				for i, rec := range records(t, src) {
					if i%4 != 0 {
						w.Keep(&rec)
						want = append(want, rec)
						newest = max(newest, rec.Timestamp)
					}
				}
				before := []byte("before")
				out := w.AppendTo(before, codecs)[len(before):]
				h, was := Header(out), Header(src)
				got := records(t, out)
				if len(got) != len(want) || int(h.Count()) != len(want) {
					t.Fatalf("%d records, count %d, want %d", len(got), h.Count(), len(want))
				}
				for i := range got {
					g, w := got[i], want[i]
					if g.Offset != w.Offset || g.Timestamp != w.Timestamp || !bytes.Equal(g.tail, w.tail) || (g.Value == nil) != (w.Value == nil) {
						t.Fatalf("record %d is %+v, want %+v", i, g, w)
					}
				}
				if h.BaseOffset() != was.BaseOffset() || h.LastOffset() != was.LastOffset() || h.LastSequence() != was.LastSequence() ||
					h.LeaderEpoch() != 7 || h.ProducerID() != 5 || h.ProducerEpoch() != 2 || h.Codec() != codec || h.MaxTimestamp() != newest {
					t.Errorf("header % x", h[:HeaderSize])
				}
				if set := horizon != NoTimestamp; h.DeleteHorizon() != set || set && h.BaseTimestamp() != horizon ||
					!set && h.BaseTimestamp() != want[0].Timestamp {
					t.Errorf("delete horizon %v, base timestamp %d", h.DeleteHorizon(), h.BaseTimestamp())
				}
			})
		}
	}
}

func TestEmptyBatchKeepsItsPlace(t *testing.T) {
	b := NewBuilder(Gzip)
	b.BaseOffset, b.ProducerID, b.BaseSequence, b.Transactional = 9, 3, 12, true
	b.Add(1000, []byte("k"), nil)
	b.Add(2000, []byte("k"), nil)
	src := b.AppendTo(nil)
	e := Header(AppendEmpty(nil, Header(src)))
	if err := Verify(e); err != nil {
		t.Fatal(err)
	}
	if len(e) != HeaderSize || e.Count() != 0 || e.Codec() != None || !e.Transactional() || e.BaseTimestamp() != NoTimestamp ||
		e.MaxTimestamp() != 2000 || e.LastOffset() != 10 || e.LastSequence() != 13 {
		t.Errorf("% x", e)
	}
}

// Codecs that were used before, for good and bad input, give what new ones give.
func TestCodecsAreUsedAgain(t *testing.T) {
	c, r := new(Codecs), rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		src := make([]byte, r.IntN(100_000))
		for k := range src {
			src[k] = byte(r.IntN(1 + i%40))
		}
		codec := Codec(i % 5)
		packed := c.Compress([]byte("x"), codec, src)[1:]
		if got, err := c.Decompress(nil, codec, packed, len(src)); err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%v: %d bytes came back as %d, %v", codec, len(src), len(got), err)
		}
		if got, err := Decompress(nil, codec, packed, len(src)); err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%v: the function gives %d bytes, %v", codec, len(got), err)
		}
		if len(src) > 1 {
			if _, err := c.Decompress(nil, codec, packed, len(src)-1); err != ErrLimit {
				t.Fatalf("%v: over the limit: %v", codec, err)
			}
		}
		if len(packed) > 0 && codec != None {
			bad := bytes.Clone(packed[:r.IntN(len(packed))])
			_, _ = c.Decompress(nil, codec, bad, len(src))
			binary.BigEndian.PutUint32(packed[:4], r.Uint32())
			_, _ = c.Decompress(nil, codec, packed, len(src))
		}
	}
}
