// Package server owns the connections of one loop: it cuts the bytes that come into requests, hands each to the dispatch
// function, and sends the answers in the order the requests came, whatever order they were finished in.
//
// It knows frames, headers and limits; it knows no topic, no partition and no API but by number. What a request means is the
// business of daemon/api.
//
// Ownership. A Server, its connections and its requests belong to one loop. A Request is the handler's from dispatch until
// it calls one of Reply, ReplyParts, ReplyMessage, NoReply or Close, exactly once, on that loop; then it is the server's
// again and must not be touched, except inside the release function given with the answer.
//
// Promises:
//   - Requests of one connection are dispatched in the order they came; up to Options.Pipeline of them are under way at a
//     time, fewer while their answers fill Options.UnsentBytes. A request counts until its answer has left, so a peer that
//     does not read is not read from.
//   - Body and ClientID stay valid until the answer is given (or Release); the bytes are the handler's to change.
//   - No length is believed before it was compared with the limit; nothing is allocated for bytes that have not come.
//   - When a connection ends, requests under way are told through Gone and may finish later; their answers go nowhere, but
//     release is still called.
package server
