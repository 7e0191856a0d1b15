package twins

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	messageTooLarge    = 10
	recordListTooLarge = 18
	invalidTimestamp   = 32
)

const day = 24 * 3600 * 1000

// edged are topics at the edges of their settings: when they roll and index, what they take, whose clock they use, what they forget.
func (s *story) edged() {
	s.wide = true
	s.create("append-time", 1, "message.timestamp.type", "LogAppendTime", "segment.bytes", "8000", "index.interval.bytes", "300")
	s.create("append-time-compacted", 1, "message.timestamp.type", "LogAppendTime", "segment.bytes", "6000", "index.interval.bytes", "300")
	s.create("append-time-roll", 1, "message.timestamp.type", "LogAppendTime", "segment.ms", "200")
	s.create("bounds", 1, "message.timestamp.before.max.ms", fmt.Sprint(3*3600*1000), "message.timestamp.after.max.ms", "600000")
	s.create("roll-1ms", 1, "segment.ms", "1")
	s.create("jitter", 1, "segment.ms", "1000000", "segment.jitter.ms", "1000")
	s.create("index-each", 1, "segment.bytes", "20000", "index.interval.bytes", "0")
	s.create("index-none", 1, "segment.bytes", "20000", "index.interval.bytes", "2147483647")
	s.create("index-full", 2, "segment.index.bytes", "40", "index.interval.bytes", "0")
	s.create("index-tiny", 1, "segment.index.bytes", "24", "index.interval.bytes", "0", "preallocate", "true", "segment.bytes", "30000")
	s.create("small", 1, "max.message.bytes", "1000", "segment.bytes", "2000", "index.interval.bytes", "10")
	s.create("small-segments", 1, "max.message.bytes", "5000", "segment.bytes", "2000", "index.interval.bytes", "10")
	s.create("synced-by-3", 1, "flush.messages", "3", "segment.bytes", "4096")
	s.create("by-size", 1, "segment.bytes", "4096")
	s.create("by-time", 1, "segment.bytes", "4096")
	s.create("all-old", 1, "segment.bytes", "4096")
	s.create("cut-off", 4, "segment.bytes", "4096")
	s.create("gone-long", 2, "segment.bytes", "4096", "index.interval.bytes", "300")
}

// edgedParts are their partitions.
var edgedParts = map[string]int32{"append-time": 1, "append-time-compacted": 1, "append-time-roll": 1, "bounds": 1, "roll-1ms": 1,
	"jitter": 1, "index-each": 1, "index-none": 1, "index-full": 2, "index-tiny": 1, "small": 1, "small-segments": 1, "synced-by-3": 1,
	"by-size": 1, "by-time": 1, "all-old": 1, "cut-off": 4}

// sized is a batch of one record that has n bytes in all.
func sized(t *testing.T, n int, ms int64) batch {
	t.Helper()
	for size := max(n-61-20, 0); ; size++ {
		b := batch{records: []record{{value: make([]byte, size), ms: ms}}}
		switch got := len(b.bytes(t)); {
		case got == n:
			return b
		case got > n:
			t.Fatalf("no batch of one record has %d bytes", n)
		}
	}
}

// edges writes to the topics of edged.
func (s *story) edges(round int) {
	at := s.base + int64(round)*100_000
	s.appendTimes(round)
	s.bounds(round)
	for i, ms := range []int64{0, 0, 1, 1, 2, 3, 3, 3, 5, 4, 6} {
		s.must("roll-1ms", 0, batch{records: some(i, 2, 40, at)[:1]})
		s.must("roll-1ms", 0, batch{records: []record{{value: []byte("v"), ms: at + ms}}})
	}
	for _, ms := range []int64{0, 998_999, 500, 1_000_001, 1_999_000, 2_000_003} { // the jitter, up to a second, changes nothing here
		s.must("jitter", 0, batch{records: []record{{value: []byte("v"), ms: at - 3000_000 + ms}}})
	}
	for i := range 40 {
		b := batch{records: some(round*40+i, 1+i%3, 20+i*31%700, at+int64((i*37)%100*10)), codec: int8(i % 5)}
		for _, topic := range []string{"index-each", "index-none", "index-tiny", "synced-by-3"} {
			s.must(topic, 0, b)
		}
		s.must("index-full", int32(i%2), b)
		b.records[0].ms = at // nothing is ever later: the time index does not fill
		s.must("index-full", 1, batch{records: b.records[:1]})
	}
	s.small(at)
	s.old(round, at)
}

// appendTimes writes what gets the broker's time, each batch one of its own.
func (s *story) appendTimes(round int) {
	id := int64(600 + 10*round)
	var idempotent, transactional int32 // sequence numbers
	for i := range 30 {
		b := batch{records: some(i, 1+i%4, 30+i*17%400, s.base-int64(i)*day), codec: int8(i % 5)}
		s.tick(2 * time.Millisecond)
		s.must("append-time", 0, b)
		if i%5 == 0 {
			s.tick(2 * time.Millisecond)
			s.must("append-time", 0, batch{records: b.records, producer: id, sequence: idempotent})
			idempotent += int32(len(b.records))
		}
		if i%7 == 0 {
			s.tick(2 * time.Millisecond)
			s.must("append-time", 0, batch{records: b.records[:1], producer: id + 1, sequence: transactional, transactional: true})
			transactional++
			s.marked(0, ending{id + 1, 0, i%2 == 0, int32(i), []place{{"append-time", 0}}})
		}
	}
	for range 4 { // by the broker's clock it is time to roll, whatever the records say
		s.tick(250 * time.Millisecond)
		s.must("append-time-roll", 0, batch{records: some(1, 2, 40, s.base)})
	}
}

