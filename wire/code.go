package wire

// Code is an error code of an answer; 0 is success. It is an error with Kafka's name.
type Code int16

// Kafka's error codes, by its numbers and names.
const (
	UnknownServerError                 Code = -1
	None                               Code = 0
	OffsetOutOfRange                   Code = 1
	CorruptMessage                     Code = 2
	UnknownTopicOrPartition            Code = 3
	InvalidFetchSize                   Code = 4
	LeaderNotAvailable                 Code = 5
	NotLeaderOrFollower                Code = 6
	RequestTimedOut                    Code = 7
	BrokerNotAvailable                 Code = 8
	ReplicaNotAvailable                Code = 9
	MessageTooLarge                    Code = 10
	StaleControllerEpoch               Code = 11
	OffsetMetadataTooLarge             Code = 12
	NetworkException                   Code = 13
	CoordinatorLoadInProgress          Code = 14
	CoordinatorNotAvailable            Code = 15
	NotCoordinator                     Code = 16
	InvalidTopicException              Code = 17
	RecordListTooLarge                 Code = 18
	NotEnoughReplicas                  Code = 19
	NotEnoughReplicasAfterAppend       Code = 20
	InvalidRequiredAcks                Code = 21
	IllegalGeneration                  Code = 22
	InconsistentGroupProtocol          Code = 23
	InvalidGroupID                     Code = 24
	UnknownMemberID                    Code = 25
	InvalidSessionTimeout              Code = 26
	RebalanceInProgress                Code = 27
	InvalidCommitOffsetSize            Code = 28
	TopicAuthorizationFailed           Code = 29
	GroupAuthorizationFailed           Code = 30
	ClusterAuthorizationFailed         Code = 31
	InvalidTimestamp                   Code = 32
	UnsupportedSaslMechanism           Code = 33
	IllegalSaslState                   Code = 34
	UnsupportedVersion                 Code = 35
	TopicAlreadyExists                 Code = 36
	InvalidPartitions                  Code = 37
	InvalidReplicationFactor           Code = 38
	InvalidReplicaAssignment           Code = 39
	InvalidConfig                      Code = 40
	NotController                      Code = 41
	InvalidRequest                     Code = 42
	UnsupportedForMessageFormat        Code = 43
	PolicyViolation                    Code = 44
	OutOfOrderSequenceNumber           Code = 45
	DuplicateSequenceNumber            Code = 46
	InvalidProducerEpoch               Code = 47
	InvalidTxnState                    Code = 48
	InvalidProducerIDMapping           Code = 49
	InvalidTransactionTimeout          Code = 50
	ConcurrentTransactions             Code = 51
	TransactionCoordinatorFenced       Code = 52
	TransactionalIDAuthorizationFailed Code = 53
	SecurityDisabled                   Code = 54
	OperationNotAttempted              Code = 55
	KafkaStorageError                  Code = 56
	LogDirNotFound                     Code = 57
	SaslAuthenticationFailed           Code = 58
	UnknownProducerID                  Code = 59
	ReassignmentInProgress             Code = 60
	DelegationTokenAuthDisabled        Code = 61
	DelegationTokenNotFound            Code = 62
	DelegationTokenOwnerMismatch       Code = 63
	DelegationTokenRequestNotAllowed   Code = 64
	DelegationTokenAuthorizationFailed Code = 65
	DelegationTokenExpired             Code = 66
	InvalidPrincipalType               Code = 67
	NonEmptyGroup                      Code = 68
	GroupIDNotFound                    Code = 69
	FetchSessionIDNotFound             Code = 70
	InvalidFetchSessionEpoch           Code = 71
	ListenerNotFound                   Code = 72
	TopicDeletionDisabled              Code = 73
	FencedLeaderEpoch                  Code = 74
	UnknownLeaderEpoch                 Code = 75
	UnsupportedCompressionType         Code = 76
	StaleBrokerEpoch                   Code = 77
	OffsetNotAvailable                 Code = 78
	MemberIDRequired                   Code = 79
	PreferredLeaderNotAvailable        Code = 80
	GroupMaxSizeReached                Code = 81
	FencedInstanceID                   Code = 82
	EligibleLeadersNotAvailable        Code = 83
	ElectionNotNeeded                  Code = 84
	NoReassignmentInProgress           Code = 85
	GroupSubscribedToTopic             Code = 86
	InvalidRecord                      Code = 87
	UnstableOffsetCommit               Code = 88
	ThrottlingQuotaExceeded            Code = 89
	ProducerFenced                     Code = 90
	ResourceNotFound                   Code = 91
	DuplicateResource                  Code = 92
	UnacceptableCredential             Code = 93
	InconsistentVoterSet               Code = 94
	InvalidUpdateVersion               Code = 95
	FeatureUpdateFailed                Code = 96
	PrincipalDeserializationFailure    Code = 97
	SnapshotNotFound                   Code = 98
	PositionOutOfRange                 Code = 99
	UnknownTopicID                     Code = 100
	DuplicateBrokerRegistration        Code = 101
	BrokerIDNotRegistered              Code = 102
	InconsistentTopicID                Code = 103
	InconsistentClusterID              Code = 104
	TransactionalIDNotFound            Code = 105
	FetchSessionTopicIDError           Code = 106
	IneligibleReplica                  Code = 107
	NewLeaderElected                   Code = 108
	OffsetMovedToTieredStorage         Code = 109
	FencedMemberEpoch                  Code = 110
	UnreleasedInstanceID               Code = 111
	UnsupportedAssignor                Code = 112
	StaleMemberEpoch                   Code = 113
	MismatchedEndpointType             Code = 114
	UnsupportedEndpointType            Code = 115
	UnknownControllerID                Code = 116
	UnknownSubscriptionID              Code = 117
	TelemetryTooLarge                  Code = 118
	InvalidRegistration                Code = 119
	TransactionAbortable               Code = 120
	InvalidRecordState                 Code = 121
	ShareSessionNotFound               Code = 122
	InvalidShareSessionEpoch           Code = 123
	FencedStateEpoch                   Code = 124
	InvalidVoterKey                    Code = 125
	DuplicateVoter                     Code = 126
	VoterNotFound                      Code = 127
)

