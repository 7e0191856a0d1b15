package server_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/daemon/server"
	"kring/ring"
	"kring/ring/simring"
	"kring/wire"
)

// bench is a server on a simulated loop, with handlers in the test's hands.
type bench struct {
	t     *testing.T
	w     *simring.World
	m     *simring.Machine
	loop  ring.Loop
	s     *server.Server
	gate  *server.Gate
	seen  []*server.Request // dispatched, not answered
	ids   []int32           // correlation ids in the order of dispatch
	serve func(*server.Request)
	stop  func()
}

const addr = "10.0.0.1:9092"

func setUp(t *testing.T, o server.Options, mostConns, perIP int) *bench {
	t.Helper()
	b := &bench{t: t, w: simring.New(1, simring.Options{})}
	b.m = b.w.Machine("broker")
	up := false
	b.m.Start(1, func(loops []ring.Loop) {
		b.loop = loops[0]
		b.gate = server.NewGate(b.loop, mostConns, perIP, nil)
		b.s = server.New(b.loop, o, func(r *server.Request) {
			b.ids = append(b.ids, r.Correlation)
			if b.serve != nil {
				b.serve(r)
				return
			}
			b.seen = append(b.seen, r)
		})
		l, err := b.loop.Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		b.stop = l.Close
		b.loop.Accept(l, func(s ring.Socket, peer netip.AddrPort) {
			if !b.gate.Admit(peer.Addr()) {
				server.Turn(b.loop, s)
				return
			}
			b.s.Attach(s, peer, "PLAINTEXT", b.gate)
		})
		up = true
	})
	b.until("the server to start", func() bool { return up })
	return b
}

// done closes what is open and looks whether anything is left behind.
func (b *bench) done() {
	b.t.Helper()
	b.do(func() { b.stop(); b.s.Abort() })
	b.until("connections to close", func() bool { return b.s.Count() == 0 })
	b.do(func() {
		for _, r := range b.seen {
			r.NoReply()
		}
		b.seen = nil
	})
	b.w.RunFor(time.Second)
	if b.s.Busy() != 0 || b.s.Held() != 0 || b.gate.Count() != 0 {
		b.t.Errorf("%d requests, %d bytes and %d admitted connections are left over", b.s.Busy(), b.s.Held(), b.gate.Count())
	}
	if err := b.m.Exit(); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) until(what string, cond func() bool) {
	b.t.Helper()
	if err := b.w.RunUntil(what, time.Minute, cond); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) do(fn func()) {
	b.t.Helper()
	ran := false
	b.m.Do(b.loop, func() { fn(); ran = true })
	b.until("the loop", func() bool { return ran })
}

// frame is a request of Metadata v1 with a body.
func frame(id int32, body string) []byte {
	h := wire.RequestHeader{Key: wire.Metadata, Version: 1, CorrelationID: id, ClientID: []byte("test")}
	f := wire.AppendRequestHeader(make([]byte, 4), &h)
	f = append(f, body...)
	wire.PutFrameSize(f, 0)
	return f
}

// answer reads one answer.
func (b *bench) answer(c *simring.Client) (id int32, body string) {
	b.t.Helper()
	head, err := c.Read(8, time.Minute)
	if err != nil {
		b.t.Fatalf("reading an answer: %v", err)
	}
	rest, err := c.Read(int(binary.BigEndian.Uint32(head))-4, time.Minute)
	if err != nil {
		b.t.Fatal(err)
	}
	return int32(binary.BigEndian.Uint32(head[4:])), string(rest)
}

func (b *bench) closed(c *simring.Client) error {
	b.t.Helper()
	b.until("the connection to close", func() bool { ok, _ := c.Closed(); return ok })
	_, err := c.Closed()
	return err
}

func echo(r *server.Request) { r.Reply(append(r.Begin(len(r.Body)), r.Body...)) }