// bounds sends records that are too old, too new, and neither.
func (s *story) bounds(round int) {
	now := time.Now().UnixMilli()
	for i, c := range []struct {
		ms   int64
		code int16
	}{{0, 0}, {-2 * 3600 * 1000, 0}, {-3*3600*1000 - 60_000, invalidTimestamp}, {540_000, 0}, {660_000, invalidTimestamp}, {-1 << 40, invalidTimestamp}} {
		ms := now + c.ms - now%1000
		for codec := range int8(2) {
			b := batch{records: []record{{value: []byte("v"), ms: ms}, {value: []byte("w"), ms: ms}}, codec: codec}
			if got := s.produce("bounds", 0, b); got != c.code {
				s.t.Errorf("bounds: record %d of round %d, %d ms from now, codec %d: code %d, want %d", i, round, c.ms, codec, got, c.code)
			}
		}
	}
	b := batch{records: []record{{value: []byte("v"), ms: now}, {value: []byte("w"), ms: 5}, {value: []byte("x"), ms: now}}}
	if got := s.produce("bounds", 0, b); got != invalidTimestamp {
		s.t.Errorf("bounds: one old record among others: code %d", got)
	}
}

// small sends batches as large as a topic and its segments take, and a byte more.
func (s *story) small(at int64) {
	for _, c := range []struct {
		n    int
		code int16
	}{{1000, 0}, {1001, messageTooLarge}, {999, 0}, {1000, 0}, {1000, 0}, {2001, messageTooLarge}} {
		if got := s.produce("small", 0, sized(s.t, c.n, at)); got != c.code {
			s.t.Errorf("small: a batch of %d bytes: code %d, want %d", c.n, got, c.code)
		}
	}
	for _, c := range []struct {
		n    int
		code int16
	}{{2000, 0}, {2001, recordListTooLarge}, {1999, 0}, {100, 0}, {1900, 0}, {101, 0}, {5000, recordListTooLarge}} {
		if got := s.produce("small-segments", 0, sized(s.t, c.n, at)); got != c.code {
			s.t.Errorf("small-segments: a batch of %d bytes where a segment has 2000: code %d, want %d", c.n, got, c.code)
		}
	}
}

// old writes what is going to be forgotten.
func (s *story) old(round int, at int64) {
	for i := range 24 {
		b := batch{records: some(round*30+i, 2, 300, at)}
		s.must("by-size", 0, b)
		s.must("all-old", 0, batch{records: b.records, producer: int64(700 + round), sequence: int32(i * 2)})
		for p := range int32(4) {
			s.must("cut-off", p, b)
		}
		if round == 0 {
			s.must("gone-long", int32(i%2), b)
		}
		for k := range b.records {
			b.records[k].ms -= int64(24-i) * day
		}
		b.producer, b.sequence = int64(800+round), int32(i*2)
		s.must("by-time", 0, b)
	}
}

// forget has both delete what their settings do not keep any more, what a client asks for, and a whole topic.
func (s *story) forget() {
	s.forgotten("by-size", "retention.bytes", "9000", "-1")
	s.forgotten("by-time", "retention.ms", fmt.Sprint(10*day+day/2), "-1")
	s.forgotten("all-old", "retention.ms", "1000", "-1")
	end := s.bound("cut-off", 0, -1)
	s.deleteRecords("cut-off", 0, 1)
	s.deleteRecords("cut-off", 1, 15) // inside a segment
	s.deleteRecords("cut-off", 2, end)
	s.deleteRecords("cut-off", 3, 7)
	s.deleteRecords("cut-off", 3, 30)
	s.deleteTopic("gone-long")
}

// forgotten gives a topic a limit until both have deleted something, and then takes the limit away.
func (s *story) forgotten(topic, key, limit, none string) {
	s.t.Helper()
	starts := func(w *twin) int64 {
		a := w.ask(s.t, offsetsRequest(topic, 0, -2)).(*kmsg.ListOffsetsResponse)
		return a.Topics[0].Partitions[0].Offset
	}
	before := starts(s.twins[0])
	s.alter(topic, key, limit)
	want := before
	for _, w := range s.twins {
		for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			if now := starts(w); now > before && (w == s.twins[0] || now >= want) {
				want = now
				break
			}
			if time.Now().After(until) {
				s.t.Fatalf("%s has deleted nothing of %s, or not what Kafka has: from %d to %d, Kafka to %d", w.name, topic, before, starts(w), want)
			}
		}
	}
	s.alter(topic, key, none)
}

// tick waits until the clock shows a later time: what each broker stamps next differs from what it stamped before.
func (s *story) tick(d time.Duration) {
	for now := time.Now(); time.Since(now) < d; time.Sleep(d / 4) {
	}
}
