package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/ring"
	"kring/wire"
)

// offsetForLeaderEpoch answers where leader epochs ended: clients ask after a change of leader whether their position still
// stands (KIP-320).
func offsetForLeaderEpoch(c *Context, r *server.Request) {
	m := kmsg.NewPtrOffsetForLeaderEpochRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	resp.Topics = make([]kmsg.OffsetForLeaderEpochResponseTopic, len(m.Topics))
	e := newErrands(c)
	for i := range m.Topics {
		t, rt := &m.Topics[i], &resp.Topics[i]
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.OffsetForLeaderEpochResponseTopicPartition, len(t.Partitions))
		for k := range t.Partitions {
			p, rp := &t.Partitions[k], &rt.Partitions[k]
			*rp = kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			rp.Partition, rp.LeaderEpoch, rp.EndOffset = p.Partition, -1, -1
			loop, code := c.place(t.Topic, p.Partition)
			if rp.ErrorCode = int16(code); code != wire.None {
				continue
			}
			e.add(loop, func(_ *ring.Task, on *Context) {
				here, err := on.leader(t.Topic, p.Partition, p.CurrentLeaderEpoch)
				if rp.ErrorCode = int16(codeOf(err)); err != nil {
					return
				}
				end := here.Log().EndOffsetForEpoch(p.LeaderEpoch)
				rp.LeaderEpoch, rp.EndOffset = end.Epoch, int64(end.End)
			})
		}
	}
	e.run(func() { r.ReplyMessage(resp) })
}
