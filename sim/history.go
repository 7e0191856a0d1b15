package sim

import (
	"fmt"
	"sort"
)

// partition is what the clients know about one partition: what was sent, acknowledged and read. It is the checkers' memory; the
// broker never sees it.
type partition struct {
	s       *Story
	topic   string
	index   int32
	durable bool // flush.messages=1: power loss takes nothing that was acknowledged

	sent  map[string]*record
	acked map[int64]*record // by offset
	read  map[int64]string  // by offset: values consumers have got
	end   int64             // after the last start
	asked int64             // deleted below: the highest offset anyone has asked for
	start int64             // deleted below: acknowledged, and no crash since
	zstd  bool              // a client was refused what is compressed so
}

// record is one record a producer has sent.
type record struct {
	value    string
	producer int
	// number counts the producer's records to this partition; life its producer ids: within one, order is promised.
	number, life int
	ordered      bool
	offset       int64 // -1: not acknowledged
}

func (p *partition) name() string { return fmt.Sprintf("%s-%d", p.topic, p.index) }

func (p *partition) violate(format string, args ...any) {
	p.s.violate(fmt.Errorf("%s: "+format, append([]any{p.name()}, args...)...))
}

// ack notes that the broker has acknowledged records from base on.
func (p *partition) ack(base int64, records []*record) {
	for i, r := range records {
		o := base + int64(i)
		if old := p.acked[o]; old != nil && old != r {
			p.violate("offset %d was acknowledged for %q and for %q", o, old.value, r.value)
		}
		if was, ok := p.read[o]; ok && was != r.value {
			p.violate("offset %d was acknowledged for %q, and a consumer has read %q there", o, r.value, was)
		}
		if r.offset >= 0 && r.offset != o {
			p.violate("%q was acknowledged at offset %d and at %d", r.value, r.offset, o)
		}
		r.offset, p.acked[o] = o, r
	}
}

// got notes that a consumer has read a value.
func (p *partition) got(offset int64, value string) {
	if r := p.sent[value]; r == nil {
		p.violate("offset %d holds %q, which nobody has sent", offset, value)
	}
	if r := p.acked[offset]; r != nil && r.value != value {
		p.violate("offset %d holds %q, and %q was acknowledged there", offset, value, r.value)
	}
	if was, ok := p.read[offset]; ok && was != value {
		p.violate("offset %d holds %q, and %q was read there", offset, value, was)
	}
	p.read[offset] = value
}

// started checks the end of the log after a start. Power loss may take a tail: of what was read, and unless the topic is
// durable, of what was acknowledged.
func (p *partition) started(end int64, powerLoss bool) {
	for _, o := range offsets(p.acked) {
		if o < end {
			continue
		}
		if !powerLoss || p.durable {
			p.violate("acknowledged record %q at offset %d is lost: the log ends at %d", p.acked[o].value, o, end)
		}
		p.acked[o].offset = -1
		delete(p.acked, o)
	}
	for _, o := range offsets(p.read) {
		if o < end {
			continue
		}
		if !powerLoss {
			p.violate("%q at offset %d has been read and is lost: the log ends at %d", p.read[o], o, end)
		}
		delete(p.read, o)
	}
	p.end = end
}

// caught says whether a consumer at an offset has everything that was acknowledged.
func (p *partition) caught(at int64) bool {
	for o := range p.acked {
		if o >= at {
			return false
		}
	}
	return true
}

// whole checks the whole log, from first on, as one consumer reads it at rest.
func (p *partition) whole(first int64, values []string) {
	if first < p.start || first > p.asked {
		p.violate("the log begins at %d; deletions were acknowledged below %d and asked for below %d", first, p.start, p.asked)
	}
	seen := map[string]int64{}
	last := map[[2]int]int{} // by producer and life: number
	for i, v := range values {
		o := first + int64(i)
		r := p.sent[v]
		if r == nil {
			p.violate("offset %d holds %q, which nobody has sent", o, v)
			continue
		}
		if first, ok := seen[v]; ok {
			p.violate("%q is there twice, at %d and at %d", v, first, o)
		}
		seen[v] = o
		key := [2]int{r.producer, r.life}
		if n, ok := last[key]; ok && r.ordered && r.number < n {
			p.violate("%q at offset %d comes behind number %d of its producer", v, o, n)
		}
		last[key] = r.number
		if was, ok := p.read[o]; ok && was != v {
			p.violate("offset %d holds %q, and %q was read there", o, v, was)
		}
	}
	for _, o := range offsets(p.acked) {
		if o < first && o < p.asked {
			continue
		}
		if i := o - first; i >= int64(len(values)) || values[i] != p.acked[o].value {
			p.violate("acknowledged record %q is not at offset %d", p.acked[o].value, o)
		}
	}
}

func offsets[V any](m map[int64]V) []int64 {
	list := make([]int64, 0, len(m))
	for o := range m {
		list = append(list, o)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list
}
