package api

import (
	"path"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/ring"
	"kring/wire"
)

// unknownLag is the offset lag of a replica whose log is offline.
const unknownLag = -1

// logSize is what is asked for one partition, on its loop.
type logSize struct {
	topic string
	index int32
	dir   string // "" if there is no replica here
	size  int64
	lag   int64
}

// describeLogDirs tells how much of which partition lies in which log dir (KIP-113), and how large the disks are (KIP-827). There
// are no replicas on their way from one log dir to another.
func describeLogDirs(c *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeLogDirsRequest()
	if !decode(r, m) {
		return
	}
	var asked map[named]bool
	if m.Topics != nil {
		asked = map[named]bool{}
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				asked[named{t.Topic, p}] = true
			}
		}
	}
	byLoop := make([][]logSize, len(c.Contexts))
	for t := range c.Image().Topics() {
		here := c.topics[t.Name]
		if here == nil {
			continue
		}
		for i := range t.Partitions {
			if index := int32(i); asked == nil || asked[named{t.Name, index}] {
				loop := c.LoopOf(here, index)
				byLoop[loop] = append(byLoop[loop], logSize{topic: t.Name, index: index})
			}
		}
	}
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	resp.Dirs = make([]kmsg.DescribeLogDirsResponseDir, len(c.LogDirs))
	e := newErrands(c)
	for i := range byLoop {
		if sizes := byLoop[i]; len(sizes) > 0 {
			e.add(i, func(_ *ring.Task, on *Context) { on.measure(sizes) })
		}
	}
	for i, dir := range c.LogDirs {
		rd := &resp.Dirs[i]
		rd.Default()
		rd.Dir = dir
		if slices.Contains(c.Offline(), dir) {
			rd.ErrorCode = int16(wire.KafkaStorageError)
			continue
		}
		e.add(c.Loop.ID(), func(t *ring.Task, _ *Context) {
			free, total, err := t.Space(dir)
			if err != nil {
				rd.ErrorCode = int16(wire.KafkaStorageError)
				return
			}
			rd.UsableBytes, rd.TotalBytes = free, total
		})
	}
	e.run(func() {
		for i := range resp.Dirs {
			if resp.Dirs[i].ErrorCode == 0 {
				resp.Dirs[i].Topics = lying(resp.Dirs[i].Dir, byLoop)
			}
		}
		r.ReplyMessage(resp)
	})
}

// measure looks at partitions of this loop.
func (c *Context) measure(sizes []logSize) {
	for i := range sizes {
		s := &sizes[i]
		t := c.topics[s.topic]
		if t == nil || t.Partition(s.index) == nil {
			continue
		}
		p := t.Partition(s.index)
		s.dir, s.size = path.Dir(p.Log().Dir()), p.Log().Size()
		if s.lag = max(int64(p.HighWatermark()-p.Log().End()), 0); p.Offline() != nil {
			s.lag = unknownLag
		}
	}
}

// lying is what lies in a log dir, topic by topic.
func lying(dir string, byLoop [][]logSize) (topics []kmsg.DescribeLogDirsResponseDirTopic) {
	at := map[string]int{}
	for _, sizes := range byLoop {
		for i := range sizes {
			s := &sizes[i]
			if s.dir != dir {
				continue
			}
			k, known := at[s.topic]
			if !known {
				k = len(topics)
				at[s.topic] = k
				rt := kmsg.NewDescribeLogDirsResponseDirTopic()
				rt.Topic = s.topic
				topics = append(topics, rt)
			}
			rp := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
			rp.Partition, rp.Size, rp.OffsetLag = s.index, s.size, s.lag
			topics[k].Partitions = append(topics[k].Partitions, rp)
		}
	}
	return topics
}
