package api

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
	"kring/wire"
)

// joining is one JoinGroup under way.
type joining struct {
	groupCall
	q coordinator.Join
}

// joinGroup lets a member into its group; it waits until all members have joined.
func joinGroup(c *Context, r *server.Request) {
	m, ok := decodeWhole(r).(*kmsg.JoinGroupRequest)
	if !ok {
		return
	}
	j := &joining{q: coordinator.Join{Group: m.Group, Member: m.MemberID, Instance: m.InstanceID, ClientID: string(r.ClientID),
		ClientHost: clientHost(r.Conn.Peer().Addr()), SessionMs: m.SessionTimeoutMillis, RebalanceMs: m.RebalanceTimeoutMillis,
		RequireMemberID: r.Version >= 4, SkipAssignment: r.Version >= 9, ProtocolType: m.ProtocolType,
		Protocols: make([]coordinator.Protocol, len(m.Protocols))}}
	for i := range m.Protocols {
		j.q.Protocols[i] = coordinator.Protocol{Name: m.Protocols[i].Name, Metadata: m.Protocols[i].Metadata}
	}
	if r.Version == 0 {
		j.q.RebalanceMs = m.SessionTimeoutMillis
	}
	if m.Reason != nil {
		j.q.Reason = *m.Reason
	}
	r.Release() // it may wait for minutes
	j.r = r
	j.q.Done = func(*coordinator.Join) { j.done() }
	j.start(c, func(g *GroupShard) { g.Join(&j.q, j.on.now()) }, j.end)
	j.send(m.Group)
}

func (j *joining) end() {
	a := &j.q.Answer
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.ErrorCode, resp.Generation, resp.LeaderID = int16(codeOf(a.Err)), a.Generation, a.Leader
	resp.SkipAssignment, resp.MemberID = a.SkipAssignment, a.Member
	resp.ProtocolType, resp.Protocol = a.ProtocolType, protocolName(j.r.Version, a.Protocol)
	resp.Members = make([]kmsg.JoinGroupResponseMember, len(a.Members))
	for i := range a.Members {
		n := &a.Members[i]
		resp.Members[i] = kmsg.JoinGroupResponseMember{MemberID: n.Member, InstanceID: n.Instance, ProtocolMetadata: n.Metadata}
	}
	j.r.ReplyMessage(resp)
}

// protocolName is null from version 7 on where there is none, before it is empty.
func protocolName(version int16, name *string) *string {
	switch {
	case version < 7 && name == nil:
		return new(string)
	case version >= 7 && name != nil && *name == "":
		return nil
	}
	return name
}

// decodeWhole is decode for a message that outlives the request's memory and may be large: it is held against Kafka's layout
// before anything is allocated for it.
func decodeWhole(r *server.Request) kmsg.Request {
	m, err := wire.DecodeRequest(r.Key, r.Version, r.Body)
	if err != nil {
		r.Close(server.BadBody)
		return nil
	}
	return m
}

// clientHost is an address as Java prints it: an IPv6 address in full.
func clientHost(a netip.Addr) string {
	a = a.Unmap()
	if !a.Is6() {
		return "/" + a.String()
	}
	b := []byte{'/'}
	for i, raw := 0, a.As16(); i < len(raw); i += 2 {
		if i > 0 {
			b = append(b, ':')
		}
		b = strconv.AppendUint(b, uint64(binary.BigEndian.Uint16(raw[i:])), 16)
	}
	if zone := a.Zone(); zone != "" {
		b = append(append(b, '%'), zone...)
	}
	return string(b)
}
