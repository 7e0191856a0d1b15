package ring

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// silent is a receiver that takes everything.
type silent struct{}

func (silent) Received(data []byte, _ *Buf) (int, int) { return len(data), 0 }
func (silent) Closed(error)                            {}

func TestConnectionsHaveTheBuffersAskedFor(t *testing.T) {
	k := onLoops(t, 1, Options{SendBuffer: 70_000, ReceiveBuffer: 50_000})
	l := k.own[0]
	addr, sizes := make(chan netip.AddrPort, 1), make(chan [2]int, 1)
	l.Post(&Message{Run: func(*Message) {
		li, err := l.Listen("127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return
		}
		l.Accept(li, func(s Socket, _ netip.AddrPort) {
			c := l.Attach(s, silent{}).(*conn)
			send, _ := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
			receive, _ := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
			sizes <- [2]int{send, receive}
		})
		addr <- li.Addr()
	}})
	c, err := net.Dial("tcp", (<-addr).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The kernel doubles what is asked for, to leave room for its own accounting (socket(7)).
	if got := <-sizes; got != [2]int{140_000, 100_000} {
		t.Errorf("send and receive buffers of %v bytes", got)
	}
}
