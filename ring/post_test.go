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
