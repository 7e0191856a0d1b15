package replication

import "kring/ring"

// Host is what the partitions of one loop share: the clock, and the waits that have become due in this turn.
//
// Waits fire at the end of the turn, not in the middle: what a turn has written to several partitions goes to a reader in one
// answer.
type Host struct {
	loop  ring.Loop
	due   *Wait // chained by Wait.due, in the order they became due
	last  *Wait
	op    ring.Op
	armed bool
}

// NewHost makes the host of a loop.
func NewHost(loop ring.Loop) *Host {
	h := &Host{loop: loop}
	h.op.Done = func(*ring.Op) { h.fire() }
	return h
}

// Loop is where the host's partitions live.
func (h *Host) Loop() ring.Loop { return h.loop }

// Wait is a reader waiting for bytes in several partitions of one loop. The caller owns it; it may be used again once Fire
// has begun or after Cancel.
type Wait struct {
	// Need is the number of bytes after which it fires; 0 counts as 1.
	Need int64
	// Fire is called once, at the end of a turn: bytes enough have come, or a partition has changed its state. Look again.
	Fire func(*Wait)

	got    int64
	host   *Host
	places []Place
	due    *Wait
	isDue  bool
	parked bool
}

// Place is a Wait's seat in one partition.
type Place struct {
	// Partition is where to wait.
	Partition *Partition
	// Stable waits for the last stable offset instead of the high watermark.
	Stable bool

	wait       *Wait
	next, prev *Place
	seated     bool
}

// Park makes w wait in all of places, which belong to it until it fires or is cancelled.
func (h *Host) Park(w *Wait, places []Place) {
	w.host, w.places, w.got, w.parked = h, places, 0, true
	for i := range places {
		p := &places[i]
		p.wait = w
		p.Partition.readers.push(p)
	}
}

// Cancel ends a wait that has not fired; it will not fire any more.
func (h *Host) Cancel(w *Wait) {
	if !w.parked {
		return
	}
	w.leave()
	if !w.isDue {
		return
	}
	w.isDue = false
	var before *Wait
	for d := h.due; d != w; d = d.due {
		before = d
	}
	if before == nil {
		h.due = w.due
	} else {
		before.due = w.due
	}
	if h.last == w {
		h.last = before
	}
	w.due = nil
}

// Parked says whether the wait is under way.
func (w *Wait) Parked() bool { return w.parked }

func (w *Wait) leave() {
	for i := range w.places {
		if p := &w.places[i]; p.seated {
			p.Partition.readers.remove(p)
		}
	}
	w.places, w.parked = nil, false
}

// more tells the wait of bytes that have become readable.
func (w *Wait) more(n int64) {
	w.got += n
	if w.got >= max(w.Need, 1) {
		w.now()
	}
}

// now makes the wait due whatever it has got.
func (w *Wait) now() {
	if w.isDue {
		return
	}
	h := w.host
	w.isDue = true
	if h.last == nil {
		h.due = w
	} else {
		h.last.due = w
	}
	h.last = w
	if !h.armed {
		h.armed = true
		h.loop.AtTurnEnd(&h.op)
	}
}

// fire calls those that were due when it began.
func (h *Host) fire() {
	h.armed = false
	for n := h.count(); n > 0 && h.due != nil; n-- {
		w := h.due
		h.due, w.due, w.isDue = w.due, nil, false
		if h.due == nil {
			h.last = nil
		}
		w.leave()
		w.Fire(w)
	}
	if h.due != nil && !h.armed {
		h.armed = true
		h.loop.AtTurnEnd(&h.op)
	}
}

func (h *Host) count() (n int) {
	for w := h.due; w != nil; w = w.due {
		n++
	}
	return n
}

// places is the list of those who wait in a partition.
type places struct{ first, last *Place }

func (l *places) push(p *Place) {
	p.prev, p.next, p.seated = l.last, nil, true
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
}

func (l *places) remove(p *Place) {
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.next, p.prev, p.seated = nil, nil, false
}
