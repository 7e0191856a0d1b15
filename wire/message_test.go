package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// sample is a body made from Kafka's own message definitions.
type sample struct {
	Api          string
	Key, Version int16
	Body         string
}

func samples(t testing.TB, kind string) []sample {
	var all, out []sample
	load(t, "bodies.json", &all)
	for _, s := range all {
		if s.Api[len(s.Api)-len(kind):] == kind {
			out = append(out, s)
		}
	}
	return out
}

// served says whether DecodeRequest takes the version.
func (s *sample) served() bool {
	lowest, highest, ok := Supported(s.Key)
	return ok && s.Version >= lowest && s.Version <= highest && s.Key != Produce && s.Key != Fetch
}

// TestRequestsAreKafkas: every request of every version decodes to its end, nothing shorter does, and it encodes to the
// same bytes.
func TestRequestsAreKafkas(t *testing.T) {
	n := 0
	for _, s := range samples(t, "Request") {
		if !s.served() {
			continue
		}
		n++
		body := unhex(t, s.Body)
		req, err := DecodeRequest(s.Key, s.Version, body)
		if err != nil {
			t.Error(s.Api, s.Version, err)
			continue
		}
		h := RequestHeader{Key: s.Key, Version: s.Version, CorrelationID: 7, ClientID: []byte("me")}
		head := AppendRequestHeader(nil, &h)
		again := AppendRequest(nil, 7, []byte("me"), req)
		if !bytes.Equal(again, append(head, body...)) {
			t.Errorf("%s %d:\n got %x\nwant %x%x", s.Api, s.Version, again, head, body)
		}
		for i := range body {
			if checkShape(s.Key, s.Version, body[:i]) == nil {
				t.Errorf("%s %d: %d of %d bytes were taken for a whole body", s.Api, s.Version, i, len(body))
			}
		}
		longer, err := DecodeRequest(s.Key, s.Version, append(body[:len(body):len(body)], 1, 2, 3))
		if err != nil || !bytes.Equal(AppendRequest(nil, 7, []byte("me"), longer), again) {
			t.Error(s.Api, s.Version, "with bytes behind:", err)
		}
		if _, err := DecodeRequest(s.Key, s.Version, body[:len(body)/2]); err == nil && len(body) > 0 {
			t.Error(s.Api, s.Version, "half a body was taken")
		}
	}
	if n < 200 {
		t.Error("only", n, "requests")
	}
}

func TestAnswersAreKafkas(t *testing.T) {
	n := 0
	for _, s := range samples(t, "Response") {
		if row(s.Key) == nil {
			continue
		}
		n++
		body := unhex(t, s.Body)
		resp := kmsg.ResponseForKey(s.Key)
		resp.SetVersion(s.Version)
		if err := resp.ReadFrom(body); err != nil {
			t.Error(s.Api, s.Version, err)
			continue
		}
		want := append(AppendResponseHeader(nil, s.Key, s.Version, 7), body...)
		if again := AppendResponse(nil, 7, resp); !bytes.Equal(again, want) {
			t.Errorf("%s %d:\n got %x\nwant %x", s.Api, s.Version, again, want)
		}
	}
	if n < 250 {
		t.Error("only", n, "answers")
	}
}

// TestHotSamples: the views read Kafka's samples of Produce and Fetch as kmsg does.
func TestHotSamples(t *testing.T) {
	n := 0
	for _, s := range samples(t, "Request") {
		lowest, _, _ := Supported(s.Key)
		if s.Key > Fetch || s.Version < lowest {
			continue
		}
		n++
		body := unhex(t, s.Body)
		if s.Key == Fetch {
			compareFetch(t, s.Version, body)
			continue
		}
		var p ProduceRequest
		if err := p.Parse(s.Version, body); err != nil {
			t.Error(s.Version, err)
		}
	}
	if n != 9+14 {
		t.Error(n)
	}
}

func TestStopReplica4(t *testing.T) {
	for _, c := range frames(t) {
		if c.Key != StopReplica || c.Version != 4 {
			continue
		}
		_, body := c.body(t)
		req, err := DecodeRequest(c.Key, c.Version, body)
		if err != nil {
			t.Fatal(err)
		}
		s := req.(*kmsg.StopReplicaRequest)
		if s.IsKRaftController || s.ControllerEpoch != int32(binary.BigEndian.Uint32(body[5:])) {
			t.Fatal(s)
		}
	}
}

