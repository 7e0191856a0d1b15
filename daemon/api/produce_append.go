package api

import (
	"errors"
	"math"

	"kring/replication"
	"kring/ring"
	"kring/wire"
	"kring/wire/batch"
)

// produced is one batch of a Produce request and its answer. Between send and home it belongs to its partition's loop.
type produced struct {
	topic []byte
	index int32
	data  []byte

	code       wire.Code
	base, time int64
	start      int64
	message    string
	rejected   *batch.Rejected
	share      *produceShare
	next       *produced // in the share
	known      *Topic    // on the partition's loop
	partition  *replication.Partition
	append     replication.Append
	opening    ring.Op // a compressed batch is looked into off the loop
	options    batch.CheckOptions
	info       batch.Info
	err        error
	openFn     func()
}

// produceShare is what a request has for one loop: it travels there as a message, and back.
type produceShare struct {
	ring.Message
	request     *producing
	home        *Context
	first, last *produced
	pending     int
	there, back func(*ring.Message)
}

// openedMost bounds what a compressed batch may hold where its keys must be seen: not memory, which is bounded anyway, but
// the time of a helper while the partition's line waits.
const openedMost = 256 << 20

// ask makes o a new question.
func (o *produced) ask(topic []byte, index int32, data []byte) {
	o.topic, o.index, o.data = topic, index, data
	o.code, o.base, o.time, o.start = wire.None, -1, -1, -1
	o.message, o.rejected, o.err, o.known, o.partition, o.share, o.next = "", nil, nil, nil, nil, nil, nil
	if o.append.Begin == nil {
		o.append.Begin, o.append.Done = func(*replication.Append) { o.begin() }, func(*replication.Append) { o.appended() }
		o.openFn = func() { o.err = batch.CheckCompressed(o.data, &o.options, &o.info, openedMost) }
		o.opening.Done = func(*ring.Op) { o.opened() }
	}
}

func (s *produceShare) start(p *producing, home *Context) {
	s.request, s.home = p, home
	s.there = func(*ring.Message) { s.run() }
	s.back = func(*ring.Message) { s.request.done() }
}

func (s *produceShare) add(o *produced) {
	o.share = s
	if s.first == nil {
		s.first = o
	} else {
		s.last.next = o
	}
	s.last = o
}

// send takes the share to its loop; on our own it runs at once.
func (s *produceShare) send() {
	if s.home == s.request.c {
		s.run()
		return
	}
	s.Run, s.From = s.there, s.request.c.Loop
	s.home.Loop.Post(&s.Message)
}

// run lets every batch of the share stand in its partition's line.
func (s *produceShare) run() {
	s.pending = 1
	for o := s.first; o != nil; o = o.next {
		s.pending++
		o.enter()
	}
	s.finished()
}

// finished is called for each batch done, and once when all have begun; the last call takes the share home.
func (s *produceShare) finished() {
	if s.pending--; s.pending > 0 {
		return
	}
	if s.home == s.request.c {
		s.request.done()
		return
	}
	s.Run, s.From = s.back, s.home.Loop
	s.request.c.Loop.Post(&s.Message)
}

func (o *produced) enter() {
	if o.known = o.share.home.Topic(o.topic); o.known != nil {
		o.partition = o.known.Partition(o.index)
	}
	if o.partition == nil {
		o.end(o.known.absent(o.index))
		return
	}
	o.partition.Enter(&o.append)
}

// begin is o's turn: the batch is checked, by Kafka's rules and in Kafka's order.
func (o *produced) begin() {
	if err := o.partition.Admit(o.share.request.acks); err != nil {
		o.end(err)
		return
	}
	conf := o.partition.Config()
	o.options = batch.CheckOptions{BytesMax: conf.MaxMessageBytes, Keys: conf.Compacted, LogAppendTime: conf.LogAppendTime,
		Window: conf.TimestampBeforeMaxMs != math.MaxInt64 || conf.TimestampAfterMaxMs != math.MaxInt64,
		Before: conf.TimestampBeforeMaxMs, After: conf.TimestampAfterMaxMs, Now: o.share.home.Loop.UnixMilli()}
	o.info, o.err = batch.Check(o.data, &o.options)
	if o.err == nil && o.info.MustOpen {
		o.partition.Hold(&o.append)
		o.share.home.Loop.Offload(o.openFn, &o.opening)
		return
	}
	o.checked()
}

// opened goes on after a helper has looked into a compressed batch; the partition's line has waited.
func (o *produced) opened() {
	p := o.partition
	if err := p.Admit(o.share.request.acks); err != nil {
		o.err = err
	}
	o.checked()
	p.Resume()
}

// checked appends the batch if nothing is wrong with it.
func (o *produced) checked() {
	if o.err != nil {
		o.end(o.err)
		return
	}
	switch {
	case o.options.LogAppendTime:
		batch.StampAppendTime(o.data, o.options.Now)
		o.time = o.options.Now
	case o.info.Restamp:
		batch.StampCreateTime(o.data, o.info.MaxTimestamp)
	}
	a := &o.append
	a.Data, a.Acks, a.Timeout = o.data, o.share.request.acks, o.share.request.timeout
	o.partition.Append(a)
}

// appended is the partition's answer.
func (o *produced) appended() {
	a := &o.append
	o.base = int64(a.Base)
	if a.Duplicate {
		o.time = a.Timestamp
	} else if a.Err == nil {
		o.share.home.data.bytes.in(o.known, len(a.Data), o.info.Count)
	}
	a.Data = nil
	o.end(a.Err)
}

// end notes the answer. The log start is told where Kafka's log has looked at what the batch holds.
func (o *produced) end(err error) {
	if o.code = codeOf(err); err != nil {
		o.base, o.time = -1, -1
	}
	switch o.code {
	case wire.NotLeaderOrFollower, wire.KafkaStorageError, wire.CorruptMessage, wire.MessageTooLarge, wire.RecordListTooLarge:
	default:
		o.start = int64(o.partition.LogStart())
	}
	if err != nil && errors.As(err, &o.rejected) {
		o.message = o.rejected.Message(string(o.topic), o.index)
	}
	o.share.finished()
}

// answer is what the client is told.
func (o *produced) answer() wire.ProducePartition {
	a := wire.ProducePartition{Partition: o.index, Code: o.code, BaseOffset: o.base, LogAppendTime: o.time, LogStart: o.start,
		Message: o.message}
	if o.rejected != nil {
		for _, e := range o.rejected.Records {
			a.Records = append(a.Records, wire.RecordError{Index: e.Index, Message: e.Message(string(o.topic), o.index)})
		}
	}
	return a
}
