package ring

import (
	"math/bits"
	"time"
)

// Tick is the wheel's grain: a timer fires at the first tick at or after its time, never early.
const Tick = time.Millisecond

const (
	wheelBits   = 6
	wheelSlots  = 1 << wheelBits
	wheelLevels = 7 // 2^42 ms, 139 years
	wheelMost   = time.Duration(1<<(wheelBits*wheelLevels)-1) * Tick / 2
)

// Wheel is a hierarchical timing wheel: setting, moving and cancelling cost the same for any number of timers. Timers of
// one tick fire in the order they were set, so that the same calls give the same firings. Both worlds use it.
type Wheel struct {
	now   time.Duration
	cur   uint64 // the tick that was handled last
	slots [wheelLevels][wheelSlots]Timer
	full  [wheelLevels]uint64 // a bit per slot that may hold timers
	due   Timer               // those of the tick being fired
	count int
}

// NewWheel makes a wheel whose clock stands at now.
func NewWheel(now time.Duration) *Wheel {
	w := &Wheel{now: now, cur: uint64(now / Tick)}
	for l := range w.slots {
		for s := range w.slots[l] {
			w.slots[l][s].clear()
		}
	}
	w.due.clear()
	return w
}

// clear makes t the head of an empty list.
func (t *Timer) clear() { t.next, t.prev = t, t }

func (t *Timer) unlink() {
	t.prev.next, t.next.prev = t.next, t.prev
	t.next, t.prev = nil, nil
}

// Len is the number of timers set.
func (w *Wheel) Len() int { return w.count }

// After sets t to fire d after the time of the last Advance; a timer that is set is moved.
func (w *Wheel) After(d time.Duration, t *Timer) {
	if t.set {
		t.unlink()
	} else {
		w.count++
		t.set = true
	}
	t.at = max(w.now+min(max(d, 0), wheelMost), (w.now/Tick+1)*Tick)
	w.insert(t)
}

// insert files t under the highest group of bits in which its tick differs from the present one. Timers of one slot stay in
// the order they came in, since a slot is spread before any timer can be filed directly where its own go.
func (w *Wheel) insert(t *Timer) {
	tick := uint64((t.at + Tick - 1) / Tick)
	level := 0
	if diff := tick ^ w.cur; diff != 0 {
		level = (bits.Len64(diff) - 1) / wheelBits
	}
	slot := tick >> (wheelBits * level) % wheelSlots
	w.full[level] |= 1 << slot
	head := &w.slots[level][slot]
	t.prev, t.next = head.prev, head
	head.prev.next, head.prev = t, t
}

// Cancel stops t; it is no error if it is not set.
func (w *Wheel) Cancel(t *Timer) {
	if t.set {
		t.unlink()
		t.set = false
		w.count--
	}
}

// upcoming is the next tick at which something is to be done: to fire, or to spread a slot over a lower level.
func (w *Wheel) upcoming() (tick uint64, ok bool) {
	for l := range w.full {
		shift := wheelBits * l
		at := w.cur >> shift % wheelSlots
		for later := w.full[l] &^ (2<<at - 1); later != 0; later &= later - 1 {
			slot := uint64(bits.TrailingZeros64(later))
			if head := &w.slots[l][slot]; head.next == head {
				w.full[l] &^= 1 << slot
				continue
			}
			return (w.cur>>shift&^(wheelSlots-1) | slot) << shift, true
		}
	}
	return 0, false
}

// Next is how long after the last Advance the wheel wants the next one; it may be before the first timer. False: no timer is set.
func (w *Wheel) Next() (time.Duration, bool) {
	tick, ok := w.upcoming()
	if !ok {
		return 0, false
	}
	return max(time.Duration(tick)*Tick-w.now, 0), true
}

// Advance moves the clock to now and fires what is due. Fire may set and cancel any timer; one set for at once fires with
// a later Advance.
func (w *Wheel) Advance(now time.Duration) {
	w.now = max(w.now, now)
	target := uint64(w.now / Tick)
	for {
		tick, ok := w.upcoming()
		if !ok || tick > target {
			break
		}
		w.cur = tick
		for l := wheelLevels - 1; l > 0; l-- {
			if shift := wheelBits * l; tick&(1<<shift-1) == 0 {
				w.spread(&w.slots[l][tick>>shift%wheelSlots])
			}
		}
		w.fire(&w.slots[0][tick%wheelSlots])
	}
	w.cur = max(w.cur, target)
}

func (w *Wheel) spread(head *Timer) {
	for head.next != head {
		t := head.next
		t.unlink()
		w.insert(t)
	}
}

func (w *Wheel) fire(head *Timer) {
	if head.next == head {
		return
	}
	w.due.next, w.due.prev = head.next, head.prev
	w.due.next.prev, w.due.prev.next = &w.due, &w.due
	head.clear()
	for w.due.next != &w.due {
		t := w.due.next
		t.unlink()
		t.set = false
		w.count--
		t.Fire(t)
	}
}
