package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// apiVersions says what is served. Clients ask this first, in whatever version they know.
func apiVersions(c *Context, r *server.Request) {
	resp := kmsg.NewPtrApiVersionsResponse()
	if r.Version >= 3 {
		m := kmsg.NewPtrApiVersionsRequest()
		if !decode(r, m) {
			return
		}
		if !softwareName(m.ClientSoftwareName) || !softwareName(m.ClientSoftwareVersion) {
			resp.ErrorCode = int16(wire.InvalidRequest)
			r.ReplyMessage(resp)
			return
		}
		resp.FinalizedFeaturesEpoch = c.Image().FeatureEpoch
	}
	resp.ApiKeys = make([]kmsg.ApiVersionsResponseApiKey, 0, len(c.table))
	for _, row := range c.table {
		if row == nil {
			continue
		}
		lowest, highest, _ := wire.Advertised(row.key)
		resp.ApiKeys = append(resp.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: row.key, MinVersion: lowest, MaxVersion: highest})
	}
	r.ReplyMessage(resp)
}

// unsupportedVersion answers an ApiVersions request that is newer than we are: in version 0, which everybody reads, with our
// versions of this one API.
func unsupportedVersion(c *Context, r *server.Request) {
	row := c.table[wire.ApiVersions]
	r.Version = 0
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = int16(wire.UnsupportedVersion)
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: row.key, MinVersion: row.min, MaxVersion: row.max}}
	r.ReplyMessage(resp)
}

// softwareName says whether a client's software name or version is one (KIP-511): letters and digits, with '.' and '-'
// between them.
func softwareName(s string) bool {
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
		case (b == '.' || b == '-') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != ""
}
