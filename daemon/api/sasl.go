package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// A client that speaks SASL to a listener without it is told so, as by Kafka, and not cut off without a word.

func saslHandshake(_ *Context, r *server.Request) {
	if !decode(r, kmsg.NewPtrSASLHandshakeRequest()) {
		return
	}
	resp := kmsg.NewPtrSASLHandshakeResponse()
	resp.ErrorCode = int16(wire.IllegalSaslState)
	r.ReplyMessage(resp)
}

func saslAuthenticate(_ *Context, r *server.Request) {
	if !decode(r, kmsg.NewPtrSASLAuthenticateRequest()) {
		return
	}
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	resp.ErrorCode = int16(wire.IllegalSaslState)
	resp.ErrorMessage = optional("SaslAuthenticate request received after successful authentication")
	r.ReplyMessage(resp)
}
