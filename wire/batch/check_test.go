package batch

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
)

type probe struct {
	Case   string
	Args   struct{ Topic string }
	Answer json.RawMessage
	// Request is the frame without its size, Response with it.
	Request, Response string
}

// probes are Produce requests a Kafka broker answered.
func probes(t testing.TB) []probe {
	b, err := os.ReadFile("../testdata/produce.json")
	if err != nil {
		t.Fatal(err)
	}
	var p []probe
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// records cuts the records out of a Produce 8 frame with one topic and one partition.
func (p *probe) records(t testing.TB) []byte {
	if strings.HasPrefix(p.Request, "(") {
		return nil // too long to be kept
	}
	b, err := hex.DecodeString(p.Request)
	if err != nil {
		t.Fatal(err)
	}
	str := func(at int) int { return at + 2 + max(0, int(int16(binary.BigEndian.Uint16(b[at:])))) }
	at := str(8)           // client id
	at = str(at) + 2 + 4   // transactional id, acks, timeout
	at = str(at+4) + 4 + 4 // topics, name, partitions, index
	n := binary.BigEndian.Uint32(b[at:])
	if at+4+int(n) != len(b) {
		t.Fatal(p.Case, "is of another shape")
	}
	return b[at+4:]
}

// code is the broker's answer; -1 for none.
func (p *probe) code() int {
	var a struct{ Error int }
	if json.Unmarshal(p.Answer, &a) != nil {
		return -1
	}
	return a.Error
}

// notOurs are the probes whose answer depends on more than the batch.
var notOurs = map[string]bool{"acks 5": true, "unknown topic": true, "not leader": true, "internal topic": true,
	"control batch": true, "too large": true,
	"min ISR 2 of one in sync": true}

func TestCheckAnswersAsKafka(t *testing.T) {
	kinds := map[int]error{2: ErrCorrupt, 87: ErrInvalid, 10: ErrTooLarge}
	refused := 0
	for _, p := range probes(t) {
		code := p.code()
		if notOurs[p.Case] || code == 45 || code == 47 || code == 49 || code == 53 {
			continue
		}
		o := CheckOptions{BytesMax: 1048588, Keys: p.Args.Topic == "p3", LogAppendTime: p.Args.Topic == "p2"}
		info, err := Check(p.records(t), &o)
		if code <= 0 {
			if err != nil {
				t.Errorf("%s: refused: %v", p.Case, err)
			}
			continue
		}
		refused++
		if !errors.Is(err, kinds[code]) {
			t.Errorf("%s: got %v (%+v), Kafka answered %d", p.Case, err, info, code)
		}
	}
	if refused < 11 {
		t.Error("only", refused, "refusals were compared")
	}
}

func TestRejectedMessagesAreKafkas(t *testing.T) {
	for _, p := range probes(t) {
		if p.Case != "compacted, null key" {
			continue
		}
		_, err := Check(p.records(t), &CheckOptions{Keys: true})
		var r *Rejected
		if !errors.As(err, &r) || r.Total != 1 || len(r.Records) != 1 || r.Records[0].Index != 0 {
			t.Fatal(err)
		}
		answer, _ := hex.DecodeString(p.Response)
		for _, m := range []string{r.Message("p3", 0), r.Records[0].Message("p3", 0)} {
			framed := string(binary.BigEndian.AppendUint16(nil, uint16(len(m)))) + m
			if !strings.Contains(string(answer), framed) {
				t.Errorf("Kafka's answer has no %q", m)
			}
		}
		return
	}
	t.Fatal("no probe")
}

// plain is a batch of n records of about size bytes.
func plain(c Codec, n, size int) []byte {
	b := NewBuilder(c)
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(i * 7)
	}
	for i := range n {
		b.Add(1700000000000+int64(i), []byte("key"), value)
	}
	return b.AppendTo(nil)
}

// put changes bytes of a batch and makes its CRC right again.
func put(b []byte, at int, v ...byte) []byte {
	b = append([]byte{}, b...)
	copy(b[at:], v)
	binary.BigEndian.PutUint32(b[17:], Header(b).Sum())
	return b
}

