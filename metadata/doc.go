// Package metadata holds what a cluster knows about itself: the store it is kept in, Kafka's znodes as typed values, and
// the Image, the picture of the cluster that a broker answers from.
//
// Store has ZooKeeper's own data model (a tree with versions, ephemeral nodes, one-shot watches and multi), so that the
// same code can run on a ZooKeeper ensemble as on the store in this process. The room embedded implements it; one for an
// ensemble is not built. storetest holds the first, and ZooKeeper itself (conformance/trees), to the same suite.
//
// The package decides nothing about leaders, knows no request of Kafka's protocol and touches no disk or network. A
// Store belongs to the loop it was opened on; an Image is immutable and may be read by anyone.
package metadata
