package wire

// layout is the shape of a request's body from a version on: what its fields are, so that a body can be checked before anything
// is allocated for it.
//
//	1 2 4 8 u    fixed numbers of bytes (u: a topic id, 16)
//	s n          string, nullable string        b B    bytes, nullable bytes
//	[x] {x}      array, nullable array of one x that is no struct
//	(...) <...>  array, nullable array of structs
//
// In flexible versions every struct and the body end in tagged fields; those a request may have are opaque here.
type layout struct {
	from   int8
	fields string
}

// layouts are the requests of the table, by key, as Kafka 3.9 defines them.
var layouts = [len(apis)][]layout{
	ListOffsets: {{0, "4(s(484))"}, {1, "4(s(48))"}, {2, "41(s(48))"}, {4, "41(s(448))"}},
	Metadata:    {{0, "(s)"}, {1, "<s>"}, {4, "<s>1"}, {8, "<s>111"}, {10, "<un>111"}, {11, "<un>11"}},
	LeaderAndISR: {
		{0, "44(s4444[4]4[4])(4s4)"}, {1, "44(s4444[4]4[4]1)(4s4)"}, {2, "448(s(4444[4]4[4]1))(4s4)"},
		{3, "448(s(4444[4]4[4][4][4]1))(4s4)"}, {5, "4481(su(4444[4]4[4][4][4]1))(4s4)"},
		{6, "4481(su(4444[4]4[4][4][4]11))(4s4)"}, {7, "41481(su(4444[4]4[4][4][4]11))(4s4)"},
	},
	StopReplica: {{0, "441(s4)"}, {1, "4481(s[4])"}, {3, "448(s(441))"}, {4, "4148(s(441))"}},
	UpdateMetadata: {
		{0, "44(s4444[4]4[4])(4s4)"}, {1, "44(s4444[4]4[4])(4(4s2))"}, {2, "44(s4444[4]4[4])(4(4s2)n)"},
		{3, "44(s4444[4]4[4])(4(4ss2)n)"}, {4, "44(s4444[4]4[4][4])(4(4ss2)n)"}, {5, "448(s(4444[4]4[4][4]))(4(4ss2)n)"},
		{7, "448(su(4444[4]4[4][4]))(4(4ss2)n)"}, {8, "4148(su(4444[4]4[4][4]))(4(4ss2)n)"},
	},
	ControlledShutdown: {{0, "4"}, {2, "48"}},
	OffsetCommit: {
		{0, "s(s(48n))"}, {1, "s4s(s(488n))"}, {2, "s4s8(s(48n))"}, {5, "s4s(s(48n))"}, {6, "s4s(s(484n))"},
		{7, "s4sn(s(484n))"},
	},
	OffsetFetch:                  {{0, "s(s[4])"}, {2, "s<s[4]>"}, {7, "s<s[4]>1"}, {8, "(s<s[4]>)1"}, {9, "(sn4<s[4]>)1"}},
	FindCoordinator:              {{0, "s"}, {1, "s1"}, {4, "1[s]"}},
	JoinGroup:                    {{0, "s4ss(sb)"}, {1, "s44ss(sb)"}, {5, "s44sns(sb)"}, {8, "s44sns(sb)n"}},
	Heartbeat:                    {{0, "s4s"}, {3, "s4sn"}},
	LeaveGroup:                   {{0, "ss"}, {3, "s(sn)"}, {5, "s(snn)"}},
	SyncGroup:                    {{0, "s4s(sb)"}, {3, "s4sn(sb)"}, {5, "s4snnn(sb)"}},
	DescribeGroups:               {{0, "[s]"}, {3, "[s]1"}},
	ListGroups:                   {{0, ""}, {4, "[s]"}, {5, "[s][s]"}},
	SaslHandshake:                {{0, "s"}},
	ApiVersions:                  {{0, ""}, {3, "ss"}},
	CreateTopics:                 {{0, "(s42(4[4])(sn))4"}, {1, "(s42(4[4])(sn))41"}},
	DeleteTopics:                 {{0, "[s]4"}, {6, "(nu)4"}},
	DeleteRecords:                {{0, "(s(48))4"}},
	InitProducerID:               {{0, "n4"}, {3, "n482"}},
	OffsetForLeaderEpoch:         {{0, "(s(44))"}, {2, "(s(444))"}, {3, "4(s(444))"}},
	AddPartitionsToTxn:           {{0, "s82(s[4])"}, {4, "(s821(s[4]))"}},
	AddOffsetsToTxn:              {{0, "s82s"}},
	EndTxn:                       {{0, "s821"}},
	WriteTxnMarkers:              {{0, "(821(s[4])4)"}},
	TxnOffsetCommit:              {{0, "ss82(s(48n))"}, {2, "ss82(s(484n))"}, {3, "ss824sn(s(484n))"}},
	DescribeACLs:                 {{0, "1nnn11"}, {1, "1n1nn11"}},
	CreateACLs:                   {{0, "(1sss11)"}, {1, "(1s1ss11)"}},
	DeleteACLs:                   {{0, "(1nnn11)"}, {1, "(1n1nn11)"}},
	DescribeConfigs:              {{0, "(1s{s})"}, {1, "(1s{s})1"}, {3, "(1s{s})11"}},
	AlterConfigs:                 {{0, "(1s(sn))1"}},
	AlterReplicaLogDirs:          {{0, "(s(s[4]))"}},
	DescribeLogDirs:              {{0, "<s[4]>"}},
	SaslAuthenticate:             {{0, "b"}},
	CreatePartitions:             {{0, "(s4<[4]>)41"}},
	CreateDelegationToken:        {{0, "(ss)8"}, {3, "nn(ss)8"}},
	RenewDelegationToken:         {{0, "b8"}},
	ExpireDelegationToken:        {{0, "b8"}},
	DescribeDelegationToken:      {{0, "<ss>"}},
	DeleteGroups:                 {{0, "[s]"}},
	ElectLeaders:                 {{0, "<s[4]>4"}, {1, "1<s[4]>4"}},
	IncrementalAlterConfigs:      {{0, "(1s(s1n))1"}},
	AlterPartitionReassignments:  {{0, "4(s(4{4}))"}},
	ListPartitionReassignments:   {{0, "4<s[4]>"}},
	OffsetDelete:                 {{0, "s(s(4))"}},
	DescribeClientQuotas:         {{0, "(s1n)1"}},
	AlterClientQuotas:            {{0, "((sn)(s81))1"}},
	DescribeUserScramCredentials: {{0, "<s>"}},
	AlterUserScramCredentials:    {{0, "(s1)(s14bb)"}},
	AlterPartition:               {{0, "48(s(44[4]4))"}, {1, "48(s(44[4]14))"}, {2, "48(u(44[4]14))"}, {3, "48(u(44(48)14))"}},
	UpdateFeatures:               {{0, "4(s21)"}, {1, "4(s21)1"}},
	Envelope:                     {{0, "bBb"}},
	DescribeCluster:              {{0, "1"}, {1, "11"}},
	DescribeProducers:            {{0, "(s[4])"}},
	DescribeTransactions:         {{0, "[s]"}},
	ListTransactions:             {{0, "[s][8]"}, {1, "[s][8]8"}},
	AllocateProducerIDs:          {{0, "48"}},
	ConsumerGroupHeartbeat:       {{0, "ss4nn4{s}n<u[4]>"}},
	ConsumerGroupDescribe:        {{0, "[s]1"}},
}
