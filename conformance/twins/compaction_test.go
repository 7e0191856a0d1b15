package twins

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// compactedTopics are those that are to be cleaned, one with the records' times and one with the broker's.
var compactedTopics = []string{"compacted", "append-time-compacted"}

// compacted fills the topics that are to be cleaned: keys that come again, tombstones, transactions of both ends, a silent producer.
func (s *story) compacted(round int) {
	for _, topic := range compactedTopics {
		s.compactedIn(topic, round)
	}
}

func (s *story) compactedIn(topic string, round int) {
	at := s.base + int64(round)*100_000
	where := place{topic, 0}
	id := int64(5000 * (round + 1))
	must := func(b batch) {
		s.t.Helper()
		if topic != "compacted" {
			s.tick(2 * time.Millisecond)
		}
		s.must(topic, 0, b)
	}
	for i := range 25 {
		keyed := some(round*50+i, 4, 120, at+int64(i*40))
		for k := range keyed {
			if keyed[k].key == nil {
				keyed[k].key = []byte("none")
			}
			if (i+k)%6 == 0 {
				keyed[k].value = nil
			}
		}
		must(batch{records: keyed})
		if i%2 == 0 {
			must(batch{records: keyed[:2], producer: id, sequence: int32(i)})
		}
		if i%3 == 0 {
			must(batch{records: keyed[1:], producer: id + 1, sequence: int32(i), transactional: true})
			s.marked(0, ending{id + 1, 0, i%2 == 0, int32(i), []place{where}})
		}
	}
}

// alter changes a topic's settings on both.
func (s *story) alter(topic string, configs ...string) {
	s.t.Helper()
	m := kmsg.NewPtrIncrementalAlterConfigsRequest()
	m.Version = 1
	one := kmsg.NewIncrementalAlterConfigsRequestResource()
	one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for i := 0; i < len(configs); i += 2 {
		one.Configs = append(one.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: configs[i], Value: &configs[i+1]})
	}
	m.Resources = append(m.Resources, one)
	if a := same[*kmsg.IncrementalAlterConfigsResponse](s, m, "alter "+topic); a.Resources[0].ErrorCode != 0 {
		s.t.Fatalf("alter %s: %+v", topic, a.Resources[0])
	}
}

// clean has both clean the topics up to their newest segments, with nothing written meanwhile, and then cleans no more.
func (s *story) clean() {
	s.t.Helper()
	for _, topic := range compactedTopics {
		s.cleanOne(topic)
	}
}

func (s *story) cleanOne(topic string) {
	s.t.Helper()
	s.alter(topic, "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "1000")
	for _, w := range s.twins {
		newest := ""
		for name := range readDir(s.t, w.dir) {
			if base, ok := strings.CutPrefix(name, topic+"-0/"); ok && strings.HasSuffix(base, ".log") {
				newest = max(newest, strings.TrimSuffix(base, ".log"))
			}
		}
		var to int64
		fmt.Sscanf(newest, "%d", &to)
		for until := time.Now().Add(patience); s.cleaned(w, topic) != to; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				s.t.Fatalf("%s has cleaned %s up to %d, not %d", w.name, topic, s.cleaned(w, topic), to)
			}
		}
	}
	s.alter(topic, "cleanup.policy", "delete")
}

// cleaned is how far a broker says a topic is clean.
func (s *story) cleaned(w *twin, topic string) int64 {
	content, err := os.ReadFile(w.dir + "/cleaner-offset-checkpoint")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var o int64
		if n, _ := fmt.Sscanf(line, topic+" 0 %d", &o); n == 1 {
			return o
		}
	}
	return -1
}
