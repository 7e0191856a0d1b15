package api

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/replication"
	"kring/wire"
	"kring/wire/batch"
)

// eachLoops runs a test with one, two and four loops.
func eachLoops(t *testing.T, fn func(t *testing.T, loops int)) {
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d loops", n), func(t *testing.T) { fn(t, n) })
	}
}

func TestProduceAndFetchGiveTheSameBytes(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 6})
		p := x.dial(loops - 1)
		for round := range 3 {
			pieces := []piece{}
			for i := range 6 {
				pieces = append(pieces, piece{"a", int32(i), records(2, 10+i)})
			}
			for version := int16(3); version <= 11; version += 4 {
				resp := call[*kmsg.ProduceResponse](p, produceRequest(version, int16(1-2*(round%2)), pieces...))
				for i := range resp.Topics {
					if rp := resp.Topics[i].Partitions[0]; rp.ErrorCode != 0 || rp.BaseOffset%2 != 0 {
						t.Fatalf("version %d: %+v", version, rp)
					}
				}
			}
		}
		for version := int16(4); version <= 17; version++ {
			parts := []from{}
			for i := range 6 {
				parts = append(parts, from{"a", int32(i), 0})
			}
			resp := call[*kmsg.FetchResponse](p, x.fetchRequest(version, 100, 1, parts...))
			for i := range 6 {
				rp := x.got(resp, "a", int32(i))
				if rp == nil || rp.ErrorCode != 0 || rp.HighWatermark != 18 {
					t.Fatalf("version %d, partition %d: %+v", version, i, rp)
				}
				want := []byte{}
				for k := range 9 {
					b := records(2, 10+i)
					batch.Stamp(b, int64(2*k), 3)
					want = append(want, b...)
				}
				if !bytes.Equal(rp.RecordBatches, want) {
					t.Fatalf("version %d, partition %d: %d bytes, want %d", version, i, len(rp.RecordBatches), len(want))
				}
			}
		}
	})
}

func TestProduceWithoutAcks(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 2})
		p := x.dial(0)
		p.send(produceRequest(9, 0, piece{"a", 0, records(1, 5)}, piece{"a", 1, records(1, 5)}))
		if base := p.put("a", 1, records(1, 5)); base != 1 {
			t.Fatalf("base offset %d, want 1", base)
		}
		p.send(produceRequest(9, 0, piece{"nobody", 0, records(1, 5)}))
		x.w.Run(func() bool { closed, _ := p.c.Closed(); return closed })
		if closed, _ := p.c.Closed(); !closed {
			t.Fatal("a refused produce without acks must close the connection")
		}
		if n := len(p.c.Buffered()); n != 0 {
			t.Fatalf("%d bytes of answer to acks 0", n)
		}
	})
}

func TestProduceOfManyErrorsAnswersEachPartition(t *testing.T) {
	x := newWorld(t, 2, topic{name: "a", partitions: 2})
	p := x.dial(1)
	bad := records(1, 5)
	bad[len(bad)-1] ^= 1
	resp := call[*kmsg.ProduceResponse](p, produceRequest(9, -1, piece{"a", 0, records(1, 5)}, piece{"a", 1, bad},
		piece{"a", 7, records(1, 5)}, piece{"no", 0, records(1, 5)}, piece{"a", 1, nil}))
	want := []wire.Code{wire.None, wire.CorruptMessage, wire.UnknownTopicOrPartition, wire.UnknownTopicOrPartition, wire.InvalidRecord}
	for i, code := range want {
		if got := wire.Code(resp.Topics[i].Partitions[0].ErrorCode); got != code {
			t.Errorf("partition %d: %v, want %v", i, got, code)
		}
	}
}

func TestProduceThatIsNoRequestClosesTheConnection(t *testing.T) {
	x := newWorld(t, 1)
	p := x.dial(0)
	p.send(&garbage{key: 0, version: 9, body: []byte{1, 2, 3}})
	x.w.Run(func() bool { closed, _ := p.c.Closed(); return closed })
	if closed, _ := p.c.Closed(); !closed {
		t.Fatal("not closed")
	}
}

// garbage is a request of any bytes.
type garbage struct {
	kmsg.Request
	key, version int16
	body         []byte
}

func (g *garbage) Key() int16               { return g.key }
func (g *garbage) GetVersion() int16        { return g.version }
func (g *garbage) AppendTo(b []byte) []byte { return append(b, g.body...) }

