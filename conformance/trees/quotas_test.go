package trees

import (
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// quota changes quotas of an entity (user=name, user for the default, several by spaces); ops are key=value, or key to remove it.
func quota(entity string, ops ...string) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		e := kmsg.NewAlterClientQuotasRequestEntry()
		for _, at := range entityStarts(entity) {
			kind, name, named := strings.Cut(at, "=")
			part := kmsg.AlterClientQuotasRequestEntryEntity{Type: kind}
			if named {
				part.Name = &name
			}
			e.Entity = append(e.Entity, part)
		}
		for _, op := range ops {
			key, value, set := strings.Cut(op, "=")
			v, err := strconv.ParseFloat(value, 64)
			if set && err != nil {
				return err.Error()
			}
			e.Ops = append(e.Ops, kmsg.AlterClientQuotasRequestEntryOp{Key: key, Value: v, Remove: !set})
		}
		req := kmsg.NewPtrAlterClientQuotasRequest()
		req.Entries = append(req.Entries, e)
		resp, err := ask(c, req)
		if err != nil {
			return err.Error()
		}
		return word(resp.(*kmsg.AlterClientQuotasResponse).Entries[0].ErrorCode)
	}
}

// entityStarts cuts an entity's parts apart: names may hold spaces.
func entityStarts(entity string) (parts []string) {
	for _, word := range strings.Split(entity, " ") {
		if kind, _, _ := strings.Cut(word, "="); kind == "user" || kind == "client-id" || kind == "ip" {
			parts = append(parts, word)
		} else {
			parts[len(parts)-1] += " " + word
		}
	}
	return parts
}
