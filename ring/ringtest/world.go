package ringtest

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"kring/ring"
)

// World is one implementation under test, with its loops turning whenever the test waits.
type World interface {
	// Loops are two at least.
	Loops() []ring.Loop
	// Dir is an empty directory.
	Dir() string
	// Wait lets the world turn until done is closed; it fails the test when that takes too long.
	Wait(t testing.TB, done <-chan struct{})
	// Dial connects to a listener of the loops.
	Dial(t testing.TB, addr netip.AddrPort) Peer
	// Do has fn called on the loop in a turn of its own: with Post, or in a way that is as good.
	Do(l ring.Loop, fn func())
}

// Peer is the other side of a connection.
type Peer interface {
	// Write sends everything, or returns without an error once it can: it does not wait for a reader.
	Write(b []byte)
	// Read waits for n bytes; fewer with an error: io.EOF for an orderly end.
	Read(n int) ([]byte, error)
	// Close ends the connection; what was written still arrives. Reset breaks it.
	Close()
	Reset()
}

// Run runs the suite; newWorld is called once per test.
func Run(t *testing.T, newWorld func(t *testing.T) World) {
	for _, group := range [][]test{loopTests, timerTests, taskTests, fileTests, dirTests, netTests, sendTests, receiveTests} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { c.run(&world{t: t, World: newWorld(t)}) })
		}
	}
}

type test struct {
	name string
	run  func(w *world)
}

// world is a World with what the tests need to be short.
type world struct {
	World
	t testing.TB
}

// do runs fn as a task on a loop and waits for its end.
func (w *world) do(l ring.Loop, fn func(t *ring.Task)) {
	w.t.Helper()
	done := make(chan struct{})
	w.Do(l, func() {
		ring.Go(l, func(t *ring.Task) {
			defer close(done)
			fn(t)
		})
	})
	w.Wait(w.t, done)
}

func (w *world) loop() ring.Loop { return w.Loops()[0] }

func (w *world) path(name string) string { return w.Dir() + "/" + name }

// must fails the test on an error. It is called on loops too: Errorf and a stop of the task rather than FailNow.
func (w *world) must(what string, err error) {
	if err != nil {
		w.t.Errorf("%s: %v", what, err)
	}
}

func (w *world) equal(what string, got, want any) {
	if g, ok := got.([]byte); ok {
		if !bytes.Equal(g, want.([]byte)) {
			w.t.Errorf("%s: %d bytes that differ from the %d wanted", what, len(g), len(want.([]byte)))
		}
		return
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// pattern is n bytes that tell their place.
func pattern(n int, salt byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*7 ^ byte(i>>16)*13 ^ salt
	}
	return b
}
