package bench

import (
	"context"
	"fmt"
	"time"
)

// leaveMax bounds the wait for members to leave after a run.
const leaveMax = 20 * time.Second

// Heartbeats has Groups groups of Members members, a connection for each member, and sends Rate heartbeats a second in all, evenly spread,
// once all have joined. The time to join is not measured.
func Heartbeats(ctx context.Context, o Options) (*Report, error) {
	if err := o.checkGroups(); err != nil {
		return nil, err
	}
	if o.Rate <= 0 {
		return nil, fmt.Errorf("bench: heartbeats need a rate, not %g", o.Rate)
	}
	if err := o.coordinated(); err != nil {
		return nil, err
	}
	o.Conns = o.Groups * o.Members
	if gap := time.Duration(float64(o.Conns) / o.Rate * float64(time.Second)); gap > sessionTimeout {
		return nil, fmt.Errorf("bench: a heartbeat every %v keeps no session of %v", gap, sessionTimeout)
	}
	r := newRun(&o)
	up, begin, quit := make(chan struct{}, o.Conns), make(chan struct{}), make(chan struct{})
	for i := range o.Conns {
		err := r.worker(func(c *conn) error {
			b := beater{run: r, seat: seat{conn: c, group: o.group(i % o.Groups)}, index: i, quit: quit}
			return b.loop(up, begin)
		})
		if err != nil {
			close(quit)
			close(begin)
			return nil, r.end(fmt.Errorf("bench: connection %d of %d: %w", i+1, o.Conns, err))
		}
	}
	for n := 0; n < o.Conns && ctx.Err() == nil && !r.stop.Load(); {
		select {
		case <-up:
			n++
			o.tell(float64(n)/float64(o.Conns), "joining")
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	r.base = time.Now()
	close(begin)
	rep, err := r.span(ctx, "heartbeats")
	close(quit)
	r.leaving()
	return r.complete(ctx, rep, r.end(err))
}

// leaving waits until the members have left by themselves.
func (r *run) leaving() {
	done := make(chan struct{})
	go func() { r.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(leaveMax):
	}
}

// beater is a member that does nothing but live.
type beater struct {
	*run
	seat
	index int
	quit  <-chan struct{}
	mine  []time.Duration
}

func (b *beater) loop(up chan<- struct{}, begin <-chan struct{}) error {
	defer func() { b.merge(b.ack, b.mine) }()
	if err := b.take(); err != nil {
		return err
	}
	up <- struct{}{}
	<-begin
	frame := b.heartbeatFrame()
	pace := newPace(b.o, b.index)
	for {
		slot, ok := pace.until(b.quit)
		if !ok {
			return b.leave()
		}
		code, err := b.heartbeat(frame)
		if err != nil {
			return err
		}
		if code != 0 { // others of the group are still coming
			if _, err := b.later("heartbeat", code); err != nil {
				return err
			}
			if err := b.take(); err != nil {
				return err
			}
			frame = b.heartbeatFrame()
			continue
		}
		if b.measuring.Load() {
			b.mine = append(b.mine, time.Since(slot))
			b.requests.Add(1)
		}
	}
}
