package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication/controller"
	"kring/wire"
)

// createPartitions has the controller add partitions to topics.
func createPartitions(c *Context, r *server.Request) {
	m := kmsg.NewPtrCreatePartitionsRequest()
	if !decode(r, m) {
		return
	}
	count := make(map[string]int, len(m.Topics))
	for i := range m.Topics {
		count[m.Topics[i].Topic]++
	}
	resp := kmsg.NewPtrCreatePartitionsResponse()
	var ask []controller.CreatePartitions
	var at []int
	var fresh int64
	image := c.Image()
	for i := range m.Topics {
		t := &m.Topics[i]
		if count[t.Topic] == 0 {
			continue // one answer for a topic named twice
		}
		rt := kmsg.NewCreatePartitionsResponseTopic()
		rt.Topic = t.Topic
		if count[t.Topic] > 1 {
			rt.ErrorCode, rt.ErrorMessage = int16(wire.InvalidRequest), optional("Duplicate topic in request.")
			count[t.Topic] = 0
		} else {
			a := controller.CreatePartitions{Topic: t.Topic, Count: t.Count}
			for _, p := range t.Assignment {
				a.Assignment = append(a.Assignment, p.Replicas)
			}
			ask, at = append(ask, a), append(at, len(resp.Topics))
			var have int64 // a topic the picture does not show yet may be on its way into it: all its partitions count
			if known := image.Topic(t.Topic); known != nil {
				have = int64(len(known.Partitions))
			}
			fresh += max(int64(t.Count)-have, 0)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if fresh > c.PartitionsMost {
		for _, i := range at {
			resp.Topics[i].ErrorCode, resp.Topics[i].ErrorMessage = int16(wire.PolicyViolation), optional(tooManyPartitions)
		}
		ask = nil
	}
	if len(ask) == 0 {
		r.ReplyMessage(resp)
		return
	}
	call := controller.Call{Timeout: millis(m.TimeoutMillis), ValidateOnly: m.ValidateOnly}
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.CreatePartitions(ask, call, func(errs []error) {
			finish(func() {
				for i, err := range errs {
					rt := &resp.Topics[at[i]]
					rt.ErrorCode, rt.ErrorMessage = int16(codeOf(err)), messageOf(err)
				}
				r.ReplyMessage(resp)
			})
		})
	})
}
