package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
	"kring/wire/batch"
)

// kind is how a producer sends.
type kind int

const (
	idempotent kind = iota // acks=all, retried until acknowledged
	plain                  // acks=1, never retried: what fails may be there or not
	careless               // acks=0
)

func (k kind) String() string { return [...]string{"idempotent", "plain", "careless"}[k] }

// producer sends its quota of records to one partition, over whatever connections it can get.
type producer struct {
	s      *Story
	number int
	kind   kind
	p      *partition
	quota  int // batches still to be made
	window int // batches under way at once, 5 at most
	codec  batch.Codec

	l       *link
	id      int64
	epoch   int16
	life    int
	next    int32 // sequence of the next batch
	made    int   // records so far
	open    []*parcel
	flying  int // of open: sent on this connection
	rest    bool
	version int16
}

// parcel is one batch that is not acknowledged.
type parcel struct {
	bytes   []byte
	records []*record
	seq     int32
	life    int // process when it was first sent
}

func (p *producer) done() bool { return p.quota == 0 && len(p.open) == 0 }

// connect goes on as soon as the clients may; it is called again after every end of a connection.
func (p *producer) connect() {
	if p.l != nil || p.done() {
		return
	}
	p.s.whenOpen(func() {
		if p.l != nil {
			return
		}
		p.l = newLink(p.s.w, p.s.violate, p.lost)
		p.flying = 0
		if p.kind == idempotent && p.id < 0 {
			p.identify()
			return
		}
		p.pump()
	})
}

func (p *producer) lost(error) {
	p.l, p.flying = nil, 0
	if p.kind != idempotent {
		p.open = nil // nobody will ever know
	}
	p.s.w.After(p.s.pause(50*time.Millisecond), p.connect)
}

func (p *producer) identify() {
	m := kmsg.NewPtrInitProducerIDRequest()
	m.TransactionTimeoutMillis = 60_000
	p.l.ask(m, 4, func(r kmsg.Response) {
		resp := r.(*kmsg.InitProducerIDResponse)
		if resp.ErrorCode != 0 {
			p.again(wire.Code(resp.ErrorCode))
			return
		}
		if by := p.s.producerIDs[resp.ProducerID]; by != nil {
			p.s.violate(fmt.Errorf("producer id %d was given twice", resp.ProducerID))
		}
		p.s.producerIDs[resp.ProducerID] = p
		p.id, p.epoch, p.next = resp.ProducerID, resp.ProducerEpoch, 0
		p.pump()
	})
}

// again gives the connection up and starts anew after a while: what is open is sent again, from the oldest on.
func (p *producer) again(why wire.Code) {
	p.s.saw(why)
	p.l.giveUp(why)
}

// pump sends while the window has room.
func (p *producer) pump() {
	for p.l != nil && !p.rest && p.flying < p.window {
		if p.flying == len(p.open) {
			if p.quota == 0 {
				return
			}
			p.quota--
			p.open = append(p.open, p.make())
		}
		p.send(p.open[p.flying])
		p.think()
	}
}

// think rests now and then, so that batches of several producers mix with faults.
func (p *producer) think() {
	if p.s.w.Rand().IntN(3) > 0 {
		return
	}
	p.rest = true
	p.s.w.After(time.Duration(p.s.w.Rand().IntN(20_000))*time.Microsecond, func() {
		p.rest = false
		p.pump()
	})
}

// filler makes values long.
var filler = strings.Repeat("abcdefghijklmnopqrstuvwxyz", 100)

func (p *producer) make() *parcel {
	r := p.s.w.Rand()
	b := batch.NewBuilder(p.codec)
	a := &parcel{seq: p.next, life: p.s.h.life}
	size := 20
	if r.IntN(8) == 0 {
		size = 2000
	}
	for range 1 + r.IntN(4) {
		v := fmt.Sprintf("%d/%d/%d ", p.number, p.life, p.made)
		if n := len(v); n < size {
			v += filler[n:size]
		}
		rec := &record{value: v, producer: p.number, number: p.made, life: p.life, ordered: p.kind == idempotent, offset: -1}
		p.made++
		a.records = append(a.records, rec)
		p.p.sent[v] = rec
		b.Add(p.s.h.m.UnixMilli(), []byte("key"), []byte(v))
	}
	if p.kind == idempotent {
		b.ProducerID, b.ProducerEpoch, b.BaseSequence = p.id, p.epoch, p.next
		p.next = batch.AddSequence(p.next, int32(len(a.records)))
	}
	a.bytes = b.AppendTo(nil)
	return a
}

func (p *producer) send(a *parcel) {
	m := kmsg.NewPtrProduceRequest()
	m.Acks, m.TimeoutMillis = [...]int16{-1, 1, 0}[p.kind], 5000
	rt, rp := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	rt.Topic, rp.Partition, rp.Records = p.p.topic, p.p.index, a.bytes
	rt.Partitions = append(rt.Partitions, rp)
	m.Topics = append(m.Topics, rt)
	if p.kind == careless {
		p.l.ask(m, p.version, nil)
		p.open = p.open[1:]
		return
	}
	p.flying++
	p.l.ask(m, p.version, func(r kmsg.Response) {
		resp := r.(*kmsg.ProduceResponse)
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			p.s.violate(fmt.Errorf("producer %d: a produce to one partition was answered for %+v", p.number, resp.Topics))
			return
		}
		p.answered(a, &resp.Topics[0].Partitions[0])
	})
}

func (p *producer) answered(a *parcel, r *kmsg.ProduceResponseTopicPartition) {
	code := wire.Code(r.ErrorCode)
	if code == wire.None {
		if p.open[0] != a {
			p.s.violate(fmt.Errorf("producer %d: answers came out of order", p.number))
		}
		p.p.ack(r.BaseOffset, a.records)
		p.s.acks += len(a.records)
		p.open = p.open[1:]
		p.flying--
		p.pump()
		return
	}
	p.s.saw(code)
	switch code {
	case wire.OutOfOrderSequenceNumber, wire.UnknownProducerID:
		// A snapshot of producers holds the last batch of each, as Kafka's: after a restart an older one is not known again.
		forgotten := a.life != p.s.h.life && len(p.open) > 1
		if lossy := !p.p.durable && p.s.powerLosses > 0; !lossy && !forgotten {
			p.s.violate(fmt.Errorf("producer %d: batch %d of %s was refused with %v, and all before it are acknowledged",
				p.number, a.seq, p.p.name(), code))
		}
		// A new producer id; what is open stays open for ever.
		p.open, p.id = nil, -1
		p.life++
		p.l.giveUp(code)
	case wire.KafkaStorageError, wire.NotLeaderOrFollower, wire.UnknownTopicOrPartition, wire.LeaderNotAvailable, wire.RequestTimedOut,
		wire.NotEnoughReplicas, wire.NotEnoughReplicasAfterAppend:
		p.l.giveUp(code)
	default:
		p.s.violate(fmt.Errorf("producer %d: %s answers %v", p.number, p.p.name(), code))
		p.l.giveUp(code)
	}
}
