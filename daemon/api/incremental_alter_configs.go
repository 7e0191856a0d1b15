package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication/controller"
)

// incrementalAlterConfigs changes single settings of each resource (KIP-339).
func incrementalAlterConfigs(c *Context, r *server.Request) {
	m := kmsg.NewPtrIncrementalAlterConfigsRequest()
	if !decode(r, m) {
		return
	}
	alter := make([]alteration, len(m.Resources))
	for i, resource := range m.Resources {
		a := &alter[i]
		a.kind, a.name = resource.ResourceType, resource.ResourceName
		for _, s := range resource.Configs {
			a.Ops = append(a.Ops, controller.ConfigOp{Kind: controller.ConfigOpKind(s.Op), Name: s.Name, Value: s.Value})
		}
	}
	c.alter(alter, m.ValidateOnly, func() {
		resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
		for i := range alter {
			rr := kmsg.NewIncrementalAlterConfigsResponseResource()
			rr.ResourceType, rr.ResourceName = alter[i].kind, alter[i].name
			rr.ErrorCode, rr.ErrorMessage = int16(codeOf(alter[i].err)), messageOf(alter[i].err)
			resp.Resources = append(resp.Resources, rr)
		}
		r.ReplyMessage(resp)
	})
}
