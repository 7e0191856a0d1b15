package simring

import (
	"time"

	"kring/ring"
)

func (l *loop) Now() time.Duration { return l.w.now }

func (l *loop) UnixMilli() int64 { return l.p.m.unixMilli() }

func (m *Machine) unixMilli() int64 { return m.w.o.Epoch + (m.w.now + m.skew).Milliseconds() }

func (l *loop) After(d time.Duration, t *ring.Timer) {
	l.on("After")
	if l.p.dead {
		return
	}
	l.wheel.After(d, t)
}

func (l *loop) Cancel(t *ring.Timer) {
	l.on("Cancel")
	if !l.p.dead {
		l.wheel.Cancel(t)
	}
}

// UnixMilli is the machine's wall clock.
func (m *Machine) UnixMilli() int64 { return m.unixMilli() }
