package coordinator

import "unicode/utf8"

// Commit commits offsets; they are seen by Fetch once the journal has them, in the order of the journal. Those with an error of
// their own do not keep the others from being committed.
func (s *Shard) Commit(c *Commit, now Now) {
	defer s.answer()
	if err := s.admits(c.Group, c.Transactional); err != nil {
		s.refuseCommit(c, err)
		return
	}
	g := s.groups[c.Group]
	if g == nil {
		if c.Generation >= 0 && !c.Transactional {
			s.refuseCommit(c, ErrIllegalGeneration)
			return
		}
		g = s.newGroup(c.Group, now)
	}
	m, err := g.commits(c)
	if err != nil {
		s.refuseCommit(c, err)
		return
	}
	if m != nil && !c.Transactional {
		if g.state == CompletingRebalance {
			s.refuseCommit(c, ErrRebalancing)
			return
		}
		s.startSession(m, now)
	}
	s.writeCommit(g, c, now)
}

// commits says whether c may commit, and which member it is, if it is one. Only an empty group takes commits from others, but for
// transactions, whose older versions do not name a member.
func (g *group) commits(c *Commit) (*member, error) {
	switch {
	case c.Generation < 0 && g.state == Empty:
		return nil, nil
	case c.Generation >= 0 || c.Member != "" || c.Instance != nil:
		m, err := g.member(c.Member, c.Instance)
		if err == nil && c.Generation != g.generation {
			err = ErrIllegalGeneration
		}
		return m, err
	case !c.Transactional:
		return nil, ErrUnknownMember
	}
	return nil, nil
}

func (s *Shard) refuseCommit(c *Commit, err error) {
	for i := range c.Offsets {
		c.Offsets[i].Err = err
	}
	s.reply(c)
}

// commitWrite is a commit on its way to the journal. It is used again.
type commitWrite struct {
	shard  *Shard
	group  *group
	commit *Commit
	places []place // of the offsets that were written, in their order
	nowMs  int64
	done   func(base int64, err error, now Now)
}

const (
	// offsetLeast is what the record of an offset takes at least, but for the names of group and topic: 7 bytes of a batch's framing,
	// 10 of the key, 24 of the value.
	offsetLeast = 41
	// commitSmall is what any journal takes.
	commitSmall = 64 << 10
)

// writeCommit writes the offsets whose metadata is not too long.
func (s *Shard) writeCommit(g *group, c *Commit, now Now) {
	if s.tooMany(g, c) {
		s.reply(c)
		return
	}
	w := s.newCommitWrite()
	w.group, w.commit, w.nowMs = g, c, now.UnixMilli
	for i := range c.Offsets {
		o := &c.Offsets[i]
		if o.Err != nil {
			continue
		}
		k := place{s.topics.number(o.Topic), o.Partition}
		w.places = append(w.places, k)
		if c.Transactional {
			s.expectStaged(g, c.ProducerID, k)
		} else {
			s.expect(g, k)
		}
		s.addOffset(g, o, w.value(o))
	}
	if len(w.places) == 0 {
		w.free()
		s.reply(c)
		return
	}
	b := Batch{Commit: true, ProducerID: -1, ProducerEpoch: -1}
	if c.Transactional {
		b.Transactional, b.ProducerID, b.ProducerEpoch = true, c.ProducerID, c.ProducerEpoch
	}
	s.write(b, now, w.done)
}

// tooMany gives offsets with too long metadata their error, and all others one if they are certain not to fit into a batch: before
// anything is done for each of so many.
func (s *Shard) tooMany(g *group, c *Commit) bool {
	least := 0
	for i := range c.Offsets {
		o := &c.Offsets[i]
		if o.Err = nil; len(o.Metadata) > s.config.MetadataMax && utf16Len(o.Metadata) > s.config.MetadataMax || len(o.Metadata) > stringMax {
			o.Err = ErrMetadataTooLarge
			continue
		}
		least += offsetLeast + len(g.id) + len(o.Topic) + len(o.Metadata)
	}
	if least <= commitSmall || s.journal.Takes(least) {
		return false
	}
	for i := range c.Offsets {
		if o := &c.Offsets[i]; o.Err == nil {
			o.Err = ErrCommitTooLarge
		}
	}
	return true
}

// value is what an offset of the commit becomes.
func (w *commitWrite) value(o *CommitOffset) value {
	v := value{offset: o.Offset, commitMs: o.CommitMs, leaderEpoch: o.LeaderEpoch, extra: extra{o.Metadata, -1}}
	if v.commitMs == -1 {
		v.commitMs = w.nowMs
	}
	if w.commit.RetentionMs != -1 && !w.commit.Transactional {
		v.expireMs = w.nowMs + w.commit.RetentionMs
	}
	return v
}

func (s *Shard) newCommitWrite() *commitWrite {
	if n := len(s.commitWrites) - 1; n >= 0 {
		w := s.commitWrites[n]
		s.commitWrites = s.commitWrites[:n]
		return w
	}
	w := &commitWrite{shard: s}
	w.done = w.written
	return w
}

func (w *commitWrite) free() {
	w.group, w.commit, w.places = nil, nil, w.places[:0]
	w.shard.commitWrites = append(w.shard.commitWrites, w)
}

// written ends the commit. A group that was unloaded meanwhile has forgotten it; the answer is the journal's all the same.
func (w *commitWrite) written(base int64, err error, _ Now) {
	s, g, c := w.shard, w.group, w.commit
	if err != nil {
		err, base = commitError(err), -1
	}
	places := w.places
	for i := range c.Offsets {
		o := &c.Offsets[i]
		if o.Err != nil {
			continue
		}
		o.Err = err
		k := places[0]
		places = places[1:]
		switch {
		case g.state == Dead:
		case c.Transactional:
			s.landedStaged(g, c.ProducerID, k, w.value(o), base)
		case err != nil:
			s.failed(g, k)
		default:
			s.landed(g, k, w.value(o), base)
		}
	}
	if err == nil {
		s.commits += uint64(len(w.places))
	}
	w.free()
	s.reply(c)
	s.answer()
}

// utf16Len is a string's length as Kafka counts it.
func utf16Len(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if r >= 0x10000 {
			n++
		}
	}
	return n
}
