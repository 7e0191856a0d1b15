package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring/simring"
	"kring/wire"
)

// answerMax is how long a client waits for an answer before it gives the connection up.
const answerMax = 20 * time.Second

// link is one client connection that speaks Kafka: requests leave at once, answers come in order. It is used once; who wants
// to go on after its end makes a new one.
type link struct {
	w       *simring.World
	c       *simring.Client
	next    int32
	waiting []waiting
	in      []byte
	over    bool
	// ended is called once, when the connection ends or is given up.
	ended func(err error)
	// broken is told of an answer that cannot be one.
	broken func(err error)
}

func (l *link) String() string {
	if l == nil {
		return "no connection"
	}
	return fmt.Sprintf("%s with %d requests unanswered", l.c.Name(), len(l.waiting))
}

type waiting struct {
	m  kmsg.Request
	id int32
	fn func(kmsg.Response)
}

func newLink(w *simring.World, broken func(error), ended func(error)) *link {
	l := &link{w: w, c: w.Dial("k:" + port), ended: ended, broken: broken}
	l.c.OnReceive = l.receive
	l.c.OnClose = l.end
	return l
}

// ask sends a request; fn gets the answer, unless the connection ends first. A nil fn expects none.
func (l *link) ask(m kmsg.Request, version int16, fn func(kmsg.Response)) {
	if l.over {
		return
	}
	m.SetVersion(version)
	l.next++
	id := l.next
	head := wire.RequestHeader{Key: m.Key(), Version: version, CorrelationID: id, ClientID: []byte(l.c.Name())}
	frame := m.AppendTo(wire.AppendRequestHeader(make([]byte, 4), &head))
	wire.PutFrameSize(frame, 0)
	if fn != nil {
		l.waiting = append(l.waiting, waiting{m, id, fn})
		l.w.After(answerMax, func() {
			if len(l.waiting) > 0 && l.waiting[0].id <= id {
				l.giveUp(fmt.Errorf("no answer to %s in %v", wire.Name(m.Key()), answerMax))
			}
		})
	}
	l.c.Send(frame)
}

func (l *link) receive(b []byte) {
	l.in = append(l.in, b...)
	for !l.over && len(l.in) >= 4 {
		size := int(binary.BigEndian.Uint32(l.in))
		if len(l.in) < 4+size {
			return
		}
		frame := l.in[4 : 4+size : 4+size]
		l.in = append([]byte(nil), l.in[4+size:]...)
		if err := l.answer(frame); err != nil {
			l.broken(err)
			l.giveUp(err)
			return
		}
	}
}

func (l *link) answer(frame []byte) error {
	if len(l.waiting) == 0 {
		return fmt.Errorf("%s got an answer of %d bytes it did not ask for", l.c.Name(), len(frame))
	}
	q := l.waiting[0]
	l.waiting = l.waiting[1:]
	if got := int32(binary.BigEndian.Uint32(frame)); got != q.id {
		return fmt.Errorf("%s got the answer to request %d instead of %d", l.c.Name(), got, q.id)
	}
	resp := q.m.ResponseKind()
	resp.SetVersion(q.m.GetVersion())
	if err := resp.ReadFrom(frame[wire.ResponseHeaderSize(q.m.Key(), q.m.GetVersion()):]); err != nil {
		return fmt.Errorf("%s got an answer to %s that cannot be read: %w", l.c.Name(), wire.Name(q.m.Key()), err)
	}
	q.fn(resp)
	return nil
}

func (l *link) end(err error) {
	if !l.over {
		l.over = true
		l.waiting = nil
		l.ended(err)
	}
}

// giveUp ends the connection from this side.
func (l *link) giveUp(err error) {
	if !l.over {
		l.c.OnClose = nil
		l.c.Close()
		l.end(err)
	}
}

// call asks one question on a connection of its own and lets the world turn until the answer is there; it tries anew while the
// broker cannot be reached, at most for limit.
func call[R kmsg.Response](s *Story, m kmsg.Request, version int16, limit time.Duration) (R, error) {
	var answer kmsg.Response
	deadline := s.w.Now() + limit
	var last error
	for answer == nil && s.w.Now() < deadline {
		over := false
		l := newLink(s.w, s.violate, func(err error) { last, over = err, true })
		l.ask(m, version, func(r kmsg.Response) { answer, over = r, true })
		if err := s.w.RunUntil("an answer", limit, func() bool { return over }); err != nil {
			last = err
		}
		l.giveUp(nil)
		if answer == nil {
			s.w.RunFor(20 * time.Millisecond)
		}
	}
	if answer == nil {
		var none R
		return none, fmt.Errorf("no answer to %s: %w", wire.Name(m.Key()), last)
	}
	return answer.(R), nil
}
