package ringtest

import (
	"encoding/binary"
	"io"
	"time"

	"kring/ring"
)

var sendTests = []test{
	{"bytes and file ranges leave in order", sendParts},
	{"many sends queue behind each other", sendQueue},
	{"small and large file ranges", sendRanges},
	{"a removed and closed file is sent whole", sendRemoved},
	{"a file that is too short breaks the connection, not the content", sendShort},
	{"an empty send is done", sendEmpty},
	{"a reader that comes late gets everything", sendSlow},
}

func sendParts(w *world) {
	p, r := w.one(nil)
	content := pattern(200_000, 6)
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		w.must("write", t.Write(f, content, 0))
		parts := []ring.Part{
			{Bytes: []byte("head")},
			{File: f, From: 10, Len: 100},
			{Bytes: []byte("middle")},
			{File: f, From: 50_000, Len: 150_000},
			{},
			{File: f, From: 0, Len: 1},
			{Bytes: []byte("tail")},
		}
		w.must("send", t.Wait(func(op *ring.Op) { r.conn.Send(parts, op) }).Err)
	})
	want := append([]byte("head"), content[10:110]...)
	want = append(append(want, "middle"...), content[50_000:]...)
	want = append(append(want, content[0]), "tail"...)
	w.equal("what came", w.read(p, len(want)), want)
	p.Close()
}

func sendQueue(w *world) {
	p, r := w.one(nil)
	const n = 300
	var order []int
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		w.must("write", t.Write(f, pattern(1000, 0), 0))
		t.Suspend(func(wake func()) {
			for i := range n {
				head := binary.BigEndian.AppendUint32(nil, uint32(i))
				r.conn.Send([]ring.Part{{Bytes: head}, {File: f, From: int64(i), Len: int64(i % 7)}}, &ring.Op{Done: func(op *ring.Op) {
					w.must("send", op.Err)
					if order = append(order, i); len(order) == n {
						wake()
					}
				}})
			}
		})
	})
	content := pattern(1000, 0)
	for i := range n {
		b := w.read(p, 4+i%7)
		w.equal("number", binary.BigEndian.Uint32(b), i)
		w.equal("range", b[4:], content[i:i+i%7])
		w.equal("done in order", order[i], i)
	}
	p.Close()
}

func sendRanges(w *world) {
	p, r := w.one(nil)
	content := pattern(3<<20, 7)
	ranges := [][2]int{{0, 1}, {5, 4096}, {4095, 16 << 10}, {1, 16<<10 + 1}, {12345, 1 << 20}, {0, 3 << 20}}
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		w.must("write", t.Write(f, content, 0))
		for _, at := range ranges {
			r.conn.Send([]ring.Part{{File: f, From: int64(at[0]), Len: int64(at[1])}}, &ring.Op{Done: func(op *ring.Op) {
				w.must("send", op.Err)
			}})
		}
		f.Close() // the sends hold it
	})
	for _, at := range ranges {
		w.equal("range", w.read(p, at[1]), content[at[0]:at[0]+at[1]])
	}
	p.Close()
}

func sendRemoved(w *world) {
	p, r := w.one(nil)
	content := pattern(2<<20, 8)
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		w.must("write", t.Write(f, content, 0))
		r.conn.Send([]ring.Part{{File: f, Len: int64(len(content))}}, &ring.Op{Done: func(op *ring.Op) { w.must("send", op.Err) }})
		f.Close()
		w.must("remove", t.Remove(w.path("f")))
	})
	w.equal("content", w.read(p, len(content)), content)
	p.Close()
}

func sendShort(w *world) {
	p, r := w.one(nil)
	w.do(w.loop(), func(t *ring.Task) {
		f := w.open(t, "f", ring.Write|ring.Create)
		defer f.Close()
		w.must("write", t.Write(f, []byte("abc"), 0))
		parts := []ring.Part{{File: f, Len: 10}, {Bytes: []byte("tail")}}
		if t.Wait(func(op *ring.Op) { r.conn.Send(parts, op) }).Err == nil {
			w.t.Error("ten bytes of three were sent")
		}
	})
	b, err := p.Read(100)
	if err == nil || len(b) > 3 || string(b) != "abc"[:len(b)] {
		w.t.Errorf("%q came, and %v", b, err)
	}
	w.settled(r)
	p.Close()
}

