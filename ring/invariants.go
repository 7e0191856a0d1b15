package ring

import "fmt"

// checkTurns makes a loop check itself at the end of each turn; tests set it.
var checkTurns = false

// check holds the loop against what must be true between turns:
//
//  1. A slot is in use or on the free list, never both; live counts the first.
//  2. A connection's receive and send name slots of the right kind that name the connection; so at most one of each is under way.
//  3. A connection receives into memory of its own exactly while a direct receive is under way.
//  4. A connection that waits for memory has no receive under way, and is on the list of those.
//  5. Each piece is the kernel's, parked or lacking; all but the last have a buffer.
//  6. What is lent is not negative, and the buffers of pieces are part of it.
//  7. A connection that is closed is not among the connections.
func (l *loop) check() {
	free := 0
	for i := l.freeSlot; i != 0; i = l.slots[i].next {
		must(l.slots[i].kind == kindFree, 1, "slot %d of kind %d is on the free list", i, l.slots[i].kind)
		free++
	}
	must(free+l.live == len(l.slots), 1, "%d slots free, %d live, %d in all", free, l.live, len(l.slots))
	starved := map[*conn]bool{}
	for _, c := range l.starved {
		starved[c] = true
	}
	for c := l.conns; c != nil; c = c.next {
		must(!c.closed, 7, "a closed connection is listed")
		if c.recv != 0 {
			s := &l.slots[c.recv]
			must(s.conn == c && (s.kind == kindReceive || s.kind == kindDirect), 2, "receive in slot %d of kind %d", c.recv, s.kind)
		}
		if c.send != 0 {
			s := &l.slots[c.send]
			must(s.conn == c && (s.kind == kindSend || s.kind == kindPoll), 2, "send in slot %d of kind %d", c.send, s.kind)
		}
		must((c.direct != nil) == (c.recv != 0 && l.slots[c.recv].kind == kindDirect), 3, "direct %v, receive %d", c.direct != nil, c.recv)
		must(!c.isStarved || c.recv == 0 && starved[c], 4, "starved with receive %d", c.recv)
	}
	with := 0
	for _, b := range l.pieces.bufs {
		if b != nil {
			with++
		}
	}
	must(with+len(l.pieces.lacking) == pieceCount, 5, "%d with a buffer, %d lacking", with, len(l.pieces.lacking))
	must(l.pieces.given+len(l.pieces.parked) == with, 5, "%d with a buffer, %d given, %d parked", with, l.pieces.given, len(l.pieces.parked))
	must(l.InUse() >= 0, 6, "in use: %d", l.InUse())
}

func must(ok bool, number int, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf("ring: invariant %d: ", number) + fmt.Sprintf(format, args...))
	}
}
