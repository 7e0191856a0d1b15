package sim

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring/simring"
	"kring/wire"
	"kring/wire/batch"
)

// Plan says what to simulate.
type Plan struct {
	Seed  uint64
	Loops int
	// Log gets the story, one line per event; nil: none.
	Log io.Writer
	// Broker gets the broker's own log.
	Broker *slog.Logger
	// Lie makes the checkers believe that every topic is durable, while none is: a story with a power loss must then fail.
	Lie bool
	// Phases is how many faults come one after the other; 0: the seed's choice.
	Phases int
}

// Outcome is what came of it.
type Outcome struct {
	// Digest of everything that happened.
	Digest uint64
	// Err is the first broken promise.
	Err error
	// Acks is the number of records acknowledged, Codes how often each error code was seen, Faults what was done.
	Acks   int
	Codes  map[wire.Code]int
	Faults []string
	Steps  uint64
	// PowerLosses is how often the machine lost power.
	PowerLosses int
}

// Story is a run under way.
type Story struct {
	plan        Plan
	w           *simring.World
	h           *host
	partitions  []*partition
	producers   []*producer
	consumers   []*consumer
	readers     []*reader
	producerIDs map[int64]*producer
	topics      map[string]*[16]byte // acknowledged ones; nil: deleted
	side        int

	open    bool // clients may connect
	waiters []func()

	powerLosses int
	acks        int
	codes       map[wire.Code]int
	faults      []string
	err         error
}

// Run runs a story to its end. A panic on the way is a broken promise too; it is given with its place.
func Run(p Plan) Outcome {
	s := &Story{plan: p, codes: map[wire.Code]int{}, producerIDs: map[int64]*producer{}, topics: map[string]*[16]byte{}}
	s.w = simring.New(p.Seed, simring.Options{Log: p.Log})
	log := p.Broker
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h, err := newHost(s.w, p.Loops, log)
	if err != nil {
		return Outcome{Err: err}
	}
	s.h = h
	if err := s.try(s.live); err != nil {
		s.violate(err)
	}
	if err := s.try(func() error { s.h.kill(); return nil }); err != nil { // whatever is left
		s.violate(err)
	}
	return Outcome{Digest: s.w.Trace(), Err: s.err, Acks: s.acks, Codes: s.codes, Faults: s.faults,
		Steps: s.w.Steps(), PowerLosses: s.powerLosses}
}

// try turns a panic into an error.
func (s *Story) try(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}

// violate notes a broken promise; the first one ends the story.
func (s *Story) violate(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("seed %d, %d loops, after %s: %w", s.plan.Seed, s.plan.Loops, strings.Join(s.faults, ", "), err)
		s.w.Say("checker", "VIOLATED: %v", err)
	}
}

func (s *Story) saw(c wire.Code) { s.codes[c]++ }

// pause draws a client's back-off.
func (s *Story) pause(most time.Duration) time.Duration {
	return time.Millisecond + time.Duration(s.w.Rand().Int64N(int64(most)))
}

// whenOpen runs fn as soon as clients may connect.
func (s *Story) whenOpen(fn func()) {
	if s.open {
		fn()
		return
	}
	s.waiters = append(s.waiters, fn)
}

// live is the story: birth, faults, calm, and a look at everything.
func (s *Story) live() error {
	if err := s.h.up(1); err != nil {
		return err
	}
	if err := s.cast(); err != nil {
		return err
	}
	s.admit()
	phases := s.plan.Phases
	if phases == 0 {
		phases = 2 + s.w.FaultRand().IntN(5)
	}
	for range phases {
		if err := s.phase(); err != nil || s.err != nil {
			return err
		}
	}
	return s.calm()
}

// cast makes the topics and the clients.
func (s *Story) cast() error {
	r := s.w.Rand()
	for _, topic := range []struct {
		name    string
		durable bool
	}{{"durable", true}, {"cached", false}} {
		count := int32(1 + r.IntN(3))
		settings := map[string]string{"segment.bytes": fmt.Sprint(9000 + r.IntN(20_000)), "index.interval.bytes": fmt.Sprint(1 + r.IntN(3000))}
		if topic.durable && !s.plan.Lie {
			settings["flush.messages"] = "1"
		}
		if !topic.durable && r.IntN(2) == 0 {
			settings["flush.ms"] = "20"
		}
		if r.IntN(4) == 0 {
			settings["preallocate"] = "true"
		}
		if err := s.create(topic.name, count, settings); err != nil {
			return err
		}
		for i := range count {
			s.partitions = append(s.partitions, &partition{s: s, topic: topic.name, index: i, durable: topic.durable || s.plan.Lie,
				sent: map[string]*record{}, acked: map[int64]*record{}, read: map[int64]string{}})
		}
	}
	for _, p := range s.partitions {
		for range 1 + r.IntN(2) {
			made := &producer{s: s, number: len(s.producers), p: p, id: -1, quota: 20 + r.IntN(60), window: 1 + r.IntN(5),
				kind:    [...]kind{idempotent, idempotent, idempotent, plain, careless}[r.IntN(5)],
				codec:   [...]batch.Codec{batch.None, batch.None, batch.None, batch.None, batch.None, batch.LZ4, batch.Snappy, batch.Zstd}[r.IntN(8)],
				version: int16(7 + r.IntN(5))}
			s.producers = append(s.producers, made)
			made.connect()
		}
		c := &consumer{s: s, p: p, limit: int32(100 + r.IntN(20_000)), version: int16(4 + r.IntN(9))}
		s.consumers = append(s.consumers, c)
		c.connect()
	}
	for range 1 + r.IntN(2) {
		c := newReader(s)
		s.readers = append(s.readers, c)
		c.connect()
	}
	return nil
}