func TestAnswersKeepOrder(t *testing.T) {
	b := setUp(t, server.Options{}, 10, 10)
	c := b.w.Dial(addr)
	var all []byte
	for i := range int32(5) {
		all = append(all, frame(i, string(rune('a'+i)))...)
	}
	c.Send(all)
	b.until("five requests at once", func() bool { return len(b.seen) == 5 })
	for _, i := range []int{3, 1, 4, 2} {
		b.do(func() { echo(b.seen[i]) })
	}
	b.w.RunFor(time.Second)
	if len(c.Buffered()) != 0 {
		t.Fatal("an answer overtook an older one")
	}
	b.do(func() { echo(b.seen[0]) })
	for i := range int32(5) {
		if id, body := b.answer(c); id != i || body != string(rune('a'+i)) {
			t.Fatalf("answer %d is %d %q", i, id, body)
		}
	}
	b.seen = nil
	b.done()
}

func TestPipelineIsBounded(t *testing.T) {
	b := setUp(t, server.Options{Pipeline: 3}, 10, 10)
	c := b.w.Dial(addr)
	for i := range int32(10) {
		c.Send(frame(i, "x"))
	}
	b.until("three requests", func() bool { return len(b.seen) == 3 })
	b.w.RunFor(time.Second)
	if len(b.seen) != 3 {
		t.Fatalf("%d requests under way, 3 allowed", len(b.seen))
	}
	for range 10 {
		b.until("a request", func() bool { return len(b.seen) > 0 })
		b.do(func() {
			r := b.seen[0]
			b.seen = b.seen[1:]
			echo(r)
		})
		b.answer(c)
	}
	if !slices.IsSorted(b.ids) || len(b.ids) != 10 {
		t.Fatalf("dispatched %v", b.ids)
	}
	b.done()
}

func TestUnreadAnswersStopTheConnection(t *testing.T) {
	b := setUp(t, server.Options{Pipeline: 4}, 10, 10)
	big := make([]byte, 1<<20)
	b.serve = func(r *server.Request) { r.Reply(append(r.Begin(len(big)), big...)) }
	c := b.w.Dial(addr)
	c.Pause()
	for i := range int32(100) {
		c.Send(frame(i, "x"))
	}
	b.w.RunFor(5 * time.Second)
	if n := len(b.ids); n > 8 {
		t.Fatalf("%d requests were taken from a peer that reads nothing", n)
	}
	c.Resume()
	for i := range int32(100) {
		if id, _ := b.answer(c); id != i {
			t.Fatalf("answer %d where %d was due", id, i)
		}
	}
	b.done()
}

func TestPartialFrames(t *testing.T) {
	b := setUp(t, server.Options{}, 10, 10)
	b.serve = echo
	c := b.w.Dial(addr)
	big := string(bytes.Repeat([]byte("0123456789"), 30_000))
	var all []byte
	for i, body := range []string{"", "a", big, "b", big, "c"} {
		all = append(all, frame(int32(i), body)...)
	}
	for len(all) > 0 { // the first frames byte by byte
		n := 1
		if len(all) < 600_000 {
			n = min(len(all), 1+b.w.Rand().IntN(100_000))
		}
		c.Send(all[:n])
		all = all[n:]
		b.w.RunFor(10 * time.Microsecond)
	}
	for i, body := range []string{"", "a", big, "b", big, "c"} {
		if id, got := b.answer(c); id != int32(i) || got != body {
			t.Fatalf("answer %d: id %d, %d bytes of %d", i, id, len(got), len(body))
		}
	}
	b.done()
}

