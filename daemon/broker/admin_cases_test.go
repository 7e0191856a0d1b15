package broker

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire/batch"
)

// adminCase is one question, asked in the versions from first to last, in order.
type adminCase struct {
	name        string
	first, last int16
	request     kmsg.Request
	setUp       bool // the answer is of no interest
}

// eachAdminCase calls fn for every case and version. The broker has id 1 and nothing on it before.
func eachAdminCase(fn func(a adminCase, version int16)) {
	for _, cases := range [][]adminCase{setUpCases(), logDirCases(), producerCases(), quotaCases(), setQuotaCases(), scramCases(), aclCases(), electionCases(),
		reassignmentCases(), featureCases(), transactionCases(), tokenCases(), leaderlessCases(), configCases(), loggerCases(),
		saslCases()} {
		for _, a := range cases {
			for v := a.first; v <= a.last; v++ {
				fn(a, v)
			}
		}
	}
}

func str(s string) *string { return &s }

// assigned makes a topic on brokers of which 1 alone is there.
func assigned(name string, replicas ...int32) adminCase {
	m := kmsg.NewPtrCreateTopicsRequest()
	m.TimeoutMillis = 2000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
	t.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: replicas}}
	m.Topics = append(m.Topics, t)
	return adminCase{"create " + name, 7, 7, m, true}
}

func setUpCases() []adminCase {
	plain := kmsg.NewPtrCreateTopicsRequest()
	plain.TimeoutMillis = 5000
	for _, name := range []string{"adm", "other"} {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, 2, 1
		plain.Topics = append(plain.Topics, t)
	}
	send := func(name string, topic string, partition int32, b *batch.Builder, values ...string) adminCase {
		b.Reset()
		for i, v := range values {
			b.Add(1_700_000_000_000+int64(i), []byte("k"), []byte(v))
		}
		return adminCase{name, 9, 9, produceRequest(topic, partition, -1, b.AppendTo(nil)), true}
	}
	idle, seven, eight := batch.NewBuilder(batch.None), batch.NewBuilder(batch.None), batch.NewBuilder(batch.None)
	seven.ProducerID, seven.ProducerEpoch, seven.BaseSequence = 7, 3, 0
	eight.ProducerID, eight.ProducerEpoch, eight.BaseSequence = 8, 0, 0
	first := send("producer 7", "adm", 0, seven, "a", "b")
	seven.BaseSequence = 2
	return []adminCase{{"create", 7, 7, plain, true}, assigned("near", 1, 2), assigned("turned", 2, 1),
		first, send("producer 7 again", "adm", 0, seven, "c"), send("producer 8", "adm", 0, eight, "d"),
		send("no producer", "adm", 1, idle, "e", "f", "g")}
}

func logDirCases() []adminCase {
	all := kmsg.NewPtrDescribeLogDirsRequest()
	some, none := kmsg.NewPtrDescribeLogDirsRequest(), kmsg.NewPtrDescribeLogDirsRequest()
	some.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "adm", Partitions: []int32{1, 5, 1}}, {Topic: "absent", Partitions: []int32{0}}}
	none.Topics = []kmsg.DescribeLogDirsRequestTopic{}
	return []adminCase{{"all", 1, 4, all, false}, {"some", 1, 4, some, false}, {"none", 1, 4, none, false}}
}

func producerCases() []adminCase {
	m := kmsg.NewPtrDescribeProducersRequest()
	m.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "adm", Partitions: []int32{0, 1, 2, -1}}, {Topic: "absent", Partitions: []int32{0}},
		{Topic: "turned", Partitions: []int32{0}}, {Topic: "bad name", Partitions: []int32{0}}, {Topic: "other"}}
	return []adminCase{{"producers", 0, 0, m, false}, {"nothing", 0, 0, kmsg.NewPtrDescribeProducersRequest(), false}}
}

