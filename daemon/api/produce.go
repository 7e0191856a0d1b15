package api

import (
	"fmt"
	"time"

	"kring/daemon/server"
	"kring/metadata"
	"kring/replication"
	"kring/wire"
	"kring/wire/batch"
)

// producing is one Produce request under way. Its batches are appended on their partitions' loops, and it is answered when
// all of them are done. It is pooled with its slices; record bytes stay where they were received until the answer.
type producing struct {
	c       *Context
	r       *server.Request
	acks    int16
	timeout time.Duration
	admin   bool // may write to internal topics
	txn     bool // names a transactional id
	topics  []producedTopic
	parts   []produced
	shares  []produceShare // by loop
	pending int            // shares not done, and one while begin still hands out
	next    *producing     // in the pool
}

// producedTopic is a topic as the request names it: an answer has the same order.
type producedTopic struct {
	name  []byte
	count int
}

// producePartitionsMost bounds one request: a partition costs some hundred bytes more than the client sent.
const producePartitionsMost = 20_000

// adminClient is the client id of Kafka's tools; they alone may write to internal topics.
const adminClient = "__admin_client"

// produce begins a Produce request: it refuses what needs no partition for that, and hands every batch to its partition's
// loop.
func produce(c *Context, r *server.Request) {
	var q wire.ProduceRequest
	if q.Parse(r.Version, r.Body) != nil || q.Partitions > producePartitionsMost {
		r.Close(server.BadBody)
		return
	}
	r.Charge(int64(q.Partitions) * producedBytes)
	p := c.data.takeProduce(c, q.Partitions)
	p.r, p.acks, p.timeout = r, q.Acks, millis(q.TimeoutMillis)
	p.admin, p.txn = string(r.ClientID) == adminClient, q.TransactionalID != nil
	for it := q.Iter(); it.NextTopic(); {
		p.topics = append(p.topics, producedTopic{it.Topic, it.Count})
		for it.NextPartition() {
			p.parts = p.parts[:len(p.parts)+1]
			p.parts[len(p.parts)-1].ask(it.Topic, it.Partition, it.Records)
		}
	}
	if code, message := p.refuse(); code != wire.None {
		for i := range p.parts {
			p.parts[i].code, p.parts[i].message = code, message
		}
		p.finish()
		return
	}
	p.begin(c.Image())
}

// refuse looks at the first batch of every partition for what refuses the whole request, as Kafka does: bytes it cannot
// frame, and transactional batches without a transactional id.
func (p *producing) refuse() (wire.Code, string) {
	for i := range p.parts {
		b := p.parts[i].data
		size, err := batch.Next(b)
		switch {
		case err == batch.ErrShort:
		case err == batch.ErrMagic:
			return wire.CorruptMessage, fmt.Sprintf("Invalid magic found in record: %d", batch.Header(b).Magic())
		case err != nil:
			return wire.CorruptMessage, fmt.Sprintf("Record size %d is less than a record takes", batch.Header(b).Size()-batch.LogOverhead)
		case size <= len(b) && batch.Header(b).Magic() == 2 && batch.Header(b).Transactional():
			if !p.txn {
				return wire.TransactionalIDAuthorizationFailed, ""
			}
			return wire.None, ""
		}
	}
	return wire.None, ""
}

// begin sends every batch on its way.
func (p *producing) begin(image *metadata.Image) {
	for i := range p.parts {
		o := &p.parts[i]
		if o.code = p.place(image, o); o.code != wire.None {
			o.share = nil
		}
	}
	p.pending = 1
	for i := range p.shares {
		if s := &p.shares[i]; s.first != nil {
			p.pending++
			s.send()
		}
	}
	p.done()
}

// place puts a batch into the share of its partition's loop, or refuses it.
func (p *producing) place(image *metadata.Image, o *produced) wire.Code {
	t := image.TopicBytes(o.topic)
	if t == nil || o.index < 0 || int(o.index) >= len(t.Partitions) {
		return wire.UnknownTopicOrPartition
	}
	size, err := batch.Single(o.data, p.r.Version >= 7)
	if err != nil {
		return codeOf(err)
	}
	o.data = o.data[:size]
	switch {
	case p.acks < replication.AcksAll || p.acks > 1:
		return wire.InvalidRequiredAcks
	case batch.Header(o.data).Transactional() && p.c.Config().VerifyTransactions:
		// The client cannot have begun a transaction here: none is known.
		return wire.InvalidProducerIDMapping
	case internal(t.Name) && !p.admin:
		return wire.InvalidTopicException
	}
	here := p.c.Topic(o.topic)
	if here == nil {
		return wire.NotLeaderOrFollower
	}
	p.shares[p.c.LoopOf(here, o.index)].add(o)
	return wire.None
}

// done is called on the connection's loop for each share that has come home.
func (p *producing) done() {
	if p.pending--; p.pending == 0 {
		p.finish()
	}
}

// finish answers. With acks 0 there is no answer: an error closes the connection, so that the client looks where to go.
func (p *producing) finish() {
	d, r := &p.c.data, p.r
	if p.acks != 0 {
		answer := p.encode()
		d.giveProduce(p)
		r.Reply(answer)
		return
	}
	failed := false
	for i := range p.parts {
		failed = failed || p.parts[i].code != wire.None
		r.Failed(p.parts[i].code)
	}
	d.giveProduce(p)
	if failed {
		r.Close(server.Failed)
	} else {
		r.NoReply()
	}
}

// encode builds the answer.
func (p *producing) encode() []byte {
	var a wire.ProduceAnswer
	size := 32
	for i := range p.topics {
		size += 8 + len(p.topics[i].name) + 64*p.topics[i].count
	}
	a.Begin(p.r.Begin(size), p.r.Version, len(p.topics))
	named := leaders{c: p.c, listener: p.r.Conn.Listener, known: p.r.Version >= 10}
	i := 0
	for _, t := range p.topics {
		a.Topic(t.name, t.count)
		for range t.count {
			o := &p.parts[i]
			answer := o.answer()
			if o.code != wire.None {
				p.r.Failed(o.code)
				if o.code == wire.NotLeaderOrFollower {
					answer.Leader = named.of(o.topic, o.index)
				}
			}
			a.Partition(&answer)
			i++
		}
	}
	return a.End(0, named.nodes)
}
