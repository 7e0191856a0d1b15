package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

func TestBuilderRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []byte {
		if rnd.IntN(4) == 0 {
			return nil
		}
		b := make([]byte, rnd.IntN(n))
		for i := range b {
			b[i] = byte(rnd.IntN(3))
		}
		return b
	}
	for round := range 200 {
		c := codecs[round%len(codecs)]
		b := NewBuilder(c)
		b.BaseOffset, b.LeaderEpoch = rnd.Int64N(1<<50), 3
		var want []string
		n := 1 + rnd.IntN(40)
		for i := range n {
			ts, k, v := 1700000000000+rnd.Int64N(1000)-500, random(40), random(5000)
			h := RecordHeader{Key: fmt.Sprint("h", i), Value: random(20)}
			want = append(want, fmt.Sprintf("%d %d %#v %#v %s %#v", b.BaseOffset+int64(i), ts, k, v, h.Key, h.Value))
			b.Add(ts, k, v, h)
		}
		whole := b.AppendTo([]byte("before"))[6:]
		if err := Verify(whole); err != nil {
			t.Fatal(err)
		}
		r, err := Open(whole, 1<<20)
		if err != nil {
			t.Fatal(c, err)
		}
		for i := 0; r.Next(); i++ {
			for k, v := range r.Headers() {
				if got := fmt.Sprintf("%d %d %#v %#v %s %#v", r.Offset, r.Timestamp, r.Key, r.Value, k, v); got != want[i] {
					t.Fatalf("%s record %d:\n got %s\nwant %s", c, i, got, want[i])
				}
			}
		}
		if r.Err != nil {
			t.Fatal(c, r.Err)
		}
		if b.Count() != n {
			t.Fatal(b.Count())
		}
		compareOpened(t, c, b)
	}
}

// compareOpened: looking into the compressed batch finds what walking the uncompressed one does.
func compareOpened(t *testing.T, c Codec, b *Builder) {
	t.Helper()
	b.BaseOffset = 0
	closed := b.AppendTo(nil)
	b.Codec = None
	plain := b.AppendTo(nil)
	o := CheckOptions{Keys: true}
	want, wantErr := Check(plain, &o)
	got, err := Check(closed, &o)
	if c != None {
		if err != nil || !got.MustOpen || got.Walked {
			t.Fatal(c, got, err)
		}
		err = CheckCompressed(closed, &o, &got, 1<<20)
	}
	var r, wantR *Rejected
	if errors.As(wantErr, &wantR) {
		if !errors.As(err, &r) || fmt.Sprint(*r) != fmt.Sprint(*wantR) {
			t.Fatal(c, err, wantErr)
		}
		return
	}
	if got.Size = want.Size; err != wantErr || got != want {
		t.Fatalf("%s: %+v %v, want %+v %v", c, got, err, want, wantErr)
	}
}

func TestDecompressLimit(t *testing.T) {
	src := bytes.Repeat([]byte("0123456789abcdef"), 1<<12)
	for _, c := range codecs {
		z := new(Codecs).Compress(nil, c, src)
		got, err := Decompress([]byte("before"), c, z, len(src))
		if err != nil || string(got) != "before"+string(src) {
			t.Error(c, len(got), err)
		}
		if got, err = Decompress([]byte("before"), c, z, len(src)-1); err != ErrLimit || string(got) != "before" {
			t.Error(c, "over the limit:", len(got), err)
		}
		if c == None {
			continue
		}
		for _, n := range []int{1, 5, len(z) / 2, len(z) - 1} {
			if _, err := Decompress(nil, c, z[:n], len(src)); err == nil {
				t.Error(c, "cut to", n, "was taken")
			}
		}
		for i := range z {
			bad := append([]byte{}, z...)
			bad[i] ^= 0x55
			if _, err := Decompress(nil, c, bad, len(src)); err != nil && err != ErrLimit && err != ErrCompressed {
				t.Error(c, i, err)
			}
		}
	}
	if _, err := Decompress(nil, 5, src, 1<<20); err != ErrUnknownCodec {
		t.Error(err)
	}
}

func TestRawSnappyAndChainedXerial(t *testing.T) {
	src := bytes.Repeat([]byte("raw"), 1000)
	if got, err := Decompress(nil, Snappy, snappy.Encode(nil, src), 1<<20); err != nil || !bytes.Equal(got, src) {
		t.Error(len(got), err)
	}
	two := append(new(Codecs).Compress(nil, Snappy, src), new(Codecs).Compress(nil, Snappy, src)...)
	if got, err := Decompress(nil, Snappy, two, 1<<20); err != nil || len(got) != 2*len(src) {
		t.Error(len(got), err)
	}
	lie := append(binary.AppendUvarint(nil, 1<<31-1), 0, 0)
	if _, err := Decompress(nil, Snappy, lie, 1<<32); !errors.Is(err, ErrInvalid) {
		t.Error("a length that cannot be was believed:", err)
	}
}

