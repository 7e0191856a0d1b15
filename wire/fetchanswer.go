package wire

// FetchAnswer encodes the body of a Fetch response, versions 4 to 17, without its records: it knows their lengths and notes
// where they go. The answer is then sent as
//
//	B[:Cuts[0].At], Cuts[0].Len bytes of records, B[Cuts[0].At:Cuts[1].At], ... , B[Cuts[n-1].At:]
//
// Topics and partitions must be as many as announced. B and Cuts are the caller's slices, appended to.
type FetchAnswer struct {
	// Cuts are the places of records, in order; partitions without records have none.
	Cuts []Cut
	// RecordBytes is the sum of their lengths.
	RecordBytes int64

	w            writer
	version      int16
	topics, left int
}

// Cut is a place for records.
type Cut struct {
	// At is the position in the encoded bytes before which they are sent.
	At  int
	Len int64
}

// Aborted is an aborted transaction whose records the answer may hold.
type Aborted struct{ ProducerID, FirstOffset int64 }

// NoAborted is the empty list, which is not null: errors have it, and read_committed answers without any.
var NoAborted = []Aborted{}

// FetchPartition is the answer for one partition.
type FetchPartition struct {
	Partition int32
	Code      Code
	// HighWatermark, LastStable and LogStart are -1 when not known; see FetchError.
	HighWatermark, LastStable, LogStart int64
	// Aborted is nil (null) for read_uncommitted.
	Aborted []Aborted
	// PreferredReplica is where to fetch instead (version 11 on), if HasPreferred.
	PreferredReplica int32
	HasPreferred     bool
	// RecordBytes is the length of the records, which are not given here.
	RecordBytes int64
	// DivergingEpoch and DivergingEnd tell a follower where its log leaves ours (version 12 on), if HasDiverging.
	DivergingEpoch int32
	DivergingEnd   int64
	HasDiverging   bool
	// Leader is told from version 12 on, with NotLeaderOrFollower and FencedLeaderEpoch.
	Leader Leader
	// SnapshotEnd and SnapshotEpoch name a KRaft snapshot (version 12 on), if HasSnapshot; a ZooKeeper-mode broker has none.
	SnapshotEnd   int64
	SnapshotEpoch int32
	HasSnapshot   bool
}

// FetchError is the answer for a partition that was refused.
func FetchError(partition int32, code Code) FetchPartition {
	return FetchPartition{Partition: partition, Code: code, HighWatermark: -1, LastStable: -1, LogStart: -1, Aborted: NoAborted}
}

// FetchHead is what an answer begins with.
type FetchHead struct {
	ThrottleMillis int32
	// Code and SessionID are told from version 7 on.
	Code      Code
	SessionID int32
	// Topics is how many follow.
	Topics int
}

// Begin starts the body; cuts is appended to, from its beginning.
func (a *FetchAnswer) Begin(dst []byte, cuts []Cut, version int16, h FetchHead) {
	*a = FetchAnswer{Cuts: cuts[:0], w: writer{b: dst, flex: Flexible(Fetch, version)}, version: version, topics: h.Topics}
	a.w.int32(h.ThrottleMillis)
	if version >= 7 {
		a.w.int16(int16(h.Code))
		a.w.int32(h.SessionID)
	}
	a.w.length(h.Topics)
}

// Topic starts the next topic, with so many partitions: by name up to version 12, by id from version 13 on.
func (a *FetchAnswer) Topic(name []byte, id [16]byte, partitions int) {
	a.topics--
	if a.left != 0 || a.topics < 0 {
		panic("wire: fetch answer has other topics or partitions than announced")
	}
	if a.version >= 13 {
		a.w.b = append(a.w.b, id[:]...)
	} else {
		a.w.bytesAsString(name)
	}
	a.w.length(partitions)
	if a.left = partitions; partitions == 0 {
		a.w.noTags()
	}
}

// Partition appends the next partition of the topic and notes the place of its records.
func (a *FetchAnswer) Partition(p *FetchPartition) {
	if a.left--; a.left < 0 {
		panic("wire: fetch answer has more partitions than announced")
	}
	w := &a.w
	w.int32(p.Partition)
	w.int16(int16(p.Code))
	w.int64(p.HighWatermark)
	w.int64(p.LastStable)
	if a.version >= 5 {
		w.int64(p.LogStart)
	}
	if p.Aborted == nil {
		w.length(-1)
	} else {
		w.length(len(p.Aborted))
	}
	for i := range p.Aborted {
		w.int64(p.Aborted[i].ProducerID)
		w.int64(p.Aborted[i].FirstOffset)
		w.noTags()
	}
	if a.version >= 11 {
		preferred := int32(-1)
		if p.HasPreferred {
			preferred = p.PreferredReplica
		}
		w.int32(preferred)
	}
	w.length(int(p.RecordBytes))
	if p.RecordBytes > 0 {
		a.Cuts = append(a.Cuts, Cut{At: len(w.b), Len: p.RecordBytes})
		a.RecordBytes += p.RecordBytes
	}
	if w.flex {
		w.partitionTags(p)
	}
	if a.left == 0 {
		w.noTags()
	}
}

// partitionTags writes what is seldom told: tags 0, 1 and 2.
func (w *writer) partitionTags(p *FetchPartition) {
	w.b = append(w.b, byte(at(p.HasDiverging)+at(p.Leader.Set)+at(p.HasSnapshot)))
	if p.HasDiverging {
		w.b = append(w.b, 0, 4+8+1)
		w.int32(p.DivergingEpoch)
		w.int64(p.DivergingEnd)
		w.b = append(w.b, 0)
	}
	if p.Leader.Set {
		w.leaderTag(1, p.Leader)
	}
	if p.HasSnapshot {
		w.b = append(w.b, 2, 8+4+1)
		w.int64(p.SnapshotEnd)
		w.int32(p.SnapshotEpoch)
		w.b = append(w.b, 0)
	}
}

// End finishes the body and gives the slice. nodes are told from version 16 on.
func (a *FetchAnswer) End(nodes []Node) []byte {
	if a.left != 0 || a.topics != 0 {
		panic("wire: fetch answer has fewer topics or partitions than announced")
	}
	a.w.endTags(nodes, a.version >= 16)
	return a.w.b
}
