package ring

import (
	"testing"
	"time"
)

// patience is how long a test waits for what must come; an emulated machine needs more.
var patience = 20 * time.Second

// onLoops runs a kernel of n loops for the length of a test; a kernel that is refused fails the test with the cause.
func onLoops(t testing.TB, n int, o Options) *Kernel {
	t.Helper()
	o.Loops = n
	k, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	started, ended := make(chan bool), make(chan error, 1)
	go func() { ended <- k.Run(func() { close(started) }) }()
	select {
	case <-started:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.Stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the loops do not stop")
		}
	})
	return k
}

// on runs fn as a task on l and waits for its end.
func on(t testing.TB, l Loop, fn func(*Task)) {
	t.Helper()
	done := make(chan bool)
	l.Post(&Message{Run: func(*Message) {
		Go(l, func(task *Task) {
			defer close(done)
			fn(task)
		})
	}})
	wait(t, done, "a task")
}

func wait[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s did not end in %v", what, patience)
	}
	return v
}
