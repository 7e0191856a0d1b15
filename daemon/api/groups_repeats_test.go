package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// TestRepeatsDoNotMultiplyAnswers: a group that is named many times in one request is answered a few times, a partition once.
func TestRepeatsDoNotMultiplyAnswers(t *testing.T) {
	eachLoops(t, func(t *testing.T, loops int) {
		x := newGroupWorld(t, loops)
		p := x.dial(0)

		describe := kmsg.NewPtrDescribeGroupsRequest()
		describe.Version = 5
		fetch := kmsg.NewPtrOffsetFetchRequest()
		fetch.Version = 5
		fetch.Group = "g"
		many := kmsg.NewPtrOffsetFetchRequest()
		many.Version = 9
		topic := kmsg.OffsetFetchRequestTopic{Topic: "a"}
		for range 1000 {
			describe.Groups = append(describe.Groups, "g")
			topic.Partitions = append(topic.Partitions, 1)
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group = "g"
			many.Groups = append(many.Groups, g)
		}
		fetch.Topics = []kmsg.OffsetFetchRequestTopic{topic, topic}

		for i, g := range call[*kmsg.DescribeGroupsResponse](p, describe).Groups {
			if want := wire.InvalidRequest; i > repeatsMost && wire.Code(g.ErrorCode) != want || i <= repeatsMost && g.ErrorCode != 0 || g.Group != "g" {
				t.Fatalf("DescribeGroups, number %d: %q has code %d", i, g.Group, g.ErrorCode)
			}
		}
		got := call[*kmsg.OffsetFetchResponse](p, fetch).Topics
		if len(got) != 1 || len(got[0].Partitions) != 1 || got[0].Partitions[0].Partition != 1 {
			t.Errorf("OffsetFetch of one partition 2,000 times: %+v", got)
		}
		for i, g := range call[*kmsg.OffsetFetchResponse](p, many).Groups {
			if want := wire.InvalidRequest; i > repeatsMost && wire.Code(g.ErrorCode) != want || i <= repeatsMost && g.ErrorCode != 0 || g.Group != "g" {
				t.Fatalf("OffsetFetch, group number %d: %q has code %d", i, g.Group, g.ErrorCode)
			}
		}
		x.verify()
	})
}
