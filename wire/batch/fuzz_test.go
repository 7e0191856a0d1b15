package batch

import (
	"errors"
	"hash/crc32"
	"testing"
)

func crcIEEE(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

func seeds(f *testing.F) {
	for _, p := range probes(f) {
		f.Add(p.records(f))
	}
	for _, c := range codecs {
		f.Add(plain(c, 3, 20))
	}
	for _, log := range logBytes(f, "nulls-0") {
		f.Add(log)
	}
	for _, log := range logBytes(f, "compacted-0") {
		f.Add(log)
	}
	f.Add(legacy(0, 0, 1, 2, []byte("k"), nil))
	f.Add(legacy(1, byte(Gzip), 1, 2, nil, new(Codecs).Compress(nil, Gzip, legacy(1, 0, 0, 0, nil, nil))))
}

// FuzzCheck: what Check lets pass is what a slow reader finds in it.
func FuzzCheck(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, o := range []CheckOptions{{}, {Keys: true, BytesMax: 1000}, {LogAppendTime: true},
			{Window: true, Now: 1 << 40, Before: 1 << 39, After: 9}} {
			checkAgainstRecords(t, b, &o)
			if len(b) >= HeaderSize {
				// The fuzzer cannot guess a CRC: give it one, and the length.
				sealed := append([]byte{}, b...)
				sealed[16] = magicNow
				Seal(sealed)
				checkAgainstRecords(t, sealed, &o)
			}
		}
	})
}

func checkAgainstRecords(t *testing.T, b []byte, o *CheckOptions) {
	info, err := Check(b, o)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTimestamp) && !errors.Is(err, ErrTooLarge) &&
			!errors.Is(err, ErrUnknownCodec) {
			t.Fatal("an error of no kind:", err)
		}
		return
	}
	const limit = 1 << 20
	whole := b[:info.Size]
	openErr := error(nil)
	if !info.Walked {
		openErr = CheckCompressed(b, o, &info, limit)
	}
	if openErr != nil {
		return
	}
	r, err := Open(whole, limit)
	if err != nil {
		t.Fatal("a batch that passed does not open:", err)
	}
	latest, at, n := int64(-1), int32(-1), int32(0)
	for ; r.Next(); n++ {
		if r.Offset != int64(n) {
			t.Fatal("offset", r.Offset, "of record", n)
		}
		if o.Keys && r.Key == nil {
			t.Fatal("a record without a key passed")
		}
		if r.Timestamp > latest {
			latest, at = r.Timestamp, n
		}
		headers := 0
		for range r.Headers() {
			headers++
		}
		if headers != r.HeaderCount {
			t.Fatal(headers, "headers of", r.HeaderCount)
		}
	}
	if r.Err != nil || n != info.Count || latest != info.MaxTimestamp || at != info.MaxDelta {
		t.Fatal(r.Err, n, latest, at, info)
	}
	StampAppendTime(whole, 5)
	Stamp(whole, 7, 8)
	if Verify(whole) != nil {
		t.Fatal("stamping broke the batch")
	}
}

// FuzzWalk: walking any bytes ends, within them.
func FuzzWalk(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for rest := b; ; {
			one, next, err := Whole(rest)
			if err != nil {
				if !errors.Is(err, ErrCorrupt) && err != ErrShort {
					t.Fatal(err)
				}
				return
			}
			if len(one)+len(next) != len(rest) {
				t.Fatal("bytes were lost")
			}
			rest = next
			_ = Verify(one)
			if r, err := Open(one, 1<<16); err == nil {
				for r.Next() {
					for range r.Headers() {
					}
				}
			}
		}
	})
}

// FuzzDecompress: no bytes make more than the limit, or a panic.
func FuzzDecompress(f *testing.F) {
	for _, c := range codecs {
		f.Add(byte(c), new(Codecs).Compress(nil, c, []byte("some records, some records, some records")))
	}
	f.Fuzz(func(t *testing.T, c byte, b []byte) {
		got, err := Decompress(nil, Codec(c%5), b, 1<<16)
		if err == nil && len(got) > 1<<16 || err != nil && len(got) != 0 {
			t.Fatal(len(got), err)
		}
	})
}
