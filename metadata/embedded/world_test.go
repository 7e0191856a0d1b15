package embedded

import (
	"testing"
	"time"

	"kring/metadata"
	"kring/metadata/storetest"
	"kring/ring"
	"kring/ring/simring"
)

// bench is a store on a simulated machine.
type bench struct {
	w     *simring.World
	m     *simring.Machine
	loop  ring.Loop
	store *Store
	err   error

	options Options
}

const dir = "/data"

func newBench(seed uint64) *bench {
	w := simring.New(seed, simring.Options{})
	return &bench{w: w, m: w.Machine("broker")}
}

// start opens the store in a new process and says how it went.
func (b *bench) start(t testing.TB) error {
	t.Helper()
	b.store, b.err = nil, nil
	done := false
	b.loop = b.m.Loops(1)[0]
	b.m.Do(b.loop, func() {
		ring.Go(b.loop, func(task *ring.Task) {
			if b.err = task.MakeDir(dir); b.err == nil {
				b.err = task.SyncDir("/")
			}
			if b.err == nil {
				b.store, b.err = Open(task, dir, b.options)
			}
			done = true
		})
	})
	if err := b.w.RunUntil("opening", time.Minute, func() bool { return done }); err != nil {
		t.Fatal(err)
	}
	return b.err
}

func (b *bench) do(t testing.TB, fn func()) {
	t.Helper()
	done := false
	b.m.Do(b.loop, func() { fn(); done = true })
	if err := b.w.RunUntil("a call", time.Minute, func() bool { return done }); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) close(t testing.TB) error {
	t.Helper()
	var err error
	done := false
	b.do(t, func() {
		ring.Go(b.loop, func(task *ring.Task) { err = b.store.Close(task); done = true })
	})
	if err := b.w.RunUntil("closing", time.Minute, func() bool { return done }); err != nil {
		t.Fatal(err)
	}
	if e := b.m.Exit(); e != nil {
		t.Fatal(e)
	}
	return err
}

// world is the bench as the suite sees it.
func (b *bench) world(t testing.TB) *storetest.World {
	t.Helper()
	if err := b.start(t); err != nil {
		t.Fatal(err)
	}
	return &storetest.World{
		Do: func(fn func()) { b.do(t, fn) },
		Until: func(t testing.TB, cond func() bool) {
			t.Helper()
			if err := b.w.RunUntil("an answer", time.Minute, cond); err != nil {
				t.Fatal(err)
			}
		},
		Store: func() metadata.Store { return b.store },
		Reopen: func(t testing.TB) {
			t.Helper()
			if b.w.Rand().IntN(2) == 0 {
				if err := b.close(t); err != nil {
					t.Fatal(err)
				}
			} else {
				b.m.Kill()
			}
			if err := b.start(t); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *storetest.World { return newBench(1).world(t) })
}

// TestSuiteSmallLog takes a snapshot every few changes.
func TestSuiteSmallLog(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *storetest.World {
		b := newBench(2)
		w := b.world(t)
		b.store.rotateAt = 1
		return w
	})
}
