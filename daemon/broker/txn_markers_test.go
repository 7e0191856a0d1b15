package broker

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
	"kring/wire/batch"
)

// transactional is a batch of one record in a producer's transaction.
func transactional(producer int64, epoch int16, sequence int32) []byte {
	b := batch.NewBuilder(batch.None)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = producer, epoch, sequence, true
	b.Add(1_700_000_000_000, []byte("k"), []byte("v"))
	return b.AppendTo(nil)
}

func (c *client) produceIn(id string, topic string, partition int32, records []byte) wire.Code {
	c.t.Helper()
	m := produceRequest(topic, partition, -1, records)
	m.TransactionID = &id
	return wire.Code(ask[*kmsg.ProduceResponse](c, m, 9).Topics[0].Partitions[0].ErrorCode)
}

// end is a marker for some partitions of a topic.
func end(producer int64, commit bool, coordinator int32, topic string, partitions ...int32) kmsg.WriteTxnMarkersRequestMarker {
	return kmsg.WriteTxnMarkersRequestMarker{ProducerID: producer, Committed: commit, CoordinatorEpoch: coordinator,
		Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: partitions}}}
}

// mark sends markers and writes out the answer.
func (c *client) mark(version int16, markers ...kmsg.WriteTxnMarkersRequestMarker) (said []string) {
	c.t.Helper()
	m := kmsg.NewPtrWriteTxnMarkersRequest()
	m.Markers = markers
	for _, a := range ask[*kmsg.WriteTxnMarkersResponse](c, m, version).Markers {
		for _, t := range a.Topics {
			for _, p := range t.Partitions {
				said = append(said, fmt.Sprintf("%d %s-%d %d", a.ProducerID, t.Topic, p.Partition, p.ErrorCode))
			}
		}
	}
	return said
}

// TestMarkersEndTransactions: markers reach their partitions in the order of the request, whichever loop they live on, and an answer
// names each producer's partition once, with the last word about it.
func TestMarkersEndTransactions(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		s := newSim(t, loops, 5)
		s.start("transaction.partition.verification.enable=false")
		c := connect(t, s)
		c.createTopic("a", 3)
		c.createTopic("late", 1, "message.timestamp.type=LogAppendTime")
		for p := range int32(3) {
			for producer := range int64(2) {
				if code := c.produceIn("x", "a", p, transactional(7+producer, 0, 0)); code != wire.None {
					t.Fatal(code)
				}
			}
		}
		stable := func(p int32, want int64) {
			t.Helper()
			if got := c.fetch("a", p, 0, 0); got.LastStableOffset != want {
				t.Errorf("%d loops: a-%d is stable up to %d, not %d", loops, p, got.LastStableOffset, want)
			}
		}
		stable(0, 0)
		got := c.mark(1, end(7, true, 3, "a", 0, 1, 2), end(8, false, 3, "a", 1), end(7, true, 2, "a", 0), end(8, true, 3, "a", 9),
			end(-1, true, 3, "a", 0), end(9, true, 0, "nothing", 0), end(9, true, 0, "late", 0))
		want := []string{"7 a-0 52", "7 a-1 0", "7 a-2 0", "8 a-1 0", "8 a-9 3",
			"-1 a-0 -1", "9 nothing-0 3", "9 late-0 0"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d loops:\n%q\nwant\n%q", loops, got, want)
		}
		stable(0, 1)
		stable(1, 4)
		stable(2, 1)
		if got := c.mark(0, end(8, false, 4, "a", 0, 2)); len(got) != 2 || got[0] != "8 a-0 0" {
			t.Errorf("version 0: %q", got)
		}
		stable(0, 4)
		if got := c.mark(1); len(got) != 0 {
			t.Errorf("no markers: %q", got)
		}
		if b := c.fetch("late", 0, 0, 0).RecordBatches; len(b) < 61 || !batch.Header(b).Control() || !batch.Header(b).LogAppendTime() {
			t.Errorf("the marker of a topic with append times is % x", b)
		}
		s.stop()
	}
}

// TestStableIsNotBeforeTheLogStart: what was deleted of an open transaction holds nobody back.
func TestStableIsNotBeforeTheLogStart(t *testing.T) {
	s := newSim(t, 1, 6)
	s.start("transaction.partition.verification.enable=false")
	c := connect(t, s)
	c.createTopic("a", 1)
	for i := range int32(4) {
		c.produceIn("x", "a", 0, transactional(7, 0, i))
	}
	m := kmsg.NewPtrDeleteRecordsRequest()
	m.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "a", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: 2}}}}
	ask[*kmsg.DeleteRecordsResponse](c, m, 2)
	if got := c.fetch("a", 0, 2, 0); got.LogStartOffset != 2 || got.LastStableOffset != 2 {
		t.Errorf("start %d, stable %d", got.LogStartOffset, got.LastStableOffset)
	}
	s.stop()
}

// TestTransactionsNeedACoordinatorsWord: unless it is told otherwise, the broker takes no batch of a transaction nobody has begun.
func TestTransactionsNeedACoordinatorsWord(t *testing.T) {
	s := newSim(t, 1, 6)
	s.start()
	c := connect(t, s)
	c.createTopic("a", 1)
	if code := c.produceIn("x", "a", 0, transactional(7, 0, 0)); code != wire.InvalidProducerIDMapping {
		t.Errorf("answered %v", code)
	}
	s.stop()
}

// TestMarkersAreAnsweredAsByKafka sends what Kafka's brokers were seen to send.
func TestMarkersAreAnsweredAsByKafka(t *testing.T) {
	text, err := os.ReadFile("testdata/write-txn-markers.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ Request, Response string }
	if err := json.Unmarshal(text, &all); err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	for _, loops := range []int{1, 2, 4} {
		s := newSim(t, loops, 7)
		s.start()
		c := connect(t, s)
		for _, topic := range []string{"t1", "ta", "__consumer_offsets"} {
			c.createTopic(topic, 3)
		}
		for i, x := range all {
			request, err := hex.DecodeString(x.Request)
			if err != nil {
				t.Fatal(err)
			}
			c.send(request)
			got, err := c.read(len(x.Response) / 2)
			if err != nil || hex.EncodeToString(got) != x.Response {
				t.Errorf("%d loops, request %d: answer\n%x (%v)\nKafka's\n%s", loops, i, got, err, x.Response)
			}
		}
		s.stop()
	}
}
