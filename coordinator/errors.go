package coordinator

import "errors"

// What a request is answered with when it is not done. daemon/api maps them to Kafka's codes (the name in brackets).
var (
	// ErrLoading: the groups of this partition are being read from the journal (COORDINATOR_LOAD_IN_PROGRESS).
	ErrLoading = errors.New("groups are being loaded")
	// ErrNotCoordinator: this broker does not serve the groups of this partition (NOT_COORDINATOR).
	ErrNotCoordinator = errors.New("not the coordinator of the group")
	// ErrUnavailable: the journal could not take the record for now (COORDINATOR_NOT_AVAILABLE).
	ErrUnavailable = errors.New("coordinator is not available")
	// ErrTimedOut: the journal did not have the commit replicated in time (REQUEST_TIMED_OUT).
	ErrTimedOut = errors.New("not replicated in time")
	// ErrUnknownMember: the group has no such member (UNKNOWN_MEMBER_ID).
	ErrUnknownMember = errors.New("member is not known to the group")
	// ErrIllegalGeneration: the group is in another generation (ILLEGAL_GENERATION).
	ErrIllegalGeneration = errors.New("generation is not the group's")
	// ErrRebalancing: the member has to join again (REBALANCE_IN_PROGRESS).
	ErrRebalancing = errors.New("group is rebalancing")
	// ErrFencedInstance: another member has taken over the static member's instance id (FENCED_INSTANCE_ID).
	ErrFencedInstance = errors.New("group instance id belongs to another member")
	// ErrMemberIDRequired: join again with the member id of the answer (MEMBER_ID_REQUIRED).
	ErrMemberIDRequired = errors.New("member id is required")
	// ErrGroupFull: the group has group.max.size members (GROUP_MAX_SIZE_REACHED).
	ErrGroupFull = errors.New("group is full")
	// ErrInconsistentProtocol: no protocol that all members support, or another one than the group's (INCONSISTENT_GROUP_PROTOCOL).
	ErrInconsistentProtocol = errors.New("protocol does not fit the group's")
	// ErrSessionTimeout: the session timeout is out of the broker's bounds (INVALID_SESSION_TIMEOUT).
	ErrSessionTimeout = errors.New("session timeout is out of bounds")
	// ErrInvalidGroup: an empty group id where groups need a name (INVALID_GROUP_ID).
	ErrInvalidGroup = errors.New("group id is not valid")
	// ErrNotEmpty: the group has members (NON_EMPTY_GROUP).
	ErrNotEmpty = errors.New("group is not empty")
	// ErrNotFound: there is no such group (GROUP_ID_NOT_FOUND).
	ErrNotFound = errors.New("no such group")
	// ErrSubscribed: members of the group are subscribed to the topic (GROUP_SUBSCRIBED_TO_TOPIC).
	ErrSubscribed = errors.New("group is subscribed to the topic")
	// ErrMetadataTooLarge: more metadata with an offset than offset.metadata.max.bytes (OFFSET_METADATA_TOO_LARGE).
	ErrMetadataTooLarge = errors.New("metadata of the offset is too large")
	// ErrCommitTooLarge: the commit makes a larger batch than the journal takes (INVALID_COMMIT_OFFSET_SIZE).
	ErrCommitTooLarge = errors.New("commit is too large")
	// ErrUnstableOffset: commits of the offset are not settled yet (UNSTABLE_OFFSET_COMMIT).
	ErrUnstableOffset = errors.New("offset has commits that are not settled")
	// ErrUnknown: the journal failed in a way nobody can act on (UNKNOWN_SERVER_ERROR).
	ErrUnknown = errors.New("journal failed")
)

// What a Journal answers when a batch was not appended, or it is not known whether it was.
var (
	// ErrJournalUnavailable: too few replicas, or the partition does not exist.
	ErrJournalUnavailable = errors.New("journal is not available")
	// ErrJournalNotLeader: this broker does not lead the journal's partition (any longer), or its log has failed.
	ErrJournalNotLeader = errors.New("journal is led elsewhere")
	// ErrJournalTimedOut: appended, and not replicated in time.
	ErrJournalTimedOut = errors.New("journal did not answer in time")
	// ErrJournalTooLarge: the batch is larger than the journal takes.
	ErrJournalTooLarge = errors.New("batch is too large for the journal")
)
