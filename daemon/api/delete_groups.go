package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
)

// deleteGroups forgets groups without members, with their offsets; it is answered when that is in the log.
func deleteGroups(c *Context, r *server.Request) {
	m := kmsg.NewPtrDeleteGroupsRequest()
	if !decode(r, m) {
		return
	}
	seen := make(map[string]bool, len(m.Groups))
	resp := kmsg.NewPtrDeleteGroupsResponse()
	for _, group := range m.Groups {
		if !seen[group] {
			seen[group] = true
			resp.Groups = append(resp.Groups, kmsg.DeleteGroupsResponseGroup{Group: group})
		}
	}
	left := 1
	done := func() {
		if left--; left == 0 {
			r.ReplyMessage(resp)
		}
	}
	for i := range resp.Groups {
		rg := &resp.Groups[i]
		left++
		k := &groupCall{r: r}
		q := &coordinator.DeleteGroup{Group: rg.Group, Done: func(*coordinator.DeleteGroup) { k.done() }}
		k.start(c, func(g *GroupShard) { g.DeleteGroup(q, k.on.now()) }, func() {
			rg.ErrorCode = int16(codeOf(q.Err))
			done()
		})
		k.send(rg.Group)
	}
	done()
}
