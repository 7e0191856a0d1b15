package api

import (
	"time"

	"kring/daemon/server"
	"kring/metadata"
	"kring/replication"
	"kring/ring"
	"kring/wire"
)

// fetching is one Fetch request under way. It goes in rounds: every loop reads its partitions, and in the same step begins to
// wait there for more, should it come to that; then the connection's loop decides whether what was read is enough. If so it
// is the answer; if not, the first loop to have more, or the deadline, starts another round. It is pooled with its slices.
type fetching struct {
	c          *Context
	r          *server.Request
	isolation  replication.Isolation
	minBytes   int64
	maxBytes   int
	deadline   time.Duration
	timer      ring.Timer
	goneFn     func(*server.Request)
	releasedFn func(*server.Request)

	usesIDs bool
	code    wire.Code // of the whole answer
	id      int32     // session id of the answer
	create  bool      // the answer begins a session
	session *session  // the session this request goes on with
	epoch   int32     // that session's, as long as no later request has come

	parts   []fetched
	names   []byte // topics of parts that no session keeps
	shares  []fetchShare
	spread  int // shares that have partitions
	pending int // shares that are away, and one while a round is handed out
	again   bool
	timed   bool // the deadline's timer is set
	final   bool // what the next round finds is the answer
	ended   bool // the answer was given
	waits   bool // no round is under way

	cuts    []wire.Cut
	aborted []wire.Aborted
	next    *fetching // in the pool
}

// fetchPartitionsMost bounds one request and one session's answer.
const fetchPartitionsMost = 100_000

// fetch begins a Fetch request.
func fetch(c *Context, r *server.Request) {
	var q wire.FetchRequest
	if q.Parse(r.Version, r.Body) != nil || q.Partitions > fetchPartitionsMost {
		r.Close(server.BadBody)
		return
	}
	f := c.data.takeFetch(c)
	f.r, f.usesIDs = r, r.Version >= 13
	f.isolation = replication.ReadUncommitted
	if q.ReadCommitted {
		f.isolation = replication.ReadCommitted
	}
	f.maxBytes = int(max(min(q.MaxBytes, c.data.fetchMax), 0))
	f.minBytes = int64(min(q.MinBytes, int32(f.maxBytes)))
	if q.ReplicaID >= 0 {
		// There are no followers yet, and what a follower may see is not for others.
		f.refuseAll(&q, wire.NotLeaderOrFollower)
		return
	}
	if !f.choose(&q) {
		f.answer()
		return
	}
	for i := range f.parts {
		f.parts[i].code = f.place(&f.parts[i])
	}
	if wait := millis(q.WaitMillis); wait > 0 {
		f.deadline = c.Loop.Now() + wait
		r.Gone = f.goneFn
	} else {
		f.final = true
	}
	f.round()
}

// refuseAll answers every partition with one code.
func (f *fetching) refuseAll(q *wire.FetchRequest, code wire.Code) {
	f.list(q)
	for i := range f.parts {
		f.parts[i].code = code
	}
	f.answer()
}

// room makes parts empty, with room for n.
func (f *fetching) room(n int) {
	f.r.Charge(int64(n) * fetchedBytes)
	if f.parts = f.parts[:0]; cap(f.parts) < n {
		f.parts = make([]fetched, 0, max(n, 8))
	}
}

// add makes the next of parts, with what it has kept for its next use.
func (f *fetching) add() *fetched {
	f.parts = f.parts[:len(f.parts)+1]
	o := &f.parts[len(f.parts)-1]
	*o = fetched{r: o.r, aborted: o.aborted[:0], hw: -1, stable: -1, start: -1}
	return o
}

// list takes the partitions as the request names them.
func (f *fetching) list(q *wire.FetchRequest) {
	f.room(q.Partitions)
	if cap(f.names) < q.NameBytes {
		f.names = make([]byte, 0, q.NameBytes)
	}
	for it := q.Iter(); it.NextTopic(); {
		at := len(f.names)
		f.names = append(f.names, it.Topic...)
		name := f.names[at:len(f.names):len(f.names)]
		for it.NextPartition() {
			o := f.add()
			o.topic, o.id, o.index, o.want = name, it.TopicID, it.Partition, wantedBy(&it)
		}
	}
}

func wantedBy(it *wire.FetchIter) wanted {
	return wanted{offset: it.Offset, bytes: it.MaxBytes, epoch: it.LeaderEpoch, lastEpoch: it.LastEpoch, start: it.LogStart}
}

