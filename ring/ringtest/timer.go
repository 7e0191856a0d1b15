package ringtest

import (
	"time"

	"kring/ring"
)

var timerTests = []test{
	{"a timer fires once, not early", timerOnce},
	{"timers fire in order of their times", timerOrder},
	{"a moved timer fires at its new time only", timerMoved},
	{"a cancelled timer does not fire", timerCancelled},
	{"a timer set for now from its own firing does not stop the loop", timerAgain},
	{"the clock does not go back and stands still within a turn", clock},
}

func timerOnce(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		for _, d := range []time.Duration{0, time.Microsecond, 3 * time.Millisecond, 70 * time.Millisecond} {
			start, n := l.Now(), 0
			t.Suspend(func(wake func()) {
				l.After(d, &ring.Timer{Fire: func(*ring.Timer) { n++; wake() }})
				w.equal("fired inside", n, 0)
			})
			if passed := l.Now() - start; passed < d {
				w.t.Errorf("after %v instead of %v", passed, d)
			}
			t.Sleep(5 * time.Millisecond)
			w.equal("times", n, 1)
		}
	})
}

func timerOrder(w *world) {
	l := w.loop()
	var got []int
	w.do(l, func(t *ring.Task) {
		t.Suspend(func(wake func()) {
			for _, ms := range []int{30, 5, 90, 10, 60} {
				l.After(time.Duration(ms)*time.Millisecond, &ring.Timer{Fire: func(*ring.Timer) {
					if got = append(got, ms); len(got) == 5 {
						wake()
					}
				}})
			}
		})
	})
	w.equal("order", got, []int{5, 10, 30, 60, 90})
}

func timerMoved(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		n, start := 0, l.Now()
		timer := &ring.Timer{Fire: func(*ring.Timer) {
			n++
			if l.Now()-start < 40*time.Millisecond {
				w.t.Error("fired at its old time")
			}
		}}
		l.After(2*time.Millisecond, timer)
		l.After(40*time.Millisecond, timer)
		t.Sleep(60 * time.Millisecond)
		w.equal("fired", n, 1)
	})
}

func timerCancelled(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		n := 0
		a := &ring.Timer{Fire: func(*ring.Timer) { n++ }}
		l.Cancel(a)
		l.After(time.Millisecond, a)
		l.Cancel(a)
		l.Cancel(a)
		// Two timers of one moment: the one that fires first cancels the other.
		var x, y ring.Timer
		x.Fire = func(*ring.Timer) { n += 10; l.Cancel(&y) }
		y.Fire = func(*ring.Timer) { n += 10; l.Cancel(&x) }
		l.After(3*time.Millisecond, &x)
		l.After(3*time.Millisecond, &y)
		t.Sleep(20 * time.Millisecond)
		w.equal("fired", n, 10)
	})
}

func timerAgain(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		n := 0
		t.Suspend(func(wake func()) {
			l.After(0, &ring.Timer{Fire: func(timer *ring.Timer) {
				if n++; n < 20 {
					l.After(0, timer)
				} else {
					wake()
				}
			}})
		})
		w.equal("fired", n, 20)
	})
}

func clock(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		last, wall := l.Now(), l.UnixMilli()
		for range 5 {
			t.Sleep(2 * time.Millisecond)
			if l.Now() < last+2*time.Millisecond || l.UnixMilli() < wall {
				w.t.Errorf("from %v, %d to %v, %d", last, wall, l.Now(), l.UnixMilli())
			}
			last, wall = l.Now(), l.UnixMilli()
			w.equal("now, again", l.Now(), last)
		}
	})
}

var taskTests = []test{
	{"tasks interleave at their waits", taskInterleave},
	{"a stopped task runs its deferred calls and nothing else", taskStop},
	{"a file is replaced whole", taskWriteFile},
	{"a file over the limit is refused", taskReadFile},
}

func taskInterleave(w *world) {
	l := w.loop()
	var got []string
	w.do(l, func(t *ring.Task) {
		left := 2
		var wake func()
		for _, name := range []string{"a", "b"} {
			ring.Go(l, func(t *ring.Task) {
				got = append(got, name+"1")
				t.Sleep(5 * time.Millisecond)
				got = append(got, name+"2")
				if left--; left == 0 {
					wake()
				}
			})
		}
		t.Suspend(func(f func()) { wake = f })
	})
	w.equal("order", got, []string{"a1", "b1", "a2", "b2"})
}

func taskStop(w *world) {
	l := w.loop()
	var got []string
	w.do(l, func(t *ring.Task) {
		other := ring.Go(l, func(t *ring.Task) {
			defer func() { got = append(got, "deferred") }()
			t.Sleep(5 * time.Millisecond)
			got = append(got, "went on")
		})
		other.Stop()
		other.Stop()
		w.equal("finished", other.Finished(), true)
		t.Sleep(20 * time.Millisecond)
	})
	w.equal("what ran", got, []string{"deferred"})
}

func taskWriteFile(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		for _, content := range []string{"first", "", "the second one"} {
			w.must("write", t.WriteFile(w.Dir(), "f", []byte(content)))
			b, err := t.ReadFile(w.path("f"), 100)
			w.must("read", err)
			w.equal("content", string(b), content)
		}
		entries, err := t.List(w.Dir())
		w.must("list", err)
		w.equal("names left", len(entries), 1)
	})
}

func taskReadFile(w *world) {
	w.do(w.loop(), func(t *ring.Task) {
		w.must("write", t.WriteFile(w.Dir(), "f", make([]byte, 11)))
		if _, err := t.ReadFile(w.path("f"), 10); err == nil {
			w.t.Error("11 bytes with a limit of 10 were read")
		}
	})
}
