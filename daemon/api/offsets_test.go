package api

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/replication"
	"kring/segment"
	"kring/wire"
	"kring/wire/batch"
)

// timed builds a batch of one record per timestamp.
func timed(ms ...int64) []byte {
	b := batch.NewBuilder(batch.None)
	for _, t := range ms {
		b.Add(t, []byte("k"), nil)
	}
	return b.AppendTo(nil)
}

func listRequest(version int16, topic string, index int32, ms int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = version, -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = index, ms, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func TestListOffsets(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 3})
		p := x.dial(0)
		p.put("a", 1, timed(100, 300))
		p.put("a", 1, timed(200, 500, 400))
		p.put("a", 1, timed(450))
		for _, tt := range []struct {
			version       int16
			index         int32
			ms            int64
			code          wire.Code
			offset, found int64
			epoch         int32
		}{
			{9, 1, -1, 0, 6, -1, 3},
			{1, 1, -1, 0, 6, -1, -1},
			{9, 1, -2, 0, 0, -1, 3},
			{8, 1, -4, 0, 0, -1, 3},
			{9, 1, -5, 0, -1, -1, -1},
			{7, 1, -3, 0, 3, 500, 3},
			{9, 1, 0, 0, 0, 100, 3},
			{9, 1, 250, 0, 1, 300, 3},
			{9, 1, 301, 0, 3, 500, 3},
			{9, 1, 501, 0, -1, -1, -1},
			{9, 0, -1, 0, 0, -1, 3},
			{9, 0, -3, 0, -1, -1, -1},
			{9, 0, 0, 0, -1, -1, -1},
			{6, 1, -3, wire.UnsupportedVersion, -1, -1, -1},
			{7, 1, -4, wire.UnsupportedVersion, -1, -1, -1},
			{8, 1, -5, wire.UnsupportedVersion, -1, -1, -1},
			{9, 3, -1, wire.UnknownTopicOrPartition, -1, -1, -1},
			{9, -1, -1, wire.UnknownTopicOrPartition, -1, -1, -1},
		} {
			resp := call[*kmsg.ListOffsetsResponse](p, listRequest(tt.version, "a", tt.index, tt.ms))
			rp := resp.Topics[0].Partitions[0]
			if tt.version < 4 {
				rp.LeaderEpoch = -1
			}
			if wire.Code(rp.ErrorCode) != tt.code || rp.Offset != tt.offset || rp.Timestamp != tt.found || rp.LeaderEpoch != tt.epoch {
				t.Errorf("version %d, partition %d, timestamp %d: %v, offset %d, timestamp %d, epoch %d; want %v, %d, %d, %d",
					tt.version, tt.index, tt.ms, wire.Code(rp.ErrorCode), rp.Offset, rp.Timestamp, rp.LeaderEpoch, tt.code, tt.offset, tt.found, tt.epoch)
			}
		}
		for epoch, want := range map[int32]wire.Code{2: wire.FencedLeaderEpoch, 3: wire.None, 4: wire.UnknownLeaderEpoch} {
			req := listRequest(9, "a", 1, -1)
			req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
			if code := wire.Code(call[*kmsg.ListOffsetsResponse](p, req).Topics[0].Partitions[0].ErrorCode); code != want {
				t.Errorf("leader epoch %d: %v, want %v", epoch, code, want)
			}
		}
		twice := listRequest(9, "a", 1, -1)
		twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, twice.Topics[0].Partitions[0])
		for _, rp := range call[*kmsg.ListOffsetsResponse](p, twice).Topics[0].Partitions {
			if wire.Code(rp.ErrorCode) != wire.InvalidRequest {
				t.Errorf("named twice: %v", wire.Code(rp.ErrorCode))
			}
		}
	})
}

func TestDeleteRecordsRequest(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 2}, topic{name: "__consumer_offsets", partitions: 1},
			topic{name: "c", partitions: 1, log: func(c *segment.Config) { c.DeleteRetained = false }})
		p := x.dial(loops - 1)
		p.put("a", 0, records(5, 1))
		for _, tt := range []struct {
			topic  string
			index  int32
			offset int64
			code   wire.Code
			low    int64
		}{
			{"a", 0, 2, 0, 2},
			{"a", 0, 1, 0, 2},
			{"a", 0, 6, wire.OffsetOutOfRange, -1},
			{"a", 0, -2, wire.OffsetOutOfRange, -1},
			{"a", 0, -1, 0, 5},
			{"a", 1, 0, 0, 0},
			{"a", 2, 0, wire.UnknownTopicOrPartition, -1},
			{"c", 0, 0, wire.PolicyViolation, -1},
			{"__consumer_offsets", 0, 0, wire.InvalidTopicException, -1},
		} {
			req := kmsg.NewPtrDeleteRecordsRequest()
			req.Version, req.TimeoutMillis = 2, 1000
			rt := kmsg.NewDeleteRecordsRequestTopic()
			rt.Topic = tt.topic
			rt.Partitions = []kmsg.DeleteRecordsRequestTopicPartition{{Partition: tt.index, Offset: tt.offset}}
			req.Topics = append(req.Topics, rt)
			rp := call[*kmsg.DeleteRecordsResponse](p, req).Topics[0].Partitions[0]
			if wire.Code(rp.ErrorCode) != tt.code || rp.LowWatermark != tt.low || rp.Partition != tt.index {
				t.Errorf("%s-%d to %d: %v, low watermark %d; want %v, %d", tt.topic, tt.index, tt.offset,
					wire.Code(rp.ErrorCode), rp.LowWatermark, tt.code, tt.low)
			}
		}
		rp := x.got(call[*kmsg.FetchResponse](p, x.fetchRequest(12, 0, 1, from{"a", 0, 4})), "a", 0)
		if wire.Code(rp.ErrorCode) != wire.OffsetOutOfRange {
			t.Errorf("a deleted record: %v", wire.Code(rp.ErrorCode))
		}
		if rp := call[*kmsg.ListOffsetsResponse](p, listRequest(9, "a", 0, -2)).Topics[0].Partitions[0]; rp.Offset != 5 {
			t.Errorf("the log starts at %d, want 5", rp.Offset)
		}
	})
}

