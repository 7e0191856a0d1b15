package coordinator

import "time"

// timer is something that becomes due: a member's session, or the end of a group's phase. Its place in the heap is early or
// right, never late: putting it off, as each heartbeat does, touches the timer alone.
type timer struct {
	due   time.Duration
	at    time.Duration // its place in the heap: at <= due
	index int           // in the heap, from 1; 0: not running
	order uint64        // among those that are due at the same time
	owner alarmed
}

// alarmed is who is told that a timer is due: a member, a pending member or a group.
type alarmed interface {
	alarm(s *Shard, now Now)
}

func (t *timer) running() bool { return t.index > 0 }

// timers is a heap of running timers, the first to look at on top.
type timers struct {
	heap  []*timer
	armed uint64
}

// arm makes t ring at due, whether it runs or not.
func (h *timers) arm(t *timer, due time.Duration) {
	t.due = due
	switch {
	case t.index == 0:
		h.armed++
		t.at, t.order = due, h.armed
		h.heap = append(h.heap, t)
		t.index = len(h.heap)
		h.up(t)
	case due < t.at:
		t.at = due
		h.up(t)
	}
}

// stop makes t never ring.
func (h *timers) stop(t *timer) {
	if t.index == 0 {
		return
	}
	i, end := t.index, len(h.heap)-1
	last := h.heap[end]
	h.heap[end] = nil
	h.heap = h.heap[:end]
	t.index = 0
	if last == t {
		return
	}
	h.set(i, last)
	h.up(last)
	h.down(last)
}

// next is when expired should be asked.
func (h *timers) next() (time.Duration, bool) {
	if len(h.heap) == 0 {
		return 0, false
	}
	return h.heap[0].at, true
}

// expired takes out a timer that is due, nil if none is.
func (h *timers) expired(now time.Duration) *timer {
	for len(h.heap) > 0 && h.heap[0].at <= now {
		t := h.heap[0]
		if t.due <= now {
			h.stop(t)
			return t
		}
		t.at = t.due
		h.down(t)
	}
	return nil
}

func (t *timer) before(o *timer) bool { return t.at < o.at || t.at == o.at && t.order < o.order }

func (h *timers) set(i int, t *timer) {
	h.heap[i-1] = t
	t.index = i
}

func (h *timers) up(t *timer) {
	i := t.index
	for i > 1 && t.before(h.heap[i/2-1]) {
		h.set(i, h.heap[i/2-1])
		i /= 2
	}
	h.set(i, t)
}

func (h *timers) down(t *timer) {
	i := t.index
	for {
		child := 2 * i
		if child > len(h.heap) {
			break
		}
		if child < len(h.heap) && h.heap[child].before(h.heap[child-1]) {
			child++
		}
		if t.before(h.heap[child-1]) {
			break
		}
		h.set(i, h.heap[child-1])
		i = child
	}
	h.set(i, t)
}