// TestBombs: what a small batch makes us hold is bounded by the limit.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 64<<20)
	var z bytes.Buffer
	w, err := zstd.NewWriter(&z, zstd.WithWindowSize(128<<20), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	must(w.Write(zeros[:1<<20]))
	must(0, w.Flush())
	must(0, w.Close())
	bombs := map[string][]byte{"zstd with a large window": z.Bytes()}
	for _, c := range codecs[1:] {
		bombs[c.String()] = new(Codecs).Compress(nil, c, zeros)
	}
	for name, b := range bombs {
		c, ok := CodecByName(name)
		if !ok {
			c = Zstd
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decompress(nil, c, b, 1<<20-1)
		runtime.ReadMemStats(&after)
		if err != ErrLimit {
			t.Error(name, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
			t.Errorf("%s: %d bytes of it took %d MiB", name, len(b), grown>>20)
		}
		head := plain(c, 1, 1)[:HeaderSize:HeaderSize]
		whole := append(head, b...)
		Seal(whole)
		info, err := Check(whole, &CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckCompressed(whole, &CheckOptions{}, &info, 1<<20-1); err == nil {
			t.Error(name, "was taken")
		}
	}
}

// legacy encodes a message of magic 0 or 1.
func legacy(magic, attributes byte, offset, ts int64, key, value []byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(offset))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, magic, attributes)
	if magic == 1 {
		b = binary.BigEndian.AppendUint64(b, uint64(ts))
	}
	for _, f := range [][]byte{key, value} {
		if f == nil {
			b = binary.BigEndian.AppendUint32(b, 0xffffffff)
			continue
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-LogOverhead))
	binary.BigEndian.PutUint32(b[12:], crcIEEE(b[16:]))
	return b
}

func TestLegacy(t *testing.T) {
	inner := append(legacy(1, 0, 0, 5, []byte("a"), nil), legacy(1, 0, 1, 6, nil, []byte("b"))...)
	log := legacy(0, 0, 10, 0, []byte("k"), []byte("v"))
	log = append(log, legacy(1, 0, 11, 99, nil, nil)...)
	log = append(log, legacy(1, byte(Gzip), 13, 6, nil, new(Codecs).Compress(nil, Gzip, inner))...)
	log = append(log, legacy(1, byte(Snappy)|logAppendTimeBit, 15, 77, nil, new(Codecs).Compress(nil, Snappy, inner))...)
	var got []string
	for len(log) > 0 {
		one, rest, err := Whole(log)
		if err != nil {
			t.Fatal(err)
		}
		log = rest
		if err := Verify(one); err != nil {
			t.Fatal(err)
		}
		r, err := Open(one, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
			got = append(got, fmt.Sprintf("%d@%d %s=%s", r.Offset, r.Timestamp, r.Key, r.Value))
		}
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		one[len(one)-1] ^= 1
		if Verify(one) == nil {
			t.Error("a flipped bit was not seen")
		}
	}
	want := "[10@-1 k=v 11@99 = 12@5 a= 13@6 =b 14@77 a= 15@77 =b]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v\nwant %s", got, want)
	}
}

func TestNext(t *testing.T) {
	whole := plain(None, 1, 1)
	zeros := make([]byte, 100)
	for _, c := range []struct {
		name string
		b    []byte
		size int
		err  error
	}{
		{"nothing", nil, 0, ErrShort},
		{"16 bytes", whole[:16], 0, ErrShort},
		{"17 bytes tell the size", whole[:17], len(whole), nil},
		{"zeros", zeros, 0, ErrLength},
		{"12 zeros", zeros[:12], 0, ErrLength},
		{"11 zeros", zeros[:11], 0, ErrShort},
		{"magic 0 of least size", legacy(0, 0, 0, 0, nil, nil), 26, nil},
		{"magic 1 of least size", legacy(1, 0, 0, 0, nil, nil), 34, nil},
		{"magic 1 too short", put(append(legacy(1, 0, 0, 0, nil, nil), make([]byte, 30)...), 8, 0, 0, 0, 21), 0, ErrLength},
		{"largest", put(whole, 8, 0x7f, 0xff, 0xff, 0xff), 1<<31 + 11, nil},
	} {
		if size, err := Next(c.b); size != c.size || err != c.err {
			t.Errorf("%s: %d %v", c.name, size, err)
		}
	}
	if _, _, err := Whole(whole[:len(whole)-1]); err != ErrShort {
		t.Error(err)
	}
}
