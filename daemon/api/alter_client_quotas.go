package api

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication/controller"
)

// alterClientQuotas sets and removes quotas (KIP-546). They are stored as in Kafka, and not enforced.
func alterClientQuotas(c *Context, r *server.Request) {
	m := kmsg.NewPtrAlterClientQuotasRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrAlterClientQuotasResponse()
	resp.Entries = []kmsg.AlterClientQuotasResponseEntry{}
	answers := make(map[string]int, len(m.Entries)) // index in the answer, by entity: one named twice is answered once, in the end
	var ask []controller.AlterQuota
	var at []int
	settle := func(i int, err error) {
		resp.Entries[i].ErrorCode, resp.Entries[i].ErrorMessage = int16(codeOf(err)), messageOf(err)
	}
	for i := range m.Entries {
		parts := quotaParts(m.Entries[i].Entity)
		key := fmt.Sprintf("%q", quotaWords(parts))
		n, named := answers[key]
		if !named {
			n = len(resp.Entries)
			answers[key] = n
			e := kmsg.NewAlterClientQuotasResponseEntry()
			for _, p := range parts {
				e.Entity = append(e.Entity, kmsg.AlterClientQuotasResponseEntryEntity{Type: p.Type, Name: p.Name})
			}
			resp.Entries = append(resp.Entries, e)
		}
		entity, err := quotaEntity(parts)
		if err != nil {
			settle(n, err)
			continue
		}
		a := controller.AlterQuota{Entity: entity}
		for _, op := range m.Entries[i].Ops {
			a.Ops = append(a.Ops, controller.QuotaOp{Key: op.Key, Value: op.Value, Remove: op.Remove})
		}
		ask, at = append(ask, a), append(at, n)
	}
	if len(ask) == 0 {
		r.ReplyMessage(resp)
		return
	}
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.AlterQuotas(ask, m.ValidateOnly, func(errs []error) {
			finish(func() {
				for i, err := range errs {
					settle(at[i], err)
				}
				r.ReplyMessage(resp)
			})
		})
	})
}

// quotaParts are an entity's parts in the order of their types; of two of one type the last counts, as in Kafka.
func quotaParts(parts []kmsg.AlterClientQuotasRequestEntryEntity) []kmsg.AlterClientQuotasRequestEntryEntity {
	sorted := slices.Clone(parts)
	slices.Reverse(sorted)
	slices.SortStableFunc(sorted, func(a, b kmsg.AlterClientQuotasRequestEntryEntity) int { return cmp.Compare(a.Type, b.Type) })
	return slices.CompactFunc(sorted, func(a, b kmsg.AlterClientQuotasRequestEntryEntity) bool { return a.Type == b.Type })
}

// quotaWords tell an entity from every other one.
func quotaWords(parts []kmsg.AlterClientQuotasRequestEntryEntity) (words []string) {
	for _, p := range parts {
		words = append(words, p.Type)
		if p.Name == nil {
			words = append(words, "default", "")
		} else {
			words = append(words, "named", *p.Name)
		}
	}
	return words
}

// quotaEntity is whom a quota is to be for.
func quotaEntity(parts []kmsg.AlterClientQuotasRequestEntryEntity) (e controller.QuotaEntity, err error) {
	for _, p := range parts {
		name := controller.QuotaName{Named: true, Default: p.Name == nil}
		if p.Name != nil {
			name.Name = *p.Name
		}
		switch p.Type {
		case quotaUser:
			e.User = name
		case quotaClient:
			e.Client = name
		case quotaIP:
			e.IP = name
		default:
			return e, refuse("Unhandled client quota entity type: %s", p.Type)
		}
	}
	return e, nil
}
