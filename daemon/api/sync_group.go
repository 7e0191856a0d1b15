package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
	"kring/wire"
)

// syncing is one SyncGroup under way.
type syncing struct {
	groupCall
	q coordinator.Sync
}

// syncGroup gives a member its assignment; it waits for the leader's.
func syncGroup(c *Context, r *server.Request) {
	m, ok := decodeWhole(r).(*kmsg.SyncGroupRequest)
	if !ok {
		return
	}
	if r.Version >= 5 && (m.ProtocolType == nil || m.Protocol == nil) {
		resp := kmsg.NewPtrSyncGroupResponse()
		resp.ErrorCode = int16(wire.InconsistentGroupProtocol)
		r.ReplyMessage(resp)
		return
	}
	y := &syncing{q: coordinator.Sync{Group: m.Group, Member: m.MemberID, Instance: m.InstanceID, Generation: m.Generation,
		ProtocolType: m.ProtocolType, Protocol: m.Protocol, Assignments: make([]coordinator.Assignment, len(m.GroupAssignment))}}
	for i := range m.GroupAssignment {
		a := &m.GroupAssignment[i]
		y.q.Assignments[i] = coordinator.Assignment{Member: a.MemberID, Data: a.MemberAssignment}
	}
	r.Release()
	y.r = r
	y.q.Done = func(*coordinator.Sync) { y.done() }
	y.start(c, func(g *GroupShard) { g.Sync(&y.q, y.on.now()) }, y.end)
	y.send(m.Group)
}

func (y *syncing) end() {
	a := &y.q.Answer
	resp := kmsg.NewPtrSyncGroupResponse()
	resp.ErrorCode, resp.ProtocolType, resp.Protocol, resp.MemberAssignment = int16(codeOf(a.Err)), a.ProtocolType, a.Protocol, a.Assignment
	y.r.ReplyMessage(resp)
}
