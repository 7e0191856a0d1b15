package ringtest

import (
	"io"
	"net/netip"
	"time"

	"kring/ring"
)

var netTests = []test{
	{"a connection tells who is who", addresses},
	{"a port in use is refused", portInUse},
	{"a socket is attached to another loop", attachElsewhere},
	{"what came before Attach is not lost", attachLate},
	{"many connections at once", manyConns},
	{"the peer's end closes in order", peerCloses},
	{"a reset closes with an error", peerResets},
	{"close ends once, last, and may be called twice", closeTwice},
	{"close after send lets everything leave", closeAfterSend},
	{"a closed listener accepts nobody", listenerCloses},
}

// receiver is a Receiver made of functions.
type receiver struct {
	conn     ring.Conn
	received func(data []byte, b *ring.Buf) (consumed, need int)
	closed   func(err error)
	closes   int
	late     int // calls of Received after Closed
}

func (r *receiver) Received(data []byte, b *ring.Buf) (int, int) {
	if r.closes > 0 {
		r.late++
	}
	if r.received == nil {
		return len(data), 0
	}
	return r.received(data, b)
}

func (r *receiver) Closed(err error) {
	r.closes++
	if r.closed != nil {
		r.closed(err)
	}
}

// serve listens on loop 0 and attaches every connection there; made is called on the loop before Attach.
func (w *world) serve(made func(r *receiver)) netip.AddrPort {
	l := w.loop()
	return w.accept(func(s ring.Socket, _ netip.AddrPort) {
		r := &receiver{}
		made(r)
		r.conn = l.Attach(s, r)
	})
}

func (w *world) accept(fn func(ring.Socket, netip.AddrPort)) (addr netip.AddrPort) {
	l := w.loop()
	w.do(l, func(*ring.Task) {
		ln, err := l.Listen("127.0.0.1:0")
		if err != nil {
			w.t.Errorf("listen: %v", err)
			return
		}
		l.Accept(ln, fn)
		addr = ln.Addr()
	})
	if w.t.Failed() {
		w.t.FailNow()
	}
	return addr
}

// one dials and waits for the receiver of the connection.
func (w *world) one(received func(data []byte, b *ring.Buf) (int, int)) (Peer, *receiver) {
	var r *receiver
	up := make(chan struct{})
	addr := w.serve(func(made *receiver) {
		r = made
		r.received = received
		w.Do(w.loop(), func() { close(up) })
	})
	p := w.Dial(w.t, addr)
	w.Wait(w.t, up)
	return p, r
}

// ends tells when a connection is closed, and how. It must be called on the loop.
func (r *receiver) ends() (<-chan struct{}, *error) {
	done, how := make(chan struct{}), new(error)
	r.closed = func(err error) {
		*how = err
		close(done)
	}
	return done, how
}

// on runs fn on loop 0 and waits.
func (w *world) on(fn func()) { w.do(w.loop(), func(*ring.Task) { fn() }) }

// send sends parts and waits for the op.
func (w *world) send(r *receiver, parts ...ring.Part) (err error) {
	w.do(w.loop(), func(t *ring.Task) {
		err = t.Wait(func(op *ring.Op) { r.conn.Send(parts, op) }).Err
	})
	return err
}

func (w *world) read(p Peer, n int) []byte {
	w.t.Helper()
	b, err := p.Read(n)
	if err != nil {
		w.t.Fatalf("%d of %d bytes came: %v", len(b), n, err)
	}
	return b
}

func addresses(w *world) {
	var r *receiver
	var at, from netip.AddrPort
	l := w.loop()
	done := make(chan struct{})
	at = w.accept(func(s ring.Socket, peer netip.AddrPort) {
		from = peer
		r = &receiver{}
		r.conn = l.Attach(s, r)
		close(done)
	})
	if at.Port() == 0 {
		w.t.Error("the listener does not know its port")
	}
	p := w.Dial(w.t, at)
	defer p.Close()
	w.Wait(w.t, done)
	w.on(func() {
		w.equal("local", r.conn.Local(), at)
		w.equal("peer", r.conn.Peer(), from)
		if !from.IsValid() || from == at {
			w.t.Errorf("the peer is %v", from)
		}
	})
}

func portInUse(w *world) {
	l := w.loop()
	w.on(func() {
		ln, err := l.Listen("127.0.0.1:0")
		w.must("listen", err)
		if _, err := l.Listen(ln.Addr().String()); err == nil {
			w.t.Error("one port was bound twice")
		}
		ln.Close()
		again, err := l.Listen(ln.Addr().String())
		w.must("listen after Close", err)
		if err == nil {
			again.Close()
		}
	})
}

func attachElsewhere(w *world) {
	loops := w.Loops()
	other := loops[1]
	addr := w.accept(func(s ring.Socket, _ netip.AddrPort) {
		m := &ring.Message{}
		m.Run = func(*ring.Message) { w.echo(other, s) }
		other.Post(m)
	})
	p := w.Dial(w.t, addr)
	p.Write([]byte("hello"))
	w.equal("echo", string(w.read(p, 5)), "hello")
	p.Close()
}

