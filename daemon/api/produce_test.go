package api

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

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
