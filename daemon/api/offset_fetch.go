package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
	"kring/wire"
)

// offsetFetch tells committed offsets: of one group, and from version 8 on of several. Never is an offset called missing while
// its group is being loaded: the error stands for the whole group, and before version 2, which cannot say so, for each partition.
// What was committed before, also by a request that is not answered yet, is seen.
func offsetFetch(c *Context, r *server.Request) {
	m := kmsg.NewPtrOffsetFetchRequest()
	if !decode(r, m) {
		return
	}
	if r.Version < 8 {
		g := kmsg.OffsetFetchRequestGroup{Group: m.Group}
		for i := range m.Topics {
			g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: m.Topics[i].Topic, Partitions: m.Topics[i].Partitions})
		}
		if m.Topics != nil && g.Topics == nil {
			g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
		}
		m.Groups = []kmsg.OffsetFetchRequestGroup{g}
	}
	groups := make([]string, len(m.Groups))
	for i := range m.Groups {
		groups[i] = m.Groups[i].Group
	}
	resp := kmsg.NewPtrOffsetFetchResponse()
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(groups))
	for i := range groups { // stays so where groups are named again too often
		resp.Groups[i].Group, resp.Groups[i].ErrorCode = groups[i], int16(wire.InvalidRequest)
	}
	c.eachGroup(r, groups, true, func(i int, g *GroupShard) {
		fetchGroup(&resp.Groups[i], g, &m.Groups[i], m.RequireStable)
	}, func() {
		if r.Version < 8 {
			single(resp, m, r.Version)
		}
		r.ReplyMessage(resp)
	})
}

// fetchGroup asks for the offsets of one group.
func fetchGroup(rg *kmsg.OffsetFetchResponseGroup, g *GroupShard, m *kmsg.OffsetFetchRequestGroup, stable bool) {
	err := g.Fetch(m.Group, askedOnce(m.Topics), stable, func(o coordinator.Committed) {
		if n := len(rg.Topics); n == 0 || rg.Topics[n-1].Topic != o.Topic {
			rg.Topics = append(rg.Topics, kmsg.OffsetFetchResponseGroupTopic{Topic: o.Topic})
		}
		t := &rg.Topics[len(rg.Topics)-1]
		t.Partitions = append(t.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{Partition: o.Partition, Offset: o.Offset,
			LeaderEpoch: o.LeaderEpoch, Metadata: &o.Metadata, ErrorCode: int16(codeOf(o.Err))})
	})
	if rg.ErrorCode = int16(codeOf(err)); err != nil {
		rg.Topics = nil
	}
}

// askedOnce is what is asked for, each partition where it is named first, as in Kafka's map: with its metadata of 4 KiB it must not
// be answered a hundred thousand times. nil asks for all.
func askedOnce(asked []kmsg.OffsetFetchRequestGroupTopic) []coordinator.TopicPartitions {
	if asked == nil {
		return nil
	}
	type place struct {
		topic     string
		partition int32
	}
	seen := map[place]bool{}
	topics := make([]coordinator.TopicPartitions, 0, len(asked))
	for i := range asked {
		t := coordinator.TopicPartitions{Topic: asked[i].Topic, Partitions: make([]int32, 0, len(asked[i].Partitions))}
		for _, p := range asked[i].Partitions {
			if at := (place{t.Topic, p}); !seen[at] {
				seen[at] = true
				t.Partitions = append(t.Partitions, p)
			}
		}
		if len(t.Partitions) > 0 {
			topics = append(topics, t)
		}
	}
	return topics
}

// single puts the answer for one group where versions below 8 have it.
func single(resp *kmsg.OffsetFetchResponse, m *kmsg.OffsetFetchRequest, version int16) {
	g := &resp.Groups[0]
	resp.ErrorCode, resp.Groups = g.ErrorCode, nil
	for i := range g.Topics {
		t := &g.Topics[i]
		rt := kmsg.OffsetFetchResponseTopic{Topic: t.Topic, Partitions: make([]kmsg.OffsetFetchResponseTopicPartition, len(t.Partitions))}
		for j, p := range t.Partitions {
			rt.Partitions[j] = kmsg.OffsetFetchResponseTopicPartition{Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch,
				Metadata: p.Metadata, ErrorCode: p.ErrorCode}
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if version >= 2 || g.ErrorCode == 0 {
		return
	}
	for _, t := range m.Topics {
		rt := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			rt.Partitions = append(rt.Partitions, kmsg.OffsetFetchResponseTopicPartition{Partition: p, Offset: -1, LeaderEpoch: -1,
				Metadata: new(string), ErrorCode: g.ErrorCode})
		}
		resp.Topics = append(resp.Topics, rt)
	}
}
