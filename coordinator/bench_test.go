package coordinator

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// instant is a journal that keeps nothing and answers when it is asked to.
type instant struct {
	end     int64
	waiting []func(int64, error, Now)
	bases   []int64
}

func (i *instant) Takes(int) bool { return true }

func (i *instant) Append(b Batch, done func(base int64, err error, now Now)) {
	i.waiting = append(i.waiting, done)
	i.bases = append(i.bases, i.end)
	i.end += int64(len(b.Records))
}

func (i *instant) answer(now Now) {
	for n := 0; n < len(i.waiting); n++ {
		i.waiting[n](i.bases[n], nil, now)
	}
	i.waiting, i.bases = i.waiting[:0], i.bases[:0]
}

func benchShard() (*Shard, *instant) {
	c := defaults()
	c.InitialDelay = 0
	j := &instant{}
	s := NewShard(0, c, j, rand.New(rand.NewPCG(1, 1)))
	s.BeginLoad(0)
	s.Loaded(0, Now{})
	return s, j
}

// settle makes stable groups of so many members and returns their ids.
func settle(b *testing.B, s *Shard, j *instant, groups, members int, now Now) [][]string {
	ids := make([][]string, groups)
	for g := range groups {
		name := fmt.Sprintf("group-%d", g)
		var leader string
		for range members {
			s.Join(&Join{Group: name, ClientID: "bench", ClientHost: "/127.0.0.1", SessionMs: 45000, RebalanceMs: 60000, ProtocolType: "consumer",
				Protocols: []Protocol{{"range", subscription("t")}},
				Done: func(j *Join) {
					ids[g] = append(ids[g], j.Answer.Member)
					leader = j.Answer.Leader
				}}, now)
		}
		s.Tick(now)
		for _, id := range ids[g] {
			y := &Sync{Group: name, Member: id, Generation: 1, Done: func(*Sync) {}}
			if id == leader {
				for _, m := range ids[g] {
					y.Assignments = append(y.Assignments, Assignment{m, []byte("assignment")})
				}
			}
			s.Sync(y, now)
		}
		j.answer(now)
	}
	if s.GroupsIn(Stable) != groups {
		b.Fatalf("%d groups are stable", s.GroupsIn(Stable))
	}
	return ids
}

// BenchmarkHeartbeat sends heartbeats to 10,000 members in 1,000 groups while time goes on.
func BenchmarkHeartbeat(b *testing.B) {
	s, j := benchShard()
	now := Now{}
	ids := settle(b, s, j, 1000, 10, now)
	names := make([]string, len(ids))
	for i := range ids {
		names[i] = fmt.Sprintf("group-%d", i)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		g := n % len(ids)
		now.Mono += 300 * time.Microsecond // so that each member sends one in 3 s
		h := Heartbeat{Group: names[g], Member: ids[g][n/len(ids)%10], Generation: 1}
		if err := s.Heartbeat(&h, now); err != nil {
			b.Fatal(err)
		}
		if next, ok := s.Next(); ok && next <= now.Mono {
			s.Tick(now)
		}
	}
}

