// Package controller decides who leads which partition, as the controller of a Kafka cluster in ZooKeeper mode does, and
// keeps its decisions in a metadata.Store. It registers its broker, runs for controller, creates, alters and deletes
// topics with the node writes Kafka makes, in Kafka's order, and tells the broker what to lead, what to stop and what
// the cluster looks like.
//
// It does not know logs, connections or Kafka's error codes; what it refuses is a typed *Error. What can be decided from
// facts alone is in pure functions (elect.go, assign.go, validate.go, alter.go); what waits for the store is straight-line
// code on a ring.Task, one event after the other.
//
// A Controller belongs to one loop: the one its Store lives on. Every method must be called there and every callback
// runs there, never inside the call that caused it.
package controller