func TestBadFrames(t *testing.T) {
	header := func(key, version int16) []byte {
		h := wire.RequestHeader{Key: key, Version: version, CorrelationID: 1, ClientID: []byte("test")}
		f := wire.AppendRequestHeader(make([]byte, 4), &h)
		wire.PutFrameSize(f, 0)
		return f
	}
	cut := frame(1, "")
	cut = append([]byte{0, 0, 0, 9}, cut[4:13]...) // ends inside the client id
	for _, c := range []struct {
		name   string
		bytes  []byte
		reason server.Reason
	}{
		{"negative size", []byte{0xff, 0xff, 0xff, 0xff}, server.BadSize},
		{"size over the limit", []byte{0, 0, 0x10, 1}, server.BadSize},
		{"empty frame", []byte{0, 0, 0, 0}, server.BadHeader},
		{"short header", []byte{0, 0, 0, 3, 1, 2, 3}, server.BadHeader},
		{"cut client id", cut, server.BadHeader},
		{"unknown key", header(999, 0), server.BadKey},
		{"negative key", header(-1, 0), server.BadKey},
		{"negative version", header(3, -1), server.BadVersion},
		{"text", []byte("GET / HTTP/1.1\r\n\r\n"), server.BadSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setUp(t, server.Options{RequestBytes: 4096}, 10, 10)
			client := b.w.Dial(addr)
			client.Send(frame(7, "first"))
			b.until("a request", func() bool { return len(b.seen) == 1 })
			client.Send(c.bytes)
			client.Send(frame(8, "never"))
			b.w.RunFor(time.Second)
			if ok, _ := client.Closed(); ok {
				t.Fatal("closed before the request under way was answered")
			}
			b.do(func() { echo(b.seen[0]) })
			b.seen = nil
			if id, body := b.answer(client); id != 7 || body != "first" {
				t.Fatalf("answer %d %q", id, body)
			}
			// what was not read may turn the end into a reset, as with any socket
			if err := b.closed(client); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("closed with %v", err)
			}
			if n := b.s.Counters().Closed[c.reason]; n != 1 {
				t.Errorf("%d closed for %v", n, c.reason)
			}
			if len(b.ids) != 1 {
				t.Errorf("dispatched %v", b.ids)
			}
			b.done()
		})
	}
}

// TestBadPeersAreToldWithinBounds has three of them, the last after the time in which one line is all.
func TestBadPeersAreToldWithinBounds(t *testing.T) {
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	b := setUp(t, server.Options{Log: log}, 10, 10)
	misbehave := func() {
		c := b.w.Dial(addr)
		c.Send([]byte("GET / HTTP/1.1\r\n\r\n"))
		b.closed(c)
	}
	misbehave()
	misbehave()
	b.w.RunFor(11 * time.Second)
	misbehave()
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `level=WARN msg="connection closed" peer=`) ||
		!strings.Contains(lines[0], "socket.request.max.bytes") || !strings.HasSuffix(lines[0], "others=0") || !strings.HasSuffix(lines[1], "others=1") {
		t.Errorf("%s", said.String())
	}
	b.done()
}

func TestIdleConnectionsClose(t *testing.T) {
	b := setUp(t, server.Options{IdleMax: 10 * time.Second}, 10, 10)
	silent, half, busy := b.w.Dial(addr), b.w.Dial(addr), b.w.Dial(addr)
	half.Send(frame(1, "half")[:10])
	busy.Send(frame(2, "waits"))
	b.until("a request", func() bool { return len(b.seen) == 1 })
	b.w.RunFor(30 * time.Second)
	for name, c := range map[string]*simring.Client{"silent": silent, "half": half} {
		if ok, err := c.Closed(); !ok || err != io.EOF {
			t.Errorf("the %s connection: closed %v, %v", name, ok, err)
		}
	}
	if ok, _ := busy.Closed(); ok {
		t.Error("a connection whose request is under way was closed")
	}
	b.do(func() { echo(b.seen[0]) })
	b.seen = nil
	b.answer(busy)
	b.w.RunFor(9 * time.Second)
	if ok, _ := busy.Closed(); ok {
		t.Error("closed too early after its answer")
	}
	b.w.RunFor(3 * time.Second)
	if ok, _ := busy.Closed(); !ok {
		t.Error("not closed after its answer")
	}
	if n := b.s.Counters().Closed[server.Idle]; n != 3 {
		t.Errorf("%d closed as idle", n)
	}
	b.done()
}

func TestQueuedBytesStopReceiving(t *testing.T) {
	b := setUp(t, server.Options{QueuedBytes: 100_000}, 100, 100)
	body := string(make([]byte, 30_000))
	var clients []*simring.Client
	for i := range int32(20) {
		c := b.w.Dial(addr)
		c.Send(frame(i, body))
		c.Send(frame(i+100, body))
		clients = append(clients, c)
	}
	b.w.RunFor(10 * time.Second)
	first := len(b.seen)
	if first < 4 || first > 24 {
		t.Fatalf("%d requests of 30 kB under way", first)
	}
	if b.s.Counters().Pauses == 0 {
		t.Error("nobody was paused")
	}
	b.serve = echo
	b.do(func() {
		for _, r := range b.seen {
			echo(r)
		}
		b.seen = nil
	})
	for i, c := range clients {
		for _, want := range []int32{int32(i), int32(i) + 100} {
			if id, _ := b.answer(c); id != want {
				t.Fatalf("answer %d where %d was due", id, want)
			}
		}
	}
	b.done()
}

