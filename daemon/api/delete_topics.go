package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/metadata"
	"kring/replication/controller"
	"kring/wire"
)

// deleteTopics has the controller delete topics, by name or id, and answers when they are gone, or at the timeout.
func deleteTopics(c *Context, r *server.Request) {
	m := kmsg.NewPtrDeleteTopicsRequest()
	if !decode(r, m) {
		return
	}
	if r.Version < 6 {
		for i := range m.TopicNames {
			m.Topics = append(m.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &m.TopicNames[i]})
		}
	}
	resp := kmsg.NewPtrDeleteTopicsResponse()
	bad := false
	for _, t := range m.Topics {
		rt := kmsg.NewDeleteTopicsResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		bad = bad || (t.Topic == nil) == (t.TopicID == [16]byte{})
		resp.Topics = append(resp.Topics, rt)
	}
	switch {
	case bad:
		deny(resp, wire.InvalidRequest)
	case !c.Config().DeleteTopics && r.Version < 3:
		deny(resp, wire.InvalidRequest)
	case !c.Config().DeleteTopics:
		deny(resp, wire.TopicDeletionDisabled)
	case len(resp.Topics) > 0:
		deletion(c, r, m, resp)
		return
	}
	r.ReplyMessage(resp)
}

// deny refuses the whole request.
func deny(resp *kmsg.DeleteTopicsResponse, code wire.Code) {
	for i := range resp.Topics {
		resp.Topics[i].ErrorCode = int16(code)
	}
}

// deletion asks the controller; a topic named twice is deleted once and answered twice.
func deletion(c *Context, r *server.Request, m *kmsg.DeleteTopicsRequest, resp *kmsg.DeleteTopicsResponse) {
	var ask []controller.DeleteTopic
	at := make([]int, len(m.Topics)) // where in ask the topic is, -1 if it is not
	seen := map[controller.DeleteTopic]int{}
	image := c.Image()
	for i, t := range m.Topics {
		d := controller.DeleteTopic{Name: value(t.Topic), ID: metadata.TopicID(t.TopicID)}
		if d.Name != "" && image.Topic(d.Name) == nil { // also one whose deletion is under way
			at[i], resp.Topics[i].ErrorCode = -1, int16(wire.UnknownTopicOrPartition)
			continue
		}
		n, ok := seen[d]
		if !ok {
			n = len(ask)
			seen[d] = n
			ask = append(ask, d)
		}
		at[i] = n
	}
	if len(ask) == 0 {
		r.ReplyMessage(resp)
		return
	}
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.DeleteTopics(ask, controller.Call{Timeout: millis(m.TimeoutMillis)}, func(done []controller.DeletedTopic) {
			finish(func() {
				for i := range resp.Topics {
					if at[i] < 0 {
						continue
					}
					rt, d := &resp.Topics[i], &done[at[i]]
					rt.Topic, rt.TopicID, rt.ErrorCode = optional(d.Name), d.ID, int16(codeOf(d.Err))
					if r.Version < 6 {
						rt.Topic = m.Topics[i].Topic
					}
				}
				r.ReplyMessage(resp)
			})
		})
	})
}
