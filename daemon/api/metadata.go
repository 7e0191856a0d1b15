package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/metadata"
	"kring/replication/controller"
	"kring/wire"
)

// metadataOf answers Metadata from the latest picture: who is there, who leads what. Topics asked for that do not exist are
// created if the broker and the client allow it.
func metadataOf(c *Context, r *server.Request) {
	m := kmsg.NewPtrMetadataRequest()
	if !decode(r, m) {
		return
	}
	a := &metadataAnswer{c: c, r: r, m: m, image: c.Image(), listener: r.Conn.Listener}
	a.all = m.Topics == nil || r.Version == 0 && len(m.Topics) == 0
	if !a.all && r.Version < 12 && !a.namesOnly() {
		return
	}
	a.begin()
	if a.all {
		for t := range a.image.Topics() {
			a.topic(t)
		}
	} else {
		a.named()
	}
	a.create()
}

// metadataAnswer is an answer in the making.
type metadataAnswer struct {
	c        *Context
	r        *server.Request
	m        *kmsg.MetadataRequest
	image    *metadata.Image
	listener string
	all      bool

	resp       *kmsg.MetadataResponse
	partitions []kmsg.MetadataResponseTopicPartition // what the topics' slices are cut from
	missing    []int                                 // topics of resp to be created
}

