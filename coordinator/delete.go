package coordinator

import "slices"

// tombstonesMax and tombstoneBytesMax bound the tombstones of one batch, so that it is never larger than the journal takes by
// default: each has the names of its group, which may be long, and of a topic.
const (
	tombstonesMax     = 1000
	tombstoneBytesMax = 512 << 10
	tombstoneBytes    = 300 // without the group's name
)

// tombstonesAtOnce is how many tombstones of the group go into one batch.
func (g *group) tombstonesAtOnce() int {
	return max(1, min(tombstonesMax, tombstoneBytesMax/(tombstoneBytes+len(g.id))))
}

// DeleteOffsets forgets offsets; it is answered when the journal has their tombstones. While a consumer group has members, the
// topics they are subscribed to are kept.
func (s *Shard) DeleteOffsets(d *DeleteOffsets, now Now) {
	defer s.answer()
	if d.Err = s.admits(d.Group, true); d.Err != nil {
		s.reply(d)
		return
	}
	g := s.groups[d.Group]
	switch {
	case g == nil:
		d.Err = ErrNotFound
	case g.state != Empty && g.protocolType != consumerType:
		d.Err = ErrNotEmpty
	}
	if d.Err != nil {
		s.reply(d)
		return
	}
	var places []place
	eligible := false
	for i := range d.Partitions {
		p := &d.Partitions[i]
		if p.Err = nil; g.state != Empty && g.subscribes(p.Topic) {
			p.Err = ErrSubscribed
			continue
		}
		eligible = true
		if number, ok := s.topics.numbers[p.Topic]; ok {
			places = append(places, place{number, p.Partition})
		}
	}
	if !eligible {
		s.reply(d)
		return
	}
	s.forget(g, places, now, func(err error) {
		for i := range d.Partitions {
			if p := &d.Partitions[i]; p.Err == nil {
				p.Err = err
			}
		}
		s.reply(d)
	})
}

// DeleteGroup forgets an empty group with its offsets; it is answered when the journal has the tombstones of all.
func (s *Shard) DeleteGroup(d *DeleteGroup, now Now) {
	defer s.answer()
	d.Err = s.admits(d.Group, false)
	g := s.groups[d.Group]
	switch {
	case d.Err != nil:
	case g == nil:
		d.Err = ErrNotFound
	case g.state != Empty:
		d.Err = ErrNotEmpty
	}
	if d.Err != nil {
		s.reply(d)
		return
	}
	s.forget(g, s.everything(g), now, func(err error) {
		d.Err = err
		s.reply(d)
	})
}

// TopicDeleted forgets all offsets of a topic.
func (s *Shard) TopicDeleted(topic string, now Now) {
	number, ok := s.topics.numbers[topic]
	if !ok || s.life != serving {
		return
	}
	defer s.answer()
	for _, g := range s.order {
		places := slices.Clone(s.those(g, func(k place, _ *entry) bool { return k.topic == number }))
		for _, t := range g.offsets.staged {
			for _, k := range s.sortedStaged(t) {
				if k.topic == number {
					places = append(places, k)
				}
			}
		}
		if len(places) > 0 {
			s.forget(g, places, now, func(error) {})
		}
	}
}

// everything lists all places of a group, those of open transactions too.
func (s *Shard) everything(g *group) []place {
	places := slices.Clone(s.sorted(g))
	for _, t := range g.offsets.staged {
		places = append(places, s.sortedStaged(t)...)
	}
	return places
}

// forget writes tombstones for those of the places that have an offset, or will have one, and for the group if nothing is left
// of it. Like a commit, a tombstone acts when the journal has it, on what stands before it.
func (s *Shard) forget(g *group, places []place, now Now, done func(err error)) {
	places = s.named(g, places)
	dies := g.state == Empty && !g.offsets.remain(places)
	recorded := dies && g.generation > 0 // one that only ever held offsets has no record
	if len(places) == 0 && !recorded {
		if dies {
			s.bury(g)
		}
		done(nil)
		return
	}
	var failure error
	written := g.written
	most := g.tombstonesAtOnce()
	for start := 0; ; start += most {
		batch := places[start:min(start+most, len(places))]
		last := start+most >= len(places)
		for _, k := range batch {
			s.addTombstone(g, k)
		}
		if last && recorded {
			s.addGroupTombstone(g)
		}
		s.write(plain, now, func(_ int64, err error, _ Now) {
			if err != nil && failure == nil {
				failure = commitError(err)
			}
			if err == nil && g.state != Dead {
				for _, k := range batch {
					s.erase(g, k)
				}
			}
			if !last {
				return
			}
			if dies && failure == nil && g.state == Empty && g.written == written {
				s.end(g)
			}
			done(failure)
			s.answer()
		})
		if last {
			return
		}
	}
}

// end is a group whose last record is a tombstone, or none. Offsets that were committed since then are those of a group that only
// holds offsets.
func (s *Shard) end(g *group) {
	if g.offsets.empty() {
		s.bury(g)
		return
	}
	s.reset(g)
}

// named keeps those of the places that the group knows, each once.
func (s *Shard) named(g *group, places []place) []place {
	seen := make(map[place]bool, len(places))
	return slices.DeleteFunc(places, func(k place) bool {
		if seen[k] || g.offsets.entries.find(k) == nil && !g.offsets.stages(k) {
			return true
		}
		seen[k] = true
		return false
	})
}

// remain says whether anything is left without the places.
func (o *offsets) remain(without []place) bool {
	if len(o.staged) == 0 {
		return o.entries.len() > len(without)
	}
	left := make(map[place]bool, len(without))
	for _, k := range without {
		left[k] = true
	}
	for i := range o.entries.slots {
		if !left[o.entries.slots[i].place] {
			return true
		}
	}
	for _, t := range o.staged {
		for k := range t.values {
			if !left[k] {
				return true
			}
		}
	}
	return false
}
