package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// describeScramCredentials lists users with SCRAM credentials (KIP-554). There is no SASL here, so there are none.
func describeScramCredentials(_ *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
	empty := ""
	resp.ErrorMessage = &empty
	times := map[string]int{}
	for _, u := range m.Users {
		times[u.Name]++
	}
	for _, u := range m.Users {
		if times[u.Name] == 0 {
			continue // answered
		}
		rr := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		rr.User, rr.ErrorCode = u.Name, int16(wire.ResourceNotFound)
		switch {
		case u.Name == "":
			rr.ErrorMessage = optional("Username must not be empty")
		case times[u.Name] > 1:
			rr.ErrorCode = int16(wire.DuplicateResource)
			rr.ErrorMessage = optional("Cannot describe SCRAM credentials for the same user twice in a single request: " + u.Name)
		default:
			rr.ErrorMessage = optional("Attempt to describe a user credential that does not exist: " + u.Name)
		}
		times[u.Name] = 0
		resp.Results = append(resp.Results, rr)
	}
	r.ReplyMessage(resp)
}
