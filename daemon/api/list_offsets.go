package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication"
	"kring/ring"
	"kring/segment"
	"kring/wire"
)

// The timestamps of ListOffsets that are none (KIP-79, KIP-734, KIP-405, KIP-1005).
const (
	offsetLatest        = -1
	offsetEarliest      = -2
	offsetMaxTimestamp  = -3
	offsetEarliestLocal = -4
	offsetLatestTiered  = -5
)

// listOffsets answers ListOffsets: the ends of partitions, and offsets by time.
func listOffsets(c *Context, r *server.Request) {
	m := kmsg.NewPtrListOffsetsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrListOffsetsResponse()
	resp.Topics = make([]kmsg.ListOffsetsResponseTopic, len(m.Topics))
	twice := twiceNamed(m)
	e := newErrands(c)
	for i := range m.Topics {
		t, rt := &m.Topics[i], &resp.Topics[i]
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.ListOffsetsResponseTopicPartition, len(t.Partitions))
		for k := range t.Partitions {
			p, rp := &t.Partitions[k], &rt.Partitions[k]
			*rp = kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition = p.Partition
			loop, code := c.place(t.Topic, p.Partition)
			switch {
			case twice[named{t.Topic, p.Partition}]:
				code = wire.InvalidRequest
			case unsupportedTimestamp(p.Timestamp, r.Version):
				code = wire.UnsupportedVersion
			}
			if rp.ErrorCode = int16(code); code != wire.None {
				continue
			}
			e.add(loop, func(task *ring.Task, on *Context) {
				rp.ErrorCode = int16(codeOf(on.listOffset(task, t.Topic, p, m.IsolationLevel == 1, rp)))
			})
		}
	}
	e.run(func() { r.ReplyMessage(resp) })
}

// twiceNamed finds the partitions a request names more than once.
func twiceNamed(m *kmsg.ListOffsetsRequest) map[named]bool {
	seen := map[named]bool{}
	for i := range m.Topics {
		for k := range m.Topics[i].Partitions {
			n := named{m.Topics[i].Topic, m.Topics[i].Partitions[k].Partition}
			_, again := seen[n]
			seen[n] = again
		}
	}
	return seen
}

func unsupportedTimestamp(ms int64, version int16) bool {
	return ms == offsetMaxTimestamp && version < 7 || ms == offsetEarliestLocal && version < 8 || ms == offsetLatestTiered && version < 9
}

// listOffset answers for one partition, on its loop.
func (c *Context) listOffset(t *ring.Task, topic string, q *kmsg.ListOffsetsRequestTopicPartition, committed bool,
	rp *kmsg.ListOffsetsResponseTopicPartition) error {
	p, err := c.leader(topic, q.Partition, q.CurrentLeaderEpoch)
	if err != nil {
		return err
	}
	isolation := replication.ReadUncommitted
	if committed {
		isolation = replication.ReadCommitted
	}
	found := segment.TimeOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}
	switch q.Timestamp {
	case offsetLatest:
		found.Offset, found.LeaderEpoch = p.Limit(isolation), p.LeaderEpoch()
	case offsetEarliest, offsetEarliestLocal:
		found.Offset = p.LogStart()
		found.LeaderEpoch = p.Log().EpochAt(found.Offset)
	case offsetLatestTiered: // nothing is tiered
	case offsetMaxTimestamp:
		found, err = p.Log().MaxTimestamp(t)
	default:
		found, err = p.Log().OffsetForTime(t, q.Timestamp)
	}
	if err != nil {
		return err
	}
	switch q.Timestamp {
	case offsetLatest, offsetEarliest, offsetEarliestLocal:
	default: // what the reader may not see yet is not found
		if found.Offset >= p.Limit(isolation) {
			found = segment.TimeOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}
		}
	}
	rp.Timestamp, rp.Offset, rp.LeaderEpoch = found.Timestamp, int64(found.Offset), found.LeaderEpoch
	return nil
}
