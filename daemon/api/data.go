package api

import (
	"kring/daemon/server"
	"kring/ring"
	"kring/wire"
)

// dataState is what the data APIs keep per loop: pools and fetch sessions.
type dataState struct {
	produces    *producing
	fetches     *fetching
	sessions    sessions
	ids         producerIDs
	refusedTxns refusedTxns
	fetchMax    int32
	bytes       TopicFigures // of all topics

	producesKept, fetchesKept int // partitions the pools have room for
}

// start is called once, when the context is made: the other loops and the settings may not be known yet.
func (d *dataState) start(*Context) {}

// What a request under way takes for each partition it names, in bytes: it is charged to the loop's limit, since a client
// sends far less.
const (
	producedBytes = 768
	fetchedBytes  = 512
)

// keptMost is how many partitions the pooled requests of a loop may have room for, of each kind: some 10 MB. What is over it
// goes back to Go.
const keptMost = 16 << 10

// takeProduce gives a request state with room for n partitions.
func (d *dataState) takeProduce(c *Context, n int) *producing {
	p := d.produces
	if p == nil {
		p = &producing{c: c, shares: make([]produceShare, len(c.Contexts))}
		for i := range p.shares {
			p.shares[i].start(p, c.Contexts[i])
		}
	} else {
		d.produces, p.next = p.next, nil
		d.producesKept -= cap(p.parts)
	}
	if cap(p.parts) < n {
		p.parts = make([]produced, 0, max(n, 8))
	}
	return p
}

// giveProduce takes it back.
func (d *dataState) giveProduce(p *producing) {
	for i := range p.shares {
		p.shares[i].first, p.shares[i].last = nil, nil
	}
	for i := range p.parts {
		o := &p.parts[i]
		o.topic, o.data, o.rejected, o.err, o.known, o.partition, o.message = nil, nil, nil, nil, nil, nil, ""
	}
	p.r, p.parts, p.topics = nil, p.parts[:0], p.topics[:0]
	if d.producesKept+cap(p.parts) > keptMost {
		return
	}
	d.producesKept += cap(p.parts)
	p.next, d.produces = d.produces, p
}

// takeFetch gives a request state.
func (d *dataState) takeFetch(c *Context) *fetching {
	f := d.fetches
	if f != nil {
		d.fetches, f.next = f.next, nil
		d.fetchesKept -= cap(f.parts)
		return f
	}
	if d.sessions.byID == nil {
		conf := c.Config()
		d.fetchMax = conf.FetchMaxBytes
		d.sessions.start(int32(c.Loop.ID()), int32(len(c.Contexts)), int(conf.FetchSessions))
	}
	f = &fetching{c: c, shares: make([]fetchShare, len(c.Contexts))}
	for i := range f.shares {
		f.shares[i].start(f, c.Contexts[i])
	}
	f.goneFn = func(*server.Request) { f.gone() }
	f.releasedFn = func(*server.Request) { f.released() }
	f.timer.Fire = func(*ring.Timer) { f.late() }
	return f
}

// giveFetch takes it back.
func (d *dataState) giveFetch(f *fetching) {
	for i := range f.shares {
		s := &f.shares[i]
		s.first, s.last, s.at = nil, nil, nil
		s.pins, s.parked, s.fired = false, false, false
		clear(s.places)
	}
	for i := range f.parts {
		o := &f.parts[i]
		o.topic, o.told, o.share, o.next, o.known, o.partition = nil, nil, nil, nil, nil, nil
	}
	f.r, f.session, f.create, f.code, f.id = nil, nil, false, wire.None, noSession
	f.parts, f.names, f.aborted, f.spread = f.parts[:0], f.names[:0], f.aborted[:0], 0
	f.again, f.timed, f.final, f.ended, f.waits = false, false, false, false, false
	if d.fetchesKept+cap(f.parts) > keptMost || cap(f.names) > 64<<10 {
		return
	}
	d.fetchesKept += cap(f.parts)
	f.next, d.fetches = d.fetches, f
}

// closeSession ends a fetch session, on whichever loop it is.
func (c *Context) closeSession(id int32) {
	if id <= 0 {
		return
	}
	home := c.Contexts[int(id)%len(c.Contexts)]
	home.On(c, func() { home.data.sessions.close(id) })
}