func TestCheckRefuses(t *testing.T) {
	good := plain(None, 3, 5)
	if _, err := Check(good, &CheckOptions{}); err != nil {
		t.Fatal(err)
	}
	sequenced := NewBuilder(None)
	sequenced.ProducerID, sequenced.ProducerEpoch, sequenced.BaseSequence = 5, 0, -3
	sequenced.Add(1, nil, nil)
	gap := NewBuilder(None)
	gap.AddAt(0, 1, nil, nil)
	gap.AddAt(2, 1, nil, nil)
	gapped := put(gap.AppendTo(nil), 23, 0, 0, 0, 1)
	control := NewBuilder(None)
	control.Control = true
	control.Add(1, []byte{0, 0, 0, 1}, nil)
	for _, c := range []struct {
		name string
		b    []byte
		o    CheckOptions
		want error
	}{
		{"nothing", nil, CheckOptions{}, ErrNoBatch},
		{"cut short", good[:len(good)-1], CheckOptions{}, ErrNoBatch},
		{"two", append(append([]byte{}, good...), good...), CheckOptions{}, ErrManyBatches},
		{"a bad second", append(append([]byte{}, good...), make([]byte, 30)...), CheckOptions{}, ErrLength},
		{"magic 1", put(good, 16, 1), CheckOptions{}, ErrOldMagic},
		{"magic 3", put(good, 16, 3), CheckOptions{}, ErrMagic},
		{"magic -1", put(good, 16, 0xff), CheckOptions{}, ErrMagic},
		{"length 40", put(good, 8, 0, 0, 0, 40), CheckOptions{}, ErrLength},
		{"negative length", put(good, 8, 0x80), CheckOptions{}, ErrLength},
		{"huge length", put(good, 8, 0x7f, 0xff, 0xff, 0xff), CheckOptions{}, ErrNoBatch},
		{"base offset", put(good, 7, 1), CheckOptions{}, ErrBaseOffset},
		{"large", good, CheckOptions{BytesMax: len(good) - 1}, ErrTooLarge},
		{"crc", append(append([]byte{}, good[:len(good)-1]...), good[len(good)-1]^1), CheckOptions{}, ErrCRC},
		{"codec 5", put(good, 22, 5), CheckOptions{}, ErrUnknownCodec},
		{"count 0", put(good, 57, 0, 0, 0, 0), CheckOptions{}, ErrCount},
		{"count 2", put(good, 57, 0, 0, 0, 2), CheckOptions{}, ErrCount},
		{"negative count", put(put(good, 57, 0xff), 23, 0xff), CheckOptions{}, ErrCount},
		{"count 2 of 3", put(put(good, 57, 0, 0, 0, 2), 23, 0, 0, 0, 1), CheckOptions{}, ErrRecordCount},
		{"count 4 of 3", put(put(good, 57, 0, 0, 0, 4), 23, 0, 0, 0, 3), CheckOptions{}, ErrRecord},
		{"last delta 2^31-1", put(put(good, 57, 0x80, 0, 0, 0), 23, 0x7f, 0xff, 0xff, 0xff), CheckOptions{}, ErrCount},
		{"control", control.AppendTo(nil), CheckOptions{}, ErrControl},
		{"sequence", sequenced.AppendTo(nil), CheckOptions{}, ErrSequence},
		{"gap", gapped, CheckOptions{}, ErrOffsetDelta},
	} {
		if _, err := Check(c.b, &c.o); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestSingleZstd(t *testing.T) {
	b := plain(Zstd, 3, 5)
	if _, err := Single(b, false); err != ErrCodec {
		t.Error(err)
	}
	if n, err := Single(append(b, 1, 2, 3), true); err != nil || n != len(b) {
		t.Error("bytes that are no batch are dropped:", n, err)
	}
}

func TestBadRecords(t *testing.T) {
	rec := func(b ...byte) []byte { return append([]byte{byte(len(b) * 2)}, b...) }
	for _, c := range []struct {
		name string
		rec  []byte
		ok   bool
	}{
		{"least", rec(0, 0, 0, 1, 1, 0), true},
		{"attributes do not matter", rec(0xff, 0, 0, 1, 1, 0), true},
		{"any negative length is null", rec(0, 0, 0, 5, 9, 0), true},
		{"header with null value", rec(0, 0, 0, 1, 1, 2, 0, 1), true},
		{"no header count", rec(0, 0, 0, 1, 1), false},
		{"negative header count", rec(0, 0, 0, 1, 1, 1), false},
		{"header count over what is left", rec(0, 0, 0, 1, 1, 4, 0), false},
		{"header with negative key length", rec(0, 0, 0, 1, 1, 2, 1, 1), false},
		{"header key too long", rec(0, 0, 0, 1, 1, 2, 8, 1), false},
		{"key too long", rec(0, 0, 0, 100, 1, 0), false},
		{"value too long", rec(0, 0, 0, 1, 100, 0), false},
		{"byte left over", rec(0, 0, 0, 1, 1, 0, 0), false},
		{"varint without end", rec(0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 1, 0), false},
		{"size over the batch", []byte{100, 0, 0, 0, 1, 1, 0}, false},
		{"negative size", []byte{1, 0, 0, 0, 1, 1, 0}, false},
		{"size 0", []byte{0}, false},
	} {
		b := append(plain(None, 1, 0)[:HeaderSize:HeaderSize], c.rec...)
		Seal(b)
		_, err := Check(b, &CheckOptions{})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, codec := range []Codec{Gzip, Snappy, LZ4, Zstd} {
			z := new(Codecs).Compress(b[:HeaderSize:HeaderSize], codec, c.rec)
			z[22] = byte(codec)
			Seal(z)
			info, err := Check(z, &CheckOptions{Keys: false})
			if err != nil {
				t.Fatal(c.name, codec, err)
			}
			err = CheckCompressed(z, &CheckOptions{}, &info, 1<<20)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrInvalid) {
				t.Errorf("%s in %s: %v", c.name, codec, err)
			}
		}
	}
}

func TestTimestamps(t *testing.T) {
	build := func(appendTime bool, ts ...int64) []byte {
		b := NewBuilder(None)
		b.LogAppendTime = appendTime
		for _, ts := range ts {
			b.Add(ts, []byte("k"), nil)
		}
		return b.AppendTo(nil)
	}
	window := CheckOptions{Window: true, Now: 1000, Before: 100, After: 50}
	for _, c := range []struct {
		name    string
		b       []byte
		o       CheckOptions
		max     int64
		delta   int32
		bad     int
		restamp bool
	}{
		{"largest in the middle", build(false, 5, 9, 7), CheckOptions{}, 9, 1, 0, false},
		{"first of the largest", build(false, 5, 9, 9), CheckOptions{}, 9, 1, 0, false},
		{"negative is less than none", build(false, -5), CheckOptions{}, -1, -1, 0, true},
		{"wrong in the header", put(build(false, 5), 42, 99), CheckOptions{}, 5, 0, 0, true},
		{"in the window", build(false, 900, 1050), window, 1050, 1, 0, false},
		{"out of it", build(false, 899, 900, 1050, 1051), window, 0, 0, 2, false},
		{"none is in every window", build(false, -1), window, -1, -1, 0, false},
		{"unlimited", build(false, -5, math.MaxInt64-1000), CheckOptions{Window: true, Now: 1000, Before: math.MaxInt64,
			After: math.MaxInt64}, math.MaxInt64 - 1000, 1, 0, false},
		{"append time topic", build(false, 5), CheckOptions{LogAppendTime: true, Window: true}, 5, 0, 0, false},
		{"append time from the client", build(true, 5, 6), CheckOptions{}, 6, 0, 0, true},
		{"append time from the client to such a topic", build(true, 5, 6), CheckOptions{LogAppendTime: true}, 0, 0, 2, false},
	} {
		info, err := Check(c.b, &c.o)
		if c.bad > 0 {
			var r *Rejected
			if !errors.As(err, &r) || r.Total != c.bad || !errors.Is(err, ErrTimestamp) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || info.MaxTimestamp != c.max || info.MaxDelta != c.delta || info.Restamp != c.restamp {
			t.Errorf("%s: %+v %v", c.name, info, err)
		}
	}
}

func TestRejectedIsBounded(t *testing.T) {
	b := NewBuilder(None)
	for range 5000 {
		b.Add(1, nil, nil)
	}
	_, err := Check(b.AppendTo(nil), &CheckOptions{Keys: true})
	var r *Rejected
	if !errors.As(err, &r) || r.Total != 5000 || len(r.Records) != rejectedMax {
		t.Fatal(err)
	}
	if m := r.Message("t", 7); !strings.Contains(m, "5000") || strings.Count(m, "t-7'") != 3 {
		t.Error(m)
	}
}

func TestStampTimes(t *testing.T) {
	b := put(plain(None, 2, 3), 21, 0x80, 0x80|transactionalBit)
	Stamp(b, 1<<40, 7)
	if h := Header(b); h.BaseOffset() != 1<<40 || h.LeaderEpoch() != 7 || !h.Valid() || h.LastOffset() != 1<<40+1 {
		t.Error("stamped", h[:HeaderSize])
	}
	StampAppendTime(b, 12345)
	h := Header(b)
	if !h.Valid() || !h.LogAppendTime() || h.MaxTimestamp() != 12345 || h.Attributes() != logAppendTimeBit|transactionalBit {
		t.Error("append time", h[:HeaderSize])
	}
	StampCreateTime(b, 99)
	if !h.Valid() || h.LogAppendTime() || h.MaxTimestamp() != 99 {
		t.Error("create time", h[:HeaderSize])
	}
	odd := put(b, 21, 0x80)
	StampCreateTime(odd, 99)
	if Header(odd).Attributes()>>8 != -0x80 {
		t.Error("a batch that is right already was rewritten")
	}
}

func TestSequences(t *testing.T) {
	for _, c := range []struct{ s, n, want int32 }{{0, 0, 0}, {5, 3, 8}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 1, 3, 1},
		{math.MaxInt32, math.MaxInt32, math.MaxInt32 - 1}} {
		if got := AddSequence(c.s, c.n); got != c.want {
			t.Error(c, got)
		}
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	b := plain(None, 100, 100)
	o := CheckOptions{Keys: true, Window: true, Now: 1700000000000, Before: math.MaxInt64, After: math.MaxInt64}
	bad := put(b, 57, 0, 0, 0, 9)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Check(b, &o); err != nil {
			t.Fatal(err)
		}
		if _, err := Check(bad, &o); err == nil {
			t.Fatal("taken")
		}
		Stamp(b, 0, 1)
	}); n != 0 {
		t.Error(n, "allocations")
	}
}
