package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
	"kring/wire/batch"
)

// consumer reads one partition from its beginning on, for ever.
type consumer struct {
	s       *Story
	p       *partition
	at      int64
	life    int // process of the broker that was heard last
	high    int64
	limit   int32
	version int16
	l       *link
}

func (c *consumer) connect() {
	if c.l != nil {
		return
	}
	c.s.whenOpen(func() {
		if c.l == nil {
			c.l = newLink(c.s.w, c.s.violate, c.lost)
			c.ask()
		}
	})
}

func (c *consumer) lost(error) {
	c.l = nil
	c.s.w.After(c.s.pause(50*time.Millisecond), c.connect)
}

func fetchRequest(topic string, index int32, at int64, limit, wait int32) *kmsg.FetchRequest {
	m := kmsg.NewPtrFetchRequest()
	m.MaxWaitMillis, m.MinBytes, m.MaxBytes, m.SessionEpoch = wait, 1, 1<<20, -1
	rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	rt.Topic, rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = topic, index, at, limit, -1
	rt.Partitions = append(rt.Partitions, rp)
	m.Topics = append(m.Topics, rt)
	return m
}

// produced says whether a producer of the partition compresses so.
func (p *partition) produced(codec batch.Codec) bool {
	for _, x := range p.s.producers {
		if x.p == p && x.codec == codec {
			return true
		}
	}
	return false
}

// zstdVersion is the first version of Fetch that gives zstd.
const zstdVersion = 10

// able is a version at which the partition can be read, not below v.
func (p *partition) able(v int16) int16 {
	if p.zstd {
		return max(v, zstdVersion)
	}
	return v
}

func (c *consumer) ask() {
	life := c.s.h.life
	c.l.ask(fetchRequest(c.p.topic, c.p.index, c.at, c.limit, 100), c.p.able(c.version), func(r kmsg.Response) {
		resp := r.(*kmsg.FetchResponse)
		if resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			c.s.violate(fmt.Errorf("a fetch of %s was answered with %+v", c.p.name(), resp))
			return
		}
		if life != c.life {
			c.life, c.high = life, 0
		}
		c.answered(&resp.Topics[0].Partitions[0])
	})
}

func (c *consumer) answered(r *kmsg.FetchResponseTopicPartition) {
	if r.ErrorCode == 0 {
		if r.HighWatermark < c.high {
			c.p.violate("the high watermark fell from %d to %d", c.high, r.HighWatermark)
		}
		c.high = r.HighWatermark
	}
	at, ok := c.p.take(c.at, r)
	c.at = at
	if !ok {
		c.l.giveUp(wire.Code(r.ErrorCode))
		return
	}
	if c.s.w.Rand().IntN(4) == 0 {
		l := c.l
		c.s.w.After(time.Duration(c.s.w.Rand().IntN(30))*time.Millisecond, func() {
			if c.l == l {
				c.ask()
			}
		})
		return
	}
	c.ask()
}

// take checks what a fetch from at was answered and gives where to go on; false: after a while.
func (p *partition) take(at int64, r *kmsg.FetchResponseTopicPartition) (int64, bool) {
	switch code := wire.Code(r.ErrorCode); code {
	case wire.None:
	case wire.OffsetOutOfRange:
		switch {
		case at > p.end:
			return p.end, true
		case at < p.asked:
			return p.asked, true
		}
		p.violate("offset %d is out of range; the log did not end before %d and was not cut above %d", at, p.end, p.asked)
		return at, false
	case wire.KafkaStorageError, wire.NotLeaderOrFollower, wire.UnknownTopicOrPartition, wire.LeaderNotAvailable:
		p.s.saw(code)
		return at, false
	case wire.UnsupportedCompressionType:
		if p.zstd = p.produced(batch.Zstd); !p.zstd {
			p.violate("a fetch from %d is refused for its compression, and nobody compresses with zstd", at)
		}
		p.s.saw(code)
		return at, false
	default:
		p.violate("a fetch from %d answers %v", at, code)
		return at, false
	}
	next, err := records(r.RecordBatches, at, func(o int64, r *batch.Record) { p.got(o, string(r.Value)) })
	switch {
	case err != nil:
		p.violate("a fetch from %d holds %v", at, err)
	case next > r.HighWatermark && next > at:
		p.violate("offset %d was served above the high watermark %d", next-1, r.HighWatermark)
	}
	return next, true
}

// records walks what a fetch gave: every batch whole and sound but the last, which may be cut, and dense from the first on.
func records(b []byte, at int64, each func(offset int64, r *batch.Record)) (int64, error) {
	next := int64(-1)
	for {
		size, err := batch.Next(b)
		if err != nil || size > len(b) {
			return at, nil
		}
		h := batch.Header(b[:size])
		if !h.Valid() {
			return at, fmt.Errorf("a batch at %d with a wrong checksum", h.BaseOffset())
		}
		if next < 0 && h.BaseOffset() > at || next >= 0 && h.BaseOffset() != next {
			return at, fmt.Errorf("a batch at %d after %d", h.BaseOffset(), max(next, at))
		}
		next = h.NextOffset()
		rs, err := batch.Open(b[:size], 1<<20)
		if err != nil {
			return at, err
		}
		for rs.Next() {
			if rs.Offset >= at {
				each(rs.Offset, &rs.Record)
				at = rs.Offset + 1
			}
		}
		if rs.Err != nil || at < next {
			return at, fmt.Errorf("a batch at %d that ends at %d, and %v", h.BaseOffset(), at, rs.Err)
		}
		b = b[size:]
	}
}
