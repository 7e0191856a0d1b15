package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzHeader: what is read as a header encodes to what was read, but for tags, which are dropped.
func FuzzHeader(f *testing.F) {
	for _, c := range frames(f)[:40] {
		f.Add(unhex(f, c.Request))
	}
	f.Add([]byte{0, 0, 0, 10, 0, 3, 0, 9, 0, 0, 0, 9, 0, 1, 'a', 1, 5, 2, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < SizeLength {
			return
		}
		if n, err := FrameSize(b, 1<<20); err == nil && (n < 0 || n > 1<<20) {
			t.Fatal(n)
		}
		h, n, err := ParseRequestHeader(b[SizeLength:])
		if err != nil {
			if n != 0 {
				t.Fatal(n, err)
			}
			return
		}
		again := AppendRequestHeader(nil, &h)
		if h.Flexible {
			again = again[:len(again)-1]
		}
		if n < len(again) || h.ClientID != nil && !bytes.HasPrefix(b[SizeLength:], again) {
			t.Fatalf("%+v: %x", h, again)
		}
	})
}

// FuzzProduce: what Parse takes, kmsg reads the same.
func FuzzProduce(f *testing.F) {
	r := random{rand.New(rand.NewPCG(5, 1))}
	for v := int16(3); v <= 11; v++ {
		f.Add(v, r.produce(v).AppendTo(nil))
	}
	for _, c := range produceFrames(f) {
		_, body := c.body(f)
		f.Add(c.Version, body)
	}
	f.Fuzz(func(t *testing.T, v int16, body []byte) {
		var got ProduceRequest
		if got.Parse(v, body) != nil {
			return
		}
		want := kmsg.NewPtrProduceRequest()
		want.Version = v
		if err := want.ReadFrom(body); err != nil {
			t.Fatal("kmsg does not take it:", err)
		}
		if a, b := showOurProduce(&got), showProduce(want); a != b {
			t.Fatalf("got %s\nwant %s", a, b)
		}
		var a ProduceAnswer
		a.Begin(nil, v, got.Topics)
		for it := got.Iter(); it.NextTopic(); {
			a.Topic(it.Topic, it.Count)
			for it.NextPartition() {
				p := ProduceError(it.Partition, InvalidRecord)
				a.Partition(&p)
			}
		}
		if n := len(a.End(0, nil)); n > got.AnswerSizeMax() {
			t.Fatal("the answer has", n, "bytes, not", got.AnswerSizeMax())
		}
	})
}

// FuzzFetch: what Parse takes, kmsg reads the same, if it takes it: it looks into tags that we skip.
func FuzzFetch(f *testing.F) {
	r := random{rand.New(rand.NewPCG(6, 1))}
	for v := int16(4); v <= 17; v++ {
		f.Add(v, r.fetch(v).AppendTo(nil))
	}
	for _, c := range frames(f) {
		if c.Key == Fetch {
			_, body := c.body(f)
			f.Add(c.Version, body)
		}
	}
	f.Fuzz(func(t *testing.T, v int16, body []byte) {
		var got FetchRequest
		if got.Parse(v, body) != nil {
			return
		}
		ours := showOurFetch(&got)
		want := kmsg.NewPtrFetchRequest()
		want.Version = v
		if want.ReadFrom(body) == nil && showFetch(want) != ours {
			t.Fatalf("got %s\nwant %s", ours, showFetch(want))
		}
		var a FetchAnswer
		a.Begin(nil, nil, v, FetchHead{Topics: got.Topics})
		for it := got.Iter(); it.NextTopic(); {
			a.Topic(it.Topic, it.TopicID, it.Count)
			for it.NextPartition() {
				p := FetchError(it.Partition, UnknownTopicID)
				a.Partition(&p)
			}
		}
		if n := len(a.End(nil)); n > got.AnswerSizeMax() {
			t.Fatal("the answer has", n, "bytes, not", got.AnswerSizeMax())
		}
	})
}

// FuzzDecodeRequest: no body of any request does more harm than an error; a request that is taken encodes to a body that is
// taken and is the same again.
func FuzzDecodeRequest(f *testing.F) {
	for _, s := range samples(f, "Request") {
		f.Add(s.Key, s.Version, unhex(f, s.Body))
	}
	for _, c := range frames(f) {
		if c.Key != Fetch {
			_, body := c.body(f)
			f.Add(c.Key, c.Version, body)
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		req, err := DecodeRequest(key, version, body)
		if err != nil {
			if !errors.Is(err, ErrBody) && !errors.Is(err, ErrKey) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrTooMany) {
				t.Fatal(err)
			}
			return
		}
		first := AppendRequest(nil, 1, nil, req)
		_, n, err := ParseRequestHeader(first)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeRequest(key, version, first[n:])
		if err != nil {
			t.Fatalf("%s %d: its own encoding %x is refused: %v", Name(key), version, first[n:], err)
		}
		if second := AppendRequest(nil, 1, nil, again); !bytes.Equal(first, second) {
			t.Fatalf("%s %d:\n%x\n%x", Name(key), version, first, second)
		}
	})
}
