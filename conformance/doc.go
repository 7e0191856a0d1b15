// Package conformance holds what an outsider can check of the whole broker: the built binary under real clients, beside
// the real Apache Kafka that peers/ starts, and against what Kafka was recorded to answer. It has tests only.
//
// The tests find the binary in KRING (default: ../bin/kring, as `make build` leaves it) and fail, never skip, when a
// part they need is missing. With CONFORMANCE_ADDR=host:port they run against that broker instead of starting kring: so
// the tests themselves are checked on a fresh Kafka 3.9. With CONFORMANCE_KAFKA=1 each test that starts a broker of its own
// gets a Kafka 3.9 and a ZooKeeper instead, which it may also kill and start again.
//
// Folders that bear a client library's name hold a program that uses it as its manual shows, pinned by the library's own kind of lock
// file and none of it made for kring: librdkafka (C API, and kcat), java-3.9 and java-4 (one source), confluent-kafka, kafka-python and
// aiokafka, kafkajs, franz-go, sarama, kafka-go. A program prints a line for each step, and what it prints of kring must be what it
// prints of a live Kafka 3.9; what a library cannot do is a step too, "unsupported" with the library's reason. tools installs them under
// KRING_CACHE, and asks nobody again until a lock file changes. CLIENTS=kafkajs,java-4 names those to run.
//
// Disks are broken for real, which needs root: file systems in loop devices that are full, become read-only or are shut down, whose
// backing store ends or takes no more, and a disk of QEMU's whose log of writes and flushes says what a power cut may leave
// (POWER_CUTS=n, make power).
//
// What Kafka's own command-line tools print against Kafka is kept in testdata/tools, so that a run needs only kring's side;
// CONFORMANCE_RECORD=1 writes it anew from a live Kafka.
package conformance
