package coordinator

import (
	"slices"
	"strings"
)

// staging finds the open transaction of a producer in a group, nil if there is none.
func (o *offsets) staging(producer int64) *staging {
	for _, t := range o.staged {
		if t.producer == producer {
			return t
		}
	}
	return nil
}

// stage opens the transaction of a producer in a group if it is not.
func (s *Shard) stage(g *group, producer int64) *staging {
	t := g.offsets.staging(producer)
	if t == nil {
		t = &staging{producer: producer, values: map[place]stagedValue{}}
		g.offsets.staged = append(g.offsets.staged, t)
		if s.open == nil {
			s.open = map[int64][]*group{}
		}
		s.open[producer] = append(s.open[producer], g)
	}
	return t
}

func (s *Shard) stagedValue(t *staging, k place) stagedValue {
	v, ok := t.values[k]
	if !ok {
		s.topics.use(k)
		v.base = -1
	}
	return v
}

// putStaged stores v, or takes out the place, and the transaction, of which nothing is left.
func (s *Shard) putStaged(g *group, t *staging, k place, v stagedValue) {
	if v.base >= 0 || v.pending > 0 {
		t.values[k] = v
		return
	}
	delete(t.values, k)
	s.topics.release(k)
	if len(t.values) == 0 {
		s.unstage(g, t)
	}
}

func (s *Shard) unstage(g *group, t *staging) {
	g.offsets.staged = slices.DeleteFunc(g.offsets.staged, func(o *staging) bool { return o == t })
	groups := slices.DeleteFunc(s.open[t.producer], func(o *group) bool { return o == g })
	if len(groups) == 0 {
		delete(s.open, t.producer)
		return
	}
	s.open[t.producer] = groups
}

// expectStaged counts a transactional commit that goes to the journal.
func (s *Shard) expectStaged(g *group, producer int64, k place) {
	t := s.stage(g, producer)
	v := s.stagedValue(t, k)
	v.pending++
	t.values[k] = v
}

// landedStaged ends a transactional commit: it stands in the journal at base, or, with -1, does not.
func (s *Shard) landedStaged(g *group, producer int64, k place, val value, base int64) {
	t := g.offsets.staging(producer)
	v := t.values[k]
	v.pending--
	if base >= 0 {
		val.metadata = strings.Clone(val.metadata)
		v.value, v.base = val, base
	}
	s.putStaged(g, t, k, v)
}

// completeTransaction applies a producer's marker: what is staged counts from now, in the order of the journal, or is forgotten.
// Commits under way stand behind the marker and stay.
func (s *Shard) completeTransaction(producer int64, committed bool) {
	for _, g := range slices.Clone(s.open[producer]) {
		t := g.offsets.staging(producer)
		for _, k := range s.sortedStaged(t) {
			v := t.values[k]
			if v.base < 0 {
				continue
			}
			if committed {
				s.apply(g, k, &v.value, v.base, 0)
			}
			v.base = -1
			s.putStaged(g, t, k, v)
		}
	}
}
