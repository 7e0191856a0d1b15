package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication"
	"kring/ring"
	"kring/wire"
)

// deleteRecords raises the log start of partitions (KIP-107). With one replica the new start is its own, so there is nothing
// to wait for.
func deleteRecords(c *Context, r *server.Request) {
	m := kmsg.NewPtrDeleteRecordsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDeleteRecordsResponse()
	resp.Topics = make([]kmsg.DeleteRecordsResponseTopic, len(m.Topics))
	e := newErrands(c)
	for i := range m.Topics {
		t, rt := &m.Topics[i], &resp.Topics[i]
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.DeleteRecordsResponseTopicPartition, len(t.Partitions))
		for k := range t.Partitions {
			p, rp := &t.Partitions[k], &rt.Partitions[k]
			rp.Partition, rp.LowWatermark = p.Partition, -1
			loop, code := c.place(t.Topic, p.Partition)
			if code == wire.None && internal(t.Topic) {
				code = wire.InvalidTopicException
			}
			if rp.ErrorCode = int16(code); code != wire.None {
				continue
			}
			e.add(loop, func(_ *ring.Task, on *Context) {
				here, err := on.leader(t.Topic, p.Partition, replication.NoEpoch)
				if err == nil && !here.Log().Config().DeleteRetained {
					err = wire.PolicyViolation
				}
				if err == nil {
					var start replication.Offset
					start, err = here.DeleteTo(replication.Offset(p.Offset))
					rp.LowWatermark = int64(start)
				}
				rp.ErrorCode = int16(codeOf(err))
			})
		}
	}
	e.run(func() { r.ReplyMessage(resp) })
}