// codeRow is what a code is called and means. Kafka's clients try again after a retriable one.
type codeRow struct {
	name, text string
	retriable  bool
}

// codes is the table, from -1 on.
var codes = [...]codeRow{
	UnknownServerError + 1:                 {"UNKNOWN_SERVER_ERROR", "the server failed in a way it did not expect", false},
	None + 1:                               {"NONE", "", false},
	OffsetOutOfRange + 1:                   {"OFFSET_OUT_OF_RANGE", "offset is not within the log", false},
	CorruptMessage + 1:                     {"CORRUPT_MESSAGE", "message is corrupt: crc, size or format", true},
	UnknownTopicOrPartition + 1:            {"UNKNOWN_TOPIC_OR_PARTITION", "topic or partition is not hosted here", true},
	InvalidFetchSize + 1:                   {"INVALID_FETCH_SIZE", "fetch size is invalid", false},
	LeaderNotAvailable + 1:                 {"LEADER_NOT_AVAILABLE", "partition has no leader at present", true},
	NotLeaderOrFollower + 1:                {"NOT_LEADER_OR_FOLLOWER", "this broker is not the leader, or no replica, of the partition", true},
	RequestTimedOut + 1:                    {"REQUEST_TIMED_OUT", "request timed out", true},
	BrokerNotAvailable + 1:                 {"BROKER_NOT_AVAILABLE", "broker is not available", false},
	ReplicaNotAvailable + 1:                {"REPLICA_NOT_AVAILABLE", "replica is not available", true},
	MessageTooLarge + 1:                    {"MESSAGE_TOO_LARGE", "message is larger than the limit", false},
	StaleControllerEpoch + 1:               {"STALE_CONTROLLER_EPOCH", "request comes from an older controller", false},
	OffsetMetadataTooLarge + 1:             {"OFFSET_METADATA_TOO_LARGE", "offset metadata is too large", false},
	NetworkException + 1:                   {"NETWORK_EXCEPTION", "connection was lost before the answer", true},
	CoordinatorLoadInProgress + 1:          {"COORDINATOR_LOAD_IN_PROGRESS", "coordinator is loading", true},
	CoordinatorNotAvailable + 1:            {"COORDINATOR_NOT_AVAILABLE", "coordinator is not available", true},
	NotCoordinator + 1:                     {"NOT_COORDINATOR", "this broker is not the coordinator", true},
	InvalidTopicException + 1:              {"INVALID_TOPIC_EXCEPTION", "topic is invalid for this operation", false},
	RecordListTooLarge + 1:                 {"RECORD_LIST_TOO_LARGE", "record list is larger than a segment", false},
	NotEnoughReplicas + 1:                  {"NOT_ENOUGH_REPLICAS", "fewer replicas in sync than required", true},
	NotEnoughReplicasAfterAppend + 1:       {"NOT_ENOUGH_REPLICAS_AFTER_APPEND", "written, but to fewer replicas in sync than required", true},
	InvalidRequiredAcks + 1:                {"INVALID_REQUIRED_ACKS", "required acks must be -1, 0 or 1", false},
	IllegalGeneration + 1:                  {"ILLEGAL_GENERATION", "group generation is not the current one", false},
	InconsistentGroupProtocol + 1:          {"INCONSISTENT_GROUP_PROTOCOL", "group protocol does not fit that of the other members", false},
	InvalidGroupID + 1:                     {"INVALID_GROUP_ID", "group id is invalid", false},
	UnknownMemberID + 1:                    {"UNKNOWN_MEMBER_ID", "member is not known to the coordinator", false},
	InvalidSessionTimeout + 1:              {"INVALID_SESSION_TIMEOUT", "session timeout is out of the allowed range", false},
	RebalanceInProgress + 1:                {"REBALANCE_IN_PROGRESS", "group is rebalancing; join again", false},
	InvalidCommitOffsetSize + 1:            {"INVALID_COMMIT_OFFSET_SIZE", "committed offset data is too large", false},
	TopicAuthorizationFailed + 1:           {"TOPIC_AUTHORIZATION_FAILED", "not authorized for the topic", false},
	GroupAuthorizationFailed + 1:           {"GROUP_AUTHORIZATION_FAILED", "not authorized for the group", false},
	ClusterAuthorizationFailed + 1:         {"CLUSTER_AUTHORIZATION_FAILED", "not authorized for the cluster", false},
	InvalidTimestamp + 1:                   {"INVALID_TIMESTAMP", "timestamp is out of the allowed range", false},
	UnsupportedSaslMechanism + 1:           {"UNSUPPORTED_SASL_MECHANISM", "SASL mechanism is not supported", false},
	IllegalSaslState + 1:                   {"ILLEGAL_SASL_STATE", "request does not fit the state of SASL", false},
	UnsupportedVersion + 1:                 {"UNSUPPORTED_VERSION", "api version is not supported", false},
	TopicAlreadyExists + 1:                 {"TOPIC_ALREADY_EXISTS", "topic exists already", false},
	InvalidPartitions + 1:                  {"INVALID_PARTITIONS", "number of partitions is below 1", false},
	InvalidReplicationFactor + 1:           {"INVALID_REPLICATION_FACTOR", "replication factor is below 1 or over the brokers", false},
	InvalidReplicaAssignment + 1:           {"INVALID_REPLICA_ASSIGNMENT", "replica assignment is invalid", false},
	InvalidConfig + 1:                      {"INVALID_CONFIG", "configuration is invalid", false},
	NotController + 1:                      {"NOT_CONTROLLER", "this broker is not the controller", true},
	InvalidRequest + 1:                     {"INVALID_REQUEST", "request is malformed or contradicts itself", false},
	UnsupportedForMessageFormat + 1:        {"UNSUPPORTED_FOR_MESSAGE_FORMAT", "message format does not support the request", false},
	PolicyViolation + 1:                    {"POLICY_VIOLATION", "request violates a policy", false},
	OutOfOrderSequenceNumber + 1:           {"OUT_OF_ORDER_SEQUENCE_NUMBER", "sequence number does not follow on", false},
	DuplicateSequenceNumber + 1:            {"DUPLICATE_SEQUENCE_NUMBER", "sequence number was used before", false},
	InvalidProducerEpoch + 1:               {"INVALID_PRODUCER_EPOCH", "producer epoch is old", false},
	InvalidTxnState + 1:                    {"INVALID_TXN_STATE", "transaction is in no state for this operation", false},
	InvalidProducerIDMapping + 1:           {"INVALID_PRODUCER_ID_MAPPING", "producer id is not the one of the transactional id", false},
	InvalidTransactionTimeout + 1:          {"INVALID_TRANSACTION_TIMEOUT", "transaction timeout is over the maximum", false},
	ConcurrentTransactions + 1:             {"CONCURRENT_TRANSACTIONS", "another operation on the transaction is under way", true},
	TransactionCoordinatorFenced + 1:       {"TRANSACTION_COORDINATOR_FENCED", "marker comes from an older transaction coordinator", false},
	TransactionalIDAuthorizationFailed + 1: {"TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "not authorized for the transactional id", false},
	SecurityDisabled + 1:                   {"SECURITY_DISABLED", "security features are disabled", false},
	OperationNotAttempted + 1:              {"OPERATION_NOT_ATTEMPTED", "operation was not attempted", false},
	KafkaStorageError + 1:                  {"KAFKA_STORAGE_ERROR", "log storage failed", true},
	LogDirNotFound + 1:                     {"LOG_DIR_NOT_FOUND", "log directory is not known", false},
	SaslAuthenticationFailed + 1:           {"SASL_AUTHENTICATION_FAILED", "SASL authentication failed", false},
	UnknownProducerID + 1:                  {"UNKNOWN_PRODUCER_ID", "producer id has no state here", false},
	ReassignmentInProgress + 1:             {"REASSIGNMENT_IN_PROGRESS", "a reassignment is in progress", false},
	DelegationTokenAuthDisabled + 1:        {"DELEGATION_TOKEN_AUTH_DISABLED", "delegation tokens are not enabled", false},
	DelegationTokenNotFound + 1:            {"DELEGATION_TOKEN_NOT_FOUND", "delegation token is not known", false},
	DelegationTokenOwnerMismatch + 1:       {"DELEGATION_TOKEN_OWNER_MISMATCH", "principal is neither owner nor renewer of the token", false},
	DelegationTokenRequestNotAllowed + 1:   {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "delegation tokens are not allowed here", false},
	DelegationTokenAuthorizationFailed + 1: {"DELEGATION_TOKEN_AUTHORIZATION_FAILED", "not authorized for the delegation token", false},
	DelegationTokenExpired + 1:             {"DELEGATION_TOKEN_EXPIRED", "delegation token is expired", false},
	InvalidPrincipalType + 1:               {"INVALID_PRINCIPAL_TYPE", "principal type is not supported", false},
	NonEmptyGroup + 1:                      {"NON_EMPTY_GROUP", "group is not empty", false},
	GroupIDNotFound + 1:                    {"GROUP_ID_NOT_FOUND", "group id is not known", false},
	FetchSessionIDNotFound + 1:             {"FETCH_SESSION_ID_NOT_FOUND", "fetch session id is not known", true},
	InvalidFetchSessionEpoch + 1:           {"INVALID_FETCH_SESSION_EPOCH", "fetch session epoch is invalid", true},
	ListenerNotFound + 1:                   {"LISTENER_NOT_FOUND", "leader has no listener of this name", true},
	TopicDeletionDisabled + 1:              {"TOPIC_DELETION_DISABLED", "topic deletion is disabled", false},
	FencedLeaderEpoch + 1:                  {"FENCED_LEADER_EPOCH", "leader epoch of the request is older than the broker's", true},
	UnknownLeaderEpoch + 1:                 {"UNKNOWN_LEADER_EPOCH", "leader epoch of the request is newer than the broker's", true},
	UnsupportedCompressionType + 1:         {"UNSUPPORTED_COMPRESSION_TYPE", "compression type is not supported", false},
	StaleBrokerEpoch + 1:                   {"STALE_BROKER_EPOCH", "broker epoch has changed", false},
	OffsetNotAvailable + 1:                 {"OFFSET_NOT_AVAILABLE", "high watermark has not caught up after the election", true},
	MemberIDRequired + 1:                   {"MEMBER_ID_REQUIRED", "member must join again with the id it was given", false},
	PreferredLeaderNotAvailable + 1:        {"PREFERRED_LEADER_NOT_AVAILABLE", "preferred leader is not available", true},
	GroupMaxSizeReached + 1:                {"GROUP_MAX_SIZE_REACHED", "group has its largest size", false},
	FencedInstanceID + 1:                   {"FENCED_INSTANCE_ID", "group instance id is held by another member", false},
	EligibleLeadersNotAvailable + 1:        {"ELIGIBLE_LEADERS_NOT_AVAILABLE", "no eligible leader is available", true},
	ElectionNotNeeded + 1:                  {"ELECTION_NOT_NEEDED", "election is not needed", true},
	NoReassignmentInProgress + 1:           {"NO_REASSIGNMENT_IN_PROGRESS", "no reassignment is in progress", false},
	GroupSubscribedToTopic + 1:             {"GROUP_SUBSCRIBED_TO_TOPIC", "group is subscribed to the topic", false},
	InvalidRecord + 1:                      {"INVALID_RECORD", "record was refused by validation", false},
	UnstableOffsetCommit + 1:               {"UNSTABLE_OFFSET_COMMIT", "offset commit of an open transaction is pending", true},
	ThrottlingQuotaExceeded + 1:            {"THROTTLING_QUOTA_EXCEEDED", "quota is exceeded", true},
	ProducerFenced + 1:                     {"PRODUCER_FENCED", "a newer producer has the transactional id", false},
	ResourceNotFound + 1:                   {"RESOURCE_NOT_FOUND", "resource does not exist", false},
	DuplicateResource + 1:                  {"DUPLICATE_RESOURCE", "resource is named twice", false},
	UnacceptableCredential + 1:             {"UNACCEPTABLE_CREDENTIAL", "credential is not acceptable", false},
	InconsistentVoterSet + 1:               {"INCONSISTENT_VOTER_SET", "voter sets differ", false},
	InvalidUpdateVersion + 1:               {"INVALID_UPDATE_VERSION", "update version is not the current one", false},
	FeatureUpdateFailed + 1:                {"FEATURE_UPDATE_FAILED", "feature update failed", false},
	PrincipalDeserializationFailure + 1:    {"PRINCIPAL_DESERIALIZATION_FAILURE", "principal cannot be deserialized", false},
	SnapshotNotFound + 1:                   {"SNAPSHOT_NOT_FOUND", "snapshot is not known", false},
	PositionOutOfRange + 1:                 {"POSITION_OUT_OF_RANGE", "position is out of the snapshot", false},
	UnknownTopicID + 1:                     {"UNKNOWN_TOPIC_ID", "topic id is not known", true},
	DuplicateBrokerRegistration + 1:        {"DUPLICATE_BROKER_REGISTRATION", "broker id is in use", false},
	BrokerIDNotRegistered + 1:              {"BROKER_ID_NOT_REGISTERED", "broker id is not registered", false},
	InconsistentTopicID + 1:                {"INCONSISTENT_TOPIC_ID", "topic id is not that of the log", true},
	InconsistentClusterID + 1:              {"INCONSISTENT_CLUSTER_ID", "cluster id is another", false},
	TransactionalIDNotFound + 1:            {"TRANSACTIONAL_ID_NOT_FOUND", "transactional id is not known", false},
	FetchSessionTopicIDError + 1:           {"FETCH_SESSION_TOPIC_ID_ERROR", "fetch session mixes topic ids and names", true},
	IneligibleReplica + 1:                  {"INELIGIBLE_REPLICA", "new ISR holds a replica that is not eligible", false},
	NewLeaderElected + 1:                   {"NEW_LEADER_ELECTED", "partition was altered and has a new leader", false},
	OffsetMovedToTieredStorage + 1:         {"OFFSET_MOVED_TO_TIERED_STORAGE", "offset was moved to tiered storage", false},
	FencedMemberEpoch + 1:                  {"FENCED_MEMBER_EPOCH", "member epoch is fenced", false},
	UnreleasedInstanceID + 1:               {"UNRELEASED_INSTANCE_ID", "group instance id was not released yet", false},
	UnsupportedAssignor + 1:                {"UNSUPPORTED_ASSIGNOR", "assignor is not supported by the group", false},
	StaleMemberEpoch + 1:                   {"STALE_MEMBER_EPOCH", "member epoch is stale", false},
	MismatchedEndpointType + 1:             {"MISMATCHED_ENDPOINT_TYPE", "endpoint is of another type", false},
	UnsupportedEndpointType + 1:            {"UNSUPPORTED_ENDPOINT_TYPE", "endpoint type is not supported", false},
	UnknownControllerID + 1:                {"UNKNOWN_CONTROLLER_ID", "controller id is not known", false},
	UnknownSubscriptionID + 1:              {"UNKNOWN_SUBSCRIPTION_ID", "telemetry subscription id is not known", false},
	TelemetryTooLarge + 1:                  {"TELEMETRY_TOO_LARGE", "telemetry is too large", false},
	InvalidRegistration + 1:                {"INVALID_REGISTRATION", "broker registration is invalid", false},
	TransactionAbortable + 1:               {"TRANSACTION_ABORTABLE", "transaction must be aborted", false},
	InvalidRecordState + 1:                 {"INVALID_RECORD_STATE", "record state is invalid", false},
	ShareSessionNotFound + 1:               {"SHARE_SESSION_NOT_FOUND", "share session is not known", true},
	InvalidShareSessionEpoch + 1:           {"INVALID_SHARE_SESSION_EPOCH", "share session epoch is invalid", true},
	FencedStateEpoch + 1:                   {"FENCED_STATE_EPOCH", "share group state epoch is fenced", false},
	InvalidVoterKey + 1:                    {"INVALID_VOTER_KEY", "voter key does not match", false},
	DuplicateVoter + 1:                     {"DUPLICATE_VOTER", "voter is in the set already", false},
	VoterNotFound + 1:                      {"VOTER_NOT_FOUND", "voter is not in the set", false},
}

// CodeMax is the highest code of the table.
const CodeMax = Code(len(codes) - 2)

func (c Code) row() codeRow {
	if i := int(c) + 1; i >= 0 && i < len(codes) {
		return codes[i]
	}
	return codeRow{name: "UNKNOWN_CODE", text: "code is not known"}
}

// String is Kafka's name of the code.
func (c Code) String() string { return c.row().name }

// Error is Kafka's name and what it means.
func (c Code) Error() string { return c.row().name + ": " + c.row().text }

// Text says in a few words what the code means, "" for None.
func (c Code) Text() string { return c.row().text }

// Retriable says whether Kafka's clients try again after this answer.
func (c Code) Retriable() bool { return c.row().retriable }
