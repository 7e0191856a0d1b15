package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
	"kring/wire"
)

// offsetDelete forgets committed offsets of a group; it is answered when that is in the log.
func offsetDelete(c *Context, r *server.Request) {
	m := kmsg.NewPtrOffsetDeleteRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrOffsetDeleteResponse()
	q := &coordinator.DeleteOffsets{Group: m.Group}
	var at []*kmsg.OffsetDeleteResponseTopicPartition // of q.Partitions in resp
	image := c.Image()
	for i := range m.Topics {
		t := &m.Topics[i]
		rt := kmsg.OffsetDeleteResponseTopic{Topic: t.Topic, Partitions: make([]kmsg.OffsetDeleteResponseTopicPartition, len(t.Partitions))}
		known := image.Topic(t.Topic)
		for j, p := range t.Partitions {
			rp := &rt.Partitions[j]
			if rp.Partition = p.Partition; known == nil || p.Partition < 0 || int(p.Partition) >= len(known.Partitions) {
				rp.ErrorCode = int16(wire.UnknownTopicOrPartition)
				continue
			}
			q.Partitions = append(q.Partitions, coordinator.DeletePartition{Topic: t.Topic, Partition: p.Partition})
			at = append(at, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	k := &groupCall{r: r}
	q.Done = func(*coordinator.DeleteOffsets) { k.done() }
	k.start(c, func(g *GroupShard) { g.DeleteOffsets(q, k.on.now()) }, func() {
		if resp.ErrorCode = int16(codeOf(q.Err)); q.Err != nil {
			resp.Topics = nil
		}
		for i := range at {
			at[i].ErrorCode = int16(codeOf(q.Partitions[i].Err))
		}
		r.ReplyMessage(resp)
	})
	k.send(m.Group)
}
