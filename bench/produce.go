package bench

import (
	"context"
	"time"
)

// Produce sends to the topic's partitions from Conns connections, one request under way on each.
func Produce(ctx context.Context, o Options) (*Report, error) {
	return withTopic(ctx, &o, "produce", func(r *run) error { return r.producers(false) })
}

// Tail does the same while one long-polling reader per partition waits for the records: the end-to-end time is from the
// intended send to the reader's receipt. Each record carries its send time, so that requests are encoded on the way.
func Tail(ctx context.Context, o Options) (*Report, error) {
	o.Codec = ""
	return withTopic(ctx, &o, "tail", func(r *run) error {
		if err := r.tailers(); err != nil {
			return err
		}
		return r.producers(true)
	})
}

func withTopic(ctx context.Context, o *Options, load string, start func(*run) error) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := o.prepare(); err != nil {
		return nil, err
	}
	r := newRun(o)
	if err := start(r); err != nil {
		return nil, r.end(err)
	}
	return r.measure(ctx, load)
}

func (r *run) producers(stamped bool) error {
	vals := values(r.o.Records, r.o.Size)
	raw := r.o.batch(vals, 0)
	for i := range r.o.Conns {
		frame := r.o.produceFrame(i%r.o.Partitions, raw)
		err := r.worker(func(c *conn) error {
			p := producer{run: r, conn: c, index: i, frame: frame}
			if stamped {
				p.vals = values(r.o.Records, r.o.Size)
			}
			return p.loop()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// producer is one connection's part of a produce run.
type producer struct {
	*run
	conn  *conn
	index int
	frame []byte
	vals  [][]byte // nil: frame is sent as it is
	mine  []time.Duration
}

func (p *producer) loop() error {
	defer func() { p.merge(p.ack, p.mine) }()
	pace := newPace(p.o, p.index)
	for !p.stop.Load() {
		slot := pace.wait()
		if p.vals != nil {
			p.frame = p.o.produceFrame(p.index%p.o.Partitions, p.o.batch(p.vals, slot.Sub(p.base)))
		}
		if _, err := p.conn.Write(p.frame); err != nil {
			return err
		}
		if p.o.Acks != 0 {
			b, err := p.conn.answer()
			if err == nil {
				err = produceCode(b)
			}
			if err != nil {
				return err
			}
		}
		if p.measuring.Load() {
			p.mine = append(p.mine, time.Since(slot))
			p.requests.Add(1)
			p.bytes.Add(int64(p.o.Size) * int64(p.o.Records))
		}
	}
	return nil
}

// pace gives the slots of one connection: evenly spread over the interval in an open loop, at once in a closed one.
type pace struct {
	every time.Duration
	next  time.Time
}

func newPace(o *Options, index int) *pace {
	p := &pace{next: time.Now()}
	if o.Rate > 0 {
		p.every = time.Duration(float64(time.Second) * float64(o.Conns) / o.Rate)
		p.next = p.next.Add(p.every * time.Duration(index) / time.Duration(o.Conns))
	}
	return p
}

// wait returns the time a request counts from.
func (p *pace) wait() time.Time {
	now := time.Now()
	if p.every == 0 {
		return now
	}
	slot := p.next
	if d := slot.Sub(now); d > 0 {
		time.Sleep(d)
		slot = time.Now()
	}
	p.next = p.next.Add(p.every)
	return slot
}

// until is wait that ends when quit is closed.
func (p *pace) until(quit <-chan struct{}) (slot time.Time, ok bool) {
	slot = p.next
	if d := time.Until(slot); d > 0 {
		select {
		case <-quit:
			return slot, false
		case <-time.After(d):
		}
		slot = time.Now()
	}
	p.next = p.next.Add(p.every)
	select {
	case <-quit:
		return slot, false
	default:
		return slot, true
	}
}
