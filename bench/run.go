package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// run is one load under way: its workers look at stop and measuring, and leave what they found in it.
type run struct {
	o         *Options
	base      time.Time
	stop      atomic.Bool
	measuring atomic.Bool
	requests  atomic.Int64
	bytes     atomic.Int64

	mu       sync.Mutex
	ack, e2e *hdrhistogram.Histogram
	err      error
	open     map[*conn]bool
	wg       sync.WaitGroup
}

func newRun(o *Options) *run {
	return &run{o: o, base: time.Now(), ack: histogram(), e2e: histogram(), open: map[*conn]bool{}}
}

// worker connects and runs fn on a goroutine of its own.
func (r *run) worker(fn func(c *conn) error) error {
	c, err := dial(r.o.Addr)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.open[c] = true
	r.mu.Unlock()
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		err := fn(c)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil && !r.stop.Load() && r.err == nil {
			r.err = err
			r.stop.Store(true)
		}
		c.Close()
		delete(r.open, c)
	}()
	return nil
}

// merge adds a worker's latencies.
func (r *run) merge(into *hdrhistogram.Histogram, from []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range from {
		note(into, d)
	}
}

// measure lets the workers run through the warm-up and the measured time, then ends them.
func (r *run) measure(ctx context.Context, load string) (*Report, error) {
	rep, err := r.span(ctx, load)
	return r.complete(ctx, rep, r.end(err))
}

// span is the warm-up and the measured time; the workers go on.
func (r *run) span(ctx context.Context, load string) (*Report, error) {
	r.wait(ctx, r.o.Warm, "warming up")
	m, err := r.o.meter()
	if err != nil {
		return nil, err
	}
	r.requests.Store(0)
	r.bytes.Store(0)
	r.measuring.Store(true)
	r.wait(ctx, r.o.Duration, load)
	r.measuring.Store(false)
	requests, bytes := r.requests.Load(), r.bytes.Load()
	rep, err := m.report(load)
	if err == nil {
		rep.count(requests, bytes)
	}
	return rep, err
}

// complete puts in what the workers left when they ended.
func (r *run) complete(ctx context.Context, rep *Report, err error) (*Report, error) {
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	rep.Ack, rep.EndToEnd = latency(r.ack), latency(r.e2e)
	return rep, nil
}

func (r *run) wait(ctx context.Context, d time.Duration, what string) {
	start := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !r.stop.Load() && ctx.Err() == nil {
		gone := time.Since(start)
		if gone >= d {
			break
		}
		r.o.tell(gone.Seconds()/d.Seconds(), what)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-time.After(d - gone):
		}
	}
	r.o.tell(1, what)
}

// end stops the workers: those that wait for an answer get a second for it, then their connection is closed.
func (r *run) end(err error) error {
	r.stop.Store(true)
	r.mu.Lock()
	for c := range r.open {
		c.SetDeadline(time.Now().Add(time.Second))
	}
	if err == nil {
		err = r.err
	}
	r.mu.Unlock()
	r.wg.Wait()
	return err
}