func sendEmpty(w *world) {
	p, r := w.one(nil)
	w.must("no parts", w.send(r))
	w.must("empty parts", w.send(r, ring.Part{}, ring.Part{Bytes: []byte{}}))
	w.must("one byte", w.send(r, ring.Part{Bytes: []byte("x")}))
	w.equal("what came", string(w.read(p, 1)), "x")
	p.Close()
}

func sendSlow(w *world) {
	p, r := w.one(nil)
	content := pattern(20<<20, 9)
	done := make(chan struct{})
	w.on(func() {
		r.conn.Send([]ring.Part{{Bytes: content}}, &ring.Op{Done: func(op *ring.Op) {
			w.must("send", op.Err)
			close(done)
		}})
	})
	w.do(w.loop(), func(t *ring.Task) { t.Sleep(20 * time.Millisecond) })
	w.equal("content", w.read(p, len(content)), content)
	w.Wait(w.t, done)
	p.Close()
}

var receiveTests = []test{
	{"frames come whole", receiveFrames},
	{"a large need is met, and memory follows the bytes", receiveLarge},
	{"what is not consumed is given again", receiveKept},
	{"a retained buffer keeps its bytes", receiveRetained},
	{"pause stops, resume goes on with what was left", receivePaused},
	{"a paused connection stops its peer and holds little", receivePressure},
	{"close from inside Received is the last call", receiveClose},
	{"a peer that ends mid-frame is an end", receiveCut},
}

// framed makes a receiver of length-prefixed frames.
func framed(each func(body []byte, b *ring.Buf)) func([]byte, *ring.Buf) (int, int) {
	return func(data []byte, b *ring.Buf) (consumed, need int) {
		for {
			rest := data[consumed:]
			if len(rest) < 4 {
				return consumed, 4
			}
			n := 4 + int(binary.BigEndian.Uint32(rest))
			if len(rest) < n {
				return consumed, n
			}
			each(rest[4:n], b)
			consumed += n
		}
	}
}

func frame(n int, salt byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(n)), pattern(n, salt)...)
}

func receiveFrames(w *world) {
	sizes := []int{0, 1, 100, 5000, 16 << 10, 70_000, 3, 1 << 20, 20}
	got := 0
	done := make(chan struct{})
	p, _ := w.one(framed(func(body []byte, _ *ring.Buf) {
		w.equal("frame", body, pattern(sizes[got], byte(got)))
		if got++; got == len(sizes) {
			close(done)
		}
	}))
	for i, n := range sizes {
		p.Write(frame(n, byte(i)))
	}
	w.Wait(w.t, done)
	p.Close()
}

func receiveLarge(w *world) {
	const n = 30 << 20
	l := w.loop()
	done := make(chan struct{})
	p, _ := w.one(framed(func(body []byte, _ *ring.Buf) {
		w.equal("frame", body, pattern(n, 1))
		close(done)
	}))
	whole := frame(n, 1)
	p.Write(whole[:1000])
	w.do(l, func(t *ring.Task) {
		t.Sleep(20 * time.Millisecond)
		if l.InUse() > 8<<20 {
			w.t.Errorf("%d bytes are lent after 1000 have come", l.InUse())
		}
	})
	p.Write(whole[1000:])
	w.Wait(w.t, done)
	p.Close()
}

func receiveKept(w *world) {
	// Asks for one byte more each time and consumes nothing until it has a hundred.
	calls, last := 0, 0
	done := make(chan struct{})
	p, _ := w.one(func(data []byte, _ *ring.Buf) (int, int) {
		calls++
		if len(data) <= last || len(data) > 100 {
			w.t.Errorf("%d bytes after %d", len(data), last)
		}
		last = len(data)
		if len(data) < 100 {
			return 0, len(data) + 1
		}
		w.equal("data", data, pattern(100, 0))
		close(done)
		return 100, 0
	})
	content := pattern(100, 0)
	for i := 0; i < 100; i += 10 {
		p.Write(content[i : i+10])
	}
	w.Wait(w.t, done)
	p.Close()
}

