package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication/controller"
	"kring/wire"
)

// describeScramCredentials tells which users have SCRAM credentials (KIP-554), by mechanism and iterations. There is no SASL here: they
// are those that came with another broker's store, and go back with it.
func describeScramCredentials(c *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	if !decode(r, m) {
		return
	}
	times := map[string]int{}
	var names []string // each once
	for _, u := range m.Users {
		if times[u.Name]++; times[u.Name] == 1 {
			names = append(names, u.Name)
		}
	}
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.ScramUsers(names, len(names) == 0, func(users []controller.ScramUser, err error) {
			finish(func() {
				resp := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
				empty := ""
				resp.ErrorCode, resp.ErrorMessage = int16(codeOf(err)), &empty
				for i := range users {
					resp.Results = append(resp.Results, describedUser(&users[i], times[users[i].Name] > 1))
				}
				r.ReplyMessage(resp)
			})
		})
	})
}

func describedUser(u *controller.ScramUser, twice bool) kmsg.DescribeUserSCRAMCredentialsResponseResult {
	rr := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
	rr.User = u.Name
	say := func(code wire.Code, message string) { rr.ErrorCode, rr.ErrorMessage = int16(code), &message }
	switch {
	case u.Name == "":
		say(wire.ResourceNotFound, "Username must not be empty")
	case twice:
		say(wire.DuplicateResource, "Cannot describe SCRAM credentials for the same user twice in a single request: "+u.Name)
	case u.Broken:
		say(wire.UnknownServerError, "The server experienced an unexpected error when processing the request.")
	case !u.Any():
		say(wire.ResourceNotFound, "Attempt to describe a user credential that does not exist: "+u.Name)
	default:
		say(wire.None, "")
		for i, n := range u.Iterations {
			if n != 0 {
				info := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
				info.Mechanism, info.Iterations = int8(i+1), n
				rr.CredentialInfos = append(rr.CredentialInfos, info)
			}
		}
	}
	return rr
}
