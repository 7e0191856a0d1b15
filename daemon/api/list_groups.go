package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
	"kring/ring"
	"kring/wire"
)

// listGroups names the groups of this broker, by state and type. While some are being loaded the answer says so and holds the
// others.
func listGroups(c *Context, r *server.Request) {
	m := kmsg.NewPtrListGroupsRequest()
	if !decode(r, m) {
		return
	}
	found := make([][]kmsg.ListGroupsResponseGroup, len(c.Contexts))
	loading := make([]bool, len(c.Contexts))
	e := newErrands(c)
	for i := range c.Contexts {
		e.add(i, func(_ *ring.Task, on *Context) {
			for g := range on.GroupShards() {
				err := g.List(m.StatesFilter, m.TypesFilter, func(l coordinator.Listed) {
					found[i] = append(found[i], kmsg.ListGroupsResponseGroup{Group: l.Group, ProtocolType: l.ProtocolType,
						GroupState: l.State.String(), GroupType: l.Type})
				})
				loading[i] = loading[i] || codeOf(err) == wire.CoordinatorLoadInProgress
			}
		})
	}
	e.run(func() {
		resp := kmsg.NewPtrListGroupsResponse()
		for i := range found {
			resp.Groups = append(resp.Groups, found[i]...)
			if loading[i] {
				resp.ErrorCode = int16(wire.CoordinatorLoadInProgress)
			}
		}
		r.ReplyMessage(resp)
	})
}
