package batch

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// text is a key or value of batches.json: null, a string, or {"hex": ...}.
type text struct{ b []byte }

func (t *text) UnmarshalJSON(j []byte) error {
	if string(j) == "null" {
		return nil
	}
	var s string
	if json.Unmarshal(j, &s) == nil {
		t.b = []byte(s)
		return nil
	}
	var h struct{ Hex string }
	if err := json.Unmarshal(j, &h); err != nil {
		return err
	}
	b, err := hex.DecodeString(h.Hex)
	t.b = append([]byte{}, b...)
	return err
}

type goldenRecord struct {
	Offset, Timestamp int64
	Key, Value        *text
	Headers           [][2]text
	ControlKey        json.RawMessage
}

type goldenBatch struct {
	Segment, BaseOffset, Position, LastOffset                   int64
	Size                                                        int
	LeaderEpoch, BaseSequence, Count                            int32
	Magic                                                       int8
	Attributes, ProducerEpoch                                   int16
	Codec                                                       string
	LogAppendTime, Transactional, Control, DeleteHorizon, CrcOk bool
	BaseTimestamp, MaxTimestamp, ProducerID                     int64
	Records                                                     []goldenRecord
}

func goldenBatches(t testing.TB) map[string][]goldenBatch {
	b, err := os.ReadFile("testdata/batches.json")
	if err != nil {
		t.Fatal(err)
	}
	var m map[string][]goldenBatch
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// logBytes reads the segments of a partition, by base offset.
func logBytes(t testing.TB, partition string) map[int64][]byte {
	files, err := filepath.Glob("testdata/logs/" + partition + "/*.log")
	if err != nil || len(files) == 0 {
		t.Fatal("no segments of", partition, err)
	}
	m := map[int64][]byte{}
	for _, f := range files {
		var base int64
		if _, err := fmt.Sscanf(filepath.Base(f), "%d.log", &base); err != nil {
			t.Fatal(err)
		}
		if m[base], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestGoldenLogs(t *testing.T) {
	batches, records := 0, 0
	for partition, want := range goldenBatches(t) {
		logs := logBytes(t, partition)
		for i := range want {
			g := &want[i]
			name := fmt.Sprintf("%s at %d", partition, g.BaseOffset)
			one, rest, err := Whole(logs[g.Segment])
			if err != nil {
				t.Fatal(name, err)
			}
			logs[g.Segment] = rest
			checkGoldenHeader(t, name, one, g)
			records += checkGoldenRecords(t, name, one, g)
			batches++
		}
		for base, rest := range logs {
			if len(rest) != 0 {
				t.Errorf("%s: %d bytes left of segment %d", partition, len(rest), base)
			}
		}
	}
	if batches < 71 || records < 329 {
		t.Errorf("only %d batches and %d records were compared", batches, records)
	}
}

func checkGoldenHeader(t *testing.T, name string, one []byte, g *goldenBatch) {
	t.Helper()
	h := Header(one)
	if err := Verify(one); err != nil {
		t.Error(name, err)
	}
	got := goldenBatch{
		Segment: g.Segment, BaseOffset: h.BaseOffset(), Position: g.Position, LastOffset: h.LastOffset(), Size: int(h.Size()),
		LeaderEpoch: h.LeaderEpoch(), BaseSequence: h.BaseSequence(), Count: h.Count(), Magic: h.Magic(),
		Attributes: h.Attributes(), ProducerEpoch: h.ProducerEpoch(), Codec: h.Codec().String(),
		LogAppendTime: h.LogAppendTime(), Transactional: h.Transactional(), Control: h.Control(),
		DeleteHorizon: h.DeleteHorizon(), CrcOk: h.Valid(), BaseTimestamp: h.BaseTimestamp(),
		MaxTimestamp: h.MaxTimestamp(), ProducerID: h.ProducerID(),
	}
	want := *g
	want.Records = nil
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
	}
	broken := append([]byte{}, one...)
	broken[len(broken)-1] ^= 1
	if Verify(broken) == nil {
		t.Error(name, "a flipped bit was not seen")
	}
}

func checkGoldenRecords(t *testing.T, name string, one []byte, g *goldenBatch) int {
	t.Helper()
	r, err := Open(one, 1<<20)
	if err != nil {
		t.Error(name, err)
		return 0
	}
	n := 0
	for r.Next() {
		if n < len(g.Records) {
			compareRecord(t, fmt.Sprint(name, " record ", n), &r.Record, &g.Records[n])
		}
		n++
	}
	if r.Err != nil || n != int(g.Count) {
		t.Error(name, r.Err, n, g.Count)
	}
	return n
}

func compareRecord(t *testing.T, name string, r *Record, g *goldenRecord) {
	t.Helper()
	if r.Offset != g.Offset || r.Timestamp != g.Timestamp {
		t.Error(name, r.Offset, r.Timestamp, g)
	}
	if g.ControlKey != nil {
		return
	}
	same := func(what string, got []byte, want *text) {
		if want == nil {
			want = &text{}
		}
		if string(got) != string(want.b) || (got == nil) != (want.b == nil) {
			t.Errorf("%s: %s %q, want %q", name, what, got, want.b)
		}
	}
	same("key", r.Key, g.Key)
	same("value", r.Value, g.Value)
	if r.HeaderCount != len(g.Headers) {
		t.Error(name, r.HeaderCount, "headers")
		return
	}
	i := 0
	for k, v := range r.Headers() {
		same("header key", k, &g.Headers[i][0])
		same("header value", v, &g.Headers[i][1])
		i++
	}
}

// TestGoldenChecked runs Check over everything clients wrote, put back into the shape in which they sent it.
func TestGoldenChecked(t *testing.T) {
	checked := 0
	for partition := range goldenBatches(t) {
		if partition == "compacted-0" {
			continue // the cleaner has made holes
		}
		for _, log := range logBytes(t, partition) {
			for len(log) > 0 {
				one, rest, err := Whole(log)
				if err != nil {
					t.Fatal(err)
				}
				log = rest
				h := Header(one)
				if h.Control() {
					continue
				}
				before := append([]byte{}, one...)
				base, epoch := h.BaseOffset(), h.LeaderEpoch()
				Stamp(one, 0, -1)
				info, err := Check(one, &CheckOptions{})
				if err != nil || info.Count != h.Count() || info.MaxTimestamp != h.MaxTimestamp() || info.Walked != (h.Codec() == None) {
					t.Error(partition, base, info, err)
				}
				if err := CheckCompressed(one, &CheckOptions{}, &info, 1<<20); h.Codec() != None && err != nil {
					t.Error(partition, base, err)
				}
				if info.MaxTimestamp != h.MaxTimestamp() || !info.Walked || info.Restamp != h.LogAppendTime() {
					t.Error(partition, base, info)
				}
				Stamp(one, base, epoch)
				if string(before) != string(one) {
					t.Error(partition, base, "stamping back did not give the bytes back")
				}
				checked++
			}
		}
	}
	if checked < 47 {
		t.Error("checked only", checked)
	}
}
