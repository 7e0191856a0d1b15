package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

// decode reads the request's body into m; a malformed one ends the connection, as in Kafka, and decode returns false. m keeps
// nothing of the body.
func decode(r *server.Request, m kmsg.Request) bool {
	m.SetVersion(r.Version)
	if wire.CheckBody(r.Key, r.Version, r.Body) != nil || m.ReadFrom(r.Body) != nil {
		r.Close(server.BadBody)
		return false
	}
	return true
}

// millis is a duration from a request; below zero is none.
func millis(ms int32) time.Duration { return time.Duration(max(ms, 0)) * time.Millisecond }

// Bits of authorized operations (KIP-430) without an authorizer: everything the resource knows.
const (
	noOperations      = -1 << 31
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
)

// optional is s, or nil if it is empty.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
