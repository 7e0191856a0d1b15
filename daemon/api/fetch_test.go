package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/replication"
	"kring/wire"
	"kring/wire/batch"
)

// believing sets the leader epoch the client believes in.
func believing(epoch int32) func(*kmsg.FetchRequest) {
	return func(req *kmsg.FetchRequest) { req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch }
}

func TestFetchErrors(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 2})
		p := x.dial(loops - 1)
		p.put("a", 0, records(5, 1))
		for _, tt := range []struct {
			name   string
			at     from
			change func(*kmsg.FetchRequest)
			want   wire.Code
		}{
			{"fine", from{"a", 0, 0}, nil, wire.None},
			{"at the end", from{"a", 0, 5}, nil, wire.None},
			{"behind the end", from{"a", 0, 6}, nil, wire.OffsetOutOfRange},
			{"below zero", from{"a", 0, -1}, nil, wire.OffsetOutOfRange},
			{"no such partition", from{"a", 2, 0}, nil, wire.UnknownTopicOrPartition},
			{"negative partition", from{"a", -1, 0}, nil, wire.UnknownTopicOrPartition},
			{"no such topic", from{"b", 0, 0}, nil, wire.UnknownTopicOrPartition},
			{"our epoch", from{"a", 0, 0}, believing(3), wire.None},
			{"old epoch", from{"a", 0, 0}, believing(2), wire.FencedLeaderEpoch},
			{"new epoch", from{"a", 0, 0}, believing(4), wire.UnknownLeaderEpoch},
			{"a follower we do not have", from{"a", 0, 0}, func(req *kmsg.FetchRequest) { req.ReplicaID = 2 }, wire.NotLeaderOrFollower},
		} {
			for _, version := range []int16{11, 12} {
				req := x.fetchRequest(version, 60_000, 1<<20, tt.at)
				if tt.want == wire.None {
					req.MaxWaitMillis = 0
				}
				if tt.change != nil {
					tt.change(req)
				}
				before := x.w.Now()
				resp := call[*kmsg.FetchResponse](p, req)
				rp := x.got(resp, tt.at.topic, tt.at.index)
				if rp == nil || wire.Code(rp.ErrorCode) != tt.want {
					t.Fatalf("%s: %+v, want %v", tt.name, rp, tt.want)
				}
				if tt.want != wire.None && (rp.HighWatermark != -1 || rp.LastStableOffset != -1 || rp.LogStartOffset != -1) {
					t.Errorf("%s: offsets beside an error: %+v", tt.name, rp)
				}
				if waited := x.w.Now() - before; waited > time.Second {
					t.Errorf("%s: waited %v", tt.name, waited)
				}
			}
		}
		req := x.fetchRequest(13, 60_000, 1, from{"a", 0, 5})
		req.Topics[0].TopicID = [16]byte{42}
		resp := call[*kmsg.FetchResponse](p, req)
		if code := wire.Code(resp.Topics[0].Partitions[0].ErrorCode); code != wire.UnknownTopicID {
			t.Fatalf("unknown id: %v", code)
		}
	})
}

func TestFetchNamesTheLeaderFromVersion16On(t *testing.T) {
	x := newWorld(t, 1, topic{name: "a", partitions: 1})
	x.partition("a", 0, func(p *replication.Partition) { p.Resign(replication.State{Leader: 2, LeaderEpoch: 4}) })
	p := x.dial(0)
	for _, version := range []int16{15, 16, 17} {
		resp := call[*kmsg.FetchResponse](p, x.fetchRequest(version, 0, 1, from{"a", 0, 0}))
		rp := x.got(resp, "a", 0)
		if wire.Code(rp.ErrorCode) != wire.NotLeaderOrFollower {
			t.Fatalf("%+v", rp)
		}
		told := rp.CurrentLeader.LeaderID == self && rp.CurrentLeader.LeaderEpoch == 3 && len(resp.Brokers) == 1
		if told != (version >= 16) {
			t.Fatalf("version %d: leader %+v, nodes %+v", version, rp.CurrentLeader, resp.Brokers)
		}
	}
}

