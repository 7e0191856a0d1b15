package broker

import (
	"strings"
	"testing"
)

// TestMissingMetaIsTold: without meta.properties a broker gets another id and leads nothing of what lies in its log dir, as in Kafka. It is
// said which file that is.
func TestMissingMetaIsTold(t *testing.T) {
	s := newSim(t, 1, 1)
	s.said = &strings.Builder{}
	s.start()
	connect(t, s).createTopic("k", 2)
	s.stop()
	if err := s.m.RemoveAll("/data/meta.properties"); err != nil {
		t.Fatal(err)
	}
	s.said.Reset()
	s.start()
	once(t, s.said.String(), "level=WARN msg=\"meta.properties was missing where there are partitions, and was written anew; those of another "+
		"broker.id are not led: stop, and write their id into it\" file=/data/meta.properties broker.id=1002 partitions=2")
	s.stop()
}
