package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// Nobody decides here who may do what, so there is nothing to list and nothing to set: Kafka without an authorizer says the same.
const (
	noAuthorizer    = "No Authorizer is configured on the broker"
	noAuthorizerSet = "No Authorizer is configured."
)

// describeACLs lists the access rules.
func describeACLs(_ *Context, r *server.Request) {
	if !decode(r, kmsg.NewPtrDescribeACLsRequest()) {
		return
	}
	resp := kmsg.NewPtrDescribeACLsResponse()
	resp.ErrorCode, resp.ErrorMessage = int16(wire.SecurityDisabled), optional(noAuthorizer)
	r.ReplyMessage(resp)
}

// createACLs adds access rules.
func createACLs(_ *Context, r *server.Request) {
	m := kmsg.NewPtrCreateACLsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrCreateACLsResponse()
	for range m.Creations {
		rr := kmsg.NewCreateACLsResponseResult()
		rr.ErrorCode, rr.ErrorMessage = int16(wire.SecurityDisabled), optional(noAuthorizerSet)
		resp.Results = append(resp.Results, rr)
	}
	r.ReplyMessage(resp)
}

// deleteACLs removes access rules.
func deleteACLs(_ *Context, r *server.Request) {
	m := kmsg.NewPtrDeleteACLsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDeleteACLsResponse()
	for range m.Filters {
		rr := kmsg.NewDeleteACLsResponseResult()
		rr.ErrorCode, rr.ErrorMessage = int16(wire.SecurityDisabled), optional(noAuthorizerSet)
		resp.Results = append(resp.Results, rr)
	}
	r.ReplyMessage(resp)
}