func TestLongPoll(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 4})
		p, q := x.dial(0), x.dial(loops-1)
		all := []from{{"a", 0, 0}, {"a", 1, 0}, {"a", 2, 0}, {"a", 3, 0}}

		for i := range int32(4) { // the first bytes anywhere end the wait
			parts := append([]from(nil), all...)
			for k := range i {
				parts[k].offset = 1
			}
			id := q.send(x.fetchRequest(12, 60_000, 1, parts...))
			x.w.RunFor(time.Second)
			if n := len(q.c.Buffered()); n != 0 {
				t.Fatalf("answered %d bytes with nothing to read", n)
			}
			p.put("a", i, records(1, 10))
			resp := kmsg.NewPtrFetchResponse()
			resp.Version = 12
			before := x.w.Now()
			q.receive(resp, id)
			if waited := x.w.Now() - before; waited > time.Second {
				t.Fatalf("woken after %v", waited)
			}
			if rp := x.got(resp, "a", i); len(rp.RecordBatches) == 0 || rp.HighWatermark != 1 {
				t.Fatalf("woken with nothing for partition %d: %+v", i, rp)
			}
		}

		// nothing comes: the deadline ends the wait
		parts := []from{{"a", 0, 1}, {"a", 1, 1}, {"a", 2, 1}, {"a", 3, 1}}
		before := x.w.Now()
		resp := call[*kmsg.FetchResponse](q, x.fetchRequest(12, 5_000, 1, parts...))
		if waited := x.w.Now() - before; waited < 5*time.Second || waited > 6*time.Second {
			t.Fatalf("waited %v, want 5 s", waited)
		}
		if rp := x.got(resp, "a", 0); rp.ErrorCode != 0 || len(rp.RecordBatches) != 0 {
			t.Fatalf("%+v", rp)
		}
	})
}

func TestLongPollForBytesInSeveralPartitions(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 4})
		p, q := x.dial(0), x.dial(loops-1)
		size := int32(len(records(1, 100)))
		id := q.send(x.fetchRequest(12, 600_000, 10*size, from{"a", 0, 0}, from{"a", 1, 0}, from{"a", 2, 0}, from{"a", 3, 0}))
		for i := range int32(9) {
			p.put("a", i%4, records(1, 100))
			x.w.RunFor(time.Second)
			if n := len(q.c.Buffered()); n != 0 {
				t.Fatalf("answered after %d of 10 batches", i+1)
			}
		}
		before := x.w.Now()
		p.put("a", 3, records(1, 100))
		resp := kmsg.NewPtrFetchResponse()
		resp.Version = 12
		q.receive(resp, id)
		if waited := x.w.Now() - before; waited > time.Second {
			t.Fatalf("woken after %v", waited)
		}
		total := 0
		for _, b := range pieces(resp) {
			total += len(b)
		}
		if total != int(10*size) {
			t.Fatalf("%d bytes, want %d", total, 10*size)
		}
	})
}

func TestLongPollEndsWhenTheLeaderGoes(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 2})
		q := x.dial(loops - 1)
		id := q.send(x.fetchRequest(12, 600_000, 1, from{"a", 0, 0}, from{"a", 1, 0}))
		x.w.RunFor(time.Second)
		x.partition("a", 1, func(p *replication.Partition) { p.Resign(replication.State{Leader: 2, LeaderEpoch: 4}) })
		resp := kmsg.NewPtrFetchResponse()
		resp.Version = 12
		before := x.w.Now()
		q.receive(resp, id)
		if rp := x.got(resp, "a", 1); wire.Code(rp.ErrorCode) != wire.NotLeaderOrFollower || x.w.Now()-before > time.Second {
			t.Fatalf("after %v: %+v", x.w.Now()-before, rp)
		}
	})
}

func TestFetchOfAClientThatIsGoneLeavesNothing(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 4})
		p, q := x.dial(0), x.dial(loops-1)
		for i := range int32(4) {
			p.put("a", i, records(1, 10))
		}
		q.send(x.fetchRequest(12, 86_400_000, 1<<20, from{"a", 0, 0}, from{"a", 1, 0}, from{"a", 2, 0}, from{"a", 3, 0}))
		x.w.RunFor(time.Second)
		q.c.Close()
		x.w.RunFor(time.Second)
		for i, c := range x.node.Contexts {
			n := 0
			for f := c.data.fetches; f != nil; f = f.next {
				n++
			}
			if want := 0; i != loops-1 && n != want || i == loops-1 && n != 1 {
				t.Errorf("loop %d: %d fetches in the pool", i, n)
			}
		}
		x.quiet("a", 4)
	})
}

