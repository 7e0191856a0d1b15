package ring_test

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"kring/ring"
	"kring/ring/ringtest"
)

// kernelDoor is a Kernel as the conformance suite wants it.
type kernelDoor struct {
	k   *ring.Kernel
	dir string
}

// newKernelDoor runs loops until the test ends.
func newKernelDoor(t *testing.T, path string) *kernelDoor {
	dir := t.TempDir()
	k, err := ring.New(ring.Options{Loops: 2, WritePath: path, Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	up, down := make(chan struct{}), make(chan error, 1)
	go func() { down <- k.Run(func() { close(up) }) }()
	select {
	case <-up:
	case err := <-down:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.Stop()
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
	return &kernelDoor{k, dir}
}

func (d *kernelDoor) Loops() []ring.Loop { return d.k.Loops() }
func (d *kernelDoor) Dir() string        { return d.dir }

func (d *kernelDoor) Do(l ring.Loop, fn func()) {
	l.Post(&ring.Message{Run: func(*ring.Message) { fn() }})
}

func (d *kernelDoor) Wait(t testing.TB, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the test's event did not come within 20 s")
	}
}

func (d *kernelDoor) Dial(t testing.TB, addr netip.AddrPort) ringtest.Peer {
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		return &refusedPeer{err}
	}
	p := &netPeer{c: c.(*net.TCPConn), more: make(chan struct{}, 1)}
	_ = p.c.SetReadDeadline(time.Now().Add(20 * time.Second))
	p.idle.Add(1)
	go p.write()
	return p
}

// netPeer is a connection of package net; a goroutine writes, so that Write does not wait for the loop.
type netPeer struct {
	c      *net.TCPConn
	mu     sync.Mutex
	queue  [][]byte
	ending bool
	more   chan struct{}
	idle   sync.WaitGroup
}

func (p *netPeer) write() {
	defer p.idle.Done()
	for range p.more {
		p.mu.Lock()
		queue, ending := p.queue, p.ending
		p.queue = nil
		p.mu.Unlock()
		for _, b := range queue {
			_, _ = p.c.Write(b)
		}
		if ending {
			return
		}
	}
}

func (p *netPeer) Write(b []byte) {
	p.mu.Lock()
	p.queue = append(p.queue, append([]byte(nil), b...))
	p.mu.Unlock()
	p.wake()
}

func (p *netPeer) wake() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

func (p *netPeer) Read(n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := io.ReadFull(p.c, b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return b[:got], err
}

func (p *netPeer) finish() {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	p.wake()
	p.idle.Wait()
}

func (p *netPeer) Close() {
	p.finish()
	_ = p.c.Close()
}

func (p *netPeer) Reset() {
	p.finish()
	_ = p.c.SetLinger(0)
	_ = p.c.Close()
}

type refusedPeer struct{ err error }

func (p *refusedPeer) Write([]byte)             {}
func (p *refusedPeer) Read(int) ([]byte, error) { return nil, p.err }
func (p *refusedPeer) Close()                   {}
func (p *refusedPeer) Reset()                   {}

func TestDoor(t *testing.T) {
	for _, path := range []string{"ring", "pwrite"} {
		t.Run(path, func(t *testing.T) {
			ringtest.Run(t, func(t *testing.T) ringtest.World { return newKernelDoor(t, path) })
		})
	}
}
