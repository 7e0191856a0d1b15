package wire

// ProduceAnswer encodes the body of a Produce response, versions 3 to 11, behind what the caller's slice holds. Topics and
// partitions must be as many as announced.
type ProduceAnswer struct {
	w            writer
	version      int16
	topics, left int
}

// RecordError names a record that made its batch fail (KIP-467).
type RecordError struct {
	// Index is the record's number in the batch.
	Index   int32
	Message string
}

// ProducePartition is the answer for one partition.
type ProducePartition struct {
	Partition int32
	Code      Code
	// BaseOffset, LogAppendTime (Unix ms) and LogStart are -1 when not known; see ProduceError.
	BaseOffset, LogAppendTime, LogStart int64
	// Records and Message are told from version 8 on; "" is null.
	Records []RecordError
	Message string
	// Leader is told from version 10 on, with NotLeaderOrFollower.
	Leader Leader
}

// ProduceError is the answer for a partition that was refused.
func ProduceError(partition int32, code Code) ProducePartition {
	return ProducePartition{Partition: partition, Code: code, BaseOffset: -1, LogAppendTime: -1, LogStart: -1}
}

// Begin starts the body for so many topics.
func (a *ProduceAnswer) Begin(dst []byte, version int16, topics int) {
	*a = ProduceAnswer{w: writer{b: dst, flex: Flexible(Produce, version)}, version: version, topics: topics}
	a.w.length(topics)
}

// Topic starts the next topic, with so many partitions.
func (a *ProduceAnswer) Topic(name []byte, partitions int) {
	a.topics--
	if a.left != 0 || a.topics < 0 {
		panic("wire: produce answer has other topics or partitions than announced")
	}
	a.w.bytesAsString(name)
	a.w.length(partitions)
	if a.left = partitions; partitions == 0 {
		a.w.noTags()
	}
}

// Partition appends the next partition of the topic.
func (a *ProduceAnswer) Partition(p *ProducePartition) {
	if a.left--; a.left < 0 {
		panic("wire: produce answer has more partitions than announced")
	}
	w := &a.w
	w.int32(p.Partition)
	w.int16(int16(p.Code))
	w.int64(p.BaseOffset)
	w.int64(p.LogAppendTime)
	if a.version >= 5 {
		w.int64(p.LogStart)
	}
	if a.version >= 8 {
		w.length(len(p.Records))
		for i := range p.Records {
			w.int32(p.Records[i].Index)
			w.nullable(p.Records[i].Message)
			w.noTags()
		}
		w.nullable(p.Message)
	}
	if a.version >= 10 && p.Leader.Set {
		w.b = append(w.b, 1)
		w.leaderTag(0, p.Leader)
	} else {
		w.noTags()
	}
	if a.left == 0 {
		w.noTags()
	}
}

// End finishes the body and gives the slice. nodes are told from version 10 on.
func (a *ProduceAnswer) End(throttleMillis int32, nodes []Node) []byte {
	if a.left != 0 || a.topics != 0 {
		panic("wire: produce answer has fewer topics or partitions than announced")
	}
	a.w.int32(throttleMillis)
	a.w.endTags(nodes, a.version >= 10)
	return a.w.b
}