// quiet wants that nobody waits in a topic's partitions.
func (x *world) quiet(name string, partitions int32) {
	x.t.Helper()
	for i := range partitions {
		x.partition(name, i, func(p *replication.Partition) {
			if n := p.Waiting(); n != 0 {
				x.t.Errorf("%d wait in %s-%d", n, name, i)
			}
		})
	}
}

// pieces are the records of all partitions of an answer.
func pieces(resp *kmsg.FetchResponse) (all [][]byte) {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			all = append(all, p.RecordBatches)
		}
	}
	return all
}

func TestFetchKeepsItsLimits(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 4})
		p := x.dial(0)
		size := 0
		for i := range int32(4) {
			for range 5 {
				b := records(1, 1000)
				size = len(b)
				p.put("a", i, b)
			}
		}
		for _, tt := range []struct {
			name           string
			most, each     int
			least, mostGot int
		}{
			{"all", 1 << 20, 1 << 20, 20 * size, 20 * size},
			{"two of each", 1 << 20, 2 * size, 8 * size, 8 * size},
			{"a first batch whole, though it is too large", 1, 1, size, size},
			{"a first batch whole, though its partition's limit is smaller (one on each loop)", 1 << 20, 1, size, min(loops, 4) * size},
			{"the limit of the answer", 7 * size, 1 << 20, 5 * size, 7 * size},
			{"the limit of the answer, in small pieces", 7 * size, 2 * size, 5 * size, 7 * size},
		} {
			req := x.fetchRequest(12, 0, 1, from{"a", 0, 0}, from{"a", 1, 0}, from{"a", 2, 0}, from{"a", 3, 0})
			req.MaxBytes = int32(tt.most)
			for i := range req.Topics {
				req.Topics[i].Partitions[0].PartitionMaxBytes = int32(tt.each)
			}
			resp := call[*kmsg.FetchResponse](p, req)
			total := 0
			for _, b := range pieces(resp) {
				total += len(b)
				if len(b) > 0 {
					if _, _, err := batch.Whole(b); err != nil {
						t.Errorf("%s: the first batch is cut: %d bytes", tt.name, len(b))
					}
				}
			}
			if total < tt.least || total > tt.mostGot {
				t.Errorf("%s: %d bytes, want %d to %d", tt.name, total, tt.least, tt.mostGot)
			}
		}
	})
}

func TestReadCommittedHasAListOfAborted(t *testing.T) {
	x := newWorld(t, 1, topic{name: "a", partitions: 1})
	p := x.dial(0)
	p.put("a", 0, records(1, 1))
	for _, isolation := range []int8{0, 1} {
		req := x.fetchRequest(12, 0, 1, from{"a", 0, 0})
		req.IsolationLevel = isolation
		rp := x.got(call[*kmsg.FetchResponse](p, req), "a", 0)
		if (rp.AbortedTransactions == nil) != (isolation == 0) || rp.LastStableOffset != 1 || len(rp.RecordBatches) == 0 {
			t.Errorf("isolation %d: %+v", isolation, rp)
		}
	}
}

func TestManyFetchesReuseTheirState(t *testing.T) {
	x := newWorld(t, 2, topic{name: "a", partitions: 4})
	p := x.dial(1)
	for i := range 50 {
		p.put("a", int32(i%4), records(1, 10))
		call[*kmsg.FetchResponse](p, x.fetchRequest(12, int32(i%3), 1, from{"a", 0, 0}, from{"a", 1, 0}, from{"a", 2, 0}, from{"a", 3, 0}))
	}
	x.quiet("a", 4)
	n := 0
	for f := x.node.Contexts[1].data.fetches; f != nil; f = f.next {
		n++
	}
	if n != 1 {
		t.Fatalf("%s in the pool after fetches one by one", fmt.Sprint(n))
	}
}
