package controller

// Kind says what kind of refusal an Error is; each has one of Kafka's error codes.
type Kind uint8

// The kinds of refusal.
const (
	UnknownServerError Kind = iota
	NotController
	TimedOut
	TopicExists
	UnknownTopic
	UnknownTopicID
	InvalidTopicName
	InvalidPartitions
	InvalidReplicationFactor
	InvalidReplicaAssignment
	InvalidConfig
	InvalidRequest
	PolicyViolation
	TopicDeletionDisabled
	ReassignmentInProgress
	BrokerNotAvailable
	UnknownPartition
	ElectionNotNeeded
	PreferredLeaderNotAvailable
	EligibleLeadersNotAvailable
	NoReassignmentInProgress
	StorageError
)

// Error is why a request, or one item of it, was not carried out. TimedOut and StorageError mean that it may still be.
type Error struct {
	Kind    Kind
	Message string // for the client; may be empty
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Kind.String()
	}
	return e.Message
}

func (k Kind) String() string {
	names := [...]string{"unknown server error", "not the controller", "timed out", "topic exists", "unknown topic",
		"unknown topic id", "invalid topic name", "invalid partitions", "invalid replication factor",
		"invalid replica assignment", "invalid config", "invalid request", "policy violation", "topic deletion is disabled",
		"reassignment in progress", "broker not available", "unknown partition", "election not needed",
		"preferred leader not available", "eligible leaders not available", "no reassignment in progress", "storage error"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown kind"
}
