package sim

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// changeTopics creates a topic on the side and deletes the one before it, without waiting.
func (s *Story) changeTopics() {
	s.side++
	s.tryCreate(fmt.Sprint("side-", s.side))
	if s.side > 1 {
		s.tryDelete(fmt.Sprint("side-", s.side-1))
	}
}

// tryCreate asks once: an acknowledged topic must stay, of the others nothing is known.
func (s *Story) tryCreate(name string) {
	m := kmsg.NewPtrCreateTopicsRequest()
	m.TimeoutMillis = 10_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, int32(1+s.w.Rand().IntN(4)), 1
	m.Topics = append(m.Topics, rt)
	l := newLink(s.w, s.violate, func(error) {})
	l.ask(m, 7, func(r kmsg.Response) {
		if got := r.(*kmsg.CreateTopicsResponse).Topics[0]; got.ErrorCode == 0 {
			id := got.TopicID
			s.topics[name] = &id
		} else {
			s.saw(wire.Code(got.ErrorCode))
		}
		l.giveUp(nil)
	})
}

// tryDelete asks once; while nothing is known, nothing is claimed.
func (s *Story) tryDelete(name string) {
	if s.topics[name] == nil {
		return
	}
	delete(s.topics, name)
	m := kmsg.NewPtrDeleteTopicsRequest()
	m.TimeoutMillis = 10_000
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &name
	m.Topics = append(m.Topics, rt)
	l := newLink(s.w, s.violate, func(error) {})
	l.ask(m, 6, func(r kmsg.Response) {
		if code := wire.Code(r.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode); code == wire.None {
			s.topics[name] = nil
		} else {
			s.saw(code)
		}
		l.giveUp(nil)
	})
}

// deleteRecords asks once to delete records of a partition below an offset that was acknowledged. An acknowledged deletion
// lasts until a crash: the checkpoint of log starts is written later.
func (s *Story) deleteRecords() {
	r := s.w.Rand()
	p := s.partitions[r.IntN(len(s.partitions))]
	known := offsets(p.acked)
	if len(known) == 0 {
		return
	}
	to := known[r.IntN(len(known))]
	m := kmsg.NewPtrDeleteRecordsRequest()
	m.TimeoutMillis = 10_000
	m.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: p.topic,
		Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: p.index, Offset: to}}}}
	p.asked = max(p.asked, to)
	life := s.h.life
	l := newLink(s.w, s.violate, func(error) {})
	l.ask(m, 2, func(r kmsg.Response) {
		got := r.(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]
		switch code := wire.Code(got.ErrorCode); {
		case code == wire.OffsetOutOfRange && to < p.asked: // another deletion was faster
		case code != wire.None:
			s.saw(code)
		case got.LowWatermark < to || got.LowWatermark > p.asked:
			p.violate("records below %d were deleted, and the log begins at %d", to, got.LowWatermark)
		case life == s.h.life:
			p.start = max(p.start, to)
		}
		l.giveUp(nil)
	})
}
