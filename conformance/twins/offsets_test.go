package twins

import (
	"encoding/binary"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// offsetsTopic is the topic of group offsets.
const offsetsTopic = "__consumer_offsets"

// commit is a record of a group's offset, as a coordinator writes it.
func commit(group, topic string, offset, ms int64) record {
	text := func(b []byte, s string) []byte { return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	key := text(text([]byte{0, 1}, group), topic)
	key = binary.BigEndian.AppendUint32(key, 0)
	value := binary.BigEndian.AppendUint64([]byte{0, 3}, uint64(offset))
	value = binary.BigEndian.AppendUint32(value, 0xffffffff)
	value = text(value, "m")
	value = binary.BigEndian.AppendUint64(value, uint64(ms))
	return record{key: key, value: value, ms: ms}
}

// commits stages offsets of two groups in transactions that end later.
func (s *story) commits() {
	for p := range int64(3) {
		b := batch{producer: 7000 + p, transactional: true}
		b.records = []record{commit("g", "rolls", 10+p, s.base), commit("h", "rolls", 20+p, s.base)}
		s.must(offsetsTopic, 0, b)
	}
}

// committedOffsets has both answer what a group has committed until they agree, and gives the offset and the code.
func (s *story) committedOffsets(group string, stable bool, want int64, code int16) {
	s.t.Helper()
	m := kmsg.NewPtrOffsetFetchRequest()
	m.Version, m.Group, m.RequireStable = 7, group, stable
	m.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "rolls", Partitions: []int32{0}}}
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var all []*kmsg.OffsetFetchResponse
		good := true
		for _, w := range s.twins {
			a := w.ask(s.t, m).(*kmsg.OffsetFetchResponse)
			all = append(all, a)
			good = good && a.ErrorCode == 0 && a.Topics[0].Partitions[0].Offset == want && a.Topics[0].Partitions[0].ErrorCode == code
		}
		if good && reflect.DeepEqual(all[0], all[1]) {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("group %s, stable %v: want offset %d and code %d; Kafka answers %+v, kring %+v", group, stable, want, code, all[0], all[1])
		}
	}
}

// endings ends the transactions that commits began: groups which were loaded follow at once.
func (s *story) endings() {
	const unstable = 88
	at := []place{{offsetsTopic, 0}}
	s.committedOffsets("g", false, -1, 0)
	s.committedOffsets("g", true, -1, unstable)
	s.marked(0, ending{7000, 0, true, 3, at})
	s.committedOffsets("g", false, 10, 0)
	s.committedOffsets("h", false, 20, 0)
	s.marked(0, ending{7001, 0, false, 3, at})
	s.committedOffsets("g", false, 10, 0)
	s.marked(coordinatorFence, ending{7001, 0, true, 2, at})
	s.marked(0, ending{7002, 0, true, 3, at})
	s.committedOffsets("g", true, 12, 0)
	s.committedOffsets("h", true, 22, 0)
}
