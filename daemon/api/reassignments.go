package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication/controller"
	"kring/wire"
)

// listReassignments lists the reassignments under way (KIP-455): none ever is, see controller.Reassign.
func listReassignments(c *Context, r *server.Request) {
	if !decode(r, kmsg.NewPtrListPartitionReassignmentsRequest()) {
		return
	}
	resp := kmsg.NewPtrListPartitionReassignmentsResponse()
	empty := ""
	resp.ErrorMessage = &empty
	r.ReplyMessage(resp)
}

// alterReassignments gives partitions other replicas.
func alterReassignments(c *Context, r *server.Request) {
	m := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	if !decode(r, m) {
		return
	}
	var all []controller.Reassignment
	var at []*kmsg.AlterPartitionAssignmentsResponseTopicPartition
	resp := kmsg.NewPtrAlterPartitionAssignmentsResponse()
	empty := ""
	resp.ErrorMessage = &empty
	resp.Topics = make([]kmsg.AlterPartitionAssignmentsResponseTopic, len(m.Topics))
	asked := map[named]bool{}
	for i := range m.Topics {
		t, rt := &m.Topics[i], &resp.Topics[i]
		rt.Topic = t.Topic
		rt.Partitions = make([]kmsg.AlterPartitionAssignmentsResponseTopicPartition, len(t.Partitions))
		for k := range t.Partitions {
			p, rp := &t.Partitions[k], &rt.Partitions[k]
			rp.Partition = p.Partition
			if id := (named{t.Topic, p.Partition}); asked[id] {
				rp.ErrorCode, rp.ErrorMessage = int16(wire.InvalidRequest), optional("Duplicate partition in request.")
			} else {
				asked[id] = true
				all = append(all, controller.Reassignment{
					PartitionName: controller.PartitionName{Topic: t.Topic, Partition: p.Partition}, Replicas: p.Replicas})
				at = append(at, rp)
			}
		}
	}
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.Reassign(all, func(errs []error) {
			finish(func() {
				for i, err := range errs {
					at[i].ErrorCode, at[i].ErrorMessage = int16(codeOf(err)), messageOf(err)
				}
				r.ReplyMessage(resp)
			})
		})
	})
}
