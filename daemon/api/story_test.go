package api

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/replication"
	"kring/segment"
	"kring/wire"
	"kring/wire/batch"
)

// reader is a consumer that lives by callbacks: it fetches, remembers what it got, and fetches again, with a session while it
// has one.
type reader struct {
	x          *world
	p          *peer
	topic      string
	partitions int32
	wait, min  int32
	version    int16
	loop       int

	at      []int64
	got     [][]byte
	in      []byte
	id      int32
	session int32
	epoch   int32
	told    []int64
	closed  bool
	errors  map[wire.Code]int
	empty   int
}

func (r *reader) start() {
	r.p = r.x.dial(r.loop)
	r.in, r.session, r.epoch, r.told = nil, 0, 0, nil
	p := r.p
	p.c.OnReceive = func(b []byte) {
		r.in = append(r.in, b...)
		for len(r.in) >= 4 && len(r.in) >= 4+int(binary.BigEndian.Uint32(r.in)) {
			n := 4 + int(binary.BigEndian.Uint32(r.in))
			frame := r.in[4:n]
			r.in = r.in[n:]
			r.answer(frame)
		}
	}
	p.c.OnClose = func(error) {
		if p == r.p && !r.closed {
			r.x.t.Errorf("the broker has closed a reader's connection")
		}
	}
	r.ask()
}

// ask sends the next fetch: in a session, only what has changed.
func (r *reader) ask() {
	if r.closed {
		return
	}
	parts := []from{}
	for i := range r.partitions {
		if r.told == nil || r.told[i] != r.at[i] {
			parts = append(parts, from{r.topic, i, r.at[i]})
		}
	}
	r.told = append(r.told[:0], r.at...)
	req := r.x.fetchRequest(r.version, r.wait, r.min, parts...)
	req.MaxBytes = 3000
	req.SessionID, req.SessionEpoch = r.session, r.epoch
	r.p.send(req)
}

func (r *reader) answer(frame []byte) {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = r.version
	body := frame[4:]
	if wire.Flexible(wire.Fetch, r.version) {
		body = frame[5:]
	}
	if err := resp.ReadFrom(body); err != nil {
		r.x.t.Fatal(err)
	}
	if resp.ErrorCode != 0 {
		r.errors[wire.Code(resp.ErrorCode)]++
		r.session, r.epoch, r.told = 0, 0, nil
		r.ask()
		return
	}
	if r.session = resp.SessionID; r.session == 0 {
		r.epoch, r.told = 0, nil
	} else {
		r.epoch = nextEpoch(r.epoch)
	}
	data := false
	for i := range r.partitions {
		if rp := r.x.got(resp, r.topic, i); rp != nil {
			data = r.take(i, rp) || data
		}
	}
	if !data {
		r.empty++
	}
	r.ask()
}

// take appends what is new, batch by batch; batches before the position are passed over, a cut one at the end too.
func (r *reader) take(i int32, rp *kmsg.FetchResponseTopicPartition) bool {
	if rp.ErrorCode != 0 {
		r.errors[wire.Code(rp.ErrorCode)]++
		return false
	}
	rest := rp.RecordBatches
	for {
		b, more, err := batch.Whole(rest)
		if err != nil {
			return len(rp.RecordBatches) > 0
		}
		rest = more
		h := batch.Header(b)
		if !h.Valid() {
			r.x.t.Errorf("partition %d: a batch with a wrong crc", i)
		}
		if h.NextOffset() <= r.at[i] {
			continue
		}
		if h.BaseOffset() != r.at[i] {
			r.x.t.Errorf("partition %d: a batch from %d at position %d", i, h.BaseOffset(), r.at[i])
		}
		if h.NextOffset() > rp.HighWatermark {
			r.x.t.Errorf("partition %d: a batch to %d above the high watermark %d", i, h.NextOffset(), rp.HighWatermark)
		}
		r.at[i] = h.NextOffset()
		r.got[i] = append(r.got[i], b...)
	}
}

