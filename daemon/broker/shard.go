package broker

import (
	"math"
	"slices"

	"kring/daemon/api"
	"kring/daemon/server"
	"kring/replication"
	"kring/ring"
	"kring/segment"
)

// shard is one loop's part of the broker. All but id and b is touched on its loop alone.
type shard struct {
	id     int
	b      *Broker
	loop   ring.Loop
	ctx    *api.Context
	server *server.Server
	files  *segment.Files

	first, last *replica // in the order they were opened
	byName      map[segment.Partition]*replica
	retaining   bool
	loads       groupLoads
	touched     [kinds][]*replica  // may have changed since that file was due last
	noted       uint8              // a bit for each kind that is written
	compacted   []*replica         // those that were, when they were told their settings
	recovering  []segment.Progress // by log dir
}

// replica is one open log and what replicates it.
type replica struct {
	segment.Partition
	dir  *dir // loop 0's; here only passed back
	log  *segment.Log
	part *replication.Partition // nil until the controller has named it
	line *line                  // loop 0's; here only passed back
	gone bool

	touched   uint8 // a bit for each list of the shard's touched that it is in
	compacted bool  // it is in the shard's list of those

	next, prev *replica
}

// filesOpen bounds the open files of a loop that nothing uses at the moment.
const filesOpen = 2000

// descriptorsOwn is what the process needs for itself, whatever it serves: rings, locks, the store.
const descriptorsOwn = 32

// share divides few descriptors: open is a loop's bound for filesOpen, and conns bounds the connections, so that a crowd of them
// does not keep logs from opening their files. Some are left for what is opened for a moment.
func (b *Broker) share() (open, conns int) {
	n := b.o.Descriptors - descriptorsOwn
	if b.o.Descriptors <= 0 {
		return filesOpen, math.MaxInt
	}
	moment := min(n/8, 256)
	open = min(filesOpen, max((n/2-moment)/len(b.o.Loops), 1))
	return open, max(n-moment-open*len(b.o.Loops), 1)
}

// makeShards makes the loops' own parts, each on its loop.
func (b *Broker) makeShards(t *ring.Task) {
	b.shards = make([]*shard, len(b.o.Loops))
	for i, l := range b.o.Loops {
		s := &shard{id: i, b: b, loop: l, ctx: api.NewContext(b.node, l), byName: map[segment.Partition]*replica{}, noted: 1<<kinds - 1}
		if !b.static.CleanerEnabled {
			s.noted &^= 1 << cleanedOffsets
		}
		b.shards[i] = s
		b.node.Contexts = append(b.node.Contexts, s.ctx)
	}
	o := server.Options{RequestBytes: int(b.static.RequestMax), IdleMax: b.static.ConnectionsMaxIdle, Log: b.log}
	if b.static.QueuedBytes > 0 {
		o.QueuedBytes = max(b.static.QueuedBytes/int64(len(b.shards)), 1)
	}
	open, _ := b.share()
	b.each(t, func(s *shard, done func()) {
		s.files = segment.NewFiles(s.loop, open)
		s.server = server.New(s.loop, o, s.ctx.Dispatch)
		s.ctx.Server = s.server
		done()
	})
}

// each runs fn on every shard's loop and waits until each has called done there. fn is not called on loop 0 from inside t.
func (b *Broker) each(t *ring.Task, fn func(s *shard, done func())) {
	if len(b.shards) == 0 {
		return
	}
	t.Suspend(func(wake func()) { b.spread(fn, wake) })
}

// spread runs fn on every shard's loop and calls finished on loop 0, later, when each has called done.
func (b *Broker) spread(fn func(s *shard, done func()), finished func()) {
	left := len(b.shards)
	for _, s := range b.shards {
		post(s.loop, func() {
			fn(s, func() {
				post(b.loop, func() {
					if left--; left == 0 {
						finished()
					}
				})
			})
		})
	}
}

// parallel is how many logs of a loop are opened, closed or removed at a time: what they wait for is the disk.
const parallel = 16

// tasks runs work for 0 to count-1 on this loop, some at a time, and then done.
func (s *shard) tasks(count int, work func(t *ring.Task, i int), done func()) {
	next, running := 0, 0
	if count == 0 {
		done()
		return
	}
	running = min(parallel, count)
	for range running {
		ring.Go(s.loop, func(t *ring.Task) {
			for next < count {
				i := next
				next++
				work(t, i)
			}
			if running--; running == 0 {
				done()
			}
		})
	}
}

// call is a function on its way to a loop.
type call struct {
	ring.Message
	fn func()
}

// post runs fn on l, later.
func post(l ring.Loop, fn func()) {
	c := &call{fn: fn}
	c.Run = func(*ring.Message) { c.fn() }
	l.Post(&c.Message)
}

// add puts a replica on the shard's list.
func (s *shard) add(r *replica) {
	r.log.OnFail = func(err error) { s.failed(r, err) } // until a partition has its ear at it
	r.log.OnChange = func() { s.touch(r) }
	r.line = &line{Partition: r.Partition, dir: r.dir}
	s.touch(r)
	s.classify(r)
	s.byName[r.Partition] = r
	if r.prev = s.last; r.prev == nil {
		s.first = r
	} else {
		r.prev.next = r
	}
	s.last = r
}

// remove takes it off.
func (s *shard) remove(r *replica) {
	r.gone = true
	post(s.b.loop, func() { s.b.strike(r.line) })
	delete(s.byName, r.Partition)
	if r.prev == nil {
		s.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		s.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.next, r.prev = nil, nil
}

// replicas is a copy of the list, for tasks that wait while they go through it.
func (s *shard) replicas() []*replica {
	all := make([]*replica, 0, len(s.byName))
	for r := s.first; r != nil; r = r.next {
		all = append(all, r)
	}
	return all
}

// classify notes whether a replica's log is compacted.
func (s *shard) classify(r *replica) {
	if !r.compacted && r.log.Config().Compact {
		r.compacted = true
		s.compacted = append(s.compacted, r)
	}
}

// cleanable is a copy of the list of those that are compacted, for tasks that wait while they go through it.
func (s *shard) cleanable() []*replica {
	s.compacted = slices.DeleteFunc(s.compacted, func(r *replica) bool {
		r.compacted = !r.gone && r.log.Config().Compact
		return !r.compacted
	})
	return slices.Clone(s.compacted)
}

// shardOf is where a partition lives.
func (b *Broker) shardOf(p segment.Partition) *shard {
	return b.shards[(api.HashTopic(p.Topic)+uint32(p.Index))%uint32(len(b.shards))]
}
