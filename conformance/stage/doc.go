// Package stage has what the tests of the finished binary need whatever they test: the binary, a free port of the loopback, and the real
// Kafka and ZooKeeper that conformance/peers starts. A part that is missing fails the test.
package stage
