package sim

import (
	"fmt"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
	"kring/wire/batch"
)

// audit asks where every log ends and what the topics are, before any other client comes.
func (s *Story) audit(powerLoss bool) error {
	for _, p := range s.partitions {
		end, err := s.offset(p, -1)
		if err != nil {
			return fmt.Errorf("after the start: %w", err)
		}
		s.w.Say("auditor", "%s ends at %d", p.name(), end)
		p.started(end, powerLoss)
	}
	return s.auditTopics()
}

func (s *Story) auditTopics() error {
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = nil
	resp, err := call[*kmsg.MetadataResponse](s, m, 12, time.Minute)
	if err != nil {
		return err
	}
	there := map[string][16]byte{}
	for _, t := range resp.Topics {
		there[*t.Topic] = t.TopicID
	}
	for _, name := range s.topicNames() {
		id, ok := there[name]
		want := s.topics[name]
		switch {
		case want == nil && ok:
			return fmt.Errorf("deleted topic %s is there", name)
		case want != nil && !ok:
			return fmt.Errorf("created topic %s is lost", name)
		case want != nil && id != *want:
			return fmt.Errorf("topic %s has id %x, and was created with %x", name, id, *want)
		}
	}
	return nil
}

func (s *Story) topicNames() []string {
	names := make([]string, 0, len(s.topics))
	for name := range s.topics {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// readAll reads every partition from its beginning at rest.
func (s *Story) readAll() error {
	for _, p := range s.partitions {
		first, err := s.offset(p, -2)
		if err != nil {
			return err
		}
		var values []string
		var times []int64
		for at := first; ; {
			m := fetchRequest(p.topic, p.index, at, 1<<20, 0)
			resp, err := call[*kmsg.FetchResponse](s, m, 11, time.Minute)
			if err != nil {
				return err
			}
			got := resp.Topics[0].Partitions[0]
			if got.ErrorCode != 0 {
				return fmt.Errorf("reading %s from %d: %v", p.name(), at, wire.Code(got.ErrorCode))
			}
			next, err := records(got.RecordBatches, at, func(o int64, r *batch.Record) {
				values, times = append(values, string(r.Value)), append(times, r.Timestamp)
			})
			if err != nil {
				return fmt.Errorf("reading %s from %d: %w", p.name(), at, err)
			}
			if next == at {
				break
			}
			at = next
		}
		p.whole(first, values)
		if err := s.lookUp(p, first, times); err != nil {
			return err
		}
	}
	return nil
}

// lookUp asks for offsets by time and compares with what a reader of the whole log finds.
func (s *Story) lookUp(p *partition, first int64, times []int64) error {
	if len(times) == 0 {
		return nil
	}
	for range 4 {
		at := times[s.w.Rand().IntN(len(times))] + int64(s.w.Rand().IntN(3)) - 1
		want := int64(-1)
		for i, ms := range times {
			if ms >= at {
				want = first + int64(i)
				break
			}
		}
		got, err := s.offset(p, at)
		if err != nil {
			return err
		}
		if got != want {
			p.violate("the first record at or after %d is at offset %d, says the log, and a reader finds it at %d", at, got, want)
		}
	}
	return nil
}

// offset is what ListOffsets says of a time, and must say; -1: the end, -2: the beginning.
func (s *Story) offset(p *partition, at int64) (int64, error) {
	o, code, err := s.listOffset(p, at)
	if err == nil && code != wire.None {
		err = fmt.Errorf("asked for an offset of %s, the broker answers %v", p.name(), code)
	}
	return o, err
}

func (s *Story) listOffset(p *partition, at int64) (int64, wire.Code, error) {
	m := kmsg.NewPtrListOffsetsRequest()
	m.ReplicaID = -1
	rt, rp := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	rt.Topic, rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = p.topic, p.index, at, -1
	rt.Partitions = append(rt.Partitions, rp)
	m.Topics = append(m.Topics, rt)
	resp, err := call[*kmsg.ListOffsetsResponse](s, m, 7, time.Minute)
	if err != nil {
		return 0, 0, err
	}
	got := resp.Topics[0].Partitions[0]
	return got.Offset, wire.Code(got.ErrorCode), nil
}