func quotaCases() []adminCase {
	filter := func(name string, strict bool, parts ...kmsg.DescribeClientQuotasRequestComponent) adminCase {
		m := kmsg.NewPtrDescribeClientQuotasRequest()
		m.Strict, m.Components = strict, parts
		return adminCase{name, 0, 1, m, false}
	}
	part := func(entity string, match kmsg.QuotasMatchType, name *string) kmsg.DescribeClientQuotasRequestComponent {
		return kmsg.DescribeClientQuotasRequestComponent{EntityType: entity, MatchType: match, Match: name}
	}
	return []adminCase{filter("all", false), filter("all strictly", true), filter("a user", false, part("user", 0, str("bob"))),
		filter("a client by default", true, part("client-id", 1, nil), part("user", 2, nil)), filter("an address", false, part("ip", 0, str("10.0.0.1"))),
		filter("user twice", false, part("user", 2, nil), part("user", 2, nil)), filter("client twice", false, part("client-id", 2, nil), part("client-id", 2, nil)),
		filter("address twice", false, part("ip", 2, nil), part("ip", 2, nil)), filter("no kind", false, part("", 2, nil)),
		filter("another kind", false, part("planet", 2, nil)), filter("address and user", false, part("ip", 2, nil), part("user", 2, nil)),
		filter("match of no kind", false, part("user", 9, nil)), filter("bad address", false, part("ip", 0, str("no address"))),
		filter("exactly nobody", false, part("user", 0, nil)), filter("default with a name", false, part("user", 1, str("bob")))}
}

func scramCases() []adminCase {
	users := func(name string, users ...string) adminCase {
		m := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
		for _, u := range users {
			m.Users = append(m.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: u})
		}
		return adminCase{name, 0, 0, m, false}
	}
	none := kmsg.NewPtrDescribeUserSCRAMCredentialsRequest()
	none.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{}
	return []adminCase{users("all users"), {"no users", 0, 0, none, false}, users("two users", "bob", "eve"), users("a user twice", "bob", "eve", "bob"),
		users("a user without a name", "bob", "")}
}

func aclCases() []adminCase {
	d := kmsg.NewPtrDescribeACLsRequest()
	d.ResourceType, d.ResourcePatternType, d.Operation, d.PermissionType = 1, 1, 1, 1
	c := kmsg.NewPtrCreateACLsRequest()
	for _, name := range []string{"a", "b"} {
		acl := kmsg.NewCreateACLsRequestCreation()
		acl.ResourceType, acl.ResourceName, acl.ResourcePatternType, acl.Principal, acl.Host, acl.Operation, acl.PermissionType = 2, name, 3, "User:bob", "*", 3, 3
		c.Creations = append(c.Creations, acl)
	}
	r := kmsg.NewPtrDeleteACLsRequest()
	for range 2 {
		f := kmsg.NewDeleteACLsRequestFilter()
		f.ResourceType, f.ResourcePatternType, f.Operation, f.PermissionType = 2, 3, 1, 1
		r.Filters = append(r.Filters, f)
	}
	return []adminCase{{"acls", 1, 3, d, false}, {"new acls", 1, 3, c, false}, {"no new acls", 1, 3, kmsg.NewPtrCreateACLsRequest(), false},
		{"fewer acls", 1, 3, r, false}, {"no fewer acls", 1, 3, kmsg.NewPtrDeleteACLsRequest(), false}}
}

func electionCases() []adminCase {
	elect := func(name string, first int16, kind int8, topics ...kmsg.ElectLeadersRequestTopic) adminCase {
		m := kmsg.NewPtrElectLeadersRequest()
		m.ElectionType, m.TimeoutMillis, m.Topics = kind, 2000, topics
		return adminCase{name, first, 2, m, false}
	}
	of := func(topic string, partitions ...int32) kmsg.ElectLeadersRequestTopic {
		return kmsg.ElectLeadersRequestTopic{Topic: topic, Partitions: partitions}
	}
	none := kmsg.NewPtrElectLeadersRequest()
	none.Topics = []kmsg.ElectLeadersRequestTopic{}
	return []adminCase{elect("preferred", 0, 0, of("adm", 0, 1, 2), of("absent", 0), of("near", 0), of("turned", 0)),
		elect("unclean", 1, 1, of("adm", 0, 2), of("absent", 0), of("near", 0), of("turned", 0)), {"of nothing", 0, 2, none, false},
		elect("of everything", 0, 0), elect("of everything unclean", 1, 1)}
}

