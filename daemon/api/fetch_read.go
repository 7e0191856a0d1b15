package api

import (
	"kring/replication"
	"kring/ring"
	"kring/segment"
	"kring/wire"
)

// fetched is one partition of a Fetch: what is asked, and what the last round has read. While its share is away it belongs to
// the partition's loop.
type fetched struct {
	topic []byte // nil where ids are used
	id    [16]byte
	index int32
	want  wanted
	told  *sessionPart // in the request's session
	share *fetchShare
	next  *fetched // in the share

	code      wire.Code
	hw        int64
	stable    int64
	start     int64
	r         segment.Range
	known     *Topic                 // on the partition's loop
	partition *replication.Partition // where to wait
	aborted   []segment.AbortedTxn
	skip      bool // not in an incremental answer
	left      bool // what was read is not sent
	run       int  // how many stand with it under one topic of the answer
}

// fetchShare is what a request has for one loop: it travels there and back as a message, and waits there for more.
type fetchShare struct {
	ring.Message
	f           *fetching
	home        *Context
	first, last *fetched
	there, back func(*ring.Message)

	// The connection's loop sets: wait for more if nothing stands against it; end: let everything go. It learns: more came
	// since the share was sent.
	wait, end, fired bool

	// Set while it is away, read when it is back.
	at     *fetched // being read
	got    int64
	ripe   bool // to be answered at once: a partition has an error, or more than there is room for
	pins   bool // ranges are pinned
	parked bool // it waits for more
	more   replication.Wait
	places []replication.Place

	woken ring.Message // tells the connection's loop that more has come
}

func (s *fetchShare) start(f *fetching, home *Context) {
	s.f, s.home = f, home
	s.there = func(*ring.Message) { s.run() }
	s.back = func(*ring.Message) { f.home() }
	wake := func(*ring.Message) {
		s.fired = true
		f.wake()
	}
	s.woken.Run, s.woken.From = wake, home.Loop
	s.more.Fire = func(*replication.Wait) {
		if home == f.c {
			wake(nil)
		} else {
			f.c.Loop.Post(&s.woken)
		}
	}
}

func (s *fetchShare) add(o *fetched) {
	o.share = s
	if s.first == nil {
		s.first = o
	} else {
		s.last.next = o
	}
	s.last = o
}

// send takes the share to its loop; on our own it runs at once.
func (s *fetchShare) send() {
	if s.home == s.f.c {
		s.run()
		return
	}
	s.Run, s.From = s.there, s.f.c.Loop
	s.home.Loop.Post(&s.Message)
}

// run lets go of what the round before has left, and reads.
func (s *fetchShare) run() {
	s.home.Host.Cancel(&s.more)
	for o := s.first; o != nil; o = o.next {
		if s.end {
			s.home.data.bytes.out(o.known, o.bytes())
		}
		o.unpin()
		o.partition = nil
	}
	s.got, s.ripe, s.pins, s.parked = 0, false, false, false
	if s.end {
		s.end = false
		s.ready()
		return
	}
	s.at = s.first
	s.read()
}

// read reads partition by partition: how much the next one may give depends on those before.
func (s *fetchShare) read() {
	for s.at != nil {
		if !s.at.read() {
			return // s.at.r.Done goes on
		}
		if s.at.mustLook() {
			s.look()
			return
		}
		s.took()
	}
	if s.wait && !s.ripe && s.got < max(s.f.minBytes, 1) {
		s.park()
	}
	s.ready()
}

// took counts what s.at was given.
func (s *fetchShare) took() {
	o := s.at
	s.at = o.next
	if o.r.Err != nil {
		o.fail(codeOf(o.r.Err))
	}
	s.ripe = s.ripe || o.code != wire.None || o.r.More
	s.got += o.r.Len
	s.pins = s.pins || o.r.Len > 0
}

// park waits for as many bytes as are missing. Of several loops each waits for its part: if all together have enough, one
// of them has that.
func (s *fetchShare) park() {
	s.places = s.places[:0]
	for o := s.first; o != nil; o = o.next {
		s.places = append(s.places, replication.Place{Partition: o.partition, Stable: s.f.isolation == replication.ReadCommitted})
	}
	s.more.Need = (s.f.minBytes+int64(s.f.spread)-1)/int64(s.f.spread) - s.got
	s.home.Host.Park(&s.more, s.places)
	s.parked = true
}

// ready takes the share back to the connection's loop.
func (s *fetchShare) ready() {
	if s.home == s.f.c {
		s.f.home()
		return
	}
	s.Run, s.From = s.back, s.home.Loop
	s.f.c.Loop.Post(&s.Message)
}

// read reads the partition; it is false if the log answers later.
func (o *fetched) read() bool {
	s := o.share
	o.code, o.hw, o.stable, o.start, o.left = wire.None, -1, -1, -1, false
	o.r.File, o.r.Len, o.r.More, o.r.Err = nil, 0, false, nil
	o.aborted = o.aborted[:0]
	if o.known = o.lookUp(s.f, s.home); o.known != nil {
		o.partition = o.known.Partition(o.index)
	}
	p := o.partition
	if p == nil {
		o.fail(codeOf(o.known.absent(o.index)))
		return true
	}
	if err := p.Check(o.want.epoch); err != nil {
		o.fail(codeOf(err))
		return true
	}
	o.hw, o.stable, o.start = int64(p.HighWatermark()), int64(p.LastStable()), int64(p.LogStart())
	if o.r.Done == nil {
		o.r.Done = func(*segment.Range) {
			o.listAborted()
			if o.mustLook() {
				o.share.look()
				return
			}
			o.share.took()
			o.share.read()
		}
	}
	room := min(int64(o.want.bytes), int64(s.f.maxBytes)-s.got)
	from := replication.Offset(o.want.offset)
	now := p.Read(from, s.f.isolation, int(max(room, 0)), s.got == 0, &o.r)
	if now {
		o.listAborted()
	}
	return now
}

// listAborted notes which transactions in what was read were aborted.
func (o *fetched) listAborted() {
	if o.share.f.isolation == replication.ReadCommitted {
		o.aborted = o.partition.Aborted(o.aborted[:0], replication.Offset(o.want.offset), &o.r)
	}
}

// fail makes the answer for this partition an error.
func (o *fetched) fail(code wire.Code) {
	o.unpin()
	o.code, o.hw, o.stable, o.start = code, -1, -1, -1
}

func (o *fetched) unpin() {
	if o.r.Len > 0 {
		o.r.Unpin()
	}
	o.r.File, o.r.Len, o.r.More = nil, 0, false
}