// story lets a producer write while readers of all kinds read, connections drop and leaders change: every reader must get
// every batch once, in order, byte for byte. It returns the digest of all that happened.
func story(t *testing.T, seed uint64, loops int) uint64 {
	const partitions = 5
	small := func(c *segment.Config) {
		if seed%2 == 1 { // many segments, read from their files
			c.SegmentBytes, c.IndexIntervalBytes = 8000, 500
		}
	}
	x := newWorldOf(t, seed, loops, topic{name: "a", partitions: partitions, log: small})
	random := x.w.Rand()
	var readers []*reader
	for i := range 6 {
		r := &reader{x: x, topic: "a", partitions: partitions, loop: i % loops, version: []int16{7, 12, 13, 17}[random.IntN(4)],
			wait: []int32{0, 20, 500, 100_000}[random.IntN(4)], min: []int32{0, 1, 1, 2500}[random.IntN(4)],
			at: make([]int64, partitions), got: make([][]byte, partitions), errors: map[wire.Code]int{}}
		if r.min > 1 {
			r.wait = min(r.wait, 500) // the last bytes may be too few
		}
		if r.wait == 0 || r.min == 0 {
			r.wait, r.min = 5, 1 // not for ever at once
		}
		readers = append(readers, r)
		x.w.After(time.Duration(random.IntN(1000))*time.Microsecond, r.start)
	}
	writer := x.dial(int(seed) % loops)
	want := make([][]byte, partitions)
	epochs := make([]int32, partitions)
	for i := range epochs {
		epochs[i] = 3
	}
	for step := range 60 {
		i := int32(random.IntN(partitions))
		switch random.IntN(10) {
		case 0:
			r := readers[random.IntN(len(readers))]
			if r.p != nil {
				old := r.p
				r.p = nil
				old.c.OnReceive = func([]byte) {}
				old.c.Close()
				r.start()
			}
		case 1:
			epochs[i]++
			s := replication.State{Leader: self, LeaderEpoch: epochs[i], ISR: []int32{self}, Replicas: []int32{self}}
			x.partition("a", i, func(p *replication.Partition) {
				p.Resign(replication.State{Leader: -1, LeaderEpoch: epochs[i]})
				epochs[i]++
				s.LeaderEpoch = epochs[i]
				p.Lead(s, p.HighWatermark())
			})
		default:
			b := records(1+random.IntN(5), 8+random.IntN(1200))
			binary.BigEndian.PutUint32(b[len(b)-5:], uint32(step))
			batch.Seal(b)
			base := writer.put("a", i, b)
			batch.Stamp(b, base, epochs[i])
			want[i] = append(want[i], b...)
		}
		x.w.RunFor(time.Duration(random.IntN(3000)) * time.Microsecond)
	}
	x.w.RunFor(5 * time.Second)
	for n, r := range readers {
		for i := range partitions {
			if !bytes.Equal(r.got[i], want[i]) {
				t.Errorf("reader %d (%d ms, %d bytes, version %d), partition %d: %d bytes to offset %d, want %d", n, r.wait, r.min, r.version, i,
					len(r.got[i]), r.at[i], len(want[i]))
			}
		}
		r.closed = true
		r.p.c.Close()
	}
	x.w.RunFor(time.Second)
	x.quiet("a", partitions)
	for i, c := range x.node.Contexts {
		if err := c.data.sessions.check(); c.data.sessions.byID != nil && err != nil {
			t.Errorf("loop %d: %v", i, err)
		}
		if n := c.Loop.InUse(); n > 1<<20 {
			t.Errorf("loop %d has %d bytes lent out in the end", i, n)
		}
	}
	return x.w.Trace()
}

// seeds are a few, and those that have found something: 61, a client gone in the middle of a fetch's first read.
var seeds = []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 61}

func TestReadersSeeWhatWasWritten(t *testing.T) {
	for _, seed := range seeds {
		loops := []int{1, 2, 4}[seed%3]
		t.Run(fmt.Sprintf("seed %d, %d loops", seed, loops), func(t *testing.T) { story(t, seed, loops) })
	}
}

func TestSameSeedTellsTheSameStory(t *testing.T) {
	for seed := range uint64(3) {
		loops := []int{1, 2, 4}[seed]
		if first, again := story(t, seed, loops), story(t, seed, loops); first != again {
			t.Errorf("seed %d told two stories: %x and %x", seed, first, again)
		}
	}
}
