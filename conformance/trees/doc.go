// Package trees holds kring's cluster metadata against Kafka's: the same steps on a live one-broker Kafka 3.9 and on kring's
// embedded store must be answered alike and leave equal trees but for times and ids. It has tests only.
//
// The test starts a real ZooKeeper and Kafka by ../peers, which needs java and maven; it runs where KRING_PEERS_TEST is set, and
// then fails, never skips, when a part is missing.
package trees
