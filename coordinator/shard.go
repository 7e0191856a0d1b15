package coordinator

import (
	"math/rand/v2"
	"strings"
	"time"
)

// Now is the time of a call: Mono, the loop's monotonic clock, for sessions and delays; UnixMilli for what is written and for
// retention.
type Now struct {
	Mono      time.Duration
	UnixMilli int64
}

// Config is Kafka's settings of groups.
type Config struct {
	MinSession   time.Duration // group.min.session.timeout.ms
	MaxSession   time.Duration // group.max.session.timeout.ms
	InitialDelay time.Duration // group.initial.rebalance.delay.ms
	MaxSize      int           // group.max.size
	MetadataMax  int           // offset.metadata.max.bytes
	Retention    time.Duration // offsets.retention.minutes
}

// Shard is the groups of one partition of the offsets topic. It belongs to one loop.
type Shard struct {
	// Observe is told what groups do, for logs, if it is set.
	Observe func(Event)

	partition int32
	config    *Config
	journal   Journal
	rand      *rand.Rand

	life      life
	epoch     int32 // the highest seen
	loadEpoch int32

	groups map[string]*group
	order  []*group // the same groups
	topics topics
	open   map[int64][]*group // the groups with offsets of a producer's open transaction
	timers timers

	answers      []request // to be given when the shard is at rest
	answered     int       // of them
	bytes        []byte    // of the records of the batch that is written next
	records      []Record
	places       []place
	commitWrites []*commitWrite
	lastReplayed *group

	states  [States]int
	offsets int

	rebalances, commits, expired uint64
}

// NewShard makes an unloaded shard. Member ids are drawn from r.
func NewShard(partition int32, c *Config, j Journal, r *rand.Rand) *Shard {
	return &Shard{partition: partition, config: c, journal: j, rand: r, groups: map[string]*group{}, epoch: -1}
}

// Configure replaces the settings; c is not changed any more.
func (s *Shard) Configure(c *Config) { s.config = c }

// admits says whether a request for a group is served. Those which let members work together want a group with a name; offsets
// may be kept for the empty one.
func (s *Shard) admits(group string, named bool) error {
	switch {
	case group == "" && named || len(group) > stringMax:
		return ErrInvalidGroup
	case s.life == loading:
		return ErrLoading
	case s.life != serving:
		return ErrNotCoordinator
	}
	return nil
}

func (s *Shard) newGroup(id string, now Now) *group {
	g := &group{id: strings.Clone(id), stateMs: now.UnixMilli, at: len(s.order)}
	g.timer.owner = g
	s.order = append(s.order, g)
	s.groups[g.id] = g
	s.states[g.state]++
	return g
}

// bury takes a group out. All who wait in it are told that this is not its coordinator.
func (s *Shard) bury(g *group) {
	for _, m := range g.order {
		s.answerJoin(g, m, JoinAnswer{Err: ErrNotCoordinator, Generation: -1, Member: m.id})
		s.answerSync(m, SyncAnswer{Err: ErrNotCoordinator})
		s.timers.stop(&m.session)
	}
	for _, p := range g.pending {
		s.timers.stop(&p.session)
	}
	s.timers.stop(&g.timer)
	s.states[g.state]--
	s.offsets -= g.offsets.visible
	g.state = Dead
	end := len(s.order) - 1
	s.order[g.at] = s.order[end]
	s.order[g.at].at = g.at
	s.order[end] = nil
	s.order = s.order[:end]
	delete(s.groups, g.id)
}

// request is a request with its answer.
type request interface{ done() }

func (j *Join) done()          { j.Done(j) }
func (y *Sync) done()          { y.Done(y) }
func (l *Leave) done()         { l.Done(l) }
func (c *Commit) done()        { c.Done(c) }
func (d *DeleteOffsets) done() { d.Done(d) }
func (d *DeleteGroup) done()   { d.Done(d) }

// reply gives a request back once the shard is at rest.
func (s *Shard) reply(r request) { s.answers = append(s.answers, r) }

// answer gives back all that are answered. Whoever gets one back may call the shard: it is at rest.
func (s *Shard) answer() {
	for s.answered < len(s.answers) {
		r := s.answers[s.answered]
		s.answers[s.answered] = nil
		s.answered++
		r.done()
	}
	s.answers, s.answered = s.answers[:0], 0
}

// Next is when Tick is due next; false if never. It is cheap and may be asked after each call.
func (s *Shard) Next() (time.Duration, bool) { return s.timers.next() }

// Tick does what is due: sessions, joins and syncs that are over.
func (s *Shard) Tick(now Now) {
	defer s.answer()
	for t := s.timers.expired(now.Mono); t != nil; t = s.timers.expired(now.Mono) {
		t.owner.alarm(s, now)
	}
}
