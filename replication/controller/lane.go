package controller

import "kring/ring"

// lane runs work one after the other, each as straight-line code; what is queued runs in a later step of the loop.
type lane struct {
	loop    ring.Loop
	queue   []func(*ring.Task)
	running bool
	closed  bool
	begin   ring.Op
	idle    []func()
}

func newLane(loop ring.Loop) *lane {
	l := &lane{loop: loop}
	l.begin.Done = func(*ring.Op) { ring.Go(loop, l.work) }
	return l
}

// run queues fn; it is dropped once the lane is closed.
func (l *lane) run(fn func(*ring.Task)) {
	if l.closed {
		return
	}
	l.queue = append(l.queue, fn)
	if !l.running {
		l.running = true
		l.loop.AtTurnEnd(&l.begin)
	}
}

func (l *lane) work(t *ring.Task) {
	for len(l.queue) > 0 {
		fn := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		fn(t)
	}
	l.queue = nil
	l.running = false
	idle := l.idle
	l.idle = nil
	for _, fn := range idle {
		fn()
	}
}

// close takes nothing more and waits until what is queued has run.
func (l *lane) close(t *ring.Task) {
	l.closed = true
	if l.running {
		await(t, func(done func()) { l.idle = append(l.idle, done) })
	}
}
