// Package swap hands one data directory from a live Kafka 3.9 to kring and back, in rounds, under load: stops are clean or by kill -9
// in both, the cluster's state goes by `kring store import` and `export`, and what was acknowledged is held against what is there. It
// has tests only.
//
// Producers, a group of consumers and their clients live over all switches, as the broker's port stays the same. Of each partition there
// is one idempotent producer, so that the record with number n must have the offset n: a lost record, a repeated one or one out of its
// turn cannot hide.
//
// In Kafka's turns its own producer and franz-go's write transactions: committed ones, aborted ones, some that are open when Kafka ends.
// kring keeps and serves them, and Kafka's coordinator ends them in its next turn. TestReadCommitted holds what clients read of
// transactions against what they read of Kafka.
//
// A real ZooKeeper and Kafka are started by ../peers, which needs java and maven; the tests run where KRING_PEERS_TEST is set, and then
// fail, never skip, when a part is missing. KRING_SWAP_ROUNDS sets the rounds: four hold each combination of stops once.
// KRING_SWAP_KEEP names a directory for copies of the log dir at each handover.
package swap
