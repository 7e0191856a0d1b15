package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// reader reads every partition over one fetch session (KIP-227): a request names what has changed, an answer what is new.
type reader struct {
	s       *Story
	at      []int64 // by partition, as s.partitions
	changed []bool  // asked for anew in the next request
	session int32
	epoch   int32
	limit   int32
	version int16
	l       *link
}

func newReader(s *Story) *reader {
	n := len(s.partitions)
	r := s.w.Rand()
	return &reader{s: s, at: make([]int64, n), changed: make([]bool, n), limit: int32(500 + r.IntN(20_000)), version: int16(7 + r.IntN(6))}
}

func (c *reader) connect() {
	if c.l != nil {
		return
	}
	c.s.whenOpen(func() {
		if c.l == nil {
			c.session, c.epoch = 0, 0
			c.l = newLink(c.s.w, c.s.violate, func(error) {
				c.l = nil
				c.s.w.After(c.s.pause(50*time.Millisecond), c.connect)
			})
			c.ask()
		}
	})
}

func (c *reader) ask() {
	m := kmsg.NewPtrFetchRequest()
	m.MaxWaitMillis, m.MinBytes, m.MaxBytes, m.SessionID, m.SessionEpoch = 100, 1, c.limit, c.session, c.epoch
	for i, p := range c.s.partitions {
		c.version = p.able(c.version)
		if c.epoch > 0 && !c.changed[i] {
			continue
		}
		c.changed[i] = false
		if n := len(m.Topics); n == 0 || m.Topics[n-1].Topic != p.topic {
			rt := kmsg.NewFetchRequestTopic()
			rt.Topic = p.topic
			m.Topics = append(m.Topics, rt)
		}
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = p.index, c.at[i], 4000, -1
		rt := &m.Topics[len(m.Topics)-1]
		rt.Partitions = append(rt.Partitions, rp)
	}
	c.l.ask(m, c.version, func(r kmsg.Response) { c.answered(r.(*kmsg.FetchResponse)) })
}

func (c *reader) answered(r *kmsg.FetchResponse) {
	switch code := wire.Code(r.ErrorCode); code {
	case wire.None:
	case wire.FetchSessionIDNotFound, wire.InvalidFetchSessionEpoch:
		c.s.saw(code)
		c.session, c.epoch = 0, 0
		c.ask()
		return
	default:
		c.s.violate(fmt.Errorf("a fetch session was answered with %v", code))
		return
	}
	if c.epoch > 0 && r.SessionID != c.session {
		c.s.violate(fmt.Errorf("fetch session %d was answered as %d", c.session, r.SessionID))
	}
	if c.session = r.SessionID; c.session != 0 {
		c.epoch++
	}
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			if !c.part(r.Topics[i].Topic, &r.Topics[i].Partitions[j]) {
				return
			}
		}
	}
	if c.s.w.Rand().IntN(30) == 0 {
		c.session, c.epoch = 0, 0 // a client that has forgotten
	}
	c.ask()
}

// part takes one partition's answer; false: it is to be asked for again after a while.
func (c *reader) part(topic string, r *kmsg.FetchResponseTopicPartition) bool {
	for i, p := range c.s.partitions {
		if p.topic != topic || p.index != r.Partition {
			continue
		}
		at, ok := p.take(c.at[i], r)
		c.changed[i] = c.changed[i] || at != c.at[i]
		c.at[i] = at
		if !ok {
			c.l.giveUp(wire.Code(r.ErrorCode))
		}
		return ok
	}
	c.s.violate(fmt.Errorf("%s-%d came unasked", topic, r.Partition))
	return true
}

// caught: the reader has everything that was acknowledged.
func (c *reader) caught() bool {
	for i, p := range c.s.partitions {
		if !p.caught(c.at[i]) {
			return false
		}
	}
	return true
}
