package ringtest

import (
	"kring/ring"
)

var loopTests = []test{
	{"a completion never comes inside the call", neverInside},
	{"turn end comes once, after the completions at hand, in order", turnEnd},
	{"an op submitted at the turn's end may be the same one", turnEndAgain},
	{"posts arrive in the order of each poster", postOrder},
	{"a post to oneself comes in a later turn", postSelf},
	{"a message may be posted again from its run", postAgain},
	{"offloaded work is done before its op", offload},
	{"loops have their own numbers", loopIDs},
	{"lent buffers are counted and returned", bufs},
}

func neverInside(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		calls := []struct {
			name  string
			start func(*ring.Op)
		}{
			{"AtTurnEnd", l.AtTurnEnd},
			{"Offload", func(op *ring.Op) { l.Offload(func() {}, op) }},
			{"Open", func(op *ring.Op) { l.Open(w.path("x"), ring.Write|ring.Create, op) }},
			{"List", func(op *ring.Op) { l.List(w.Dir(), op) }},
			{"Space", func(op *ring.Op) { l.Space(w.Dir(), op) }},
			{"MakeDir", func(op *ring.Op) { l.MakeDir(w.path("d/e"), op) }},
			{"SyncDir", func(op *ring.Op) { l.SyncDir(w.Dir(), op) }},
			{"Rename", func(op *ring.Op) { l.Rename(w.path("x"), w.path("y"), op) }},
			{"Remove", func(op *ring.Op) { l.Remove(w.path("y"), op) }},
		}
		for _, c := range calls {
			inside, times := true, 0
			t.Suspend(func(wake func()) {
				op := &ring.Op{}
				op.Done = func(got *ring.Op) {
					if inside || got != op {
						w.t.Errorf("%s: done inside the call %v, with the caller's op %v", c.name, inside, got == op)
					}
					times++
					if op.File != nil {
						op.File.Close()
					}
					wake()
				}
				c.start(op)
				inside = false
			})
			w.equal(c.name+" done times", times, 1)
		}
	})
}

func turnEnd(w *world) {
	l := w.loop()
	var got []int
	w.do(l, func(t *ring.Task) {
		t.Suspend(func(wake func()) {
			op := func(n int, then func()) *ring.Op {
				return &ring.Op{Done: func(*ring.Op) {
					got = append(got, n)
					if then != nil {
						then()
					}
				}}
			}
			l.AtTurnEnd(op(1, nil))
			l.AtTurnEnd(op(2, func() { l.AtTurnEnd(op(4, wake)) }))
			l.AtTurnEnd(op(3, nil))
		})
	})
	w.equal("order", got, []int{1, 2, 3, 4})
}

func turnEndAgain(w *world) {
	l := w.loop()
	n := 0
	w.do(l, func(t *ring.Task) {
		t.Suspend(func(wake func()) {
			op := &ring.Op{}
			op.Done = func(op *ring.Op) {
				if n++; n < 5 {
					l.AtTurnEnd(op)
				} else {
					wake()
				}
			}
			l.AtTurnEnd(op)
		})
	})
	w.equal("runs", n, 5)
}

type letter struct {
	ring.Message
	poster, n int
}

func postOrder(w *world) {
	loops := w.Loops()
	const each = 500
	var got [2][]int
	done := make(chan struct{})
	for p := range 2 {
		w.do(loops[p], func(*ring.Task) {
			for i := range each {
				m := &letter{poster: p, n: i}
				m.Run = func(*ring.Message) {
					got[p] = append(got[p], m.n)
					if len(got[0]) == each && len(got[1]) == each {
						close(done)
					}
				}
				loops[1].Post(&m.Message)
			}
		})
	}
	w.Wait(w.t, done)
	for p := range 2 {
		for i, n := range got[p] {
			if i != n {
				w.t.Fatalf("poster %d: message %d came as number %d", p, n, i)
			}
		}
	}
}

func postSelf(w *world) {
	l := w.loop()
	w.do(l, func(t *ring.Task) {
		inside := true
		t.Suspend(func(wake func()) {
			m := &ring.Message{}
			m.Run = func(*ring.Message) {
				if inside {
					w.t.Error("run inside Post")
				}
				wake()
			}
			l.Post(m)
			inside = false
		})
	})
}

func postAgain(w *world) {
	loops := w.Loops()
	n := 0
	done := make(chan struct{})
	m := &ring.Message{}
	m.Run = func(m *ring.Message) {
		if n++; n == 100 {
			close(done)
			return
		}
		loops[n%2].Post(m)
	}
	loops[0].Post(m)
	w.Wait(w.t, done)
	w.equal("runs", n, 100)
}

func offload(w *world) {
	l := w.loop()
	worked := false
	w.do(l, func(t *ring.Task) {
		t.Wait(func(op *ring.Op) { l.Offload(func() { worked = true }, op) })
		w.equal("worked", worked, true)
	})
}

func loopIDs(w *world) {
	for i, l := range w.Loops() {
		w.equal("ID", l.ID(), i)
	}
}

func bufs(w *world) {
	l := w.loop()
	w.do(l, func(*ring.Task) {
		before := l.InUse()
		for _, n := range []int{1, 100, 4096, 70000, 3 << 20} {
			b := l.Alloc(n)
			if len(b.B) < n {
				w.t.Errorf("Alloc(%d) lent %d", n, len(b.B))
			}
			for i := range b.B {
				b.B[i] = byte(i)
			}
			if l.InUse() < before+int64(n) {
				w.t.Errorf("Alloc(%d) is not counted", n)
			}
			b.Retain()
			b.Release()
			if b.B[n-1] != byte(n-1) {
				w.t.Error("a retained buffer was given away")
			}
			b.Release()
			w.equal("in use", l.InUse(), before)
		}
	})
}
