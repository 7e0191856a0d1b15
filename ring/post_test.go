package ring

import (
	"testing"
	"time"
)

func TestPostWakesALoopWheneverItComes(t *testing.T) {
	k := onLoops(t, 2, Options{})
	for i := range 300 {
		l := k.Loops()[i%2]
		got := make(chan bool, 1)
		time.Sleep(time.Duration(i%40) * 100 * time.Microsecond)
		l.Post(&Message{Run: func(*Message) { got <- true }})
		select {
		case <-got:
		case <-time.After(2 * time.Second):
			o := l.(*loop)
			t.Fatalf("post %d not seen: asleep %v empty %v waiting %d pending %d live %d", i, o.in.asleep.Load(), o.in.empty(), o.r.waiting(), o.r.pending(), o.live)
		}
	}
}

// TestLoopsWakeEachOtherByTheRing bounces a message between two loops that sleep in between.
func TestLoopsWakeEachOtherByTheRing(t *testing.T) {
	k := onLoops(t, 2, Options{})
	a, b := k.own[0], k.own[1]
	const rounds = 2000
	done := make(chan uint64, 1)
	left := rounds
	var there, back Message
	there.From, back.From = a, b
	there.Run = func(*Message) { a.Post(&back) }
	back.Run = func(*Message) {
		if left--; left == 0 {
			done <- a.stats.RingWakes
			return
		}
		b.Post(&there)
	}
	b.Post(&Message{Run: func(*Message) { a.Post(&back) }})
	select {
	case wakes := <-done:
		if wakes < rounds/4 {
			t.Errorf("%d of %d posts woke the other loop by the ring", wakes, rounds)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a message was lost between two loops")
	}
}

func TestAWakeThatFailsIsMadeUpFor(t *testing.T) {
	k := onLoops(t, 2, Options{})
	target := k.own[1]
	for !target.in.asleep.Load() {
		time.Sleep(50 * time.Microsecond)
	}
	got := make(chan bool, 1)
	m := &Message{Run: func(*Message) { got <- true }}
	// The post claims the wake, and the message that was to wake the loop comes back refused.
	target.in.messages.Store(m)
	target.in.claim()
	k.own[0].wakeFailed(cqe{user: tagWake<<tagShift | uint64(target.id)<<32, res: -12})
	select {
	case <-got:
	case <-time.After(5 * time.Second):
		t.Fatal("the loop sleeps on")
	}
}
