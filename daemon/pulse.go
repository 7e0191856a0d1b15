package main

import (
	"sync/atomic"
	"time"

	"kring/ring"
)

// pulse finds out whether every loop turns: it leaves a message on each and waits until it is run. A loop that is stuck has one
// message of ours, however often it is asked.
type pulse []*beat

type beat struct {
	ring.Message
	loop  ring.Loop
	under atomic.Pointer[chan struct{}] // closed when the message under way is run; nil for none
}

func newPulse(loops []ring.Loop) pulse {
	var p pulse
	for _, l := range loops {
		b := &beat{loop: l}
		b.Run = func(*ring.Message) { close(*b.under.Swap(nil)) }
		p = append(p, b)
	}
	return p
}

// begin asks the loop, unless it is asked already. What is returned is closed when it has turned.
func (b *beat) begin() <-chan struct{} {
	for {
		if c := b.under.Load(); c != nil {
			return *c
		}
		c := make(chan struct{})
		if b.under.CompareAndSwap(nil, &c) {
			b.loop.Post(&b.Message)
			return c
		}
	}
}

// still are the loops that did not turn within limit, by id; none means that all is well.
func (p pulse) still(limit time.Duration) []int {
	asked := make([]<-chan struct{}, len(p))
	for i, b := range p {
		asked[i] = b.begin()
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	var still []int
	over := false
	for i, c := range asked {
		if over {
			select {
			case <-c:
			default:
				still = append(still, i)
			}
			continue
		}
		select {
		case <-c:
		case <-late.C:
			over = true
			still = append(still, i)
		}
	}
	return still
}
