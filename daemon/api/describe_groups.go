package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
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
	c.eachGroup(r, m.Groups, false, func(i int, g *GroupShard) {
		rg := &resp.Groups[i]
		rg.Group, rg.AuthorizedOperations = m.Groups[i], noOperations
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

// eachGroup asks about several groups, each on its loop, and calls finish here when all are done; with settled, each when what was
// written before is there. work writes nothing that another call of it, or anybody else, reads before that. A repeated group is
// asked about again.
func (c *Context) eachGroup(r *server.Request, groups []string, settled bool, work func(i int, g *GroupShard), finish func()) {
	left := 1
	done := func() {
		if left--; left == 0 {
			finish()
		}
	}
	for i := range groups {
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
