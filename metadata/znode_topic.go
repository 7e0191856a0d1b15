package metadata

import (
	"fmt"
	"strconv"
)

// TopicNode is /brokers/topics/<topic>.
type TopicNode struct {
	Version    int          // 1 to 3; 3 is written
	Partitions []Assignment // in the order of the node
	ID         TopicID      // zero: none
	Adding     []Assignment // replicas that a reassignment adds, of the partitions it concerns
	Removing   []Assignment
}

// Assignment is the replicas of a partition, the preferred leader first.
type Assignment struct {
	Partition int32
	Replicas  []int32
}

// Encode gives the node's data, version 3.
func (n TopicNode) Encode() []byte {
	b := appendAssignments([]byte(`{"partitions":`), n.Partitions)
	if !n.ID.IsZero() {
		b = appendString(append(b, `,"topic_id":`...), n.ID.String())
	}
	b = appendAssignments(append(b, `,"adding_replicas":`...), n.Adding)
	b = appendAssignments(append(b, `,"removing_replicas":`...), n.Removing)
	return append(b, `,"version":3}`...)
}

func appendAssignments(b []byte, list []Assignment) []byte {
	b = append(b, '{')
	for i, a := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = strconv.AppendInt(b, int64(a.Partition), 10)
		b = appendIDs(append(b, `":`...), a.Replicas)
	}
	return append(b, '}')
}

// DecodeTopic reads /brokers/topics/<topic>, versions 1 to 3.
func DecodeTopic(data []byte) (n TopicNode, err error) {
	err = decode("topic", data, func(f *fields) {
		n.Version = f.version(1, 3)
		n.Partitions = f.assignments("partitions")
		if n.Version >= 2 {
			if f.has("adding_replicas") {
				n.Adding = f.assignments("adding_replicas")
			}
			if f.has("removing_replicas") {
				n.Removing = f.assignments("removing_replicas")
			}
		}
		if f.has("topic_id") {
			text := f.str("topic_id")
			id, err := ParseTopicID(text)
			if err != nil {
				f.fail("topic_id", "22 characters of URL-safe base64", text)
			}
			n.ID = id
		}
	})
	return n, err
}

// maxPartition bounds partition numbers read; no broker could hold more.
const maxPartition = 1 << 24

func (f *fields) assignments(key string) []Assignment {
	o := f.object(key)
	out := make([]Assignment, 0, len(o))
	seen := make(map[int32]bool, len(o))
	for _, m := range o {
		p, err := strconv.ParseInt(m.key, 10, 32)
		if err != nil || p < 0 || p > maxPartition || seen[int32(p)] {
			f.fail(key, "an object of different partition numbers", m.key)
			return nil
		}
		seen[int32(p)] = true
		out = append(out, Assignment{int32(p), f.toIDs(key, m.value)})
	}
	return out
}

// StateNode is /brokers/topics/<topic>/partitions/<partition>/state. Its data version is the partition epoch.
type StateNode struct {
	ControllerEpoch ControllerEpoch
	Leader          int32
	LeaderEpoch     LeaderEpoch
	ISR             []int32
	Recovering      bool
}

// Encode gives the node's data.
func (n StateNode) Encode() []byte {
	b := fmt.Appendf(nil, `{"controller_epoch":%d,"leader":%d,"version":1,`, n.ControllerEpoch, n.Leader)
	if n.Recovering {
		b = append(b, `"leader_recovery_state":1,`...)
	}
	b = fmt.Appendf(b, `"leader_epoch":%d,"isr":`, n.LeaderEpoch)
	return append(appendIDs(b, n.ISR), '}')
}

// DecodeState reads a partition's state.
func DecodeState(data []byte) (n StateNode, err error) {
	err = decode("partition state", data, func(f *fields) {
		n.ControllerEpoch = ControllerEpoch(f.int32("controller_epoch"))
		n.Leader = int32(f.number("leader", -1, 1<<31-1))
		n.LeaderEpoch = LeaderEpoch(f.number("leader_epoch", 0, 1<<31-1))
		n.ISR = f.ids("isr")
		if f.has("leader_recovery_state") {
			n.Recovering = f.number("leader_recovery_state", 0, 1) == 1
		}
	})
	return n, err
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// PartitionsNode is a list of partitions: /isr_change_notification/isr_change_<n> and /admin/preferred_replica_election.
type PartitionsNode struct{ Partitions []TopicPartition }

// Encode gives the node's data.
func (n PartitionsNode) Encode() []byte {
	b := []byte(`{"version":1,"partitions":[`)
	for i, p := range n.Partitions {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"topic":`...), p.Topic)
		b = fmt.Appendf(b, `,"partition":%d}`, p.Partition)
	}
	return append(b, `]}`...)
}

// DecodePartitions reads a list of partitions.
func DecodePartitions(data []byte) (n PartitionsNode, err error) {
	err = decode("list of partitions", data, func(f *fields) {
		f.each("partitions", func(x *fields) {
			n.Partitions = append(n.Partitions, TopicPartition{x.str("topic"), int32(x.number("partition", 0, maxPartition))})
		})
	})
	return n, err
}

// each reads a list of objects.
func (f *fields) each(key string, read func(*fields)) {
	for _, v := range f.list(key) {
		o, ok := v.(object)
		if !ok {
			f.fail(key, "a list of objects", v)
			return
		}
		x := fields{o: o}
		if read(&x); x.err != nil {
			if f.err == nil {
				f.err = fmt.Errorf("%q: %w", key, x.err)
			}
			return
		}
	}
}

// ReassignNode is /admin/reassign_partitions.
type ReassignNode struct{ Partitions []Reassigned }

// Reassigned is a partition's new replicas.
type Reassigned struct {
	TopicPartition
	Replicas []int32
}

// Encode gives the node's data.
func (n ReassignNode) Encode() []byte {
	b := []byte(`{"version":1,"partitions":[`)
	for i, p := range n.Partitions {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"topic":`...), p.Topic)
		b = fmt.Appendf(b, `,"partition":%d,"replicas":`, p.Partition)
		b = append(appendIDs(b, p.Replicas), '}')
	}
	return append(b, `]}`...)
}

// DecodeReassign reads /admin/reassign_partitions.
func DecodeReassign(data []byte) (n ReassignNode, err error) {
	err = decode("reassignment", data, func(f *fields) {
		f.each("partitions", func(x *fields) {
			p := TopicPartition{x.str("topic"), int32(x.number("partition", 0, maxPartition))}
			n.Partitions = append(n.Partitions, Reassigned{p, x.ids("replicas")})
		})
	})
	return n, err
}

// LogDirEventNode is /log_dir_event_notification/log_dir_event_<n>: a log dir of a broker has failed.
type LogDirEventNode struct{ Broker int32 }

// Encode gives the node's data.
func (n LogDirEventNode) Encode() []byte {
	return fmt.Appendf(nil, `{"version":1,"broker":%d,"event":1}`, n.Broker)
}

// DecodeLogDirEvent reads a log dir event.
func DecodeLogDirEvent(data []byte) (n LogDirEventNode, err error) {
	err = decode("log dir event", data, func(f *fields) { n.Broker = int32(f.number("broker", 0, 1<<31-1)) })
	return n, err
}