// choose finds the session and fills in parts (KIP-227). It is false if there is nothing to read: f.code says why.
func (f *fetching) choose(q *wire.FetchRequest) bool {
	s := &f.c.data.sessions
	if q.SessionEpoch == initialEpoch || q.SessionEpoch == finalEpoch {
		if q.SessionID != noSession {
			f.c.closeSession(q.SessionID)
		}
		f.create = q.SessionEpoch == initialEpoch && q.Version >= 7
		f.list(q)
		return true
	}
	session, code := s.find(q.SessionID, q.SessionEpoch, f.usesIDs)
	if f.code = code; code != wire.None {
		return false
	}
	for it := q.Iter(); it.NextTopic(); {
		for it.NextPartition() {
			if s.want(session, it.Topic, it.TopicID, it.Partition, wantedBy(&it)) == nil {
				s.remove(session)
				f.code = wire.FetchSessionIDNotFound
				return false
			}
		}
	}
	for it := q.IterForgotten(); it.NextTopic(); {
		for it.NextPartition() {
			s.forget(session, it.Topic, it.TopicID, it.Partition)
		}
	}
	if session.first == nil {
		s.remove(session)
		f.list(q)
		return true
	}
	s.touch(session, f.c.Loop.Now())
	session.epoch = nextEpoch(session.epoch)
	f.session, f.epoch, f.id = session, session.epoch, session.id
	f.room(len(session.byKey))
	for p := session.first; p != nil; p = p.next {
		o := f.add()
		o.topic, o.id, o.index, o.want, o.told = p.name, p.key.id, p.key.index, p.want, p
	}
	return true
}

// place puts a partition into the share of its loop, or refuses it. Where others are read it need not be answered at once.
func (f *fetching) place(o *fetched) wire.Code {
	image := f.c.Image()
	var t *metadata.Topic
	if f.usesIDs {
		if t = image.TopicByID(o.id); t == nil {
			return wire.UnknownTopicID
		}
	} else {
		t = image.TopicBytes(o.topic)
	}
	if t == nil || o.index < 0 || int(o.index) >= len(t.Partitions) {
		return wire.UnknownTopicOrPartition
	}
	here := o.lookUp(f, f.c)
	if here == nil {
		f.final = true
		return wire.NotLeaderOrFollower
	}
	s := &f.shares[f.c.LoopOf(here, o.index)]
	if s.first == nil {
		f.spread++
	}
	s.add(o)
	return wire.None
}

// lookUp finds the topic as a loop knows it.
func (o *fetched) lookUp(f *fetching, on *Context) *Topic {
	if f.usesIDs {
		return on.TopicByID(o.id)
	}
	return on.Topic(o.topic)
}

// round has the shares read their partitions. Where one byte is enough, a share that still waits has nothing, and is left alone.
func (f *fetching) round() {
	f.again, f.waits = false, false
	f.pending = 1
	for i := range f.shares {
		if s := &f.shares[i]; s.first != nil && (s.fired || !s.parked || f.minBytes > 1) {
			f.pending++
			s.wait, s.fired = !f.final, false
			s.send()
		}
	}
	f.home()
}

// home is called for every share that has come back; after the last one it is decided what to do.
func (f *fetching) home() {
	if f.pending--; f.pending > 0 {
		return
	}
	if f.ended { // the shares have let go of what they held
		f.c.data.giveFetch(f)
		return
	}
	enough := f.final || f.spread == 0
	got := int64(0)
	for i := range f.parts {
		o := &f.parts[i]
		got += o.r.Len
		enough = enough || o.share != nil && (o.code != wire.None || o.r.More)
	}
	switch {
	case enough || got >= f.minBytes:
		f.answer()
	case f.again:
		f.round()
	default:
		f.park()
	}
}

// park waits for a share or the deadline. The request's bytes are not needed any more.
func (f *fetching) park() {
	f.waits = true
	if !f.timed {
		f.timed = true
		f.r.Release()
		f.c.Loop.After(max(f.deadline-f.c.Loop.Now(), 0), &f.timer)
	}
}

// wake goes round again, now or after the round under way.
func (f *fetching) wake() {
	switch {
	case f.ended:
	case f.waits:
		f.round()
	default:
		f.again = true
	}
}

// late is the deadline: what there is is the answer. If it was one byte that was waited for, that is nothing.
func (f *fetching) late() {
	f.final = true
	if f.waits && f.minBytes <= 1 {
		f.answer()
		return
	}
	f.wake()
}

// gone is called when the client is: nobody reads the answer.
func (f *fetching) gone() {
	f.final, f.create = true, false
	if f.waits {
		f.answer()
	}
}

// released is called when the answer has left. Ranges are unpinned where they were pinned.
func (f *fetching) released() {
	f.pending = 1
	for i := range f.shares {
		if s := &f.shares[i]; s.first != nil && (s.home == f.c || s.parked || s.pins) {
			f.pending++
			s.end = true
			s.send()
		}
	}
	f.home()
}
