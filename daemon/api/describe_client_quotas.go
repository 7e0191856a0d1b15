package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication/controller"
	"kring/wire"
)

// What quotas can be for, in the protocol's words.
const (
	quotaUser   = "user"
	quotaClient = "client-id"
	quotaIP     = "ip"
)

// describeClientQuotas lists the quotas that a filter finds (KIP-546).
func describeClientQuotas(c *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeClientQuotasRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDescribeClientQuotasResponse()
	filter, code, message := quotaFilter(m)
	if code != wire.None {
		resp.ErrorCode = int16(code)
		if code != wire.UnknownServerError {
			resp.ErrorMessage = &message
		}
		r.ReplyMessage(resp)
		return
	}
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.ClientQuotas(filter, func(found []controller.ClientQuota, err error) {
			finish(func() {
				resp.ErrorCode, resp.ErrorMessage = int16(codeOf(err)), messageOf(err)
				if err == nil {
					resp.ErrorMessage, resp.Entries = &message, make([]kmsg.DescribeClientQuotasResponseEntry, len(found))
				}
				for i := range found {
					resp.Entries[i] = describedQuota(&found[i])
				}
				r.ReplyMessage(resp)
			})
		})
	})
}

func describedQuota(q *controller.ClientQuota) kmsg.DescribeClientQuotasResponseEntry {
	e := kmsg.NewDescribeClientQuotasResponseEntry()
	for _, part := range []struct {
		kind string
		name controller.QuotaName
	}{{quotaUser, q.Entity.User}, {quotaClient, q.Entity.Client}, {quotaIP, q.Entity.IP}} {
		if part.name.Named {
			p := kmsg.NewDescribeClientQuotasResponseEntryEntity()
			p.Type = part.kind
			if !part.name.Default {
				p.Name = &part.name.Name
			}
			e.Entity = append(e.Entity, p)
		}
	}
	for _, v := range q.Values {
		value := kmsg.NewDescribeClientQuotasResponseEntryValue()
		value.Key, value.Value = v.Key, v.Value
		e.Values = append(e.Values, value)
	}
	return e
}

// quotaFilter is what a request looks for, or a code and a message of what is wrong with it.
func quotaFilter(m *kmsg.DescribeClientQuotasRequest) (f controller.QuotaFilter, code wire.Code, message string) {
	for _, p := range m.Components {
		exact := p.MatchType == kmsg.QuotasMatchTypeExact
		if p.MatchType < kmsg.QuotasMatchTypeExact || p.MatchType > kmsg.QuotasMatchTypeAny || exact && p.Match == nil {
			return f, wire.UnknownServerError, ""
		}
	}
	f.Strict = m.Strict
	for _, p := range m.Components {
		var match *controller.QuotaMatch
		word := p.EntityType
		switch p.EntityType {
		case quotaUser:
			match = &f.User
		case quotaClient:
			match, word = &f.Client, "client"
		case quotaIP:
			match = &f.IP
		case "":
			return f, wire.InvalidRequest, "Unexpected empty filter component entity type"
		default:
			return f, wire.UnsupportedVersion, fmt.Sprintf("Custom entity type '%s' not supported", p.EntityType)
		}
		if match.Asked {
			return f, wire.InvalidRequest, fmt.Sprintf("Duplicate %s filter component entity type", word)
		}
		match.Asked, match.Named = true, true
		switch p.MatchType {
		case kmsg.QuotasMatchTypeExact:
			match.Name = *p.Match
		case kmsg.QuotasMatchTypeDefault:
			match.Default = true
		default:
			match.Any = true
		}
	}
	if f.IP.Asked && (f.User.Asked || f.Client.Asked) {
		return f, wire.InvalidRequest, "Invalid entity filter component combination, IP filter component should not be used with " +
			"user or clientId filter component."
	}
	return f, wire.None, ""
}
