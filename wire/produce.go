package wire

// ProduceRequest is a view over the body of a Produce request, versions 3 to 11.
type ProduceRequest struct {
	Version int16
	// TransactionalID is nil for null.
	TransactionalID []byte
	// Acks is 0, 1 or -1, or something else, which is for the handler to refuse.
	Acks int16
	// TimeoutMillis bounds the wait for replicas.
	TimeoutMillis int32
	// Topics and Partitions count the request's.
	Topics, Partitions int
	// RecordBytes is the sum of all records' lengths; NameBytes of the topics' names.
	RecordBytes, NameBytes int

	body []byte // from the topics' array on
	flex bool
}

// The least bytes of a topic and of a partition, not flexible and flexible.
var produceLeast = [2]struct{ topic, partition int }{{2 + 4, 4 + 4}, {1 + 1 + 1, 4 + 1 + 1}}

// Parse makes p the view of body, which it validates to the end, records' contents aside. p is overwritten; it may be pooled.
func (p *ProduceRequest) Parse(version int16, body []byte) error {
	r := reader{b: body}
	*p = ProduceRequest{Version: version, flex: Flexible(Produce, version)}
	if lowest, highest, _ := Supported(Produce); version < lowest || version > highest {
		return ErrVersion
	}
	p.TransactionalID, _ = r.nullableString(p.flex)
	p.Acks, p.TimeoutMillis = r.int16(), r.int32()
	p.body = body[r.at:]
	it := p.Iter()
	p.Topics = it.topics
	for it.NextTopic() {
		p.NameBytes += len(it.Topic)
		for it.NextPartition() {
			p.Partitions++
			p.RecordBytes += len(it.Records)
		}
	}
	if p.flex {
		it.r.skipTags()
	}
	if r.bad || it.r.bad {
		return ErrBody
	}
	return nil
}

// AnswerSizeMax is about the size of the answer, if no partition has errors that name records.
func (p *ProduceRequest) AnswerSizeMax() int {
	return 16 + 8*p.Topics + p.NameBytes + 56*p.Partitions
}

// Iter begins at the first topic.
func (p *ProduceRequest) Iter() ProduceIter {
	it := ProduceIter{r: reader{b: p.body}, flex: p.flex}
	it.topics = it.r.count(p.flex, produceLeast[at(p.flex)].topic)
	return it
}

// ProduceIter walks the topics and their partitions, in the request's order:
//
//	for it.NextTopic() { for it.NextPartition() { ... } }
type ProduceIter struct {
	// Topic is the present topic's name, Count the number of its partitions.
	Topic []byte
	Count int
	// Partition is the present partition's index, Records its batches, nil for null. The bytes may be changed.
	Partition int32
	Records   []byte

	r            reader
	topics, left int
	flex, inside bool
}

// NextTopic goes to the next topic, past what remains of the present one.
func (it *ProduceIter) NextTopic() bool {
	for it.NextPartition() {
	}
	if it.topics == 0 || it.r.bad {
		return false
	}
	it.topics--
	it.Topic = it.r.string(it.flex)
	it.Count = it.r.count(it.flex, produceLeast[at(it.flex)].partition)
	it.left, it.inside = it.Count, true
	return !it.r.bad
}

// NextPartition goes to the next partition of the present topic.
func (it *ProduceIter) NextPartition() bool {
	if it.left == 0 || it.r.bad {
		if it.inside && it.flex {
			it.r.skipTags()
		}
		it.inside = false
		return false
	}
	it.left--
	it.Partition = it.r.int32()
	it.Records = it.r.nullableBytes(it.flex)
	if it.flex {
		it.r.skipTags()
	}
	return !it.r.bad
}

// at is 1 for true: the column of a table.
func at(b bool) int {
	if b {
		return 1
	}
	return 0
}
