package twins

// topics makes what the story is told on.
func (s *story) topics() {
	s.create(offsetsTopic, 1, "cleanup.policy", "compact")
	s.create("codecs", 5)
	s.create("rolls", 1, "segment.bytes", "20000", "index.interval.bytes", "300")
	s.create("rolls-time", 1, "segment.ms", "1000")
	s.create("idem", 1, "segment.bytes", "4096")
	s.create("deleted", 1, "segment.bytes", "4096")
	s.create("prealloc", 1, "preallocate", "true", "segment.bytes", "30000")
	s.create("prealloc-empty", 1, "preallocate", "true", "segment.bytes", "30000")
	s.create("synced", 1, "flush.messages", "1", "segment.bytes", "30000")
	s.create("gone", 1)
	s.create("empty", 2)
	s.create("compacted", 1, "segment.bytes", "6000", "index.interval.bytes", "300")
	s.create("txn", 2, "segment.bytes", "20000", "index.interval.bytes", "600")
	s.create("txn-week", 1)
}

// plain writes batches without producers to every topic that is not about something else.
func (s *story) plain(round int) {
	at := s.base + int64(round)*100_000
	for i := range 12 {
		for p := range codecs {
			s.must("codecs", int32(p), batch{records: some(round*100+i, 1+i*3%7, 50+i*90, at+int64(i*50)), codec: int8(p)})
		}
	}
	for i := range 70 {
		b := batch{records: some(i, 1+i%4, 30+i*17%900, at+int64((i*37)%100*10)), codec: int8(i % 5)}
		s.must("rolls", 0, b)
		if i%3 == 0 {
			s.must("prealloc", 0, b)
		}
		if i%5 == 0 {
			s.must("synced", 0, b)
		}
		if i%4 == 0 {
			s.must("deleted", 0, b)
		}
	}
	for i, ms := range []int64{0, 400, 1000, 1001, 300, 2001, 2002, 9000, -500, 3000, 10001} {
		s.must("rolls-time", 0, batch{records: some(i, 2, 40, at+ms)})
	}
	if round == 0 {
		s.must("gone", 0, batch{records: some(1, 3, 40, at)})
	}
}

// idempotent has producers that send again, skip, start over in a new epoch, and let their sequence numbers wrap.
func (s *story) idempotent(round int) {
	at := s.base + int64(round)*100_000
	code := func(want int16, b batch) {
		s.t.Helper()
		if got := s.produce("idem", 0, b); got != want {
			s.t.Fatalf("idem: code %d, want %d (producer %d, epoch %d, sequence %d)", got, want, b.producer, b.epoch, b.sequence)
		}
	}
	from := func(producer int64, epoch int16, sequence int32, n int) batch {
		return batch{records: some(int(sequence)%1000, n, 200, at+int64(sequence)%1000), producer: producer, epoch: epoch, sequence: sequence}
	}
	id := int64(100 * (round + 1))
	for i := range int32(12) {
		code(0, from(id, 0, i*3, 3))
		code(0, from(id+1, 0, i*2, 2))
	}
	code(0, from(id, 0, 33, 3))             // again
	code(0, from(id, 0, 21, 3))             // the fifth from the end again
	code(outOfOrder, from(id, 0, 18, 3))    // older than that
	code(outOfOrder, from(id, 0, 34, 3))    // across
	code(outOfOrder, from(id, 0, 50, 3))    // a gap
	code(outOfOrder, from(id, 2, 36, 3))    // a new epoch begins with 0
	code(0, from(id, 2, 0, 4))              //
	code(producerFenced, from(id, 1, 4, 1)) // an old one
	code(0, from(id, 2, 4, 1))              //
	code(0, from(id+2, 0, 2147483640, 8))   // up to the last number
	code(0, from(id+2, 0, 0, 2))            //
	code(0, from(id+2, 0, 2, 2))            //
	code(0, from(id+3, 5, 77, 2))           // a producer that nobody knows may begin anywhere
	code(0, from(id+(1<<40), 3, 0, 1))      // large ids
	code(0, from(id+(1<<33), 3, 0, 1))
}

// silent writes a producer's batch of long ago: the producer is forgotten at the next start.
func (s *story) silent() {
	b := batch{records: some(1, 2, 200, 1_600_000_000_000), producer: 90}
	s.must("idem", 0, b)
}
