package segment

import (
	"errors"
	"testing"
	"time"
)

// While a full disk makes a log take back what it had no room for, an open transaction stays open for who reads meanwhile, and one
// that is decided stays decided.
func TestOpenTransactionStaysOpenOnAFullDisk(t *testing.T) {
	for seed := range uint64(10) {
		r := newRig(t, seed)
		o := r.options("/data/t-0")
		o.Config.SegmentBytes = 2_000_000
		l := r.open(o)
		r.append(l, produced(1, 0, 0, 10, epoch, true))
		r.appendAs(l, &Append{Data: marker(1, 0, true, 0, epoch), Origin: FromCoordinator})
		r.append(l, records(1, epoch, "plain"))
		first := l.End()
		r.append(l, produced(2, 0, 0, 10, epoch, true))
		r.on(func() { l.HighWatermark(l.Written()) })
		r.m.SetCapacity(1)
		large, told, began := records(1, epoch, string(make([]byte, 1_200_000))), false, false
		r.on(func() {
			a := &Append{Data: large, Done: func(a *Append) { told = errors.Is(a.Err, ErrNoSpace) }}
			l.Append(a)
			if a.Err != nil {
				t.Fatalf("seed %d: refused at once: %v", seed, a.Err)
			}
		})
		err := r.w.RunUntil("the way back", time.Hour, func() bool {
			if o, ok := l.FirstUnstable(); !ok || o != first {
				t.Fatalf("seed %d: the first unstable offset is %d, %v, want %d; reverting: %v", seed, o, ok, first, l.reverting)
			}
			began = began || l.reverting
			return began && told && !l.reverting
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
