package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
	"kring/wire"
)

// groupOperations is what may be done with a group where there is no authorizer: read, delete, describe.
const groupOperations = 1<<3 | 1<<6 | 1<<8

// describeGroups shows groups and their members, each group by its own loop.
func describeGroups(c *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeGroupsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(m.Groups))
	for i := range resp.Groups {
		resp.Groups[i].Group, resp.Groups[i].AuthorizedOperations = m.Groups[i], noOperations
		resp.Groups[i].ErrorCode = int16(wire.InvalidRequest)
	}
	c.eachGroup(r, m.Groups, false, func(i int, g *GroupShard) {
		rg := &resp.Groups[i]
		rg.ErrorCode = int16(wire.None)
		view, err := g.Describe(rg.Group)
		if err != nil {
			rg.ErrorCode = int16(codeOf(err))
			return
		}
		showGroup(rg, &view)
		if m.IncludeAuthorizedOperations {
			rg.AuthorizedOperations = groupOperations
		}
	}, func() { r.ReplyMessage(resp) })
}

func showGroup(rg *kmsg.DescribeGroupsResponseGroup, v *coordinator.GroupView) {
	rg.State, rg.ProtocolType, rg.Protocol = v.State.String(), v.ProtocolType, v.Protocol
	rg.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(v.Members))
	for i := range v.Members {
		n := &v.Members[i]
		rg.Members[i] = kmsg.DescribeGroupsResponseGroupMember{MemberID: n.Member, InstanceID: n.Instance, ClientID: n.ClientID,
			ClientHost: n.ClientHost, ProtocolMetadata: n.Metadata, MemberAssignment: n.Assignment}
	}
}

// repeatsMost is how often one request may name groups again.
const repeatsMost = 16

// eachGroup asks about several groups, each on its loop, and calls finish here when all are done; with settled, each when what was
// written before is there. work writes nothing that another call of it, or anybody else, reads before that. It is called for
// some repeats only: an answer must not be multiplied by naming a large group again and again.
func (c *Context) eachGroup(r *server.Request, groups []string, settled bool, work func(i int, g *GroupShard), finish func()) {
	left := 1
	done := func() {
		if left--; left == 0 {
			finish()
		}
	}
	seen, repeats := make(map[string]bool, len(groups)), 0
	for i := range groups {
		if seen[groups[i]] {
			if repeats++; repeats > repeatsMost {
				continue
			}
		}
		seen[groups[i]] = true
		left++
		k := &groupCall{r: r}
		k.start(c, func(g *GroupShard) {
			run := func() {
				work(i, g)
				k.done()
			}
			if settled {
				g.journal.settled(run)
			} else {
				run()
			}
		}, done)
		k.send(groups[i])
	}
	done()
}
