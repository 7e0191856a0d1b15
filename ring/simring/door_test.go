package simring_test

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"kring/ring"
	"kring/ring/ringtest"
	"kring/ring/simring"
)

// door is a simulated machine as the conformance suite wants it.
type door struct {
	w     *simring.World
	m     *simring.Machine
	loops []ring.Loop
}

func newDoor(t *testing.T, seed uint64) ringtest.World {
	w := simring.New(seed, simring.Options{})
	m := w.Machine("a")
	m.WriteFile("/dir/.keep", nil)
	d := &door{w: w, m: m, loops: m.Loops(3)}
	done := make(chan struct{})
	m.Do(d.loops[0], func() {
		ring.Go(d.loops[0], func(t *ring.Task) {
			_ = t.Remove("/dir/.keep")
			close(done)
		})
	})
	d.Wait(t, done)
	return d
}

func (d *door) Loops() []ring.Loop        { return d.loops }
func (d *door) Dir() string               { return "/dir" }
func (d *door) Do(l ring.Loop, fn func()) { d.m.Do(l, fn) }
func (d *door) Wait(t testing.TB, done <-chan struct{}) {
	t.Helper()
	err := d.w.RunUntil("the test's event", time.Minute, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (d *door) Dial(_ testing.TB, addr netip.AddrPort) ringtest.Peer {
	return peer{d.w.Dial(addr.String())}
}

type peer struct{ c *simring.Client }

func (p peer) Write(b []byte) { p.c.Send(b) }
func (p peer) Close()         { p.c.Finish() }
func (p peer) Reset()         { p.c.Reset() }
func (p peer) Read(n int) ([]byte, error) {
	b, err := p.c.Read(n, time.Minute)
	if err == nil && len(b) < n {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func TestDoor(t *testing.T) {
	for seed := range uint64(8) {
		t.Run("", func(t *testing.T) {
			ringtest.Run(t, func(t *testing.T) ringtest.World { return newDoor(t, seed) })
		})
	}
}