func TestGate(t *testing.T) {
	b := setUp(t, server.Options{}, 2, 10)
	one, two := b.w.Dial(addr), b.w.Dial(addr)
	b.until("two connections", func() bool { return b.s.Count() == 2 })
	three := b.w.Dial(addr)
	b.closed(three)
	if b.gate.Refused != 1 || b.gate.Count() != 2 {
		t.Fatalf("refused %d, count %d", b.gate.Refused, b.gate.Count())
	}
	one.Close()
	b.until("one connection", func() bool { return b.gate.Count() == 1 })
	four := b.w.Dial(addr)
	b.until("two connections", func() bool { return b.s.Count() == 2 })
	_, _ = two, four
	b.done()
}

func TestGatePerAddress(t *testing.T) {
	w := simring.New(1, simring.Options{})
	loop := w.Machine("broker").Loops(1)[0]
	a, z := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
	g := server.NewGate(loop, 10, 1, map[netip.Addr]int{z: 2})
	got := []bool{g.Admit(a), g.Admit(a), g.Admit(z), g.Admit(z), g.Admit(z)}
	if !slices.Equal(got, []bool{true, false, true, true, false}) {
		t.Fatal(got)
	}
}

func TestGone(t *testing.T) {
	b := setUp(t, server.Options{}, 10, 10)
	gone, released := 0, 0
	b.serve = func(r *server.Request) {
		r.Gone = func(r *server.Request) { gone++ }
		b.seen = append(b.seen, r)
	}
	c := b.w.Dial(addr)
	c.Send(append(frame(1, "a"), frame(2, "b")...))
	b.until("two requests", func() bool { return len(b.seen) == 2 })
	b.do(func() {
		b.seen[1].ReplyParts([]ring.Part{{Bytes: b.seen[1].Begin(0)}}, func(*server.Request) { released++ })
	})
	c.Reset()
	b.until("the connection to end", func() bool { return b.s.Count() == 0 })
	if gone != 1 || released != 1 {
		t.Fatalf("gone %d, released %d", gone, released)
	}
	if b.s.Busy() != 1 {
		t.Fatalf("%d requests under way", b.s.Busy())
	}
	b.do(func() {
		b.seen[0].ReplyParts([]ring.Part{{Bytes: b.seen[0].Begin(0)}}, func(*server.Request) { released++ })
	})
	if released != 2 {
		t.Fatal("the late answer was not released")
	}
	b.seen = nil
	b.done()
}

func TestNoReplyKeepsItsPlace(t *testing.T) {
	b := setUp(t, server.Options{Pipeline: 2}, 10, 10)
	b.serve = func(r *server.Request) {
		if string(r.Body) == "silent" {
			r.NoReply()
			return
		}
		echo(r)
	}
	c := b.w.Dial(addr)
	var all []byte
	for i := range int32(100) {
		body := "silent"
		if i%10 == 9 {
			body = "loud"
		}
		all = append(all, frame(i, body)...)
	}
	c.Send(all)
	for i := int32(9); i < 100; i += 10 {
		if id, body := b.answer(c); id != i || body != "loud" {
			t.Fatalf("answer %d %q", id, body)
		}
	}
	b.done()
}

func TestStopAnswersWhatIsUnderWay(t *testing.T) {
	b := setUp(t, server.Options{}, 10, 10)
	c, idle := b.w.Dial(addr), b.w.Dial(addr)
	c.Send(frame(1, "a"))
	b.until("a request", func() bool { return len(b.seen) == 1 && b.s.Count() == 2 })
	b.do(b.s.Stop)
	c.Send(frame(2, "late"))
	b.closed(idle)
	b.w.RunFor(time.Second)
	b.do(func() { echo(b.seen[0]) })
	b.seen = nil
	if id, body := b.answer(c); id != 1 || body != "a" {
		t.Fatalf("answer %d %q", id, body)
	}
	b.closed(c)
	if len(b.ids) != 1 {
		t.Fatalf("dispatched %v", b.ids)
	}
	b.done()
}