func TestDecodeOwnsItsBytes(t *testing.T) {
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version = 5
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("metadata")}}
	body := join.AppendTo(nil)
	req, err := DecodeRequest(JoinGroup, 5, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := range body {
		body[i] = 0xee
	}
	if got := req.(*kmsg.JoinGroupRequest).Protocols[0]; got.Name != "range" || string(got.Metadata) != "metadata" {
		t.Error(got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	join := func(metadata int32) []byte {
		b := append([]byte{0, 1, 'g'}, make([]byte, 4+4+2+2)...) // timeouts, member, protocol type
		b = append(b, 0, 0, 0, 1, 0, 1, 'r')
		return binary.BigEndian.AppendUint32(b, uint32(metadata))
	}
	for _, c := range []struct {
		name         string
		key, version int16
		body         []byte
		want         error
	}{
		{"Produce has a view", Produce, 9, nil, ErrKey},
		{"Fetch has a view", Fetch, 12, nil, ErrKey},
		{"no such key", 52, 0, nil, ErrKey},
		{"negative key", -1, 0, nil, ErrKey},
		{"version too low", ListOffsets, 0, nil, ErrVersion},
		{"version too high", ListOffsets, 10, nil, ErrVersion},
		{"null bytes where there must be some", JoinGroup, 4, join(-1), ErrBody},
		{"empty bytes", JoinGroup, 4, join(0), nil},
		{"null topics", Metadata, 1, []byte{255, 255, 255, 255}, nil},
		{"null topics before they may be", Metadata, 0, []byte{255, 255, 255, 255}, ErrBody},
		{"null group", Heartbeat, 0, []byte{255, 255, 0, 0, 0, 0, 0, 0}, ErrBody},
		{"2^31-1 topics", Metadata, 1, []byte{0x7f, 255, 255, 255, 0, 1, 'a'}, ErrBody},
		{"2^32-2 topics", Metadata, 9, []byte{255, 255, 255, 255, 15, 0, 0}, ErrBody},
		{"2^32-1 tags", ApiVersions, 3, []byte{2, 'a', 2, 'b', 255, 255, 255, 255, 15}, ErrBody},
		{"a string longer than a string may be", Heartbeat, 4, append(binary.AppendUvarint(nil, 40001), make([]byte, 40100)...), ErrBody},
	} {
		if _, err := DecodeRequest(c.key, c.version, c.body); err != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestDecodeMemory: whatever lies in place of the rest of a body, decoding takes a bounded multiple of its size, and never
// more than the limit.
func TestDecodeMemory(t *testing.T) {
	const size = 16 << 10
	for _, s := range samples(t, "Request") {
		if _, highest, _ := Supported(s.Key); !s.served() || s.Version != highest {
			continue
		}
		body := unhex(t, s.Body)
		for _, fill := range []string{"\x00", "\x01", "\x01\x00", "\x02\xff\xff\xff\xff"} {
			for i := 0; i <= len(body); i += 1 + len(body)/16 {
				for _, n := range []uint64{size / 2, size / 3, size / 4, size / 18, 1<<31 - 1} {
					b := binary.AppendUvarint(append([]byte{}, body[:i]...), n)
					b = append(b, bytes.Repeat([]byte(fill), size/len(fill))...)
					if taken := allocated(func() { _, _ = DecodeRequest(s.Key, s.Version, b) }); taken > 90*uint64(len(b)) {
						t.Fatalf("%s %d: %d bytes took %d", s.Api, s.Version, len(b), taken)
					}
				}
			}
		}
	}
}

func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDecodeMemoryIsLimited(t *testing.T) {
	const n = 4 << 20
	topics := binary.BigEndian.AppendUint32(nil, n)
	topics = append(topics, bytes.Repeat([]byte{0, 0}, n)...) // DeleteGroups 0: so many empty names
	tags := binary.AppendUvarint(nil, n)
	for i := range uint64(n) {
		tags = append(binary.AppendUvarint(tags, i), 0)
	}
	for _, c := range []struct {
		name         string
		key, version int16
		body         []byte
		want         error
	}{
		{"names", DeleteGroups, 0, topics, nil},
		{"structs", Metadata, 12, append(binary.AppendUvarint(nil, n+1), make([]byte, 18*n+100)...), ErrTooMany},
		{"tags", ControlledShutdown, 3, append(make([]byte, 12), tags...), ErrTooMany},
	} {
		taken := allocated(func() {
			if _, err := DecodeRequest(c.key, c.version, c.body); err != c.want {
				t.Errorf("%s: %v", c.name, err)
			}
		})
		if taken > 2*decodeMemoryMax || c.want != nil && taken > 1<<20 {
			t.Errorf("%s: %d bytes took %d", c.name, len(c.body), taken)
		}
	}
}

func TestLayoutsAreWhole(t *testing.T) {
	for key := range layouts {
		if k := int16(key); row(k) != nil && k > Fetch && len(layouts[k]) == 0 {
			t.Error(Name(k), "has no layout")
		}
		from := int8(-1)
		for _, l := range layouts[key] {
			if l.from <= from {
				t.Error(Name(int16(key)), "versions are out of order")
			}
			from = l.from
			least(l.fields, true)
			s := shape{flex: true}
			s.structure(l.fields) // panics on what it does not know, if it gets there
		}
	}
}

func ExampleDecodeRequest() {
	req, err := DecodeRequest(Metadata, 1, []byte{0, 0, 0, 1, 0, 1, 't'})
	fmt.Println(*req.(*kmsg.MetadataRequest).Topics[0].Topic, err)
	// Output: t <nil>
}
