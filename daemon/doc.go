// Command kring is a Kafka-protocol broker for Linux, and the tools to look at one and use one.
//
// This package is the outermost room. It alone chooses the real kernel (ring) and the store of cluster state, reads the command
// line, sets up logs, signals and memory, serves numbers and health to those who watch, informs the service manager, and maps what
// stops it to an exit status. What the broker does is in daemon/broker and
// below; the client commands speak Kafka's protocol through franz-go and work with any Kafka broker; kring store alone
// speaks to a ZooKeeper, while no broker runs.
//
// Promise: a refusal is one line on standard error that names cause and cure, ends with the status of exit.go, and has changed
// nothing on disk.
package main
