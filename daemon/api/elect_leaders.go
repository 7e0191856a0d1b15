package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication/controller"
	"kring/wire"
)

// The kinds of election (KIP-460).
const (
	electPreferred = 0
	electUnclean   = 1
)

// electLeaders has the preferred replicas lead, or any where nobody leads.
func electLeaders(c *Context, r *server.Request) {
	m := kmsg.NewPtrElectLeadersRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrElectLeadersResponse()
	if m.ElectionType != electPreferred && m.ElectionType != electUnclean {
		resp.ErrorCode = int16(wire.UnknownServerError)
		r.ReplyMessage(resp)
		return
	}
	var names []controller.PartitionName
	asked := map[controller.PartitionName]bool{}
	for i := range m.Topics {
		for _, index := range m.Topics[i].Partitions {
			name := controller.PartitionName{Topic: m.Topics[i].Topic, Partition: index}
			if !asked[name] {
				asked[name] = true
				names = append(names, name)
			}
		}
	}
	if m.Topics == nil {
		names = c.everyPartition()
	}
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.ElectLeaders(names, m.ElectionType == electUnclean, func(errs []error) {
			finish(func() {
				resp.Topics = elected(names, errs, m.Topics == nil)
				r.ReplyMessage(resp)
			})
		})
	})
}

// elected is the answer; of all partitions only those are named of which there is something to say.
func elected(names []controller.PartitionName, errs []error, all bool) (topics []kmsg.ElectLeadersResponseTopic) {
	at := map[string]int{}
	for i, name := range names {
		code := codeOf(errs[i])
		if all && code == wire.ElectionNotNeeded {
			continue
		}
		k, known := at[name.Topic]
		if !known {
			k = len(topics)
			at[name.Topic] = k
			rt := kmsg.NewElectLeadersResponseTopic()
			rt.Topic = name.Topic
			topics = append(topics, rt)
		}
		rp := kmsg.NewElectLeadersResponseTopicPartition()
		rp.Partition, rp.ErrorCode, rp.ErrorMessage = name.Partition, int16(code), messageOf(errs[i])
		if code == wire.ElectionNotNeeded {
			rp.ErrorMessage = optional(code.Text())
		}
		topics[k].Partitions = append(topics[k].Partitions, rp)
	}
	return topics
}

func (c *Context) everyPartition() (names []controller.PartitionName) {
	for t := range c.Image().Topics() {
		for i := range t.Partitions {
			names = append(names, controller.PartitionName{Topic: t.Name, Partition: int32(i)})
		}
	}
	return names
}
