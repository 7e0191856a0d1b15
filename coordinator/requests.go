package coordinator

// A request and all it points to belongs to the shard from the call until Done, and may be reused from Done on. Done is called
// exactly once, before the call returns or later, when the shard is at rest: it may call the shard again. What an answer points
// to is never changed afterwards and may be kept, and read on another loop.

// Protocol is a protocol a member supports, with its metadata: a consumer's assignor and subscription.
type Protocol struct {
	Name     string
	Metadata []byte
}

// Join is JoinGroup (KIP-394, KIP-345, KIP-814).
type Join struct {
	Group           string
	Member          string  // "" if it has none yet
	Instance        *string // of a static member
	RequireMemberID bool    // version 4 and later: a dynamic member without id gets one with ErrMemberIDRequired
	SkipAssignment  bool    // version 9 and later: understands JoinAnswer.SkipAssignment
	ClientID        string
	ClientHost      string // as Kafka writes it: "/127.0.0.1"
	SessionMs       int32
	RebalanceMs     int32 // version 0: SessionMs
	ProtocolType    string
	Protocols       []Protocol // in order of preference
	Reason          string

	Answer JoinAnswer
	Done   func(*Join)
}

// JoinAnswer is the answer to a Join. With an error, Generation is -1 and ProtocolType and Protocol are nil (but where a static
// member could not be persisted), and Member is what the client should see.
type JoinAnswer struct {
	Err            error
	Generation     int32
	ProtocolType   *string
	Protocol       *string
	Leader         string // "" if none
	SkipAssignment bool   // the leader should not assign
	Member         string
	Members        []JoinMember // for the leader alone
}

// JoinMember is a member as its leader sees it.
type JoinMember struct {
	Member   string
	Instance *string
	Metadata []byte
}

// Sync is SyncGroup.
type Sync struct {
	Group        string
	Member       string
	Instance     *string
	Generation   int32
	ProtocolType *string // version 5 and later
	Protocol     *string // version 5 and later
	Assignments  []Assignment

	Answer SyncAnswer
	Done   func(*Sync)
}

// Assignment is what the leader gives to a member.
type Assignment struct {
	Member string
	Data   []byte
}

// SyncAnswer is the answer to a Sync. ProtocolType and Protocol are nil with an error.
type SyncAnswer struct {
	Err          error
	ProtocolType *string
	Protocol     *string
	Assignment   []byte
}

// Heartbeat is Heartbeat; it is answered at once.
type Heartbeat struct {
	Group      string
	Member     string
	Instance   *string
	Generation int32
}

// Leave is LeaveGroup. Before version 3 it has one member, whose error is the answer's.
type Leave struct {
	Group   string
	Members []LeaveMember

	Err  error // of the whole request; the members' errors are then not set
	Done func(*Leave)
}

// LeaveMember is one of those who leave: by Member, or by Instance alone.
type LeaveMember struct {
	Member   string
	Instance *string
	Reason   string

	Err error
}

// Commit is OffsetCommit, or TxnOffsetCommit if Transactional.
type Commit struct {
	Group       string
	Member      string
	Instance    *string
	Generation  int32 // -1 from who is no member
	RetentionMs int64 // versions 2 to 4; -1: as the broker is configured
	Offsets     []CommitOffset

	Transactional bool
	ProducerID    int64
	ProducerEpoch int16

	Done func(*Commit)
}

// CommitOffset is one offset of a Commit. Of an offset that is named twice the last counts.
type CommitOffset struct {
	Topic       string
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1: not known
	Metadata    string
	CommitMs    int64 // version 1; -1: now

	Err error // set for each offset, also where the whole request is refused
}

// TopicPartitions names partitions of a topic.
type TopicPartitions struct {
	Topic      string
	Partitions []int32
}

// Committed is a committed offset. Offset and LeaderEpoch are -1 if there is none, or Err is set.
type Committed struct {
	Topic       string
	Partition   int32
	Offset      int64
	LeaderEpoch int32
	Metadata    string
	CommitMs    int64
	Err         error
}

// DeleteOffsets is OffsetDelete.
type DeleteOffsets struct {
	Group      string
	Partitions []DeletePartition

	Err  error // of the whole request; the partitions' errors are then not set
	Done func(*DeleteOffsets)
}

// DeletePartition is a partition whose offset is to be deleted.
type DeletePartition struct {
	Topic     string
	Partition int32

	Err error
}

// DeleteGroup is one group of DeleteGroups.
type DeleteGroup struct {
	Group string

	Err  error
	Done func(*DeleteGroup)
}

// GroupView is a group as DescribeGroups shows it.
type GroupView struct {
	State        State
	ProtocolType string
	Protocol     string // of a stable group, else ""
	Generation   int32
	Members      []MemberView
}

// MemberView is a member of a GroupView; Metadata and Assignment are shown of a stable group only.
type MemberView struct {
	Member     string
	Instance   *string
	ClientID   string
	ClientHost string
	Metadata   []byte
	Assignment []byte
}

// Listed is a group as ListGroups shows it.
type Listed struct {
	Group        string
	ProtocolType string
	State        State
	Type         string // always "classic"
}
