package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Idle opens Conns connections, asks each once for ApiVersions, then leaves them alone: what they cost while nothing
// happens. Requests of the report is the number of connections.
func Idle(ctx context.Context, o Options) (*Report, error) {
	if o.Addr == "" || o.Conns < 0 {
		return nil, fmt.Errorf("bench: idle needs an address and a number of connections, not %q and %d", o.Addr, o.Conns)
	}
	r := newRun(&o)
	quit := make(chan struct{})
	for i := range o.Conns {
		up := make(chan error, 1)
		err := r.worker(func(c *conn) error {
			_, err := c.do(kmsg.NewPtrApiVersionsRequest())
			up <- err
			<-quit
			return err
		})
		if err == nil {
			err = <-up
		}
		if err != nil {
			close(quit)
			return nil, r.end(fmt.Errorf("bench: connection %d of %d: %w", i+1, o.Conns, err))
		}
		o.tell(float64(i+1)/float64(o.Conns), "connecting")
	}
	defer close(quit)
	r.wait(ctx, o.Warm, "settling")
	m, err := o.meter()
	if err != nil {
		return nil, err
	}
	r.wait(ctx, o.Duration, "idle")
	rep, err := m.report("idle")
	if err == nil {
		rep.Requests = int64(o.Conns)
		err = ctx.Err()
	}
	return rep, err
}

// First waits for the broker, makes the topic and has one record acknowledged; it returns the time since it was called.
// Start it together with the broker.
func First(ctx context.Context, o Options) (time.Duration, error) {
	start := time.Now()
	o.Acks = 1
	if err := o.check(); err != nil {
		return 0, err
	}
	err := o.prepare()
	return time.Since(start), err
}