func receiveRetained(w *world) {
	type kept struct {
		data []byte
		b    *ring.Buf
	}
	var held []kept
	l := w.loop()
	var before int64
	w.on(func() { before = l.InUse() })
	done := make(chan struct{})
	const n = 200
	p, r := w.one(framed(func(body []byte, b *ring.Buf) {
		b.Retain()
		body = body[:len(body):len(body)]
		held = append(held, kept{body, b})
		if len(held) == n {
			close(done)
		}
	}))
	for i := range n {
		p.Write(frame(i*10, byte(i)))
	}
	w.Wait(w.t, done)
	var ended <-chan struct{}
	w.on(func() {
		for i, k := range held {
			w.equal("kept", k.data, pattern(i*10, byte(i)))
			k.data = append(k.data[:0], make([]byte, len(k.data))...) // the receiver's to change
		}
		for _, k := range held {
			k.b.Release()
		}
		ended, _ = r.ends()
	})
	p.Close()
	w.Wait(w.t, ended)
	w.on(func() { w.equal("bytes still lent", l.InUse(), before) })
}

func receivePaused(w *world) {
	got, paused := 0, false
	var r *receiver
	var p Peer
	half, whole := make(chan struct{}), make(chan struct{})
	p, r = w.one(func(data []byte, _ *ring.Buf) (int, int) {
		if paused {
			w.t.Error("received while paused")
		}
		if len(data) < 10 {
			return 0, 10
		}
		w.equal("frame", data[:10], pattern(10, byte(got)))
		// One frame per call, and a rest behind it: Resume must give the rest without new bytes.
		if got++; got == 5 {
			r.conn.Pause()
			paused = true
			close(half)
			return 10, 0
		}
		if got == 10 {
			close(whole)
		}
		return 10, 10
	})
	var all []byte
	for i := range 10 {
		all = append(all, pattern(10, byte(i))...)
	}
	w.on(func() {}) // the connection stands
	p.Write(all)
	w.Wait(w.t, half)
	w.do(w.loop(), func(t *ring.Task) {
		t.Sleep(10 * time.Millisecond)
		w.equal("frames while paused", got, 5)
		paused = false
		r.conn.Resume()
	})
	w.Wait(w.t, whole)
	p.Close()
}

func receivePressure(w *world) {
	const n = 40 << 20
	l := w.loop()
	got, calls := 0, 0
	done := make(chan struct{})
	p, r := w.one(nil)
	var before int64
	w.on(func() {
		before = l.InUse()
		r.received = func(data []byte, _ *ring.Buf) (int, int) {
			calls++
			if got += len(data); got == n {
				close(done)
			}
			return len(data), 0
		}
		r.conn.Pause()
	})
	p.Write(make([]byte, n))
	w.do(l, func(t *ring.Task) {
		t.Sleep(50 * time.Millisecond)
		w.equal("calls while paused", calls, 0)
		if more := l.InUse() - before; more > 8<<20 {
			w.t.Errorf("a paused connection holds %d bytes", more)
		}
		r.conn.Resume()
	})
	w.Wait(w.t, done)
	p.Close()
}

func receiveClose(w *world) {
	calls := 0
	var r *receiver
	done := make(chan struct{})
	p, r := w.one(nil)
	w.on(func() {
		r.received = func(data []byte, _ *ring.Buf) (int, int) {
			calls++
			r.conn.Close()
			return 1, 0
		}
		r.closed = func(err error) {
			w.equal("closed with", err, nil)
			close(done)
		}
	})
	p.Write(make([]byte, 100_000))
	w.Wait(w.t, done)
	w.equal("calls", calls, 1)
	w.settled(r)
	p.Close()
}

func receiveCut(w *world) {
	p, r := w.one(framed(func([]byte, *ring.Buf) { w.t.Error("half a frame was given as one") }))
	var done <-chan struct{}
	w.on(func() { done, _ = r.ends() })
	p.Write(frame(1000, 0)[:500])
	p.Close()
	w.Wait(w.t, done)
	w.settled(r)
	if _, err := p.Read(1); err == nil || err == io.ErrUnexpectedEOF {
		w.t.Errorf("read after the end: %v", err)
	}
}
