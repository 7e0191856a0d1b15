// Package conformance holds what an outsider can check of the whole broker: the built binary under real clients, beside
// the real Apache Kafka that peers/ starts, and against what Kafka was recorded to answer. It has tests only.
//
// The tests find the binary in KRING (default: ../bin/kring, as `make build` leaves it) and fail, never skip, when a
// part they need is missing. With CONFORMANCE_ADDR=host:port they run against that broker instead of starting kring: so
// the tests themselves are checked on a fresh Kafka 3.9. With CONFORMANCE_KAFKA=1 each test that starts a broker of its own
// gets a Kafka 3.9 and a ZooKeeper instead, which it may also kill and start again.
//
// What Kafka's own command-line tools print against Kafka is kept in testdata/tools, so that a run needs only kring's side;
// CONFORMANCE_RECORD=1 writes it anew from a live Kafka.
package conformance