func TestOffsetForLeaderEpoch(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newWorld(t, loops, topic{name: "a", partitions: 1})
		p := x.dial(0)
		p.put("a", 0, records(4, 1))
		x.partition("a", 0, func(p *replication.Partition) {
			p.Lead(replication.State{Leader: self, LeaderEpoch: 7, ISR: []int32{self}, Replicas: []int32{self}}, 0)
		})
		p.put("a", 0, records(2, 1))
		for _, tt := range []struct {
			current, asked int32
			code           wire.Code
			epoch          int32
			end            int64
		}{
			{-1, 3, 0, 3, 4},
			{-1, 5, 0, 3, 4},
			{7, 7, 0, 7, 6},
			{-1, 8, 0, -1, -1},
			{-1, 2, 0, 2, 0},
			{6, 7, wire.FencedLeaderEpoch, -1, -1},
			{8, 7, wire.UnknownLeaderEpoch, -1, -1},
		} {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			req.Version, req.ReplicaID = 4, -1
			rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
			rt.Topic = "a"
			rt.Partitions = []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: tt.current, LeaderEpoch: tt.asked}}
			req.Topics = append(req.Topics, rt)
			rp := call[*kmsg.OffsetForLeaderEpochResponse](p, req).Topics[0].Partitions[0]
			if wire.Code(rp.ErrorCode) != tt.code || rp.LeaderEpoch != tt.epoch || rp.EndOffset != tt.end {
				t.Errorf("epoch %d (we are in %d): %v, epoch %d, end %d; want %v, %d, %d", tt.asked, tt.current,
					wire.Code(rp.ErrorCode), rp.LeaderEpoch, rp.EndOffset, tt.code, tt.epoch, tt.end)
			}
		}
	})
}

func TestInitProducerID(t *testing.T) {
	x := newWorld(t, 1)
	c := x.node.Contexts[0]
	c.data.ids = producerIDs{next: 1000, end: 1002}
	p := x.dial(0)
	request := func(txn *string, id int64, epoch int16) *kmsg.InitProducerIDResponse {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version, req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 5, txn, 60_000, id, epoch
		return call[*kmsg.InitProducerIDResponse](p, req)
	}
	for want := int64(1000); want < 1002; want++ {
		if resp := request(nil, -1, -1); resp.ErrorCode != 0 || resp.ProducerID != want || resp.ProducerEpoch != 0 {
			t.Fatalf("%+v, want producer %d", resp, want)
		}
	}
	name, none := "t", ""
	for _, tt := range []struct {
		what  string
		txn   *string
		id    int64
		epoch int16
		want  wire.Code
	}{
		{"a transaction", &name, -1, -1, wire.TransactionalIDAuthorizationFailed},
		{"an empty id", &none, -1, -1, wire.InvalidRequest},
		{"an id without an epoch", nil, 5, -1, wire.InvalidRequest},
		{"an epoch without an id", nil, -1, 5, wire.InvalidRequest},
	} {
		resp := request(tt.txn, tt.id, tt.epoch)
		if wire.Code(resp.ErrorCode) != tt.want || resp.ProducerID != -1 {
			t.Errorf("%s: %+v, want %v", tt.what, resp, tt.want)
		}
		if wire.Code(resp.ErrorCode).Retriable() {
			t.Errorf("%s: clients would try again for ever", tt.what)
		}
	}
}

func TestProducerIDBlocks(t *testing.T) {
	x := newWorld(t, 1)
	c := x.node.Contexts[0]
	ids := &c.data.ids
	var got []string
	done := func(id int64, err error) { got = append(got, fmt.Sprint(id, err)) }
	ids.asked, ids.waiting = true, []func(int64, error){done, done}
	ids.arrived(c, 0, 0, errors.New("no controller"))
	if fmt.Sprint(got) != "[-1 no controller -1 no controller]" || ids.asked {
		t.Fatalf("a failed block: %v", got)
	}
	got = nil
	ids.asked, ids.waiting = true, []func(int64, error){done, done, done}
	ids.arrived(c, 5000, 1000, nil)
	if fmt.Sprint(got) != "[5000 <nil> 5001 <nil> 5002 <nil>]" || ids.next != 5003 || ids.end != 6000 {
		t.Fatalf("a block: %v, next %d", got, ids.next)
	}
}
