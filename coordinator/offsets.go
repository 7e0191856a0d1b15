package coordinator

import (
	"cmp"
	"slices"
	"strings"
)

// place is a partition whose offset is committed, with its topic's number in the shard.
type place struct {
	topic     uint32
	partition int32
}

// entry is what most offsets are: 32 bytes without a pointer, of which there may be millions.
type entry struct {
	offset      int64
	base        int64 // where in the journal it stands; -1: nothing is committed, commits are under way
	commitMs    int64
	leaderEpoch int32
	pending     int32 // commits under way
}

// extra is what few offsets have.
type extra struct {
	metadata string
	expireMs int64 // -1: by the broker's retention
}

// value is a committed offset on its way into an entry.
type value struct {
	offset      int64
	commitMs    int64
	leaderEpoch int32
	extra
}

var nothingExtra = extra{expireMs: -1}

// offsets are the committed offsets of a group. What they hold is what the journal says: of two batches that name a place the
// one that stands later counts, whatever came first here.
type offsets struct {
	entries table
	extras  map[place]extra
	visible int // entries that are committed
	staged  []*staging
}

// staging holds offsets of an open transaction of one producer.
type staging struct {
	producer int64
	values   map[place]stagedValue
}

type stagedValue struct {
	value
	base    int64 // -1: not in the journal yet
	pending int32 // commits under way
}

func (o *offsets) empty() bool { return o.entries.len() == 0 && len(o.staged) == 0 }

// get is the committed offset of a place.
func (o *offsets) get(k place) (value, bool) {
	e := o.entries.find(k)
	if e == nil || e.base < 0 {
		return value{}, false
	}
	return value{e.offset, e.commitMs, e.leaderEpoch, o.extra(k)}, true
}

func (o *offsets) extra(k place) extra {
	if x, ok := o.extras[k]; ok {
		return x
	}
	return nothingExtra
}

// unstable says whether commits of a place are under way or wait for the end of a transaction.
func (o *offsets) unstable(k place) bool {
	if e := o.entries.find(k); e != nil && e.pending > 0 {
		return true
	}
	return o.stages(k)
}

func (o *offsets) stages(k place) bool {
	return slices.ContainsFunc(o.staged, func(t *staging) bool { _, ok := t.values[k]; return ok })
}

// topics gives numbers to the names of topics, so that an offset does not hold its topic's name.
type topics struct {
	numbers map[string]uint32
	names   []topicName
	free    []uint32
}

type topicName struct {
	name string
	uses int // entries and staged values with this topic
}

// number is the number of a topic, which is given one if it has none. One that nobody uses is given back by release.
func (t *topics) number(name string) uint32 {
	if n, ok := t.numbers[name]; ok {
		return n
	}
	if t.numbers == nil {
		t.numbers = map[string]uint32{}
	}
	n := uint32(len(t.names))
	if last := len(t.free) - 1; last >= 0 {
		n, t.free = t.free[last], t.free[:last]
	} else {
		t.names = append(t.names, topicName{})
	}
	name = strings.Clone(name)
	t.names[n].name = name
	t.numbers[name] = n
	return n
}

func (t *topics) name(k place) string { return t.names[k.topic].name }

func (t *topics) use(k place) { t.names[k.topic].uses++ }

func (t *topics) release(k place) {
	n := &t.names[k.topic]
	if n.uses--; n.uses == 0 {
		delete(t.numbers, n.name)
		n.name = ""
		t.free = append(t.free, k.topic)
	}
}

// expect counts a commit of a place that goes to the journal.
func (s *Shard) expect(g *group, k place) { s.entry(g, k).pending++ }

// entry finds or makes the entry of a place.
func (s *Shard) entry(g *group, k place) *entry {
	e := g.offsets.entries.find(k)
	if e == nil {
		s.topics.use(k)
		e = g.offsets.entries.insert(k, entry{base: -1})
	}
	return e
}

// tidy takes a place out if nothing is left of it.
func (s *Shard) tidy(g *group, k place, e *entry) {
	if e.base < 0 && e.pending == 0 {
		g.offsets.entries.remove(k)
		s.topics.release(k)
	}
}

// failed ends a commit that is not in the journal.
func (s *Shard) failed(g *group, k place) {
	e := g.offsets.entries.find(k)
	e.pending--
	s.tidy(g, k, e)
}

// landed ends a commit that stands in the journal at base.
func (s *Shard) landed(g *group, k place, v value, base int64) {
	if v.metadata != "" {
		if old := g.offsets.extras[k].metadata; old == v.metadata {
			v.metadata = old
		} else {
			v.metadata = strings.Clone(v.metadata)
		}
	}
	s.apply(g, k, &v, base, 1)
}

// apply makes v, which it keeps, the committed offset of a place unless the journal has a later one, and ends so many commits.
func (s *Shard) apply(g *group, k place, v *value, base int64, ended int32) {
	e := s.entry(g, k)
	e.pending -= ended
	if e.base > base {
		return
	}
	if e.base < 0 {
		g.offsets.visible++
		s.offsets++
	}
	e.offset, e.base, e.commitMs, e.leaderEpoch = v.offset, base, v.commitMs, v.leaderEpoch
	if v.extra != nothingExtra {
		if g.offsets.extras == nil {
			g.offsets.extras = map[place]extra{}
		}
		g.offsets.extras[k] = v.extra
	} else if g.offsets.extras != nil {
		delete(g.offsets.extras, k)
	}
}

// erase applies a tombstone in its turn: it takes what stands in the journal before it.
func (s *Shard) erase(g *group, k place) {
	if e := g.offsets.entries.find(k); e != nil && e.base >= 0 {
		e.base = -1
		g.offsets.visible--
		s.offsets--
		delete(g.offsets.extras, k)
		s.tidy(g, k, e)
	}
	for _, t := range slices.Clone(g.offsets.staged) {
		if v, ok := t.values[k]; ok && v.base >= 0 {
			v.base = -1
			s.putStaged(g, t, k, v)
		}
	}
}

// sorted lists the places of a group, by topic and partition, in a slice that is used again by the next call.
func (s *Shard) sorted(g *group) []place {
	return s.those(g, func(place, *entry) bool { return true })
}

// those lists the places that which says yes to, as sorted does. A shard may have a million.
func (s *Shard) those(g *group, which func(place, *entry) bool) []place {
	s.places = s.places[:0]
	for i := range g.offsets.entries.slots {
		if at := &g.offsets.entries.slots[i]; which(at.place, &at.entry) {
			s.places = append(s.places, at.place)
		}
	}
	return s.sortPlaces()
}

func (s *Shard) sortedStaged(t *staging) []place {
	s.places = s.places[:0]
	for k := range t.values {
		s.places = append(s.places, k)
	}
	return s.sortPlaces()
}

func (s *Shard) sortPlaces() []place {
	slices.SortFunc(s.places, func(a, b place) int {
		if a.topic != b.topic {
			return strings.Compare(s.topics.name(a), s.topics.name(b))
		}
		return cmp.Compare(a.partition, b.partition)
	})
	return s.places
}
