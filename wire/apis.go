package wire

// The API keys, by Kafka's numbers and names.
const (
	Produce                      int16 = 0
	Fetch                        int16 = 1
	ListOffsets                  int16 = 2
	Metadata                     int16 = 3
	LeaderAndISR                 int16 = 4
	StopReplica                  int16 = 5
	UpdateMetadata               int16 = 6
	ControlledShutdown           int16 = 7
	OffsetCommit                 int16 = 8
	OffsetFetch                  int16 = 9
	FindCoordinator              int16 = 10
	JoinGroup                    int16 = 11
	Heartbeat                    int16 = 12
	LeaveGroup                   int16 = 13
	SyncGroup                    int16 = 14
	DescribeGroups               int16 = 15
	ListGroups                   int16 = 16
	SaslHandshake                int16 = 17
	ApiVersions                  int16 = 18
	CreateTopics                 int16 = 19
	DeleteTopics                 int16 = 20
	DeleteRecords                int16 = 21
	InitProducerID               int16 = 22
	OffsetForLeaderEpoch         int16 = 23
	AddPartitionsToTxn           int16 = 24
	AddOffsetsToTxn              int16 = 25
	EndTxn                       int16 = 26
	WriteTxnMarkers              int16 = 27
	TxnOffsetCommit              int16 = 28
	DescribeACLs                 int16 = 29
	CreateACLs                   int16 = 30
	DeleteACLs                   int16 = 31
	DescribeConfigs              int16 = 32
	AlterConfigs                 int16 = 33
	AlterReplicaLogDirs          int16 = 34
	DescribeLogDirs              int16 = 35
	SaslAuthenticate             int16 = 36
	CreatePartitions             int16 = 37
	CreateDelegationToken        int16 = 38
	RenewDelegationToken         int16 = 39
	ExpireDelegationToken        int16 = 40
	DescribeDelegationToken      int16 = 41
	DeleteGroups                 int16 = 42
	ElectLeaders                 int16 = 43
	IncrementalAlterConfigs      int16 = 44
	AlterPartitionReassignments  int16 = 45
	ListPartitionReassignments   int16 = 46
	OffsetDelete                 int16 = 47
	DescribeClientQuotas         int16 = 48
	AlterClientQuotas            int16 = 49
	DescribeUserScramCredentials int16 = 50
	AlterUserScramCredentials    int16 = 51
	AlterPartition               int16 = 56
	UpdateFeatures               int16 = 57
	Envelope                     int16 = 58
	DescribeCluster              int16 = 60
	DescribeProducers            int16 = 61
	DescribeTransactions         int16 = 65
	ListTransactions             int16 = 66
	AllocateProducerIDs          int16 = 67
	ConsumerGroupHeartbeat       int16 = 68
	ConsumerGroupDescribe        int16 = 69
)

// never is the first flexible version of an API that has none.
const never = 127

// api is one row of the table.
type api struct {
	name     string
	min      int8 // the lowest we serve: KIP-896, but inter-broker APIs and JoinGroup from 0
	max      int8 // Kafka 3.9's highest
	flexible int8 // the first version with compact lengths and tagged fields
}