// BenchmarkCommit commits ten offsets a time, from 100 groups.
func BenchmarkCommit(b *testing.B) {
	s, j := benchShard()
	commits := make([]*Commit, 100)
	for i := range commits {
		c := &Commit{Group: fmt.Sprintf("group-%d", i), Generation: -1, RetentionMs: -1, Done: func(*Commit) {}}
		for p := range int32(10) {
			c.Offsets = append(c.Offsets, CommitOffset{Topic: "some-topic", Partition: p, Offset: 1 << 20, LeaderEpoch: 3, CommitMs: -1})
		}
		commits[i] = c
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		s.Commit(commits[n%len(commits)], Now{UnixMilli: int64(n)})
		j.answer(Now{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10, "ns/offset")
}

// BenchmarkFetch fetches ten offsets a time.
func BenchmarkFetch(b *testing.B) {
	s, j := benchShard()
	c := &Commit{Group: "g", Generation: -1, RetentionMs: -1, Done: func(*Commit) {}}
	for p := range int32(10) {
		c.Offsets = append(c.Offsets, CommitOffset{Topic: "some-topic", Partition: p, Offset: 1 << 20, LeaderEpoch: 3, CommitMs: -1})
	}
	s.Commit(c, Now{})
	j.answer(Now{})
	asked := []TopicPartitions{{"some-topic", []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}
	sum := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		s.Fetch("g", asked, true, func(c Committed) { sum += c.Offset })
	}
}

// BenchmarkRebalance lets a group of 1,000 join again and be assigned.
func BenchmarkRebalance(b *testing.B) {
	s, j := benchShard()
	now := Now{}
	ids := settle(b, s, j, 1, 1000, now)[0]
	joins, syncs := make([]Join, len(ids)), make([]Sync, len(ids))
	for i, id := range ids {
		joins[i] = Join{Group: "group-0", Member: id, SessionMs: 45000, RebalanceMs: 60000, ProtocolType: "consumer",
			Protocols: []Protocol{{"range", subscription("t")}}, Done: func(*Join) {}}
		syncs[i] = Sync{Group: "group-0", Member: id, Done: func(*Sync) {}}
		syncs[0].Assignments = append(syncs[0].Assignments, Assignment{id, []byte("assignment")})
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range joins {
			s.Join(&joins[i], now)
		}
		for i := range syncs {
			syncs[i].Generation = joins[i].Answer.Generation
			s.Sync(&syncs[i], now)
		}
		j.answer(now)
		if s.GroupsIn(Stable) != 1 {
			b.Fatal("not stable")
		}
	}
}

// BenchmarkReplay reads a million offsets: a million places of a thousand groups, places that are committed
// ten times, and many small groups.
func BenchmarkReplay(b *testing.B) {
	for _, shape := range []struct {
		name                       string
		groups, partitions, rounds int
	}{{"million-places", 1000, 1000, 1}, {"100k-places-10-times", 100, 1000, 10}, {"100k-groups-of-10", 100_000, 10, 1}} {
		b.Run(shape.name, func(b *testing.B) {
			const records = 1_000_000
			journal := offsetRecords(shape.groups, shape.partitions, shape.rounds)
			b.ReportAllocs()
			var s *Shard
			var before, after runtime.MemStats
			for b.Loop() {
				b.StopTimer()
				s = nil
				runtime.GC()
				runtime.ReadMemStats(&before)
				s = NewShard(0, defaults(), &instant{}, rand.New(rand.NewPCG(1, 1)))
				b.StartTimer()
				s.BeginLoad(0)
				for i := range journal {
					if err := s.Replay(journal[i]); err != nil {
						b.Fatal(err)
					}
				}
				s.Loaded(0, Now{})
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(s.Offsets()), "bytes/offset")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
			runtime.KeepAlive(journal)
		})
	}
}

func offsetRecords(groups, partitions, rounds int) []Entry {
	var arena []byte
	var list []Entry
	for round := range rounds {
		for g := range groups {
			for p := range partitions {
				if cap(arena)-len(arena) < 200 {
					arena = make([]byte, 0, 1<<20)
				}
				start := len(arena)
				k := Key{1, OffsetKey, fmt.Sprintf("consumer-group-%06d", g), "some-topic-name", int32(p)}
				arena = k.AppendTo(arena)
				end := len(arena)
				arena = OffsetValue{3, int64(round), 1, "", 1_700_000_000_000, -1}.AppendTo(arena)
				list = append(list, Entry{Offset: int64(len(list)), ProducerID: -1, Key: arena[start:end:end], Value: arena[end:len(arena):len(arena)]})
			}
		}
	}
	return list
}

// BenchmarkExpire sweeps a million offsets of which none is old enough.
func BenchmarkExpire(b *testing.B) {
	s, _ := benchShard()
	s.Unload(1)
	s.BeginLoad(1)
	for _, e := range offsetRecords(1000, 1000, 1) {
		if err := s.Replay(e); err != nil {
			b.Fatal(err)
		}
	}
	s.Loaded(1, Now{})
	b.ReportAllocs()
	for b.Loop() {
		s.Expire(Now{UnixMilli: 1_700_000_000_001})
	}
}
