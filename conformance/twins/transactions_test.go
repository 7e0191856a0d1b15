package twins

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Codes of answers.
const (
	outOfOrder       = 45
	producerFenced   = 47
	txnState         = 48
	coordinatorFence = 52
	unknownPartition = 3
)

// place is a partition.
type place struct {
	topic     string
	partition int32
}

// ending is a transaction's end as its coordinator sends it.
type ending struct {
	producer    int64
	epoch       int16
	commit      bool
	coordinator int32
	at          []place
}

// mark sends endings in one request and gives the codes, in the order of the places of one ending. Each marker gets a time of its
// own: the request is not sent before the clock shows another.
func (s *story) mark(all ...ending) []int16 {
	s.t.Helper()
	m := kmsg.NewPtrWriteTxnMarkersRequest()
	m.Version = 1
	for _, e := range all {
		one := kmsg.NewWriteTxnMarkersRequestMarker()
		one.ProducerID, one.ProducerEpoch, one.Committed, one.CoordinatorEpoch = e.producer, e.epoch, e.commit, e.coordinator
		for _, p := range e.at {
			one.Topics = append(one.Topics, kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: p.topic, Partitions: []int32{p.partition}})
		}
		m.Markers = append(m.Markers, one)
	}
	s.tick(2 * time.Millisecond)
	type answer struct {
		producer  int64
		topic     string
		partition int32
	}
	var codes []int16
	var seen []map[answer]int16
	for _, w := range s.twins {
		got := map[answer]int16{}
		for _, m := range w.ask(s.t, m).(*kmsg.WriteTxnMarkersResponse).Markers {
			for _, t := range m.Topics {
				for _, p := range t.Partitions {
					got[answer{m.ProducerID, t.Topic, p.Partition}] = p.ErrorCode
				}
			}
		}
		seen = append(seen, got)
	}
	if fmt.Sprint(seen[0]) != fmt.Sprint(seen[1]) {
		s.t.Errorf("WriteTxnMarkers %+v: Kafka answers %v, kring %v", all, seen[0], seen[1])
	}
	for _, e := range all {
		for _, p := range e.at {
			codes = append(codes, seen[0][answer{e.producer, p.topic, p.partition}])
		}
	}
	return codes
}

// marked is mark of one ending in one place, which must be answered with a code.
func (s *story) marked(want int16, e ending) {
	s.t.Helper()
	for _, code := range s.mark(e) {
		if code != want {
			s.t.Fatalf("marker %+v: code %d, want %d", e, code, want)
		}
	}
}

// transactions writes transactions of several producers over each other, and ends most of them.
func (s *story) transactions(round int) {
	at := s.base + int64(round)*100_000
	p0, p1, week := place{"txn", 0}, place{"txn", 1}, place{"txn-week", 0}
	id := int64(1000 * (round + 1))
	epoch := func(p int) int16 { return int16(p * 3) }
	type line struct {
		place
		producer int64
	}
	sequence := map[line]int32{}
	write := func(where place, p int, n int, codec int8) {
		s.t.Helper()
		producer := id + int64(p)
		k := line{where, producer}
		b := batch{records: some(n+p*10, n, 150, at+int64(n*7+p)), codec: codec, producer: producer}
		b.epoch, b.sequence, b.transactional = epoch(p), sequence[k], true
		if where == week {
			for i := range b.records {
				b.records[i].ms -= 8 * 24 * 3600 * 1000
			}
		}
		s.must(where.topic, where.partition, b)
		sequence[k] += int32(n)
	}
	end := func(p int, commit bool, coordinator int32, where ...place) ending {
		return ending{id + int64(p), epoch(p), commit, coordinator, where}
	}
	for i := range 6 {
		for p := range 4 {
			write(p0, p, 1+(i+p)%4, int8((i+p)%5))
			if i%2 == 0 {
				write(p1, p, 2, 0)
			}
			s.must("txn", 0, batch{records: some(i, 2, 100, at+int64(i)), codec: 0}) // of no transaction
		}
		for p := range 3 { // the fourth stays open for a while
			s.marked(0, end(p, (i+p)%3 != 0, int32(i), p0, p1))
		}
	}
	s.mark(end(3, false, 7, p0), end(3, false, 7, p1), end(0, true, 7, week)) // in one request; the last without a transaction
	s.marked(coordinatorFence, end(3, true, 6, p0))                           // an old coordinator
	s.marked(producerFenced, ending{id + 3, epoch(3) - 1, true, 9, []place{p0}})
	s.marked(unknownPartition, end(3, true, 9, place{"txn", 9}, place{"nothing", 0}))
	s.mark(ending{id + 90, 0, true, 1, []place{p0, {"txn", 77}, p1}}) // nobody knows the producer
	s.mark(ending{producer: id + 91, coordinator: 1})                 // nowhere
	write(p0, 1, 3, 0)
	plain := batch{records: some(1, 1, 10, at), producer: id + 1, epoch: epoch(1), sequence: sequence[line{p0, id + 1}]}
	if code := s.produce("txn", 0, plain); code != txnState {
		s.t.Fatalf("a record of no transaction within one: code %d", code)
	}
	s.marked(0, ending{id + 1, epoch(1) + 1, false, 8, []place{p0}}) // the coordinator raises the epoch to fence
	plain.transactional = true
	if code := s.produce("txn", 0, plain); code != producerFenced {
		s.t.Fatalf("a fenced producer: code %d", code)
	}
	plain.epoch++
	plain.sequence = 5
	if code := s.produce("txn", 0, plain); code != outOfOrder {
		s.t.Fatalf("a new epoch that does not begin at 0: code %d", code)
	}
	plain.sequence = 0
	s.must("txn", 0, plain)
	s.marked(0, ending{id + 1, epoch(1) + 1, true, 8, []place{p0}})
	for i := range 3 { // records of last week, a marker of today: a roll by the records' time
		write(week, 0, 2, 0)
		write(week, 2, 2, 0)
		s.marked(0, end(0, i == 1, int32(20+i), week))
	}
	write(p0, 2, 2, 0) // open when the brokers stop
	write(p1, 0, 2, 1)
	s.must("txn", 0, batch{records: some(5, 2, 100, at), codec: 2})
}

// finish ends what transactions left open in a round.
func (s *story) finish(round int) {
	id := int64(1000 * (round + 1))
	s.marked(0, ending{id + 2, 6, round == 0, 30, []place{{"txn", 0}, {"txn-week", 0}}})
	s.marked(0, ending{id, 0, round != 0, 30, []place{{"txn", 1}}})
}
