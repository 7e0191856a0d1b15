package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

func creatable(name string, partitions int32, factor int16) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, factor
	return t
}

func TestCreateTopicsAnswers(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("num.partitions=3")
	c := connect(t, s)
	null, days := creatable("null", 1, 1), creatable("days", -1, -1)
	null.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms"}}
	week := "604800000"
	days.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms", Value: &week}}
	both := creatable("both", 2, 1)
	both.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: []int32{1001}}}
	assigned := creatable("assigned", -1, -1)
	assigned.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: []int32{1001}}, {Partition: 1, Replicas: []int32{1001}}}
	m := kmsg.NewPtrCreateTopicsRequest()
	m.TimeoutMillis, m.ValidateOnly = 10_000, true
	m.Topics = []kmsg.CreateTopicsRequestTopic{days, creatable("twice", 1, 1), creatable("twice", 1, 1), creatable("bad/name", 1, 1),
		creatable("zero", 0, 1), creatable("three", 1, 3), null, both, assigned, creatable("a.b", 1, 1)}
	want := []wire.Code{wire.None, wire.InvalidRequest, wire.InvalidRequest, wire.InvalidTopicException, wire.InvalidPartitions,
		wire.InvalidReplicationFactor, wire.InvalidConfig, wire.InvalidRequest, wire.None, wire.None}
	for _, validate := range []bool{true, false} {
		m.ValidateOnly = validate
		resp := ask[*kmsg.CreateTopicsResponse](c, m, 7)
		for i, rt := range resp.Topics {
			if got := wire.Code(rt.ErrorCode); got != want[i] {
				t.Errorf("validate %v: %s: %v, not %v", validate, rt.Topic, got, want[i])
			}
			if (rt.ErrorCode == 0) != (rt.ErrorMessage == nil) {
				t.Errorf("%s: code %d with message %v", rt.Topic, rt.ErrorCode, rt.ErrorMessage)
			}
		}
		first := resp.Topics[0]
		if first.NumPartitions != 3 || first.ReplicationFactor != 1 || len(first.Configs) < 25 {
			t.Errorf("validate %v: %+v", validate, first)
		}
		if topics := ask[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 12).Topics; validate && len(topics) != 0 {
			t.Errorf("validating created %d topics", len(topics))
		} else if !validate && len(topics) != 3 {
			t.Errorf("%d topics", len(topics))
		}
	}
	if code := c.createTopic("a_b", 1); code != wire.InvalidTopicException {
		t.Errorf("a name that collides: %v", code)
	}
	s.stop()
}

func TestDeleteTopicsByIDAndDisabled(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start("log.segment.delete.delay.ms=0")
	c := connect(t, s)
	c.createTopic("k", 2)
	name := "k"
	id := ask[*kmsg.MetadataResponse](c, kmsg.NewPtrMetadataRequest(), 12).Topics[0].TopicID
	m := kmsg.NewPtrDeleteTopicsRequest()
	m.TimeoutMillis = 10_000
	ask6 := func(topics ...kmsg.DeleteTopicsRequestTopic) []kmsg.DeleteTopicsResponseTopic {
		m.Topics = topics
		return ask[*kmsg.DeleteTopicsResponse](c, m, 6).Topics
	}
	if r := ask6(kmsg.DeleteTopicsRequestTopic{Topic: &name, TopicID: id}); wire.Code(r[0].ErrorCode) != wire.InvalidRequest {
		t.Errorf("name and id: %v", wire.Code(r[0].ErrorCode))
	}
	r := ask6(kmsg.DeleteTopicsRequestTopic{TopicID: [16]byte{9}}, kmsg.DeleteTopicsRequestTopic{TopicID: id}, kmsg.DeleteTopicsRequestTopic{TopicID: id})
	if wire.Code(r[0].ErrorCode) != wire.UnknownTopicID || r[1].ErrorCode != 0 || r[2].ErrorCode != 0 || *r[1].Topic != "k" {
		t.Errorf("%+v", r)
	}
	s.stop()
	s.start("delete.topic.enable=false")
	c = connect(t, s)
	c.createTopic("j", 1)
	name = "j"
	if code := c.deleteTopic("j"); code != wire.TopicDeletionDisabled {
		t.Errorf("deletion is disabled: %v", code)
	}
	m.TopicNames = []string{"j"}
	if code := wire.Code(ask[*kmsg.DeleteTopicsResponse](c, m, 2).Topics[0].ErrorCode); code != wire.InvalidRequest {
		t.Errorf("deletion is disabled, version 2: %v", code)
	}
	s.stop()
}

