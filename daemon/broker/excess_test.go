package broker

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// A topic may be in the store and not yet in the picture: its partitions must be bounded all the same. That a topic is unknown
// to the picture is all the request can know of either.
func TestPartitionsOfATopicNotShownYetAreBounded(t *testing.T) {
	s := newSim(t, 1, 1)
	s.start()
	c := connect(t, s)
	m := kmsg.NewPtrCreatePartitionsRequest()
	m.TimeoutMillis = 10_000
	for count, want := range map[int32]wire.Code{2_000_000_000: wire.PolicyViolation, 51: wire.PolicyViolation, 50: wire.UnknownTopicOrPartition} {
		m.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "unseen", Count: count}}
		if code := wire.Code(ask[*kmsg.CreatePartitionsResponse](c, m, 3).Topics[0].ErrorCode); code != want {
			t.Errorf("%d partitions of a topic nobody sees: %v, want %v", count, code, want)
		}
	}
	s.stop()
}
