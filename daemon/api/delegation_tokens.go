package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// A delegation token is given to who has proved who it is, and nobody can over a connection without TLS or SASL: Kafka refuses all
// four requests there, whatever else is set.

// anonymous is the principal of a connection without authentication.
const anonymous = "ANONYMOUS"

func createDelegationToken(_ *Context, r *server.Request) {
	if !decode(r, kmsg.NewPtrCreateDelegationTokenRequest()) {
		return
	}
	resp := kmsg.NewPtrCreateDelegationTokenResponse()
	resp.ErrorCode = int16(wire.DelegationTokenRequestNotAllowed)
	resp.PrincipalType, resp.PrincipalName = "User", anonymous
	resp.TokenRequesterPrincipalType, resp.TokenRequesterPrincipalName = "User", anonymous
	resp.IssueTimestamp, resp.ExpiryTimestamp, resp.MaxTimestamp = -1, -1, -1
	r.ReplyMessage(resp)
}

func renewDelegationToken(_ *Context, r *server.Request) {
	if !decode(r, kmsg.NewPtrRenewDelegationTokenRequest()) {
		return
	}
	resp := kmsg.NewPtrRenewDelegationTokenResponse()
	resp.ErrorCode, resp.ExpiryTimestamp = int16(wire.DelegationTokenRequestNotAllowed), -1
	r.ReplyMessage(resp)
}

func expireDelegationToken(_ *Context, r *server.Request) {
	if !decode(r, kmsg.NewPtrExpireDelegationTokenRequest()) {
		return
	}
	resp := kmsg.NewPtrExpireDelegationTokenResponse()
	resp.ErrorCode, resp.ExpiryTimestamp = int16(wire.DelegationTokenRequestNotAllowed), -1
	r.ReplyMessage(resp)
}

func describeDelegationToken(_ *Context, r *server.Request) {
	if !decode(r, kmsg.NewPtrDescribeDelegationTokenRequest()) {
		return
	}
	resp := kmsg.NewPtrDescribeDelegationTokenResponse()
	resp.ErrorCode = int16(wire.DelegationTokenRequestNotAllowed)
	r.ReplyMessage(resp)
}