func TestAlterConfigsReplacesAndAppends(t *testing.T) {
	s := newSim(t, 2, 1)
	s.start()
	c := connect(t, s)
	c.createTopic("k", 1, "retention.ms=1000", "segment.bytes=5000")
	value := func(s string) *string { return &s }
	m := kmsg.NewPtrAlterConfigsRequest()
	m.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: 2, ResourceName: "k",
		Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.ms", Value: value("2000")}}},
		{ResourceType: 2, ResourceName: "none"}, {ResourceType: 99, ResourceName: "k"}}
	resp := ask[*kmsg.AlterConfigsResponse](c, m, 2)
	for i, want := range []wire.Code{wire.None, wire.UnknownTopicOrPartition, wire.InvalidRequest} {
		if got := wire.Code(resp.Resources[i].ErrorCode); got != want {
			t.Errorf("resource %d: %v", i, got)
		}
	}
	described := func(name string) (string, int8) {
		d := kmsg.NewPtrDescribeConfigsRequest()
		d.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: "k", ConfigNames: []string{name}}}
		e := ask[*kmsg.DescribeConfigsResponse](c, d, 4).Resources[0].Configs[0]
		return *e.Value, int8(e.Source)
	}
	is := func(name, want string, source int8) {
		t.Helper()
		if !eventually(func() bool { v, s := described(name); return v == want && s == source }) {
			v, s := described(name)
			t.Errorf("%s is %s from %d, not %s from %d", name, v, s, want, source)
		}
	}
	is("retention.ms", "2000", 1)
	is("segment.bytes", "1073741824", 5)

	n := kmsg.NewPtrIncrementalAlterConfigsRequest()
	alter := func(op kmsg.IncrementalAlterConfigOp, name, v string) wire.Code {
		rc := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Op: op, Value: &v}
		if op == kmsg.IncrementalAlterConfigOpDelete {
			rc.Value = nil
		}
		n.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 2, ResourceName: "k",
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{rc}}}
		return wire.Code(ask[*kmsg.IncrementalAlterConfigsResponse](c, n, 1).Resources[0].ErrorCode)
	}
	for _, step := range []struct {
		op          kmsg.IncrementalAlterConfigOp
		name, value string
		code        wire.Code
	}{
		{2, "cleanup.policy", "compact", wire.None}, {3, "cleanup.policy", "delete", wire.None}, {1, "retention.ms", "", wire.None},
		{2, "retention.ms", "1", wire.InvalidConfig}, {0, "retention.ms", "x", wire.InvalidConfig},
	} {
		if code := alter(step.op, step.name, step.value); code != step.code {
			t.Errorf("%v %s %s: %v", step.op, step.name, step.value, code)
		}
	}
	is("cleanup.policy", "compact", 1)
	is("retention.ms", "604800000", 5)
	rc := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: "retention.ms", Value: value("5")}
	n.Resources[0].Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{rc, rc}
	n.Resources = append(n.Resources, kmsg.IncrementalAlterConfigsRequestResource{ResourceType: 4, ResourceName: "7"})
	for i, r := range ask[*kmsg.IncrementalAlterConfigsResponse](c, n, 1).Resources {
		if wire.Code(r.ErrorCode) != wire.InvalidRequest || r.ErrorMessage == nil {
			t.Errorf("resource %d: %+v", i, r)
		}
	}
	s.stop()
}

func TestAutoCreationThatCannotBe(t *testing.T) {
	s := newSim(t, 1, 1)
	s.start("default.replication.factor=3")
	c := connect(t, s)
	create := func(name string) wire.Code {
		m := kmsg.NewPtrMetadataRequest()
		m.AllowAutoTopicCreation = true
		m.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		return wire.Code(ask[*kmsg.MetadataResponse](c, m, 12).Topics[0].ErrorCode)
	}
	if code := create("k"); code != wire.InvalidReplicationFactor {
		t.Errorf("three replicas on one broker: %v", code)
	}
	if code := create(strings.Repeat("x", 250)); code != wire.InvalidTopicException {
		t.Errorf("a name too long: %v", code)
	}
	s.stop()
	s.start("auto.create.topics.enable=false")
	c = connect(t, s)
	if code := create("k"); code != wire.UnknownTopicOrPartition {
		t.Errorf("creation is disabled: %v", code)
	}
	s.w.RunFor(time.Second)
	if code := create("k"); code != wire.UnknownTopicOrPartition {
		t.Errorf("created all the same: %v", code)
	}
	s.stop()
}
