package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
)

// heartbeating is one Heartbeat under way; they are pooled.
type heartbeating struct {
	groupCall
	m    kmsg.HeartbeatRequest
	q    coordinator.Heartbeat
	resp kmsg.HeartbeatResponse
	err  error
	free *heartbeating
}

// heartbeat keeps a member in its group and tells it when to join again.
func heartbeat(c *Context, r *server.Request) {
	h := c.groups.heartbeats
	if h == nil {
		h = &heartbeating{}
		h.start(c, func(g *GroupShard) {
			h.err = g.Heartbeat(&h.q, h.on.now())
			h.done()
		}, h.end)
	} else {
		c.groups.heartbeats, h.free = h.free, nil
	}
	h.m = kmsg.NewHeartbeatRequest()
	if !decode(r, &h.m) {
		h.put()
		return
	}
	h.r = r
	h.q = coordinator.Heartbeat{Group: h.m.Group, Member: h.m.MemberID, Instance: h.m.InstanceID, Generation: h.m.Generation}
	h.send(h.m.Group)
}

func (h *heartbeating) end() {
	r := h.r
	h.resp.ErrorCode = int16(codeOf(h.err))
	h.put()
	r.ReplyMessage(&h.resp)
}

func (h *heartbeating) put() {
	h.r, h.err, h.q = nil, nil, coordinator.Heartbeat{}
	h.free, h.home.groups.heartbeats = h.home.groups.heartbeats, h
}
