package ring

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestWheelFiresInOrderOfTickThenOfSetting(t *testing.T) {
	type mark struct {
		tick time.Duration
		seq  int
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		start := time.Duration(r.Int64N(1e15))
		w := NewWheel(start)
		now := start
		var fired []mark
		pending := map[*Timer]mark{}
		var timers []*Timer
		for i := range 200 {
			tm := &Timer{}
			tm.Fire = func(tm *Timer) {
				m, ok := pending[tm]
				if !ok {
					t.Fatal("a timer fired that was not set")
				}
				if m.tick > now {
					t.Fatalf("fired %v early", m.tick-now)
				}
				delete(pending, tm)
				fired = append(fired, m)
			}
			_ = i
			timers = append(timers, tm)
		}
		seq := 0
		for range 2000 {
			switch tm := timers[r.IntN(len(timers))]; r.IntN(6) {
			case 0:
				w.Cancel(tm)
				delete(pending, tm)
			case 1, 2, 3:
				d := time.Duration(r.Int64N(int64(10 * time.Millisecond)))
				if r.IntN(3) == 0 {
					d = time.Duration(r.Int64N(int64(3 * time.Hour)))
				}
				seq++
				w.After(d, tm)
				pending[tm] = mark{max((now+d+Tick-1)/Tick, now/Tick+1) * Tick, seq}
			default:
				d, ok := w.Next()
				if ok != (len(pending) > 0) {
					t.Fatalf("Next says %v with %d set", ok, len(pending))
				}
				if r.IntN(2) == 0 {
					d = time.Duration(r.Int64N(int64(time.Minute)))
				}
				now += d
				fired = fired[:0]
				w.Advance(now)
				if !slices.IsSortedFunc(fired, func(a, b mark) int {
					if a.tick != b.tick {
						return int(a.tick - b.tick)
					}
					return a.seq - b.seq
				}) {
					t.Fatalf("out of order: %v", fired)
				}
				for _, m := range pending {
					if m.tick <= now {
						t.Fatalf("not fired, late by %v", now-m.tick)
					}
				}
			}
			if w.Len() != len(pending) {
				t.Fatalf("Len %d, want %d", w.Len(), len(pending))
			}
		}
	}
}

func TestWheelTimerMaySetItselfAndCancelItsNeighbour(t *testing.T) {
	w := NewWheel(0)
	n := 0
	var a, b Timer
	a.Fire = func(tm *Timer) { n++; w.Cancel(&b); w.After(0, tm) }
	b.Fire = func(*Timer) { t.Error("fired though cancelled within the same tick") }
	w.After(time.Millisecond, &a)
	w.After(time.Millisecond, &b)
	w.Advance(time.Second)
	if n != 1 {
		t.Errorf("fired %d times in one Advance, want 1", n)
	}
	d, _ := w.Next()
	w.Advance(time.Second + d)
	if n != 2 {
		t.Errorf("fired %d times, want 2", n)
	}
}

func BenchmarkWheelSetAndCancel(b *testing.B) {
	w := NewWheel(0)
	tm := &Timer{Fire: func(*Timer) {}}
	for b.Loop() {
		w.After(30*time.Second, tm)
		w.Cancel(tm)
	}
}
