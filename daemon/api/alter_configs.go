package api

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/metadata"
	"kring/replication/controller"
)

// alterConfigs replaces the whole configuration of each resource: the older way.
func alterConfigs(c *Context, r *server.Request) {
	m := kmsg.NewPtrAlterConfigsRequest()
	if !decode(r, m) {
		return
	}
	alter := make([]alteration, len(m.Resources))
	for i, resource := range m.Resources {
		a := &alter[i]
		a.kind, a.name, a.Replace = resource.ResourceType, resource.ResourceName, true
		for _, s := range resource.Configs {
			a.Ops = append(a.Ops, controller.ConfigOp{Kind: controller.ConfigSet, Name: s.Name, Value: s.Value})
		}
	}
	c.alter(alter, m.ValidateOnly, func() {
		resp := kmsg.NewPtrAlterConfigsResponse()
		for i := range alter {
			rr := kmsg.NewAlterConfigsResponseResource()
			rr.ResourceType, rr.ResourceName = alter[i].kind, alter[i].name
			rr.ErrorCode, rr.ErrorMessage = int16(codeOf(alter[i].err)), messageOf(alter[i].err)
			resp.Resources = append(resp.Resources, rr)
		}
		r.ReplyMessage(resp)
	})
}

// alteration is a change of one resource's configuration and what became of it.
type alteration struct {
	controller.AlterConfig
	kind kmsg.ConfigResourceType
	name string
	err  error
}

// alter has the changes made that can be, and calls done when all have their errors.
func (c *Context) alter(all []alteration, validateOnly bool, done func()) {
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	count := make(map[resource]int, len(all))
	for i := range all {
		count[resource{all[i].kind, all[i].name}]++
	}
	var ask []controller.AlterConfig
	var at []int
	for i := range all {
		a := &all[i]
		if count[resource{a.kind, a.name}] > 1 {
			a.err = refuse("Each resource must appear at most once.")
		} else if a.err = c.check(a); a.err == nil && a.Resource != 0 {
			ask, at = append(ask, a.AlterConfig), append(at, i)
		} else if a.err == nil && !validateOnly {
			c.setLevels(a.Ops)
		}
	}
	if len(ask) == 0 {
		done()
		return
	}
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.AlterConfigs(ask, validateOnly, func(errs []error) {
			finish(func() {
				for i, err := range errs {
					all[at[i]].err = err
				}
				done()
			})
		})
	})
}

// check refuses what needs no controller to be refused, and names the resource for it.
func (c *Context) check(a *alteration) error {
	seen := make(map[string]bool, len(a.Ops))
	var null []string
	for _, op := range a.Ops {
		if seen[op.Name] {
			return refuse("Error due to duplicate config keys")
		}
		seen[op.Name] = true
		if op.Kind != controller.ConfigDelete && op.Value == nil {
			null = append(null, op.Name)
		}
	}
	if null != nil {
		return refuse("Null value not supported for : %s", strings.Join(null, ", "))
	}
	switch a.kind {
	case kmsg.ConfigResourceTypeTopic:
		a.Resource, a.Topic = controller.TopicResource, a.name
	case kmsg.ConfigResourceTypeBroker:
		a.Resource, a.Broker = controller.BrokerResource, metadata.NoBroker
		if a.name != "" {
			a.Broker = c.ID
			return c.thisBroker("Node", a.name, "")
		}
	case kmsg.ConfigResourceTypeBrokerLogger:
		if !a.Replace {
			return c.checkLevels(a)
		}
		return refuse("Unknown resource type %d", a.kind)
	default:
		return refuse("Unknown resource type %d", a.kind)
	}
	return nil
}
