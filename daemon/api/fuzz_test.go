package api

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/replication"
	"kring/wire"
)

// FuzzDataRequests sends any bytes as the body of a data API's request: they are answered or the connection is closed, and
// afterwards nothing waits any more and the broker still serves.
func FuzzDataRequests(f *testing.F) {
	keys := []int16{wire.Produce, wire.Fetch, wire.ListOffsets, wire.DeleteRecords, wire.InitProducerID, wire.OffsetForLeaderEpoch}
	seed := func(req kmsg.Request) { f.Add(uint8(slot(keys, req.Key())), req.GetVersion(), req.AppendTo(nil)) }
	for version := int16(3); version <= 11; version += 2 {
		seed(produceRequest(version, -1, piece{"a", 0, records(3, 10)}, piece{"a", 1, records(1, 0)}))
		seed(produceRequest(version, 0, piece{"c", 0, records(3, 10)}, piece{"a", 1, nil}))
	}
	x := &world{}
	for version := int16(4); version <= 17; version++ {
		req := x.fetchRequest(version, 10, 1, from{"a", 0, 0}, from{"a", 1, 5})
		for i := range req.Topics {
			req.Topics[i].TopicID = [16]byte{1, 1}
		}
		req.SessionEpoch = 0
		seed(req)
	}
	list := kmsg.NewPtrListOffsetsRequest()
	list.Version = 9
	for ms := int64(-6); ms < 1; ms++ {
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = "a"
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Timestamp, rp.Partition = ms, int32(-ms)
		rt.Partitions = append(rt.Partitions, rp)
		list.Topics = append(list.Topics, rt)
	}
	seed(list)
	if raw, err := os.ReadFile("testdata/produce-probes.json"); err == nil {
		var probes []probe
		if json.Unmarshal(raw, &probes) == nil {
			for _, p := range probes {
				if b, err := hex.DecodeString(p.Request); err == nil && len(b) > 15 {
					f.Add(uint8(0), int16(8), b[15:])
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, version int16, body []byte) {
		g := &garbage{key: keys[int(which)%len(keys)], version: version, body: body}
		if g.key == wire.InitProducerID || version < 0 || version > 17 || len(body) > 1<<16 {
			return // needs a controller
		}
		x := newWorld(t, 2, topic{name: "a", partitions: 2},
			topic{name: "c", partitions: 1, conf: func(c *replication.Config) { c.Compacted = true }})
		p := x.dial(1)
		p.send(g)
		x.w.RunFor(50 * time.Millisecond)
		p.c.Close()
		x.w.RunFor(time.Second)
		q := x.dial(0)
		q.put("a", 0, records(1, 1))
		x.quiet("a", 2)
		x.quiet("c", 1)
		for _, c := range x.node.Contexts {
			if err := c.data.sessions.check(); c.data.sessions.byID != nil && err != nil {
				t.Fatal(err)
			}
		}
	})
}

func slot(keys []int16, key int16) int {
	for i, k := range keys {
		if k == key {
			return i
		}
	}
	return 0
}
