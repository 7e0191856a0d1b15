package api

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/ring"
	"kring/ring/simring"
	"kring/wire"
)

// host is a context on a simulated loop that serves without a controller or partitions.
type host struct {
	t    *testing.T
	w    *simring.World
	m    *simring.Machine
	c    *Context
	stop func()
}

const hostAddr = "10.0.0.1:9092"

func newHost(t *testing.T, image *metadata.Image) *host {
	t.Helper()
	conf, _, err := config.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, w: simring.New(1, simring.Options{})}
	h.m = h.w.Machine("broker")
	h.m.Start(1, func(loops []ring.Loop) {
		n := &Node{ID: 1, ClusterID: "TestClusterTestCluster"}
		n.SetImage(image)
		n.SetConfig(conf)
		h.c = NewContext(n, loops[0])
		n.Contexts = []*Context{h.c}
		h.c.Server = server.New(loops[0], server.Options{}, h.c.Dispatch)
		l, err := loops[0].Listen(hostAddr)
		if err != nil {
			t.Fatal(err)
		}
		h.stop = l.Close
		loops[0].Accept(l, func(s ring.Socket, peer netip.AddrPort) { h.c.Server.Attach(s, peer, "PLAINTEXT", nil) })
	})
	if err := h.w.RunUntil("the start", time.Minute, func() bool { return h.stop != nil }); err != nil {
		t.Fatal(err)
	}
	return h
}

// ask sends one frame on a new connection and gives the answer, nil if the connection was closed instead.
func (h *host) ask(frame []byte) []byte {
	h.t.Helper()
	c := h.w.Dial(hostAddr)
	defer c.Close()
	c.Send(frame)
	head, err := c.Read(4, time.Minute)
	if closed, _ := c.Closed(); err != nil && closed {
		return nil
	}
	if err != nil {
		h.t.Fatal(err)
	}
	rest, err := c.Read(int(binary.BigEndian.Uint32(head)), time.Minute)
	if err != nil {
		h.t.Fatal(err)
	}
	return append(head, rest...)
}

type goldenAnswer struct {
	Case        string
	Version     int16
	RequestHex  string
	ResponseHex string
	Error       int16
	Closed      bool
}

func golden(t *testing.T) []goldenAnswer {
	t.Helper()
	text, err := os.ReadFile("testdata/api-versions.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Answers []goldenAnswer }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Answers) < 15 {
		t.Fatalf("%d answers", len(all.Answers))
	}
	return all.Answers
}

// expected is Kafka's answer with our deliberate differences: only the keys we serve, with our lowest versions.
func expected(t *testing.T, a *goldenAnswer) []byte {
	t.Helper()
	b, err := hex.DecodeString(a.ResponseHex)
	if err != nil {
		t.Fatal(err)
	}
	if a.Error != 0 || a.Case != "" {
		return b
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(a.Version)
	if err := resp.ReadFrom(b[8:]); err != nil {
		t.Fatal(err)
	}
	var keys []kmsg.ApiVersionsResponseApiKey
	for _, k := range resp.ApiKeys {
		if lowest, highest, ok := wire.Advertised(k.ApiKey); ok && table[k.ApiKey] != nil {
			if highest != k.MaxVersion {
				t.Errorf("%s: our highest version is %d, Kafka's %d", wire.Name(k.ApiKey), highest, k.MaxVersion)
			}
			k.MinVersion = lowest
			keys = append(keys, k)
		}
	}
	resp.ApiKeys = keys
	out := resp.AppendTo(append([]byte(nil), b[:8]...))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

func TestApiVersionsAnswersAsKafka(t *testing.T) {
	e := metadata.NewImage().Edit()
	e.Features(0)
	h := newHost(t, e.Image())
	for _, a := range golden(t) {
		request, err := hex.DecodeString(a.RequestHex)
		if err != nil {
			t.Fatal(err)
		}
		key := int16(binary.BigEndian.Uint16(request[4:]))
		if key != wire.ApiVersions && (a.Closed || table[key] == nil) {
			// a key we do not serve is closed like one Kafka does not have
			if got := h.ask(request); got != nil {
				t.Errorf("%s: answered %x", a.Case, got)
			}
			continue
		}
		if key != wire.ApiVersions {
			continue
		}
		if got, want := h.ask(request), expected(t, &a); !bytes.Equal(got, want) {
			t.Errorf("version %d %s:\n got %x\nwant %x", a.Version, a.Case, got, want)
		}
	}
}

func TestTableAgreesWithWire(t *testing.T) {
	last := int16(-1)
	for _, r := range rows() {
		lowest, highest, ok := wire.Supported(r.key)
		if !ok || r.min != lowest || r.max != highest {
			t.Errorf("%s: versions %d to %d, wire speaks %d to %d", wire.Name(r.key), r.min, r.max, lowest, highest)
		}
		if r.key <= last {
			t.Errorf("%s is out of order", wire.Name(r.key))
		}
		last = r.key
	}
}

// TestMalformedBodiesClose sends every API in every version a body that cannot be read.
func TestMalformedBodiesClose(t *testing.T) {
	h := newHost(t, metadata.NewImage())
	for _, row := range rows() {
		for v := row.min; v <= row.max; v++ {
			if (row.key == wire.ApiVersions || row.key == wire.ListGroups) && v < 3 {
				continue // has no body
			}
			head := wire.RequestHeader{Key: row.key, Version: v, CorrelationID: 1, ClientID: []byte("x")}
			frame := wire.AppendRequestHeader(make([]byte, 4), &head)
			frame = append(frame, 0x7f, 0xff, 0xff, 0x7f)
			wire.PutFrameSize(frame, 0)
			if got := h.ask(frame); got != nil {
				t.Errorf("%s %d answered %x", wire.Name(row.key), v, got)
			}
		}
	}
	if n := h.c.Server.Counters().Closed[server.BadBody]; n == 0 {
		t.Error("no malformed body was counted")
	}
}
