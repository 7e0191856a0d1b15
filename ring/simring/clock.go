package simring

import (
	"time"

	"kring/ring"
)

func (l *loop) Now() time.Duration { return l.w.now }

func (l *loop) UnixMilli() int64 { return l.p.m.unixMilli() }

func (m *Machine) unixMilli() int64 { return m.w.o.Epoch + (m.w.now + m.skew).Milliseconds() }

// armed is a timer that is set; a moved or cancelled one stays in the heap, void.
type armed struct {
	at  time.Duration
	seq uint64
	t   *ring.Timer
}

// timers is a heap ordered by time, then by setting.
type timers []*armed

func (l *loop) After(d time.Duration, t *ring.Timer) {
	l.on("After")
	if l.p.dead {
		return
	}
	w := l.w
	w.nextSeq++
	// A timer is never early, and on time only as far as the wheel's ticks go.
	a := &armed{at: w.now + max(d, 0) + time.Duration(w.world.Int64N(int64(time.Millisecond))), seq: w.nextSeq, t: t}
	l.armed[t] = a
	l.timers.push(a)
	l.turnBy(a.at)
}

func (l *loop) Cancel(t *ring.Timer) {
	l.on("Cancel")
	delete(l.armed, t)
}

// fire fires what is due, but for what is set while firing.
func (l *loop) fire() {
	last := l.w.nextSeq
	for len(l.timers) > 0 && l.timers[0].at <= l.w.now {
		a := l.timers[0]
		if a.seq > last {
			return
		}
		l.timers.pop()
		if l.armed[a.t] != a {
			continue
		}
		delete(l.armed, a.t)
		a.t.Fire(a.t)
	}
}

// nextTimer is when the earliest timer fires.
func (l *loop) nextTimer() (time.Duration, bool) {
	for len(l.timers) > 0 {
		if a := l.timers[0]; l.armed[a.t] == a {
			return a.at, true
		}
		l.timers.pop()
	}
	return 0, false
}

func (h timers) before(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

func (h *timers) push(a *armed) {
	*h = append(*h, a)
	q := *h
	for i := len(q) - 1; i > 0 && q.before(i, (i-1)/2); i = (i - 1) / 2 {
		q[i], q[(i-1)/2] = q[(i-1)/2], q[i]
	}
}

func (h *timers) pop() {
	q := *h
	last := len(q) - 1
	q[0], q[last] = q[last], nil
	q = q[:last]
	*h = q
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
