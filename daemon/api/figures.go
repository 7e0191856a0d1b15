package api

// TopicFigures is what one loop has counted of a topic, or of all, since it came: bytes and records produced and kept, and bytes of
// records fetched.
type TopicFigures struct {
	BytesIn, MessagesIn, BytesOut uint64
}

// in counts a batch that was appended, for all and for its topic.
func (f *TopicFigures) in(t *Topic, bytes int, records int32) {
	f.BytesIn += uint64(bytes)
	f.MessagesIn += uint64(records)
	if t != nil {
		t.bytes.BytesIn += uint64(bytes)
		t.bytes.MessagesIn += uint64(records)
	}
}

// out counts records whose answer has left.
func (f *TopicFigures) out(t *Topic, bytes int64) {
	f.BytesOut += uint64(bytes)
	if t != nil {
		t.bytes.BytesOut += uint64(bytes)
	}
}

// Bytes is what this loop has counted of all topics, those that are gone included.
func (c *Context) Bytes() TopicFigures { return c.data.bytes }

// Bytes is what this loop has counted of the topic.
func (t *Topic) Bytes() TopicFigures { return t.bytes }
