package bench

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Settle has Groups groups of Members members each join at once, a connection for each member. They are settled when every member of every
// group has an assignment in a generation that all of its group are in: Seconds of the report is how long that took from the first
// connection on. A member that is told of a rebalance joins again; it asks every three seconds, as clients do.
func Settle(ctx context.Context, o Options) (*Report, error) {
	if err := o.checkGroups(); err != nil {
		return nil, err
	}
	if err := o.coordinated(); err != nil {
		return nil, err
	}
	o.Conns = o.Groups * o.Members
	r := newRun(&o)
	h := &hall{members: o.Members, open: o.Groups, quit: make(chan struct{}), settled: make(chan struct{})}
	h.groups = make([]table, o.Groups)
	m, err := o.meter()
	if err != nil {
		return nil, err
	}
	for i := range o.Conns {
		err := r.worker(func(c *conn) error {
			err := h.member(r, &seat{conn: c, group: o.group(i % o.Groups)}, i%o.Groups)
			if err != nil {
				h.giveUp()
			}
			return err
		})
		if err != nil {
			h.giveUp()
			return nil, r.end(err)
		}
	}
	o.tell(0, "settling")
	select {
	case <-h.settled:
	case <-h.quit:
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(2 * rebalanceTimeout):
		err = errors.New("bench: the groups do not settle")
	}
	rep, merr := m.report("settle")
	if err == nil {
		err = merr
	}
	if err != nil {
		h.giveUp()
	}
	r.leaving()
	if err = r.end(err); err != nil {
		return nil, err
	}
	rep.Requests = int64(o.Conns)
	rep.CPUPerM = rep.Cores * rep.Seconds / float64(o.Conns) * 1e6
	rep.Ack = latency(r.ack)
	return rep, nil
}

// hall is where the groups sit down.
type hall struct {
	members int
	mu      sync.Mutex
	groups  []table
	open    int // groups that are not settled
	quit    chan struct{}
	once    sync.Once
	settled chan struct{}
}

// table is what is known of one group's newest generation.
type table struct {
	generation   int32
	seated, size int
	done         bool
}

// member joins, and joins again whenever it is told to, until all groups are settled; then it leaves.
func (h *hall) member(r *run, s *seat, group int) error {
	for {
		start := time.Now()
		if err := s.take(); err != nil {
			return err
		}
		r.merge(r.ack, []time.Duration{time.Since(start)})
		h.seated(group, s)
		frame, again := s.heartbeatFrame(), false
		for !again {
			select {
			case <-h.settled:
				return s.leave()
			case <-h.quit:
				return nil
			case <-time.After(heartbeatEvery):
			}
			code, err := s.heartbeat(frame)
			if err != nil {
				return err
			}
			if code != 0 {
				if again, err = s.later("heartbeat", code); err != nil {
					return err
				}
			}
		}
	}
}

// seated notes that a member has its assignment.
func (h *hall) seated(group int, s *seat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &h.groups[group]
	if s.generation > t.generation {
		*t = table{generation: s.generation, done: t.done}
	}
	if s.generation < t.generation || t.done {
		return
	}
	t.seated++
	t.size = max(t.size, len(s.others))
	if t.seated == h.members && t.size == h.members {
		t.done = true
		if h.open--; h.open == 0 {
			close(h.settled)
		}
	}
}

// giveUp ends the wait of all: somebody has failed.
func (h *hall) giveUp() { h.once.Do(func() { close(h.quit) }) }
