package server_test

import (
	"encoding/binary"
	"testing"
	"time"

	"kring/daemon/server"
)

// FuzzConnection sends any bytes, cut anywhere: nothing may crash, leak or hang, memory stays bounded, and what is answered
// are whole frames.
func FuzzConnection(f *testing.F) {
	f.Add(frame(1, "hello"), uint16(3))
	f.Add(append(frame(1, "hello"), frame(2, "world")...), uint16(7))
	f.Add([]byte{0, 0, 0, 0}, uint16(1))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1, 2, 3}, uint16(2))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint16(5))
	f.Add([]byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc}, uint16(9))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		b := setUp(t, server.Options{RequestBytes: 1 << 16, IdleMax: 5 * time.Second, Pipeline: 4}, 10, 10)
		most := int64(0)
		b.serve = func(r *server.Request) {
			most = max(most, b.loop.InUse())
			switch {
			case len(r.Body)%5 == 4:
				r.Close(server.BadBody)
			case len(r.Body)%5 == 3:
				r.NoReply()
			case len(r.Body)%5 == 2:
				b.seen = append(b.seen, r)
			default:
				echo(r)
			}
		}
		c := b.w.Dial(addr)
		for n := int(cut)%100 + 1; len(data) > 0; n = min(len(data), n*2) {
			n = min(n, len(data))
			c.Send(data[:n])
			data = data[n:]
		}
		b.w.RunFor(time.Second)
		b.do(func() {
			for _, r := range b.seen {
				echo(r)
			}
			b.seen = nil
		})
		b.until("the connection to close", func() bool { ok, _ := c.Closed(); return ok || len(b.seen) > 0 })
		for rest := c.Buffered(); len(rest) > 0; {
			if len(rest) < 8 || int(binary.BigEndian.Uint32(rest)) > len(rest)-4 {
				t.Fatalf("an answer is not whole: %x", rest)
			}
			rest = rest[4+binary.BigEndian.Uint32(rest):]
		}
		if most > 8<<20 {
			t.Fatalf("%d bytes lent", most)
		}
		b.done()
	})
}