func TestSlowFrameGivesWay(t *testing.T) {
	b := setUp(t, server.Options{MemoryBytes: 200_000}, 10, 10)
	b.serve = echo
	slow := b.w.Dial(addr)
	f := frame(1, string(make([]byte, 400_000)))
	slow.Send(f[:390_000])
	b.w.RunFor(3 * time.Second)
	if ok, _ := slow.Closed(); ok {
		t.Fatal("closed while nobody else needed the memory")
	}
	other := b.w.Dial(addr)
	g := frame(2, string(make([]byte, 300_000)))
	other.Send(g)
	if id, _ := b.answer(other); id != 2 {
		t.Fatal("the other connection was not served")
	}
	if err := b.closed(slow); err == nil {
		t.Error("not closed")
	}
	if n := b.s.Counters().Closed[server.Slow]; n != 1 {
		t.Errorf("%d closed as slow", n)
	}
	b.done()
}

// TestHalfFramesGiveMemoryBack lets many peers stop in the middle of a frame: nobody sends any more, and the memory comes back
// all the same.
func TestHalfFramesGiveMemoryBack(t *testing.T) {
	b := setUp(t, server.Options{MemoryBytes: 300_000}, 100, 100)
	for i := range int32(10) {
		b.w.Dial(addr).Send(frame(i, string(make([]byte, 400_000)))[:100_000])
	}
	b.w.RunFor(500 * time.Millisecond)
	if b.s.Count() != 10 || b.loop.InUse() <= 300_000 {
		t.Fatalf("%d connections, %d bytes", b.s.Count(), b.loop.InUse())
	}
	b.w.RunFor(10 * time.Second)
	if n := b.loop.InUse(); n > 300_000 {
		t.Errorf("%d bytes are still lent out", n)
	}
	if b.s.Count() == 0 {
		t.Error("more were closed than had to be")
	}
	b.done()
}

func TestRequestsDoNotAllocate(t *testing.T) {
	b := setUp(t, server.Options{}, 10, 10)
	b.serve = echo
	c := b.w.Dial(addr)
	c.Send(frame(1, "warm"))
	b.answer(c)
	conn := new(stubConn)
	loop := &stubLoop{Loop: b.loop}
	s := server.New(loop, server.Options{}, echo)
	loop.conn = conn
	receiver := s.Attach(0, netip.AddrPort{}, "PLAINTEXT", nil)
	data := append(frame(1, "0123456789"), frame(2, "0123456789")...)
	b.do(func() {
		buf := loop.Alloc(len(data))
		copy(buf.B, data)
		run := func() {
			receiver.Received(buf.B[:len(data)], buf)
			conn.finish()
		}
		run()
		// the simulated loop makes a new buffer for each answer: two of them, each with its wrapper
		base := testing.AllocsPerRun(100, func() {
			for range 2 {
				loop.Alloc(20).Release()
			}
		})
		if n := testing.AllocsPerRun(100, run); n > base {
			t.Errorf("%v allocations for two requests beside %v for their buffers", n, base)
		}
		buf.Release()
	})
	b.done()
}

// stubLoop hands out a stubConn instead of a connection.
type stubLoop struct {
	ring.Loop
	conn *stubConn
}

func (l *stubLoop) Attach(ring.Socket, ring.Receiver) ring.Conn { return l.conn }
func (l *stubLoop) After(time.Duration, *ring.Timer)            {}

// stubConn keeps what is sent until finish.
type stubConn struct {
	ring.Conn
	ops []*ring.Op
}

func (c *stubConn) Send(_ []ring.Part, op *ring.Op) { c.ops = append(c.ops, op) }
func (c *stubConn) Pause()                          {}
func (c *stubConn) Resume()                         {}
func (c *stubConn) finish() {
	for _, op := range c.ops {
		op.Done(op)
	}
	c.ops = c.ops[:0]
}