func reassignmentCases() []adminCase {
	list := func(name string, topics ...kmsg.ListPartitionReassignmentsRequestTopic) adminCase {
		m := kmsg.NewPtrListPartitionReassignmentsRequest()
		m.TimeoutMillis, m.Topics = 2000, topics
		return adminCase{name, 0, 0, m, false}
	}
	none := kmsg.NewPtrListPartitionReassignmentsRequest()
	none.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{}
	type to = kmsg.AlterPartitionAssignmentsRequestTopicPartition
	alter := func(name, topic string, parts ...to) adminCase {
		m := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		m.TimeoutMillis = 5000
		m.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: topic, Partitions: parts}}
		return adminCase{name, 0, 0, m, false}
	}
	all := list("list all")
	return []adminCase{all, list("list some", kmsg.ListPartitionReassignmentsRequestTopic{Topic: "adm", Partitions: []int32{0, 9}},
		kmsg.ListPartitionReassignmentsRequestTopic{Topic: "absent", Partitions: []int32{0}}), {"list none", 0, 0, none, false},
		alter("the same", "adm", to{Partition: 0, Replicas: []int32{1}}, to{Partition: 1, Replicas: []int32{1}}),
		alter("cancel", "adm", to{Partition: 0}, to{Partition: 9}), alter("cancel of nothing", "absent", to{Partition: 0}),
		alter("to nobody", "adm", to{Partition: 0, Replicas: []int32{}}), alter("to a stranger", "adm", to{Partition: 0, Replicas: []int32{1, 2}}),
		alter("twice the same", "adm", to{Partition: 0, Replicas: []int32{1, 1}}), alter("below zero", "adm", to{Partition: 0, Replicas: []int32{-1}}),
		alter("of what is not there", "absent", to{Partition: 0, Replicas: []int32{1}}), alter("of a partition that is not there", "adm", to{Partition: 7, Replicas: []int32{1}}),
		alter("stranger out", "near", to{Partition: 0, Replicas: []int32{1}}), all,
		alter("stranger out and first", "turned", to{Partition: 0, Replicas: []int32{1}}), all,
		{"of no topics", 0, 0, kmsg.NewPtrAlterPartitionAssignmentsRequest(), false}}
}

func featureCases() []adminCase {
	update := func(name string, validate bool, parts ...kmsg.UpdateFeaturesRequestFeatureUpdate) adminCase {
		m := kmsg.NewPtrUpdateFeaturesRequest()
		m.TimeoutMillis, m.ValidateOnly, m.FeatureUpdates = 2000, validate, parts
		return adminCase{name, 0, 1, m, false}
	}
	part := func(name string, level int16, downgrade bool, kind int8) kmsg.UpdateFeaturesRequestFeatureUpdate {
		return kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: name, MaxVersionLevel: level, AllowDowngrade: downgrade, UpgradeType: kind}
	}
	return []adminCase{update("no features", false), update("a feature", false, part("metadata.version", 20, false, 1)), update("validated", true, part("kraft.version", 1, false, 1)),
		update("a feature away", false, part("metadata.version", 0, true, 2)), update("no name", false, part("", 1, false, 1)),
		update("no kind", false, part("x", 1, false, 9)), update("too low", false, part("x", 0, false, 1))}
}

func transactionCases() []adminCase {
	list := kmsg.NewPtrListTransactionsRequest()
	some := kmsg.NewPtrListTransactionsRequest()
	some.StateFilters, some.ProducerIDFilters = []string{"Ongoing", "Sleeping", "Dead"}, []int64{7}
	return []adminCase{{"transactions", 0, 1, list, false}, {"some transactions", 0, 1, some, false}}
}

func tokenCases() []adminCase {
	c := kmsg.NewPtrCreateDelegationTokenRequest()
	c.MaxLifetimeMillis = 1000
	r := kmsg.NewPtrRenewDelegationTokenRequest()
	r.HMAC, r.RenewTimeMillis = []byte("x"), 1000
	e := kmsg.NewPtrExpireDelegationTokenRequest()
	e.HMAC, e.ExpiryPeriodMillis = []byte("x"), 1000
	return []adminCase{{"new token", 1, 3, c, false}, {"renewed token", 1, 2, r, false}, {"expired token", 1, 2, e, false},
		{"tokens", 1, 3, kmsg.NewPtrDescribeDelegationTokenRequest(), false}}
}

// leaderlessCases are about a topic that nobody has led yet. Kafka never answers an election for it.
func leaderlessCases() []adminCase {
	dirs := kmsg.NewPtrDescribeLogDirsRequest()
	dirs.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "far", Partitions: []int32{0}}}
	return []adminCase{assigned("far", 2), {"nobody's log", 4, 4, dirs, false}}
}

// altered is an IncrementalAlterConfigs of one resource; ops are name=value, -name (delete), name+=value, name-=value.
func altered(name string, kind kmsg.ConfigResourceType, resource string, ops ...string) adminCase {
	m := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kind, ResourceName: resource}
	for _, op := range ops {
		key, value, set := strings.Cut(op, "=")
		c := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key}
		switch {
		case strings.HasPrefix(op, "-"):
			c.Op, c.Name = kmsg.IncrementalAlterConfigOpDelete, op[1:]
		case strings.HasSuffix(key, "+"):
			c.Op, c.Name = kmsg.IncrementalAlterConfigOpAppend, key[:len(key)-1]
		case strings.HasSuffix(key, "-"):
			c.Op, c.Name = kmsg.IncrementalAlterConfigOpSubtract, key[:len(key)-1]
		}
		if set {
			c.Value = &value
		}
		r.Configs = append(r.Configs, c)
	}
	m.Resources = append(m.Resources, r)
	return adminCase{name, 0, 1, m, false}
}

