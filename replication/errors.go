package replication

import "errors"

// Refusals before anything is appended or read.
var (
	// ErrNotLeader: this broker does not lead the partition (any longer).
	ErrNotLeader = errors.New("not the leader of the partition")
	// ErrFencedEpoch: the caller's leader epoch is older than ours.
	ErrFencedEpoch = errors.New("leader epoch is fenced")
	// ErrUnknownEpoch: the caller's leader epoch is newer than ours.
	ErrUnknownEpoch = errors.New("leader epoch is not known yet")
	// ErrOffline: the partition's log has failed.
	ErrOffline = errors.New("log is offline")
	// ErrNotEnoughReplicas: acks=all with fewer in-sync replicas than min.insync.replicas; nothing was appended.
	ErrNotEnoughReplicas = errors.New("fewer in-sync replicas than required")
	// ErrOutOfRange: an offset lies below the log start or beyond the end.
	ErrOutOfRange = errors.New("offset is out of range")
)

// Answers after the append: the data stays in the log.
var (
	// ErrNotEnoughReplicasAfterAppend: replicated, but the in-sync replicas have become fewer than required meanwhile.
	ErrNotEnoughReplicasAfterAppend = errors.New("fewer in-sync replicas than required after the append")
	// ErrTimedOut: not replicated in time.
	ErrTimedOut = errors.New("not replicated in time")
)
