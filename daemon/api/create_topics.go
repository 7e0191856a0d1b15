package api

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/replication/controller"
	"kring/wire"
)

// createTopics has the controller create topics and answers when each has its leaders, or at the timeout.
func createTopics(c *Context, r *server.Request) {
	m := kmsg.NewPtrCreateTopicsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrCreateTopicsResponse()
	count := make(map[string]int, len(m.Topics))
	for i := range m.Topics {
		count[m.Topics[i].Topic]++
	}
	var ask []controller.CreateTopic
	var at []int // where in resp the answer to each of ask goes
	for i := range m.Topics {
		t := &m.Topics[i]
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.Topic, -1, -1
		rt.Configs = []kmsg.CreateTopicsResponseTopicConfig{}
		if count[t.Topic] > 1 {
			rt.ErrorCode, rt.ErrorMessage = int16(wire.InvalidRequest), optional("Found multiple entries for this topic.")
		} else {
			ask, at = append(ask, creation(t)), append(at, i)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if c.tooMany(ask) {
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
		k.CreateTopics(ask, call, func(done []controller.CreatedTopic) {
			finish(func() {
				for i := range done {
					created(c, &resp.Topics[at[i]], &done[i])
				}
				r.ReplyMessage(resp)
			})
		})
	})
}

// tooManyPartitions is what KRaft controllers answer; those of ZooKeeper's time try until they fall over.
const tooManyPartitions = "Excessively large number of partitions per request."

// tooMany says whether a request asks for more partitions than one may.
func (c *Context) tooMany(topics []controller.CreateTopic) bool {
	var sum int64
	for i := range topics {
		n := int64(len(topics[i].Assignment))
		if n == 0 {
			if n = int64(topics[i].Partitions); n < 0 {
				n = int64(c.Config().NumPartitions)
			}
		}
		sum += n
	}
	return sum > c.PartitionsMost
}

// creation is one topic of the request as the controller takes it.
func creation(t *kmsg.CreateTopicsRequestTopic) controller.CreateTopic {
	a := controller.CreateTopic{Name: t.Topic, Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor}
	for _, p := range t.ReplicaAssignment {
		a.Assignment = append(a.Assignment, controller.Assigned{Partition: p.Partition, Replicas: p.Replicas})
	}
	for _, s := range t.Configs {
		a.Configs = append(a.Configs, controller.ConfigValue{Name: s.Name, Value: s.Value})
	}
	return a
}

// created fills in what became of one topic.
func created(c *Context, rt *kmsg.CreateTopicsResponseTopic, t *controller.CreatedTopic) {
	rt.TopicID = t.ID // also of a topic that was made but not waited for
	if t.Err != nil {
		rt.ErrorCode, rt.ErrorMessage = int16(codeOf(t.Err)), messageOf(t.Err)
		return
	}
	rt.NumPartitions, rt.ReplicationFactor = t.Partitions, t.ReplicationFactor
	for _, e := range c.Config().DescribeTopic(overrides(t.Config)) {
		rt.Configs = append(rt.Configs, kmsg.CreateTopicsResponseTopicConfig{Name: e.Name, Value: e.Value, ReadOnly: e.ReadOnly,
			Source: int8(e.Source), IsSensitive: e.Sensitive})
	}
}

// overrides is a configuration as daemon/config takes it.
func overrides(c metadata.Config) map[string]string {
	m := make(map[string]string, len(c))
	for _, s := range c {
		m[s.Name] = s.Value
	}
	return m
}

// Rules is what the controller must know of settings, from the broker's own (which may change while it runs).
func Rules(current func() *config.Config) controller.ConfigRules {
	return controller.ConfigRules{
		CheckTopic: func(c metadata.Config) error { return current().CheckTopic(overrides(c)) },
		CheckBroker: func(id int32, c metadata.Config) error {
			return current().CheckBroker(overrides(c), id == metadata.NoBroker)
		},
		TopicDefault: func(name string) (string, bool) {
			for _, e := range current().DescribeTopic(nil) {
				if e.Name == name {
					return value(e.Value), e.Type == config.List
				}
			}
			return "", false
		},
		BrokerDefault: func(name string) (string, bool) {
			for _, e := range current().DescribeBroker() {
				if e.Name == name {
					return value(e.Value), e.Type == config.List
				}
			}
			return "", false
		},
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// brokerID reads the name of a broker resource.
func brokerID(name string) (int32, error) {
	id, err := strconv.ParseInt(name, 10, 32)
	return int32(id), err
}
