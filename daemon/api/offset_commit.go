package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
	"kring/wire"
)

// committing is one OffsetCommit under way; they are pooled.
type committing struct {
	groupCall
	m    kmsg.OffsetCommitRequest
	q    coordinator.Commit
	bad  []wire.Code // of each partition in the order of the request; None: it is the next one of q
	resp kmsg.OffsetCommitResponse
	free *committing
}

// commitKept is how many partitions a pooled OffsetCommit may have room for.
const commitKept = 1024

// offsetCommit keeps offsets for a group; it is answered when they are in the log. Topics that do not exist are refused here.
func offsetCommit(c *Context, r *server.Request) {
	k := c.groups.commits
	if k == nil {
		k = &committing{}
		k.q.Done = func(*coordinator.Commit) { k.done() }
		k.start(c, func(g *GroupShard) { g.Commit(&k.q, k.on.now()) }, k.end)
	} else {
		c.groups.commits, k.free = k.free, nil
	}
	k.m = kmsg.NewOffsetCommitRequest()
	if !decode(r, &k.m) {
		k.put()
		return
	}
	k.r = r
	q := &k.q
	q.Group, q.Member, q.Instance, q.Generation = k.m.Group, k.m.MemberID, k.m.InstanceID, k.m.Generation
	q.RetentionMs = k.m.RetentionTimeMillis
	image := c.Image()
	for i := range k.m.Topics {
		t := &k.m.Topics[i]
		known := image.Topic(t.Topic)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if known == nil || p.Partition < 0 || int(p.Partition) >= len(known.Partitions) {
				k.bad = append(k.bad, wire.UnknownTopicOrPartition)
				continue
			}
			k.bad = append(k.bad, wire.None)
			q.Offsets = append(q.Offsets, coordinator.CommitOffset{Topic: t.Topic, Partition: p.Partition, Offset: p.Offset,
				LeaderEpoch: p.LeaderEpoch, Metadata: value(p.Metadata), CommitMs: -1})
		}
	}
	if len(q.Offsets) == 0 {
		k.end()
		return
	}
	k.send(k.m.Group)
}

// end answers in the order of the request.
func (k *committing) end() {
	resp := &k.resp
	part, good := 0, 0
	for i := range k.m.Topics {
		t := &k.m.Topics[i]
		rt := kmsg.OffsetCommitResponseTopic{Topic: t.Topic, Partitions: make([]kmsg.OffsetCommitResponseTopicPartition, len(t.Partitions))}
		for j := range t.Partitions {
			code := k.bad[part]
			if part++; code == wire.None {
				code = codeOf(k.q.Offsets[good].Err)
				good++
			}
			rt.Partitions[j] = kmsg.OffsetCommitResponseTopicPartition{Partition: t.Partitions[j].Partition, ErrorCode: int16(code)}
		}
		resp.Topics = append(resp.Topics, rt)
	}
	r := k.r
	k.r = nil
	r.ReplyMessage(resp)
	k.put()
}

func (k *committing) put() {
	c := k.home
	if cap(k.bad) > commitKept {
		return
	}
	clear(k.q.Offsets)
	clear(k.resp.Topics)
	k.m.Topics, k.q.Offsets, k.bad, k.resp.Topics = nil, k.q.Offsets[:0], k.bad[:0], k.resp.Topics[:0]
	k.free, c.groups.commits = c.groups.commits, k
}
