package ring

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"
)

// echo answers each length-prefixed frame with itself, out of the buffer it came in.
type echo struct {
	l      Loop
	conn   Conn
	free   []*reply
	closed chan error
	pauser bool
	timer  Timer
}

type reply struct {
	op   Op
	buf  *Buf
	part [1]Part
}

func (e *echo) Received(data []byte, b *Buf) (consumed, need int) {
	for {
		rest := data[consumed:]
		if len(rest) < 4 {
			return consumed, 4
		}
		size := 4 + int(binary.BigEndian.Uint32(rest))
		if len(rest) < size {
			return consumed, size
		}
		var r *reply
		if n := len(e.free); n > 0 {
			r, e.free = e.free[n-1], e.free[:n-1]
		} else {
			r = &reply{}
			r.op.Done = func(*Op) {
				r.buf.Release()
				e.free = append(e.free, r)
			}
		}
		b.Retain()
		r.buf = b
		r.part[0] = Part{Bytes: rest[:size]}
		e.conn.Send(r.part[:], &r.op)
		consumed += size
		if e.pauser && rand.IntN(3) == 0 {
			e.conn.Pause()
			e.l.After(time.Duration(rand.IntN(3))*time.Millisecond, &e.timer)
			return consumed, 4
		}
	}
}

func (e *echo) Closed(err error) {
	e.l.Cancel(&e.timer)
	if e.closed != nil {
		e.closed <- err
	}
}

// serve accepts on loop 0 and spreads connections over all loops.
func serve(t testing.TB, k *Kernel, attach func(l Loop, s Socket)) netip.AddrPort {
	t.Helper()
	var addr netip.AddrPort
	on(t, k.Loops()[0], func(task *Task) {
		l := task.Loop()
		ln, err := l.Listen("127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return
		}
		addr = ln.Addr()
		next := 0
		l.Accept(ln, func(s Socket, peer netip.AddrPort) {
			to := k.Loops()[next%len(k.Loops())]
			next++
			if to == l {
				attach(to, s)
				return
			}
			to.Post(&Message{Run: func(*Message) { attach(to, s) }})
		})
	})
	return addr
}

func attachEcho(l Loop, s Socket) *echo {
	e := &echo{l: l}
	e.timer.Fire = func(*Timer) { e.conn.Resume() }
	e.conn = l.Attach(s, e)
	return e
}

func dial(t testing.TB, a netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", a.String())
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends frames of the given sizes at once and checks the answers.
func ask(c net.Conn, seed uint64, sizes []int) error {
	r := rand.New(rand.NewPCG(seed, 3))
	var sent bytes.Buffer
	for _, n := range sizes {
		binary.Write(&sent, binary.BigEndian, uint32(n))
		p := make([]byte, n)
		for i := 0; i+8 <= n; i += 8 {
			binary.LittleEndian.PutUint64(p[i:], r.Uint64())
		}
		sent.Write(p)
	}
	want := bytes.Clone(sent.Bytes())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Write(sent.Bytes())
		failed <- err
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the answer differs from what was sent")
	}
	return <-failed
}

func TestEchoesFramesOfAllSizes(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		for _, pauser := range []bool{false, true} {
			t.Run(fmt.Sprintf("loops=%d/pauses=%v", loops, pauser), func(t *testing.T) {
				k := onLoops(t, loops, Options{})
				a := serve(t, k, func(l Loop, s Socket) { attachEcho(l, s).pauser = pauser })
				var wg sync.WaitGroup
				conns, rounds := uint64(16), 20
				if testing.Short() {
					conns, rounds = 4, 4
				}
				for i := range conns {
					wg.Go(func() {
						c := dial(t, a)
						defer c.Close()
						r := rand.New(rand.NewPCG(i, 4))
						for range rounds {
							sizes := make([]int, 1+r.IntN(8))
							for j := range sizes {
								sizes[j] = r.IntN(3000)
								if r.IntN(4) == 0 {
									sizes[j] = r.IntN(300 << 10)
								}
							}
							if i == 0 {
								sizes[0] = 3 << 20
							}
							if err := ask(c, i, sizes); err != nil {
								t.Error(i, err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

func TestMain(m *testing.M) {
	if os.Getpid() == 1 {
		bootedTests(m)
	}
	flag.Parse()
	checkTurns = flag.Lookup("test.bench").Value.String() == ""
	os.Exit(m.Run())
}
