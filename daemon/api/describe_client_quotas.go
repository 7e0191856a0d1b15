package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// quotaEntities are what quotas can be of, with Kafka's words for a filter that names one twice.
var quotaEntities = map[string]string{"user": "user", "client-id": "client", "ip": "ip"}

// describeClientQuotas lists quotas (KIP-546). None can be set, so none is found; the filter is checked as in Kafka.
func describeClientQuotas(_ *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeClientQuotasRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDescribeClientQuotasResponse()
	code, message := checkQuotaFilter(m.Components)
	resp.ErrorCode, resp.ErrorMessage = int16(code), &message
	switch code {
	case wire.None:
		resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	case wire.UnknownServerError:
		resp.ErrorMessage = nil
	}
	r.ReplyMessage(resp)
}

func checkQuotaFilter(parts []kmsg.DescribeClientQuotasRequestComponent) (wire.Code, string) {
	for _, p := range parts {
		exact := p.MatchType == kmsg.QuotasMatchTypeExact
		if p.MatchType < kmsg.QuotasMatchTypeExact || p.MatchType > kmsg.QuotasMatchTypeAny || exact && p.Match == nil {
			return wire.UnknownServerError, ""
		}
	}
	seen := map[string]bool{}
	for _, p := range parts {
		word, known := quotaEntities[p.EntityType]
		switch {
		case p.EntityType == "":
			return wire.InvalidRequest, "Unexpected empty filter component entity type"
		case !known:
			return wire.UnsupportedVersion, fmt.Sprintf("Custom entity type '%s' not supported", p.EntityType)
		case seen[word]:
			return wire.InvalidRequest, fmt.Sprintf("Duplicate %s filter component entity type", word)
		}
		seen[word] = true
	}
	if seen["ip"] && len(seen) > 1 {
		return wire.InvalidRequest, "Invalid entity filter component combination, IP filter component should not be used with " +
			"user or clientId filter component."
	}
	return wire.None, ""
}
