package trees

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reassign gives partition 0 of a topic other replicas; none asks for the end of a reassignment.
func reassign(topic string, replicas ...int32) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		req.TimeoutMillis = 20000
		req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: topic,
			Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Replicas: replicas}}}}
		resp, err := ask(c, req)
		if err != nil {
			return err.Error()
		}
		list, err := ask(c, kmsg.NewPtrListPartitionReassignmentsRequest())
		if err != nil {
			return err.Error()
		}
		r, left := resp.(*kmsg.AlterPartitionAssignmentsResponse), len(list.(*kmsg.ListPartitionReassignmentsResponse).Topics)
		return fmt.Sprint(word(r.ErrorCode), " ", word(r.Topics[0].Partitions[0].ErrorCode), " under way ", left)
	}
}

// elect asks for an election in partition 0 of topics.
func elect(unclean bool, topics ...string) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		req := kmsg.NewPtrElectLeadersRequest()
		req.TimeoutMillis = 20000
		if unclean {
			req.ElectionType = 1
		}
		for _, name := range topics {
			req.Topics = append(req.Topics, kmsg.ElectLeadersRequestTopic{Topic: name, Partitions: []int32{0}})
		}
		resp, err := ask(c, req)
		if err != nil {
			return err.Error()
		}
		var out []string
		for _, name := range topics {
			for _, t := range resp.(*kmsg.ElectLeadersResponse).Topics {
				if t.Topic == name {
					out = append(out, name+" "+word(t.Partitions[0].ErrorCode))
				}
			}
		}
		return strings.Join(out, "; ")
	}
}
