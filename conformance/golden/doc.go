// Package golden starts kring on the log dirs that a Kafka 3.9 has left, one stopped in order and one killed, with the same topics in its
// store, and holds what clients find against what they found on that Kafka; then a Kafka starts on what kring has left and must find
// the same again. It has tests only.
//
// The log dirs and what is in them lie in segment/testdata. A real ZooKeeper and Kafka are started by ../peers, which needs java and
// maven; the tests run where KRING_PEERS_TEST is set, and then fail, never skip, when a part is missing.
package golden
