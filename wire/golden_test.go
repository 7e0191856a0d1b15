package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// captured is a request and its answer, whole frames in hex.
type captured struct {
	Api               string
	Key, Version      int16
	Request, Response string
}

func load(t testing.TB, file string, v any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func frames(t testing.TB) []captured {
	var all []captured
	load(t, "frames.json", &all)
	return all
}

// produceFrames are the captured Produce requests, as captured.
func produceFrames(t testing.TB) []captured {
	var all []struct{ Request, Response string }
	load(t, "produce.json", &all)
	var out []captured
	for _, p := range all {
		if strings.HasPrefix(p.Request, "(") {
			continue // too long to be kept
		}
		size := fmt.Sprintf("%08x", len(p.Request)/2)
		out = append(out, captured{"Produce", Produce, 8, size + p.Request, p.Response})
	}
	return out
}

// body checks size and header of a captured request and gives the body.
func (c *captured) body(t testing.TB) (RequestHeader, []byte) {
	t.Helper()
	b := unhex(t, c.Request)
	n, err := FrameSize(b, 1<<20)
	if err != nil || n != len(b)-SizeLength {
		t.Fatal(c.Api, n, len(b), err)
	}
	h, used, err := ParseRequestHeader(b[SizeLength:])
	if err != nil || h.Key != c.Key || h.Version != c.Version {
		t.Fatal(c.Api, h, err)
	}
	if again := AppendRequestHeader(nil, &h); !bytes.Equal(again, b[SizeLength:SizeLength+used]) {
		t.Errorf("%s: header %x encodes to %x", c.Api, b[SizeLength:SizeLength+used], again)
	}
	return h, b[SizeLength+used:]
}

// TestCapturedFrames: what brokers sent each other decodes, and encodes to the same bytes.
func TestCapturedFrames(t *testing.T) {
	seen := map[string]int{}
	for _, c := range frames(t) {
		h, body := c.body(t)
		name := fmt.Sprintf("%s %d", c.Api, c.Version)
		seen[c.Api]++
		req := kmsg.RequestForKey(c.Key)
		req.SetVersion(c.Version)
		if c.Key != Fetch {
			got, err := DecodeRequest(c.Key, c.Version, body)
			if err != nil {
				t.Fatal(name, err)
			}
			req = got
		} else if err := req.ReadFrom(body); err != nil {
			t.Fatal(name, err)
		}
		if again := AppendRequest(nil, h.CorrelationID, h.ClientID, req); !bytes.HasSuffix(unhex(t, c.Request), again) {
			t.Errorf("%s request:\n got %x\nwant %s", name, again, c.Request)
		}
		if c.Response == "" {
			continue
		}
		answer := unhex(t, c.Response)
		head := AppendResponseHeader(make([]byte, SizeLength), c.Key, c.Version, h.CorrelationID)
		if len(head) != SizeLength+ResponseHeaderSize(c.Key, c.Version) {
			t.Error(name, "header size")
		}
		resp := req.ResponseKind()
		if err := resp.ReadFrom(answer[len(head):]); err != nil {
			t.Fatal(name, err)
		}
		again := AppendResponse(make([]byte, SizeLength), h.CorrelationID, resp)
		PutFrameSize(again, 0)
		if !bytes.Equal(again, answer) {
			t.Errorf("%s answer:\n got %x\nwant %x", name, again, answer)
		}
	}
	if len(seen) < 12 || seen["Fetch"] < 80 {
		t.Error("too few frames:", seen)
	}
}

func TestTableIsKafkas(t *testing.T) {
	var a struct {
		Keys []struct {
			Key, Min, Max int16
			Api           string
			FirstFlexible string
		}
	}
	load(t, "apiversions.json", &a)
	if len(a.Keys) != 62 {
		t.Fatal(len(a.Keys))
	}
	known := map[int16]bool{}
	for _, k := range a.Keys {
		known[k.Key] = true
		lowest, highest, ok := Supported(k.Key)
		if !ok || lowest < k.Min || highest != k.Max || Name(k.Key) != k.Api {
			t.Error(k, lowest, highest, Name(k.Key))
		}
		first := int16(never)
		if k.FirstFlexible != "none" {
			fmt.Sscan(k.FirstFlexible, &first)
		}
		for v := int16(0); v < 20; v++ {
			if Flexible(k.Key, v) != (v >= first) {
				t.Error(k, "flexible", v)
			}
		}
		req := kmsg.RequestForKey(k.Key)
		if req.MaxVersion() < highest {
			t.Error(k, "kmsg only speaks", req.MaxVersion())
		}
		for v := lowest; v <= highest; v++ {
			if req.SetVersion(v); req.IsFlexible() != Flexible(k.Key, v) {
				t.Error(k, "kmsg does not agree on flexible", v)
			}
		}
	}
	for k := int16(-2); k < 300; k++ {
		if _, _, ok := Supported(k); ok != known[k] {
			t.Error(k, ok)
		}
	}
	if l, h, _ := Advertised(Produce); l != 0 || h != 11 {
		t.Error(l, h)
	}
}

// TestCapturedApiVersions: the header of any version is read, and the answers' header never has tags.
func TestCapturedApiVersions(t *testing.T) {
	var a struct {
		Answers []struct {
			Version                 int16
			Case                    string
			RequestHex, ResponseHex string
			Closed                  bool
		}
	}
	load(t, "apiversions.json", &a)
	for _, c := range a.Answers {
		h, n, err := ParseRequestHeader(unhex(t, c.RequestHex)[SizeLength:])
		_, highest, ok := Supported(h.Key)
		if c.Closed {
			if ok && h.Version <= highest && err == nil {
				t.Error(c.Case, h, "would be served")
			}
			continue
		}
		if err != nil {
			t.Error(c.Case, err)
			continue
		}
		head := AppendResponseHeader(nil, h.Key, h.Version, h.CorrelationID)
		if !bytes.HasPrefix(unhex(t, c.ResponseHex)[SizeLength:], head) {
			t.Errorf("%s %d: header %x, Kafka's answer %s", c.Case, c.Version, head, c.ResponseHex)
		}
		if h.Version <= highest {
			if _, err := DecodeRequest(h.Key, h.Version, unhex(t, c.RequestHex)[SizeLength+n:]); err != nil {
				t.Error(c.Case, err)
			}
		}
	}
}

func TestCodes(t *testing.T) {
	names := map[string]Code{}
	for c := Code(-1); c <= 127; c++ {
		if c.String() == "" || c.Error() == "" || c != None && c.Text() == "" {
			t.Error(int(c), c)
		}
		if other, twice := names[c.String()]; twice {
			t.Error(c, other)
		}
		names[c.String()] = c
	}
	for code, name := range map[Code]string{-1: "UNKNOWN_SERVER_ERROR", 0: "NONE", 6: "NOT_LEADER_OR_FOLLOWER", 87: "INVALID_RECORD",
		99: "POSITION_OUT_OF_RANGE", 127: "VOTER_NOT_FOUND", 128: "UNKNOWN_CODE", -2: "UNKNOWN_CODE"} {
		if code.String() != name {
			t.Error(int(code), code, name)
		}
	}
	if !NotLeaderOrFollower.Retriable() || TopicAlreadyExists.Retriable() || None.Retriable() {
		t.Error("retriable")
	}
}

func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		used int
		err  error
	}{
		{"nothing", nil, 0, ErrHeader},
		{"no client id", []byte{0, 3, 0, 1, 0, 0, 0, 9, 0xff, 0xff}, 10, nil},
		{"a client id that is longer than the frame", []byte{0, 3, 0, 1, 0, 0, 0, 9, 0, 5, 'a'}, 0, ErrHeader},
		{"flexible", []byte{0, 3, 0, 9, 0, 0, 0, 9, 0, 1, 'a', 0}, 12, nil},
		{"flexible with a tag", []byte{0, 3, 0, 9, 0, 0, 0, 9, 0, 1, 'a', 1, 5, 2, 0, 0}, 16, nil},
		{"a tag that is longer than the frame", []byte{0, 3, 0, 9, 0, 0, 0, 9, 0, 1, 'a', 1, 5, 9, 0}, 0, ErrHeader},
		{"2^32-1 tags", []byte{0, 3, 0, 9, 0, 0, 0, 9, 0, 1, 'a', 255, 255, 255, 255, 15}, 0, ErrHeader},
		{"flexible without tags", []byte{0, 3, 0, 9, 0, 0, 0, 9, 0, 1, 'a'}, 0, ErrHeader},
		{"key 71", []byte{0, 71, 0, 0, 0, 0, 0, 9, 0, 0}, 0, ErrKey},
		{"negative key", []byte{0xff, 0xff, 0, 0, 0, 0, 0, 9, 0, 0}, 0, ErrKey},
		{"negative version", []byte{0, 3, 0xff, 0xff, 0, 0, 0, 9, 0, 0}, 0, ErrVersion},
		{"ControlledShutdown 0 has no client id", []byte{0, 7, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1}, 8, nil},
		{"ApiVersions of the future", []byte{0, 18, 0, 99, 0, 0, 0, 9, 0, 0, 0}, 11, nil},
	} {
		if _, n, err := ParseRequestHeader(c.b); n != c.used || err != c.err {
			t.Errorf("%s: %d %v", c.name, n, err)
		}
	}
	for _, c := range []struct {
		b   []byte
		n   int
		err error
	}{
		{[]byte{0, 0, 0, 0}, 0, nil}, {[]byte{0, 0, 1, 0}, 256, nil}, {[]byte{0, 0, 1, 1}, 0, ErrFrameSize},
		{[]byte{0x80, 0, 0, 0}, 0, ErrFrameSize},
		{[]byte("GET "), 0, ErrFrameSize},
	} {
		if n, err := FrameSize(c.b, 256); n != c.n || err != c.err {
			t.Error(c, n, err)
		}
	}
}
