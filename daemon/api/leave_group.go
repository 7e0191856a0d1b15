package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
)

// leaving is one LeaveGroup under way.
type leaving struct {
	groupCall
	q coordinator.Leave
}

// leaveGroup lets members go; before version 3 it is one.
func leaveGroup(c *Context, r *server.Request) {
	m := kmsg.NewPtrLeaveGroupRequest()
	if !decode(r, m) {
		return
	}
	if r.Version < 3 {
		m.Members = []kmsg.LeaveGroupRequestMember{{MemberID: m.MemberID}}
	}
	l := &leaving{q: coordinator.Leave{Group: m.Group, Members: make([]coordinator.LeaveMember, len(m.Members))}}
	for i := range m.Members {
		a := &m.Members[i]
		l.q.Members[i] = coordinator.LeaveMember{Member: a.MemberID, Instance: a.InstanceID, Reason: value(a.Reason)}
	}
	l.r = r
	l.q.Done = func(*coordinator.Leave) { l.done() }
	l.start(c, func(g *GroupShard) { g.Leave(&l.q, l.on.now()) }, l.end)
	l.send(m.Group)
}

func (l *leaving) end() {
	resp := kmsg.NewPtrLeaveGroupResponse()
	resp.ErrorCode = int16(codeOf(l.q.Err))
	switch {
	case l.q.Err != nil:
	case l.r.Version < 3:
		resp.ErrorCode = int16(codeOf(l.q.Members[0].Err))
	default:
		for i := range l.q.Members {
			a := &l.q.Members[i]
			resp.Members = append(resp.Members, kmsg.LeaveGroupResponseMember{MemberID: a.Member, InstanceID: a.Instance,
				ErrorCode: int16(codeOf(a.Err))})
		}
	}
	l.r.ReplyMessage(resp)
}
