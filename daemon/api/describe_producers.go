package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/metadata"
	"kring/replication"
	"kring/ring"
	"kring/wire"
)

// describeProducers tells which producers the logs of partitions remember (KIP-664).
func describeProducers(c *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeProducersRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDescribeProducersResponse()
	resp.Topics = make([]kmsg.DescribeProducersResponseTopic, len(m.Topics))
	e := newErrands(c)
	asked := map[named]bool{}
	for i := range m.Topics {
		t, rt := &m.Topics[i], &resp.Topics[i]
		rt.Topic = t.Topic
		bad := metadata.CheckTopicName(t.Topic)
		rt.Partitions = make([]kmsg.DescribeProducersResponseTopicPartition, len(t.Partitions))
		for k, index := range t.Partitions {
			rp := &rt.Partitions[k]
			rp.Partition = index
			loop, code := c.place(t.Topic, index)
			switch id := (named{t.Topic, index}); {
			case bad != nil:
				rp.ErrorCode, rp.ErrorMessage = int16(wire.InvalidTopicException), optional(bad.Error())
			case code != wire.None:
				rp.ErrorCode = int16(code)
				if c.Image().Topic(t.Topic) == nil {
					rp.ErrorMessage = optional(code.Text())
				}
			case asked[id]:
				// naming costs four bytes, describing what a thousand producers take
				rp.ErrorCode, rp.ErrorMessage = int16(wire.InvalidRequest), optional("Duplicate partition in request.")
			default:
				asked[id] = true
				e.add(loop, func(_ *ring.Task, on *Context) {
					here, err := on.leader(t.Topic, index, replication.NoEpoch)
					if rp.ErrorCode = int16(codeOf(err)); err == nil {
						rp.ActiveProducers = remembered(here)
					}
				})
			}
		}
	}
	e.run(func() { r.ReplyMessage(resp) })
}

func remembered(p *replication.Partition) []kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	producers := p.Log().Producers()
	all := make([]kmsg.DescribeProducersResponseTopicPartitionActiveProducer, len(producers))
	for i, x := range producers {
		all[i] = kmsg.DescribeProducersResponseTopicPartitionActiveProducer{ProducerID: x.ID, ProducerEpoch: int32(x.Epoch),
			LastSequence: x.LastSequence, LastTimestamp: x.Timestamp, CoordinatorEpoch: x.CoordinatorEpoch, CurrentTxnStartOffset: int64(x.TxnFirst)}
	}
	return all
}