// create creates a topic and waits for the acknowledgement; a lost one leads to TOPIC_ALREADY_EXISTS, which will do.
func (s *Story) create(name string, count int32, settings map[string]string) error {
	m := kmsg.NewPtrCreateTopicsRequest()
	m.TimeoutMillis = 10_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, count, 1
	for _, k := range []string{"segment.bytes", "index.interval.bytes", "flush.messages", "flush.ms", "preallocate"} {
		if v, ok := settings[k]; ok {
			rt.Configs = append(rt.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: k, Value: &v})
		}
	}
	m.Topics = append(m.Topics, rt)
	resp, err := call[*kmsg.CreateTopicsResponse](s, m, 7, time.Minute)
	if err != nil {
		return err
	}
	got := resp.Topics[0]
	switch code := wire.Code(got.ErrorCode); code {
	case wire.None:
		id := got.TopicID
		s.topics[name] = &id
	case wire.TopicAlreadyExists:
	default:
		return fmt.Errorf("creating topic %s: %v", name, code)
	}
	return nil
}

// admit lets the clients in once the auditor has seen what the start has left.
func (s *Story) admit() {
	s.open = true
	waiters := s.waiters
	s.waiters = nil
	for _, fn := range waiters {
		fn()
	}
}

// restart boots a new process after the last has ended, audits what it found, and lets the clients in.
func (s *Story) restart(powerLoss bool) error {
	if powerLoss {
		s.powerLosses++
	}
	if err := s.h.up(1); err != nil {
		return err
	}
	if err := s.audit(powerLoss); err != nil {
		return err
	}
	s.admit()
	return nil
}

// calm is the end: no faults any more, everybody finishes, and everything is looked at, before and after a last stop.
func (s *Story) calm() error {
	s.heal()
	for _, what := range []struct {
		name string
		done func() bool
	}{
		{"every producer's last acknowledgement", func() bool { return s.err != nil || all(s.producers, (*producer).done) }},
		{"every consumer at the end", func() bool { return s.err != nil || all(s.consumers, (*consumer).caught) }},
		{"every reader at the end", func() bool { return s.err != nil || all(s.readers, (*reader).caught) }},
	} {
		if err := s.w.RunUntil(what.name, 5*time.Minute, what.done); err != nil {
			return fmt.Errorf("%w; %s", err, s.laggards())
		}
	}
	for range 2 {
		if s.err != nil {
			return nil
		}
		if err := s.readAll(); err != nil {
			return err
		}
		s.open = false
		if err := s.h.stop(); err != nil {
			return fmt.Errorf("the last stop: %w", err)
		}
		if err := s.restart(false); err != nil {
			return err
		}
	}
	return s.h.stop()
}

// heal takes every fault away.
func (s *Story) heal() {
	s.h.m.CalmDown()
	s.h.m.SetCapacity(0)
}

func all[T any](list []T, ok func(T) bool) bool {
	for _, x := range list {
		if !ok(x) {
			return false
		}
	}
	return true
}

func (c *consumer) caught() bool { return c.p.caught(c.at) }

func (s *Story) laggards() string {
	var b strings.Builder
	for _, p := range s.producers {
		if !p.done() {
			fmt.Fprintf(&b, "producer %d (%v, %s) has %d open and %d to make, %d under way on %v; ", p.number, p.kind, p.p.name(), len(p.open),
				p.quota, p.flying, p.l)
		}
	}
	for _, c := range s.consumers {
		if !c.caught() {
			fmt.Fprintf(&b, "the consumer of %s is at %d of %d; ", c.p.name(), c.at, len(c.p.acked))
		}
	}
	for _, c := range s.readers {
		fmt.Fprintf(&b, "reader of session %d, epoch %d, on %v is at %v; ", c.session, c.epoch, c.l, c.at)
	}
	fmt.Fprintf(&b, "codes %v", s.codes)
	return b.String()
}
