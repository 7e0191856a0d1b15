package api

import (
	"kring/replication"
	"kring/ring"
	"kring/wire"
)

// answer ends the request: records are sent from their files, between the pieces of what is encoded here.
func (f *fetching) answer() {
	f.ended = true
	f.c.Loop.Cancel(&f.timer)
	f.trim()
	f.remember()
	if f.code == wire.None && f.r.Version <= 5 {
		f.soften()
	}
	b := f.encode()
	parts, at, i := f.r.Parts(), 0, 0
	for k := range f.parts {
		o := &f.parts[k]
		if o.skip || o.bytes() == 0 {
			continue
		}
		cut := f.cuts[i]
		parts = append(parts, ring.Part{Bytes: b[at:cut.At]}, ring.Part{File: o.r.File, From: o.r.From, Len: cut.Len})
		at, i = cut.At, i+1
	}
	if at < len(b) {
		parts = append(parts, ring.Part{Bytes: b[at:]})
	}
	f.r.ReplyParts(parts, f.releasedFn)
}

// trim holds the shares together to the limit of bytes: each has kept to it alone. A piece that does not fit any more is left
// out whole, as its first batch might be cut. The first one always fits.
func (f *fetching) trim() {
	if f.spread < 2 {
		return
	}
	got := int64(0)
	for i := range f.parts {
		o := &f.parts[i]
		if o.r.Len == 0 {
			continue
		}
		if got > 0 && got+o.r.Len > int64(f.maxBytes) {
			o.left = true
			continue
		}
		got += o.r.Len
	}
}

// soften tells old clients of a failed log in words they know.
func (f *fetching) soften() {
	for i := range f.parts {
		if f.parts[i].code == wire.KafkaStorageError {
			f.parts[i].code = wire.NotLeaderOrFollower
		}
	}
}

// remember brings the session up to date and chooses what an incremental answer leaves out.
func (f *fetching) remember() {
	switch s := &f.c.data.sessions; {
	case f.code != wire.None:
		f.id = noSession
	case f.create:
		session := s.create(len(f.parts), f.usesIDs, false, f.c.Loop.Now(), f.c.Loop.Rand().Uint32)
		if session == nil {
			return
		}
		for i := range f.parts {
			o := &f.parts[i]
			if p := s.want(session, o.topic, o.id, o.index, o.want); p != nil {
				p.answer(o.code, o.hw, o.start, o.bytes())
			}
		}
		f.id = session.id
	case f.session == nil:
	case f.session.epoch != f.epoch:
		f.code = wire.InvalidFetchSessionEpoch
	default:
		for i := range f.parts {
			o := &f.parts[i]
			o.skip = !o.told.answer(o.code, o.hw, o.start, o.bytes())
			if o.bytes() > 0 {
				f.session.rotate(o.told)
			}
		}
	}
	if f.code != wire.None {
		for i := range f.parts {
			f.parts[i].skip = true
		}
	}
}

// bytes is how many bytes of records the answer holds for this partition.
func (o *fetched) bytes() int64 {
	if o.left {
		return 0
	}
	return o.r.Len
}

// encode builds the answer without the records.
func (f *fetching) encode() []byte {
	topics, size := 0, 64
	for i := f.after(-1); i < len(f.parts); {
		n, last := 0, i
		for ; i < len(f.parts) && f.sameTopic(last, i); i = f.after(i) {
			n++
		}
		f.parts[last].run = n
		topics++
		size += 24 + len(f.parts[last].topic) + 96*n
	}
	f.r.Failed(f.code)
	var a wire.FetchAnswer
	a.Begin(f.r.Begin(size), f.cuts, f.r.Version, wire.FetchHead{Code: f.code, SessionID: f.id, Topics: topics})
	named := leaders{c: f.c, listener: f.r.Conn.Listener, known: f.r.Version >= 16}
	for i := f.after(-1); i < len(f.parts); {
		o := &f.parts[i]
		a.Topic(o.topic, o.id, o.run)
		for range o.run {
			answer := f.partition(&f.parts[i], &named)
			a.Partition(&answer)
			i = f.after(i)
		}
	}
	b := a.End(named.nodes)
	f.cuts = a.Cuts
	return b
}

// after is the next partition of the answer.
func (f *fetching) after(i int) int {
	for i++; i < len(f.parts) && f.parts[i].skip; i++ {
	}
	return i
}

// sameTopic says whether two partitions stand under one topic of the answer.
func (f *fetching) sameTopic(i, j int) bool {
	if f.usesIDs {
		return f.parts[i].id == f.parts[j].id
	}
	return string(f.parts[i].topic) == string(f.parts[j].topic)
}

// partition is what the client is told of one partition.
func (f *fetching) partition(o *fetched, named *leaders) wire.FetchPartition {
	if o.code != wire.None {
		f.r.Failed(o.code)
		answer := wire.FetchError(o.index, o.code)
		if o.code == wire.NotLeaderOrFollower || o.code == wire.FencedLeaderEpoch {
			answer.Leader = named.of(f.topicName(o), o.index)
		}
		return answer
	}
	answer := wire.FetchPartition{Partition: o.index, HighWatermark: o.hw, LastStable: o.stable, LogStart: o.start, RecordBytes: o.bytes()}
	if f.isolation != replication.ReadCommitted {
		return answer
	}
	if answer.Aborted = wire.NoAborted; len(o.aborted) > 0 && answer.RecordBytes > 0 {
		at := len(f.aborted)
		for _, t := range o.aborted {
			f.aborted = append(f.aborted, wire.Aborted{ProducerID: t.ProducerID, FirstOffset: int64(t.First)})
		}
		answer.Aborted = f.aborted[at:]
	}
	return answer
}

// topicName is the name of a partition's topic.
func (f *fetching) topicName(o *fetched) []byte {
	if !f.usesIDs {
		return o.topic
	}
	if t := f.c.Image().TopicByID(o.id); t != nil {
		return []byte(t.Name)
	}
	return nil
}
