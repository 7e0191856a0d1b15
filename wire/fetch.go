package wire

// FetchRequest is a view over the body of a Fetch request, versions 4 to 17.
type FetchRequest struct {
	Version int16
	// ReplicaID is -1 for a consumer, else the follower's broker id; ReplicaEpoch its broker epoch, -1 if not told.
	ReplicaID    int32
	ReplicaEpoch int64
	// WaitMillis, MinBytes and MaxBytes bound the answer (KIP-74).
	WaitMillis, MinBytes, MaxBytes int32
	// ReadCommitted is isolation level 1.
	ReadCommitted bool
	// SessionID and SessionEpoch are 0 and -1 where the version has none: a full fetch without a session.
	SessionID, SessionEpoch int32
	// Rack is the consumer's, empty for none; ClusterID is nil for null.
	Rack, ClusterID []byte
	// Topics and Partitions count what is to be fetched, Forgotten the topics to drop from the session.
	Topics, Partitions, Forgotten int
	// NameBytes is the sum of the topics' names' lengths.
	NameBytes int

	body      []byte // from the topics' array on
	forgotten []byte // from the forgotten topics' array on; nil before version 7
	flex      bool
}

// fetchTopicLeast is the least number of bytes of a topic, fetchPartitionLeast of a partition.
func fetchTopicLeast(version int16) int {
	switch {
	case version >= 13:
		return 16 + 1 + 1
	case version == 12:
		return 1 + 1 + 1
	}
	return 2 + 4
}

func fetchPartitionLeast(version int16) int {
	switch {
	case version >= 12:
		return 33
	case version >= 9:
		return 28
	case version >= 5:
		return 24
	}
	return 16
}

// Parse makes f the view of body, which it validates to the end. f is overwritten; it may be pooled.
func (f *FetchRequest) Parse(version int16, body []byte) error {
	r := reader{b: body}
	*f = FetchRequest{Version: version, ReplicaID: -1, ReplicaEpoch: -1, SessionEpoch: -1, flex: Flexible(Fetch, version)}
	if lowest, highest, _ := Supported(Fetch); version < lowest || version > highest {
		return ErrVersion
	}
	if version <= 14 {
		f.ReplicaID = r.int32()
	}
	f.WaitMillis, f.MinBytes, f.MaxBytes = r.int32(), r.int32(), r.int32()
	f.ReadCommitted = r.int8() == 1
	if version >= 7 {
		f.SessionID, f.SessionEpoch = r.int32(), r.int32()
	}
	f.body = body[r.at:]
	it := f.Iter()
	f.Topics = it.topics
	for it.NextTopic() {
		f.NameBytes += len(it.Topic)
		f.Partitions += it.Count
	}
	if r.bad || it.r.bad {
		return ErrBody
	}
	return f.parseRest(it.r)
}

// parseRest reads what follows the topics.
func (f *FetchRequest) parseRest(r reader) error {
	if f.Version >= 7 {
		f.forgotten = r.b[r.at:]
		it := f.IterForgotten()
		f.Forgotten = it.topics
		for it.NextTopic() {
		}
		r = it.r
	}
	if f.Version >= 11 {
		f.Rack = r.string(f.flex)
	}
	if f.flex {
		f.readTags(&r)
	}
	if r.bad {
		return ErrBody
	}
	return nil
}

// readTags reads the cluster id (0) and the replica's state (1, from version 15 on).
func (f *FetchRequest) readTags(r *reader) {
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		tag, size := r.uvarint(), r.uvarint()
		v := reader{b: r.span(int(size)), bad: r.bad}
		switch {
		case tag == 0:
			f.ClusterID, _ = v.nullableString(true)
		case tag == 1 && f.Version >= 15:
			f.ReplicaID, f.ReplicaEpoch = v.int32(), v.int64()
			v.skipTags()
		}
		r.bad = r.bad || v.bad
	}
}