func TestCompressedBatchesOnACompactedTopicKeepTheirTurn(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "c", partitions: 1, conf: func(c *replication.Config) { c.Compacted = true }})
		p := x.dial(loops - 1)
		build := func(codec batch.Codec, key []byte) []byte {
			b := batch.NewBuilder(codec)
			b.Add(1, key, []byte("value"))
			return b.AppendTo(nil)
		}
		k := []byte("k")
		sends := []struct {
			data []byte
			code wire.Code
			base int64
		}{
			{build(batch.Zstd, k), wire.None, 0},
			{build(batch.None, k), wire.None, 1},
			{build(batch.Gzip, nil), wire.InvalidRecord, -1},
			{build(batch.None, nil), wire.InvalidRecord, -1},
			{build(batch.LZ4, k), wire.None, 2},
			{build(batch.None, k), wire.None, 3},
		}
		ids := []int32{}
		for _, s := range sends {
			ids = append(ids, p.send(produceRequest(8, -1, piece{"c", 0, s.data})))
		}
		for i, s := range sends {
			resp := kmsg.NewPtrProduceResponse()
			resp.Version = 8
			p.receive(resp, ids[i])
			rp := resp.Topics[0].Partitions[0]
			if wire.Code(rp.ErrorCode) != s.code || rp.BaseOffset != s.base || (len(rp.ErrorRecords) > 0) != (s.code != wire.None) {
				t.Errorf("request %d: %+v; want %v, base %d", i, rp, s.code, s.base)
			}
		}
		got := x.got(call[*kmsg.FetchResponse](p, x.fetchRequest(12, 0, 1, from{"c", 0, 0})), "c", 0).RecordBatches
		for i, want := range []batch.Codec{batch.Zstd, batch.None, batch.LZ4, batch.None} {
			b, rest, err := batch.Whole(got)
			if err != nil || batch.Header(b).Codec() != want || batch.Header(b).BaseOffset() != int64(i) {
				t.Fatalf("batch %d in the log: %v", i, err)
			}
			got = rest
		}
	})
}

func TestProduceNamesTheLeaderFromVersion10On(t *testing.T) {
	x := newWorld(t, 2, topic{name: "a", partitions: 2})
	x.partition("a", 1, func(p *replication.Partition) { p.Resign(replication.State{Leader: 2, LeaderEpoch: 4}) })
	p := x.dial(0)
	for _, version := range []int16{9, 10, 11} {
		resp := call[*kmsg.ProduceResponse](p, produceRequest(version, -1, piece{"a", 0, records(1, 1)}, piece{"a", 1, records(1, 1)}))
		rp := resp.Topics[1].Partitions[0]
		if code := wire.Code(rp.ErrorCode); code != wire.NotLeaderOrFollower || resp.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatalf("version %d: %v, and the other partition %d", version, code, resp.Topics[0].Partitions[0].ErrorCode)
		}
		told := rp.CurrentLeader.LeaderID == self && rp.CurrentLeader.LeaderEpoch == 3 && len(resp.Brokers) == 1
		if told != (version >= 10) {
			t.Fatalf("version %d: leader %+v, nodes %+v", version, rp.CurrentLeader, resp.Brokers)
		}
	}
}

func TestFailedDiskIsAStorageError(t *testing.T) {
	x := newWorld(t, 2, topic{name: "a", partitions: 1})
	p := x.dial(0)
	p.put("a", 0, records(1, 1))
	x.m.FailNext("write", "a-0/", 0, 1, errors.New("input/output error"))
	for range 2 {
		resp := call[*kmsg.ProduceResponse](p, produceRequest(9, -1, piece{"a", 0, records(1, 1)}))
		if code := wire.Code(resp.Topics[0].Partitions[0].ErrorCode); code != wire.KafkaStorageError {
			t.Fatalf("produce: %v", code)
		}
	}
	for version, want := range map[int16]wire.Code{5: wire.NotLeaderOrFollower, 6: wire.KafkaStorageError} {
		rp := x.got(call[*kmsg.FetchResponse](p, x.fetchRequest(version, 1000, 1, from{"a", 0, 0})), "a", 0)
		if code := wire.Code(rp.ErrorCode); code != want {
			t.Errorf("fetch of version %d: %v, want %v", version, code, want)
		}
	}
}