func describedConfigs(name string, kind kmsg.ConfigResourceType, resource string, names ...string) adminCase {
	m := kmsg.NewPtrDescribeConfigsRequest()
	m.IncludeSynonyms = true
	m.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: resource, ConfigNames: names}}
	return adminCase{name, 1, 4, m, false}
}

func configCases() []adminCase {
	const broker = kmsg.ConfigResourceTypeBroker
	names := []string{"message.max.bytes", "log.retention.ms", "log.cleaner.threads", "log.cleaner.io.max.bytes.per.second", "broker.id",
		"follower.replication.throttled.rate", "min.insync.replicas", "log.cleanup.policy", "max.connections.per.ip", "no.such.setting"}
	all := func(name string) adminCase { return describedConfigs(name, broker, "1", names...) }
	return []adminCase{all("settings"),
		altered("set for all", broker, "", "message.max.bytes=2000000", "log.retention.ms=1000000", "log.cleaner.io.max.bytes.per.second=1000000.5"),
		altered("set for one", broker, "1", "message.max.bytes=3000000", "log.cleaner.threads=2", "log.cleanup.policy=compact,delete",
			"follower.replication.throttled.rate=5", "max.connections.per.ip=1000"),
		all("settings set"), describedConfigs("settings of all", broker, "", names...),
		altered("read only", broker, "1", "num.partitions=8"), altered("of one for all", broker, "", "max.connections.per.ip.overrides="),
		altered("unknown", broker, "1", "my.plugin.setting=8"), altered("too small", broker, "1", "log.cleaner.threads=0"),
		altered("appended", broker, "1", "log.cleanup.policy-=delete"), altered("appended to a number", broker, "1", "message.max.bytes+=1"),
		all("settings appended"),
		altered("away", broker, "1", "-message.max.bytes", "-log.cleaner.threads", "-log.cleanup.policy", "-follower.replication.throttled.rate",
			"-max.connections.per.ip", "-my.plugin.setting"),
		altered("away for all", broker, "", "-message.max.bytes", "-log.retention.ms", "-log.cleaner.io.max.bytes.per.second"), all("settings away")}
}

func loggerCases() []adminCase {
	const logger = kmsg.ConfigResourceTypeBrokerLogger
	replaced := kmsg.NewPtrAlterConfigsRequest()
	replaced.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: logger, ResourceName: "1",
		Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "root", Value: str("WARN")}}}}
	validated := altered("validated", logger, "1", "root=ERROR")
	validated.request.(*kmsg.IncrementalAlterConfigsRequest).ValidateOnly = true
	return []adminCase{describedConfigs("loggers", logger, "1"), describedConfigs("root", logger, "1", "root"), describedConfigs("no logger", logger, "1", "nobody"),
		describedConfigs("another's loggers", logger, "2"), describedConfigs("nobody's loggers", logger, ""),
		altered("louder", logger, "1", "root=DEBUG"), describedConfigs("louder root", logger, "1", "root"), validated,
		altered("an unknown logger", logger, "1", "nobody=DEBUG"), altered("an unknown level", logger, "1", "root=LOUD"),
		altered("level away", logger, "1", "-root"), altered("unknown level away", logger, "1", "-nobody"), altered("level appended", logger, "1", "root+=INFO"),
		altered("another's level", logger, "2", "root=INFO"), altered("level for all", logger, "", "root=INFO"), altered("nothing", logger, "1"),
		{"replaced", 0, 2, replaced, false}, altered("small", logger, "1", "root=info"), altered("as before", logger, "1", "root=INFO"),
		describedConfigs("root as before", logger, "1", "root")}
}

// saslCases are of a client that expects another kind of listener.
func saslCases() []adminCase {
	hand, none := kmsg.NewPtrSASLHandshakeRequest(), kmsg.NewPtrSASLHandshakeRequest()
	hand.Mechanism = "PLAIN"
	auth := kmsg.NewPtrSASLAuthenticateRequest()
	auth.SASLAuthBytes = []byte("\x00alice\x00secret")
	return []adminCase{{"handshake", 0, 1, hand, false}, {"no mechanism", 0, 1, none, false}, {"authentication", 0, 2, auth, false}}
}