// AnswerSizeMax is about the size of the answer without its records, if no partition has aborted transactions to tell.
func (f *FetchRequest) AnswerSizeMax() int {
	return 32 + 24*f.Topics + f.NameBytes + 80*f.Partitions
}

// Iter begins at the first topic to fetch.
func (f *FetchRequest) Iter() FetchIter {
	it := FetchIter{r: reader{b: f.body}, version: f.Version, flex: f.flex}
	it.topics = it.r.count(f.flex, fetchTopicLeast(f.Version))
	return it
}

// FetchIter walks the topics and their partitions, in the request's order:
//
//	for it.NextTopic() { for it.NextPartition() { ... } }
type FetchIter struct {
	// Topic is the present topic's name up to version 12, TopicID its id from version 13 on; Count the number of its
	// partitions.
	Topic   []byte
	TopicID [16]byte
	Count   int
	// Partition is the present partition's index, Offset where to read from, MaxBytes how much.
	Partition int32
	Offset    int64
	MaxBytes  int32
	// LeaderEpoch is the epoch the client believes in, LastEpoch the epoch of the last record it has, both -1 if not told.
	LeaderEpoch, LastEpoch int32
	// LogStart is the follower's log start offset, -1 if not told.
	LogStart int64

	r            reader
	topics, left int
	version      int16
	flex, inside bool
}

// NextTopic goes to the next topic, past what remains of the present one.
func (it *FetchIter) NextTopic() bool {
	for it.NextPartition() {
	}
	if it.topics == 0 || it.r.bad {
		return false
	}
	it.topics--
	if it.version >= 13 {
		it.TopicID = it.r.uuid()
	} else {
		it.Topic = it.r.string(it.flex)
	}
	it.Count = it.r.count(it.flex, fetchPartitionLeast(it.version))
	it.left, it.inside = it.Count, true
	return !it.r.bad
}

// NextPartition goes to the next partition of the present topic.
func (it *FetchIter) NextPartition() bool {
	r := &it.r
	if it.left == 0 || r.bad {
		if it.inside && it.flex {
			r.skipTags()
		}
		it.inside = false
		return false
	}
	it.left--
	it.LeaderEpoch, it.LastEpoch, it.LogStart = -1, -1, -1
	it.Partition = r.int32()
	if it.version >= 9 {
		it.LeaderEpoch = r.int32()
	}
	it.Offset = r.int64()
	if it.version >= 12 {
		it.LastEpoch = r.int32()
	}
	if it.version >= 5 {
		it.LogStart = r.int64()
	}
	it.MaxBytes = r.int32()
	if it.flex {
		r.skipTags()
	}
	return !r.bad
}

// IterForgotten begins at the first topic to drop from the session.
func (f *FetchRequest) IterForgotten() ForgottenIter {
	it := ForgottenIter{r: reader{b: f.forgotten}, version: f.Version, flex: f.flex}
	if f.Version >= 7 {
		it.topics = it.r.count(f.flex, fetchTopicLeast(f.Version))
	}
	return it
}

// ForgottenIter walks the topics and partitions to drop, like FetchIter.
type ForgottenIter struct {
	Topic     []byte
	TopicID   [16]byte
	Partition int32

	r            reader
	topics, left int
	version      int16
	flex, inside bool
}

// NextTopic goes to the next topic, past what remains of the present one.
func (it *ForgottenIter) NextTopic() bool {
	for it.NextPartition() {
	}
	if it.topics == 0 || it.r.bad {
		return false
	}
	it.topics--
	if it.version >= 13 {
		it.TopicID = it.r.uuid()
	} else {
		it.Topic = it.r.string(it.flex)
	}
	it.left, it.inside = it.r.count(it.flex, 4), true
	return !it.r.bad
}

// NextPartition goes to the next partition of the present topic.
func (it *ForgottenIter) NextPartition() bool {
	if it.left == 0 || it.r.bad {
		if it.inside && it.flex {
			it.r.skipTags()
		}
		it.inside = false
		return false
	}
	it.left--
	it.Partition = it.r.int32()
	return !it.r.bad
}
