package api

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication"
	"kring/segment"
	"kring/wire"
	"kring/wire/batch"
)

// marking is a WriteTxnMarkers request under way: what a transaction coordinator sends to the leaders of a transaction's
// partitions to end it there (KIP-98). Its markers are appended on their partitions' loops, in the order of the request.
type marking struct {
	c       *Context
	r       *server.Request
	shares  [][]*marked // by loop
	all     []marked    // as the request names them
	pending int
}

// marked is the marker for one partition, and its answer. Between send and home it belongs to the partition's loop.
type marked struct {
	replication.Append
	marker
	topic string
	index int32
	code  wire.Code
	on    *Context
	known *Topic
	p     *replication.Partition
	done  func() // on its loop, once
}

// marker is the end of a producer's transaction.
type marker struct {
	producer         int64
	epoch            int16
	coordinatorEpoch int32
	commit           bool
}

// writeTxnMarkers begins the request.
func writeTxnMarkers(c *Context, r *server.Request) {
	m := kmsg.NewPtrWriteTxnMarkersRequest()
	if !decode(r, m) {
		return
	}
	k := &marking{c: c, r: r, shares: make([][]*marked, len(c.Contexts)), pending: 1}
	n := 0
	for i := range m.Markers {
		for j := range m.Markers[i].Topics {
			n += len(m.Markers[i].Topics[j].Partitions)
		}
	}
	if n > producePartitionsMost {
		r.Close(server.BadBody)
		return
	}
	k.all = make([]marked, 0, n)
	for i := range m.Markers {
		k.place(&m.Markers[i])
	}
	for i, share := range k.shares {
		if len(share) > 0 {
			k.pending++
			k.send(c.Contexts[i], share)
		}
	}
	k.home()
}

// place finds the loop of each partition of a marker, or refuses it.
func (k *marking) place(m *kmsg.WriteTxnMarkersRequestMarker) {
	end := marker{m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch, m.Committed}
	for i := range m.Topics {
		t := &m.Topics[i]
		for _, index := range t.Partitions {
			k.all = append(k.all, marked{marker: end, topic: t.Topic, index: index})
			o := &k.all[len(k.all)-1]
			loop, code := k.c.place(t.Topic, index)
			switch {
			case code != wire.None: // a broker without a replica does not know the partition
				o.code = wire.UnknownTopicOrPartition
			case m.ProducerID < 0 || m.ProducerEpoch < 0:
				o.code = wire.UnknownServerError // Kafka cannot build such a batch
			default:
				k.shares[loop] = append(k.shares[loop], o)
			}
		}
	}
}

// send takes a loop's share there, and back when all of it is done.
func (k *marking) send(on *Context, share []*marked) {
	on.On(k.c, func() {
		left := len(share)
		done := func() {
			if left--; left == 0 {
				k.c.On(on, k.home)
			}
		}
		for _, o := range share {
			o.on, o.done = on, done
			o.enter()
		}
	})
}

// enter puts the marker into its partition's line. One for a partition of group offsets goes with the groups' own records, so
// that offsets of the transaction count from there on.
func (o *marked) enter() {
	if o.known = o.on.topics[o.topic]; o.known != nil {
		o.p = o.known.Partition(o.index)
	}
	if o.p == nil {
		o.end(wire.UnknownTopicOrPartition)
		return
	}
	if err := o.p.Check(replication.NoEpoch); err != nil {
		o.end(codeOf(err))
		return
	}
	if o.topic == OffsetsTopic {
		if j := &o.on.GroupShard(o.index).journal; j.part != nil {
			j.Mark(&o.marker, func(err error) { o.end(codeOf(err)) })
			return
		}
	}
	o.Begin, o.Done = func(*replication.Append) { o.begin() }, func(*replication.Append) { o.end(codeOf(o.Err)) }
	o.Origin = segment.FromCoordinator
	o.p.Enter(&o.Append)
}

// begin is the marker's turn.
func (o *marked) begin() {
	if err := o.p.Admit(replication.AcksAll); err != nil {
		o.end(codeOf(err))
		return
	}
	o.Data, o.Acks, o.Timeout = o.appendTo(nil, o.on, o.p), replication.AcksAll, o.on.Config().RequestTimeout
	o.p.Append(&o.Append)
}

func (o *marked) end(code wire.Code) {
	o.code, o.Data = code, nil
	o.done()
}

// appendTo builds the marker's batch: one control record, of which the key says how the transaction ended.
func (m *marker) appendTo(dst []byte, c *Context, p *replication.Partition) []byte {
	b := batch.NewBuilder(batch.None)
	b.ProducerID, b.ProducerEpoch, b.Transactional, b.Control = m.producer, m.epoch, true, true
	kind := byte(0)
	if m.commit {
		kind = 1
	}
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(m.coordinatorEpoch))
	now := c.Loop.UnixMilli()
	b.Add(now, []byte{0, 0, 0, kind}, value)
	dst = b.AppendTo(dst)
	if p.Config().LogAppendTime {
		batch.StampAppendTime(dst, now)
	}
	return dst
}

// home is called for each share that is done, and once when all have been sent.
func (k *marking) home() {
	if k.pending--; k.pending > 0 {
		return
	}
	k.r.ReplyMessage(k.answer())
}

// answer names each producer once, with the last word about each of its partitions.
func (k *marking) answer() *kmsg.WriteTxnMarkersResponse {
	type topicOf struct {
		producer int64
		topic    string
	}
	type partitionOf struct {
		topicOf
		index int32
	}
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	producers, topics, partitions := map[int64]int{}, map[topicOf]int{}, map[partitionOf]int{}
	for i := range k.all {
		o := &k.all[i]
		inProducer, ok := producers[o.producer]
		if !ok {
			inProducer = len(resp.Markers)
			producers[o.producer] = inProducer
			resp.Markers = append(resp.Markers, kmsg.WriteTxnMarkersResponseMarker{ProducerID: o.producer})
		}
		m := &resp.Markers[inProducer]
		topic := topicOf{o.producer, o.topic}
		inTopic, ok := topics[topic]
		if !ok {
			inTopic = len(m.Topics)
			topics[topic] = inTopic
			m.Topics = append(m.Topics, kmsg.WriteTxnMarkersResponseMarkerTopic{Topic: o.topic})
		}
		t := &m.Topics[inTopic]
		partition := partitionOf{topic, o.index}
		at, ok := partitions[partition]
		if !ok {
			at = len(t.Partitions)
			partitions[partition] = at
			t.Partitions = append(t.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{Partition: o.index})
		}
		t.Partitions[at].ErrorCode = int16(o.code)
	}
	return resp
}
