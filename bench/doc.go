// Package bench measures a Kafka-protocol broker from outside, over its sockets, as a client does.
//
// It sends raw requests that were encoded before the clock started, so that the generator costs little and the broker's
// own CPU, read from the kernel's accounting of the named processes, can be told per request and per gigabyte. It
// works against any broker that speaks the protocol: `make bench-compare` runs it on kring and on Apache Kafka in turn.
//
// Not here: a client library (records are not decoded beyond what latency needs), and verdicts (a run reports figures,
// the comparison reports ratios).
//
// A closed loop sends when the last answer came: it finds the cost per request and the most a broker takes. An open loop
// sends on a schedule, and a request that left late because the last answer was late is timed from its slot, so that a
// stall is not hidden (coordinated omission). Lateness of the generator's own timer, up to 1 ms in Go, is not charged.
//
// State: each connection is owned by one goroutine; figures are merged when all have ended.
package bench