// echo attaches a socket and sends back what comes.
func (w *world) echo(l ring.Loop, s ring.Socket) {
	r := &receiver{}
	r.received = func(data []byte, b *ring.Buf) (int, int) {
		b.Retain()
		op := &ring.Op{Done: func(*ring.Op) { b.Release() }}
		r.conn.Send([]ring.Part{{Bytes: data}}, op)
		return len(data), 0
	}
	r.conn = l.Attach(s, r)
}

func attachLate(w *world) {
	l := w.loop()
	addr := w.accept(func(s ring.Socket, _ netip.AddrPort) {
		l.After(20*time.Millisecond, &ring.Timer{Fire: func(*ring.Timer) { w.echo(l, s) }})
	})
	p := w.Dial(w.t, addr)
	p.Write([]byte("early"))
	w.equal("echo", string(w.read(p, 5)), "early")
	p.Close()
}

func manyConns(w *world) {
	loops := w.Loops()
	n := 0
	addr := w.accept(func(s ring.Socket, _ netip.AddrPort) {
		l := loops[n%len(loops)]
		n++
		m := &ring.Message{}
		m.Run = func(*ring.Message) { w.echo(l, s) }
		l.Post(m)
	})
	peers := make([]Peer, 50)
	for i := range peers {
		peers[i] = w.Dial(w.t, addr)
		peers[i].Write(pattern(2000, byte(i)))
	}
	for i, p := range peers {
		w.equal("echo", w.read(p, 2000), pattern(2000, byte(i)))
		p.Close()
	}
}

func peerCloses(w *world) {
	var got []byte
	p, r := w.one(func(data []byte, _ *ring.Buf) (int, int) {
		got = append(got, data...)
		return len(data), 0
	})
	var done <-chan struct{}
	var how *error
	w.on(func() { done, how = r.ends() })
	p.Write([]byte("last words"))
	p.Close()
	w.Wait(w.t, done)
	w.on(func() {
		w.equal("received", string(got), "last words")
		w.equal("closed with", *how, nil)
		var op ring.Op
		op.Done = func(op *ring.Op) {}
		r.conn.Close()
	})
	w.settled(r)
}

// settled waits a moment and expects one Closed and nothing after it.
func (w *world) settled(r *receiver) {
	w.do(w.loop(), func(t *ring.Task) {
		t.Sleep(10 * time.Millisecond)
		w.equal("times closed", r.closes, 1)
		w.equal("received after the end", r.late, 0)
	})
}

func peerResets(w *world) {
	p, r := w.one(nil)
	var done <-chan struct{}
	var how *error
	w.on(func() { done, how = r.ends() })
	p.Reset()
	w.Wait(w.t, done)
	w.on(func() {
		if *how == nil {
			w.t.Error("closed in order, it says")
		}
	})
	w.settled(r)
}

func closeTwice(w *world) {
	p, r := w.one(nil)
	var done <-chan struct{}
	var how *error
	order := ""
	w.on(func() {
		done, how = r.ends()
		inner := r.closed
		r.closed = func(err error) {
			order += "closed"
			inner(err)
		}
		// The peer reads nothing: this stays under way.
		op := &ring.Op{Done: func(op *ring.Op) {
			if op.Err == nil {
				w.t.Error("64 MiB left without a reader")
			}
			order += "sent "
		}}
		r.conn.Send([]ring.Part{{Bytes: make([]byte, 64<<20)}}, op)
		r.conn.Close()
		r.conn.Close()
		w.equal("closed inside the call", r.closes, 0)
	})
	w.Wait(w.t, done)
	w.on(func() {
		w.equal("order", order, "sent closed")
		w.equal("closed with", *how, nil)
	})
	w.do(w.loop(), func(t *ring.Task) {
		if t.Wait(func(op *ring.Op) { r.conn.Send([]ring.Part{{Bytes: []byte("x")}}, op) }).Err == nil {
			w.t.Error("sent on a closed connection")
		}
		r.conn.Close()
	})
	w.settled(r)
	p.Close()
}

func closeAfterSend(w *world) {
	p, r := w.one(nil)
	content := pattern(3<<20, 5)
	var done <-chan struct{}
	var how *error
	w.on(func() {
		done, how = r.ends()
		r.conn.Send([]ring.Part{{Bytes: content}}, &ring.Op{Done: func(op *ring.Op) { w.must("send", op.Err) }})
		r.conn.CloseAfterSend()
	})
	w.equal("content", w.read(p, len(content)), content)
	if _, err := p.Read(1); err != io.EOF {
		w.t.Errorf("after the last byte: %v", err)
	}
	w.Wait(w.t, done)
	w.equal("closed with", *how, nil)
	w.settled(r)
	p.Close()
}

func listenerCloses(w *world) {
	l := w.loop()
	accepted := 0
	var addr netip.AddrPort
	w.on(func() {
		ln, err := l.Listen("127.0.0.1:0")
		w.must("listen", err)
		l.Accept(ln, func(ring.Socket, netip.AddrPort) { accepted++ })
		addr = ln.Addr()
		ln.Close()
	})
	w.do(l, func(t *ring.Task) { t.Sleep(10 * time.Millisecond) })
	p := w.Dial(w.t, addr)
	if _, err := p.Read(1); err == nil {
		w.t.Error("something came")
	}
	w.do(l, func(t *ring.Task) {
		t.Sleep(10 * time.Millisecond)
		w.equal("accepted", accepted, 0)
	})
}
