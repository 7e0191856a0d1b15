// Package api answers Kafka's requests: one file per API, each a begin (decode, check, hand on) and a finish (answer).
//
// table.go lists every API served: key, versions, handler and what it may cost; nothing else is advertised. errors.go is
// the only place where errors of other rooms become Kafka's codes.
//
// Ownership. A Context belongs to one loop, with the partitions of that loop; a Node is what the loops share: set before the
// first request, immutable, or atomic. Work for another loop's partition, and for the controller on loop 0, travels as a
// ring.Message and comes back as one.
//
// The data path. A Produce or Fetch is cut into shares, one for each loop that has partitions of it; a share runs at once on
// its own loop and travels to others, and the request is answered when all are home. What is in a share belongs to the loop
// it is on. Request states are pooled by loop with all they hold: nothing is allocated for a request once the pool is warm.
//
//   - Record bytes are checked and stamped where they were received and written from there; the request keeps them until
//     its log has answered. Fetched records are sent from their files: a range is pinned, on the partition's loop, until the
//     answer has left.
//   - Batches for one partition are appended in the order in which their requests came, also when one has to be looked into
//     off the loop.
//   - A Fetch waits in its partitions, once, with one timer. It is woken at the end of a turn, looks again, and answers with what
//     is there then. A client that goes ends its wait.
//   - Fetch sessions (KIP-227) live on the loop of the connection they were begun on; their number and the partitions they
//     remember are bounded. A session that is not here is not known: the client begins a new one.
//
// Groups. A group lives on the loop of its partition of the offsets' topic. A request about it travels there as a groupCall, is
// answered by the coordinator's machine, now or when others have come, and travels back; answers leave only when the machine is
// at rest. The partition's log is the machine's journal. While this broker does not lead the partition the machine is unloaded, and
// says so; daemon/broker loads it.
package api
