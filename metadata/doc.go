// Package metadata holds what a cluster knows about itself: the store it is kept in, Kafka's znodes as typed values, and
// the Image, the picture of the cluster that a broker answers from.
//
// Store has ZooKeeper's own data model (a tree with versions, ephemeral nodes, one-shot watches and multi), so that the
// same code runs on a ZooKeeper ensemble and on the store in this process. Two rooms below implement it; storetest is
// the proof that they are alike.
//
// The package decides nothing about leaders, knows no request of Kafka's protocol and touches no disk or network. A
// Store belongs to the loop it was opened on; an Image is immutable and may be read by anyone.
package metadata