// namesOnly refuses what versions below 12 cannot ask for.
func (a *metadataAnswer) namesOnly() bool {
	for _, t := range a.m.Topics {
		if t.Topic != nil && t.TopicID == ([16]byte{}) {
			continue
		}
		resp := kmsg.NewPtrMetadataResponse()
		for _, t := range a.m.Topics {
			rt := kmsg.NewMetadataResponseTopic()
			rt.ErrorCode, rt.Topic, rt.TopicID = int16(wire.InvalidRequest), t.Topic, t.TopicID
			if rt.Topic == nil {
				rt.Topic = new(string)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		a.r.ReplyMessage(resp)
		return false
	}
	return true
}

// begin fills in the cluster.
func (a *metadataAnswer) begin() {
	resp := kmsg.NewPtrMetadataResponse()
	a.resp = resp
	resp.ClusterID = optional(a.c.ClusterID)
	resp.ControllerID = a.image.ControllerID
	brokers := a.image.Brokers()
	resp.Brokers = make([]kmsg.MetadataResponseBroker, 0, len(brokers))
	for _, b := range brokers {
		if e, ok := b.Endpoint(a.listener); ok {
			resp.Brokers = append(resp.Brokers, kmsg.MetadataResponseBroker{NodeID: b.ID, Host: e.Host, Port: e.Port, Rack: optional(b.Rack)})
		}
	}
	if a.m.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = clusterOperations
	}
	count := len(a.m.Topics)
	if a.all {
		count = a.image.NumTopics()
		a.partitions = make([]kmsg.MetadataResponseTopicPartition, 0, a.image.NumPartitions())
	}
	resp.Topics = make([]kmsg.MetadataResponseTopic, 0, count)
}

// named adds the topics asked for, each once. If any is asked for by id, names alone are passed over, as in Kafka.
func (a *metadataAnswer) named() {
	byID := false
	for i := range a.m.Topics {
		byID = byID || a.m.Topics[i].TopicID != [16]byte{}
	}
	var seen map[any]bool
	if len(a.m.Topics) > 1 {
		seen = make(map[any]bool, len(a.m.Topics))
	}
	for i := range a.m.Topics {
		t := &a.m.Topics[i]
		var key any
		switch {
		case t.TopicID != [16]byte{}:
			key = t.TopicID
		case byID || t.Topic == nil:
			continue
		default:
			key = *t.Topic
		}
		if seen[key] {
			continue
		}
		if seen != nil {
			seen[key] = true
		}
		a.one(t)
	}
}

// one adds a topic asked for.
func (a *metadataAnswer) one(t *kmsg.MetadataRequestTopic) {
	if t.TopicID != ([16]byte{}) {
		if found := a.image.TopicByID(t.TopicID); found != nil {
			a.topic(found)
			return
		}
		rt := a.next(wire.UnknownTopicID, nil)
		rt.TopicID = t.TopicID
		return
	}
	if found := a.image.Topic(*t.Topic); found != nil {
		a.topic(found)
		return
	}
	if metadata.CheckTopicName(*t.Topic) != nil {
		a.next(wire.InvalidTopicException, t.Topic)
		return
	}
	a.next(wire.UnknownTopicOrPartition, t.Topic)
	conf := a.c.Config()
	room := int64(len(a.missing)+1)*int64(max(conf.NumPartitions, 1)) <= a.c.PartitionsMost
	if conf.AutoCreateTopics && room && (a.m.AllowAutoTopicCreation || a.r.Version < 4) {
		a.missing = append(a.missing, len(a.resp.Topics)-1)
	}
}

// next adds an empty topic.
func (a *metadataAnswer) next(code wire.Code, name *string) *kmsg.MetadataResponseTopic {
	a.resp.Topics = append(a.resp.Topics, kmsg.MetadataResponseTopic{ErrorCode: int16(code), Topic: name, AuthorizedOperations: noOperations})
	t := &a.resp.Topics[len(a.resp.Topics)-1]
	t.IsInternal = name != nil && internal(*name)
	if a.m.IncludeTopicAuthorizedOperations {
		t.AuthorizedOperations = topicOperations
	}
	return t
}

// topic adds a topic of the picture.
func (a *metadataAnswer) topic(t *metadata.Topic) {
	rt := a.next(wire.None, &t.Name)
	rt.TopicID = t.ID
	if free := cap(a.partitions) - len(a.partitions); free < len(t.Partitions) {
		a.partitions = make([]kmsg.MetadataResponseTopicPartition, 0, len(t.Partitions))
	}
	from := len(a.partitions)
	for i := range t.Partitions {
		a.partitions = append(a.partitions, a.partition(int32(i), &t.Partitions[i]))
	}
	rt.Partitions = a.partitions[from:len(a.partitions):len(a.partitions)]
}

// partition describes one partition to a client of this listener.
func (a *metadataAnswer) partition(index int32, p *metadata.Partition) kmsg.MetadataResponseTopicPartition {
	rp := kmsg.MetadataResponseTopicPartition{Partition: index, Leader: p.Leader, LeaderEpoch: int32(p.LeaderEpoch),
		Replicas: p.Replicas, ISR: p.ISR, OfflineReplicas: a.offline(p)}
	leader := a.image.Broker(p.Leader)
	if leader == nil {
		rp.ErrorCode, rp.Leader = int16(wire.LeaderNotAvailable), metadata.NoLeader
	} else if _, ok := leader.Endpoint(a.listener); !ok {
		rp.Leader = metadata.NoLeader
		if rp.ErrorCode = int16(wire.LeaderNotAvailable); a.r.Version >= 6 {
			rp.ErrorCode = int16(wire.ListenerNotFound)
		}
	} else if a.r.Version == 0 && len(rp.OfflineReplicas) > 0 {
		rp.ErrorCode = int16(wire.ReplicaNotAvailable)
		rp.Replicas, rp.ISR = without(p.Replicas, rp.OfflineReplicas), without(p.ISR, rp.OfflineReplicas)
	}
	return rp
}

// offline is the replicas a client cannot reach.
func (a *metadataAnswer) offline(p *metadata.Partition) []int32 {
	out := p.Offline[:len(p.Offline):len(p.Offline)]
	for _, id := range p.Replicas {
		if b := a.image.Broker(id); b != nil {
			if _, ok := b.Endpoint(a.listener); ok {
				continue
			}
		}
		if !contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// create has the missing topics made, then answers. The client is told to come again.
func (a *metadataAnswer) create() {
	if len(a.missing) == 0 {
		a.r.ReplyMessage(a.resp)
		return
	}
	a.c.Control(func(k *controller.Controller, finish func(func())) {
		left := len(a.missing)
		for _, i := range a.missing {
			t := &a.resp.Topics[i]
			autoCreate(a.c.Node, k, *t.Topic, func(err error) {
				t.ErrorCode = int16(wire.LeaderNotAvailable)
				if err != nil {
					t.ErrorCode = int16(codeOf(err))
				}
				if left--; left == 0 {
					finish(func() { a.r.ReplyMessage(a.resp) })
				}
			})
		}
	})
}

func contains(ids []int32, id int32) bool {
	for _, i := range ids {
		if i == id {
			return true
		}
	}
	return false
}

func without(ids, gone []int32) []int32 {
	out := make([]int32, 0, len(ids))
	for _, id := range ids {
		if !contains(gone, id) {
			out = append(out, id)
		}
	}
	return out
}