// apis is the table, by key. Rows without a name are APIs a broker in ZooKeeper mode does not have.
var apis = [70]api{
	Produce:                      {"Produce", 3, 11, 9},
	Fetch:                        {"Fetch", 4, 17, 12},
	ListOffsets:                  {"ListOffsets", 1, 9, 6},
	Metadata:                     {"Metadata", 0, 12, 9},
	LeaderAndISR:                 {"LeaderAndIsr", 0, 7, 4},
	StopReplica:                  {"StopReplica", 0, 4, 2},
	UpdateMetadata:               {"UpdateMetadata", 0, 8, 6},
	ControlledShutdown:           {"ControlledShutdown", 0, 3, 3},
	OffsetCommit:                 {"OffsetCommit", 2, 9, 8},
	OffsetFetch:                  {"OffsetFetch", 1, 9, 6},
	FindCoordinator:              {"FindCoordinator", 0, 6, 3},
	JoinGroup:                    {"JoinGroup", 0, 9, 6},
	Heartbeat:                    {"Heartbeat", 0, 4, 4},
	LeaveGroup:                   {"LeaveGroup", 0, 5, 4},
	SyncGroup:                    {"SyncGroup", 0, 5, 4},
	DescribeGroups:               {"DescribeGroups", 0, 5, 5},
	ListGroups:                   {"ListGroups", 0, 5, 3},
	SaslHandshake:                {"SaslHandshake", 0, 1, never},
	ApiVersions:                  {"ApiVersions", 0, 4, 3},
	CreateTopics:                 {"CreateTopics", 2, 7, 5},
	DeleteTopics:                 {"DeleteTopics", 1, 6, 4},
	DeleteRecords:                {"DeleteRecords", 0, 2, 2},
	InitProducerID:               {"InitProducerId", 0, 5, 2},
	OffsetForLeaderEpoch:         {"OffsetForLeaderEpoch", 2, 4, 4},
	AddPartitionsToTxn:           {"AddPartitionsToTxn", 0, 5, 3},
	AddOffsetsToTxn:              {"AddOffsetsToTxn", 0, 4, 3},
	EndTxn:                       {"EndTxn", 0, 4, 3},
	WriteTxnMarkers:              {"WriteTxnMarkers", 0, 1, 1},
	TxnOffsetCommit:              {"TxnOffsetCommit", 0, 4, 3},
	DescribeACLs:                 {"DescribeAcls", 1, 3, 2},
	CreateACLs:                   {"CreateAcls", 1, 3, 2},
	DeleteACLs:                   {"DeleteAcls", 1, 3, 2},
	DescribeConfigs:              {"DescribeConfigs", 1, 4, 4},
	AlterConfigs:                 {"AlterConfigs", 0, 2, 2},
	AlterReplicaLogDirs:          {"AlterReplicaLogDirs", 1, 2, 2},
	DescribeLogDirs:              {"DescribeLogDirs", 1, 4, 2},
	SaslAuthenticate:             {"SaslAuthenticate", 0, 2, 2},
	CreatePartitions:             {"CreatePartitions", 0, 3, 2},
	CreateDelegationToken:        {"CreateDelegationToken", 1, 3, 2},
	RenewDelegationToken:         {"RenewDelegationToken", 1, 2, 2},
	ExpireDelegationToken:        {"ExpireDelegationToken", 1, 2, 2},
	DescribeDelegationToken:      {"DescribeDelegationToken", 1, 3, 2},
	DeleteGroups:                 {"DeleteGroups", 0, 2, 2},
	ElectLeaders:                 {"ElectLeaders", 0, 2, 2},
	IncrementalAlterConfigs:      {"IncrementalAlterConfigs", 0, 1, 1},
	AlterPartitionReassignments:  {"AlterPartitionReassignments", 0, 0, 0},
	ListPartitionReassignments:   {"ListPartitionReassignments", 0, 0, 0},
	OffsetDelete:                 {"OffsetDelete", 0, 0, never},
	DescribeClientQuotas:         {"DescribeClientQuotas", 0, 1, 1},
	AlterClientQuotas:            {"AlterClientQuotas", 0, 1, 1},
	DescribeUserScramCredentials: {"DescribeUserScramCredentials", 0, 0, 0},
	AlterUserScramCredentials:    {"AlterUserScramCredentials", 0, 0, 0},
	AlterPartition:               {"AlterPartition", 0, 3, 0},
	UpdateFeatures:               {"UpdateFeatures", 0, 1, 0},
	Envelope:                     {"Envelope", 0, 0, 0},
	DescribeCluster:              {"DescribeCluster", 0, 1, 0},
	DescribeProducers:            {"DescribeProducers", 0, 0, 0},
	DescribeTransactions:         {"DescribeTransactions", 0, 0, 0},
	ListTransactions:             {"ListTransactions", 0, 1, 0},
	AllocateProducerIDs:          {"AllocateProducerIds", 0, 0, 0},
	ConsumerGroupHeartbeat:       {"ConsumerGroupHeartbeat", 0, 0, 0},
	ConsumerGroupDescribe:        {"ConsumerGroupDescribe", 0, 0, 0},
}

// row is the API's row, or nil.
func row(key int16) *api {
	if key < 0 || int(key) >= len(apis) || apis[key].name == "" {
		return nil
	}
	return &apis[key]
}

// Supported is the range of versions we can speak of an API: KIP-896's minimum (JoinGroup's is 0, as clients of today still begin
// there) to Kafka 3.9's maximum. ok is false for an API
// a 3.9 broker in ZooKeeper mode does not have.
func Supported(key int16) (lowest, highest int16, ok bool) {
	r := row(key)
	if r == nil {
		return 0, 0, false
	}
	return int16(r.min), int16(r.max), true
}

// Advertised is Supported as ApiVersions tells it: for Produce from 0, as librdkafka takes a broker without Produce 0 for one
// that knows no compression. The versions below Supported's are refused all the same.
func Advertised(key int16) (lowest, highest int16, ok bool) {
	lowest, highest, ok = Supported(key)
	if key == Produce {
		lowest = 0
	}
	return
}

// Flexible says whether a version of an API has compact lengths and tagged fields (KIP-482). It is right for versions above
// the highest too: their request header must be readable.
func Flexible(key, version int16) bool {
	r := row(key)
	return r != nil && r.flexible != never && version >= int16(r.flexible)
}

// Name is Kafka's name of an API, "" if it is none of the table.
func Name(key int16) string {
	if r := row(key); r != nil {
		return r.name
	}
	return ""
}

// KeyMax is the highest key of the table.
const KeyMax = int16(len(apis) - 1)
