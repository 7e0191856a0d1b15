// Package api answers Kafka's requests: one file per API, each a begin (decode, check, hand on) and a finish (answer).
//
// table.go lists every API served: key, versions, handler and what it may cost; nothing else is advertised. errors.go is
// the only place where errors of other rooms become Kafka's codes.
//
// Ownership. A Context belongs to one loop, with the partitions of that loop; a Node is what the loops share: set before the
// first request, immutable, or atomic. Work for another loop's partition, and for the controller on loop 0, travels as a
// ring.Message and comes back as one.
package api
