package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kring/metadata"
	"kring/ring"
)

func topicNamed(name string, partitions int32) CreateTopic {
	return CreateTopic{Name: name, Partitions: partitions, ReplicationFactor: 1}
}

func TestCreate(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	before := len(x.store.notes)
	req := topicNamed("t", 2)
	req.Configs = []ConfigValue{{"retention.ms", text("5")}}
	out := x.mustCreate(req)[0]
	m := x.image.Topic("t")
	if m == nil || len(m.Partitions) != 2 || m.ID != out.ID || out.Partitions != 2 || out.ReplicationFactor != 1 {
		t.Fatalf("created %+v, shown %+v", out, m)
	}
	if v, _ := m.Config.Get("retention.ms"); v != "5" {
		t.Errorf("configuration shown: %v", m.Config)
	}
	for _, p := range m.Partitions {
		if p.Leader != 1 || p.LeaderEpoch != 0 || p.PartitionEpoch != 0 || p.ControllerEpoch != 1 || !slices.Equal(p.ISR, []int32{1}) || len(p.Offline) != 0 {
			t.Errorf("partition shown: %+v", p)
		}
	}
	want := []string{"lead t-0 epoch 0.0 new true [{retention.ms 5}]", "lead t-1 epoch 0.0 new true [{retention.ms 5}]"}
	if !slices.Equal(x.told, want) {
		t.Errorf("told %v", x.told)
	}
	// The writes, and their order, are those recorded from Kafka.
	writes := []string{
		"create /config/topics/t",
		"create /brokers/topics/t",
		"check /controller_epoch + create /brokers/topics/t/partitions",
		"check /controller_epoch + create /brokers/topics/t/partitions/0",
		"check /controller_epoch + create /brokers/topics/t/partitions/1",
		"check /controller_epoch + create /brokers/topics/t/partitions/0/state",
		"check /controller_epoch + create /brokers/topics/t/partitions/1/state",
	}
	if got := x.store.notes[before:]; !slices.Equal(got, writes) {
		t.Errorf("written:\n%s", strings.Join(got, "\n"))
	}
	x.stop()
}

func TestDelete(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	id := x.mustCreate(topicNamed("t", 2))[0].ID
	x.settle()
	x.told = nil
	before := len(x.store.notes)
	if out := x.delete(minute, DeleteTopic{ID: id}, DeleteTopic{Name: "none"}, DeleteTopic{ID: metadata.TopicID{9}}); out[0].Err != nil ||
		out[0].Name != "t" || kindOf(out[1].Err) != UnknownTopic || kindOf(out[2].Err) != UnknownTopicID {
		t.Fatalf("%+v", out)
	}
	if x.image.Topic("t") != nil || x.image.TopicByID(id) != nil {
		t.Error("the topic is still shown")
	}
	x.settle()
	writes := []string{
		"create /admin/delete_topics/t",
		"check /controller_epoch + setData /brokers/topics/t/partitions/0/state",
		"check /controller_epoch + setData /brokers/topics/t/partitions/1/state",
		"check /controller_epoch + delete /brokers/topics/t/partitions/1/state",
		"check /controller_epoch + delete /brokers/topics/t/partitions/0/state",
		"check /controller_epoch + delete /brokers/topics/t/partitions/1",
		"check /controller_epoch + delete /brokers/topics/t/partitions/0",
		"check /controller_epoch + delete /brokers/topics/t/partitions",
		"check /controller_epoch + delete /brokers/topics/t",
		"check /controller_epoch + delete /config/topics/t",
		"check /controller_epoch + delete /admin/delete_topics/t",
	}
	if got := x.store.notes[before:]; !slices.Equal(got, writes) {
		t.Errorf("written:\n%s", strings.Join(got, "\n"))
	}
	told := []string{"stop t-0 delete false epoch -2", "stop t-1 delete false epoch -2", "stop t-0 delete true epoch -2", "stop t-1 delete true epoch -2"}
	if !slices.Equal(x.told, told) {
		t.Errorf("told %v", x.told)
	}
	if again := x.mustCreate(topicNamed("t", 1))[0].ID; again == id {
		t.Error("a topic made again has the id of the old one")
	}
	x.stop()
}

// TestRefusals: what is refused, in Kafka's order of checks, leaves no trace.
func TestRefusals(t *testing.T) {
	x := newCluster(t, 1)
	x.set = func(o *Options) {
		o.Configs.CheckTopic = func(c metadata.Config) error {
			if v, ok := c.Get("retention.ms"); ok && v == "bad" {
				return errors.New("bad value")
			}
			return nil
		}
	}
	x.start()
	x.mustCreate(topicNamed("a.b", 1))
	before := x.tree()
	for _, c := range []struct {
		req  CreateTopic
		want Kind
	}{
		{CreateTopic{Name: "a.b", Partitions: 0}, TopicExists},
		{CreateTopic{Name: "x", Partitions: 0, ReplicationFactor: 1, Configs: []ConfigValue{{"k", nil}}}, InvalidConfig},
		{CreateTopic{Name: "x", Partitions: 1, ReplicationFactor: 1, Assignment: []Assigned{{0, []int32{1}}}}, InvalidRequest},
		{CreateTopic{Name: "x y", Partitions: 0, ReplicationFactor: 9}, InvalidPartitions},
		{CreateTopic{Name: "x y", Partitions: 1, ReplicationFactor: 0}, InvalidReplicationFactor},
		{CreateTopic{Name: "x y", Partitions: 1, ReplicationFactor: 2}, InvalidReplicationFactor},
		{CreateTopic{Name: "x y", Partitions: 1, ReplicationFactor: 1}, InvalidTopicName},
		{CreateTopic{Name: "", Partitions: 1, ReplicationFactor: 1}, InvalidTopicName},
		{CreateTopic{Name: "a_b", Partitions: 1, ReplicationFactor: 1}, InvalidTopicName},
		{CreateTopic{Name: "x", Partitions: Unset, ReplicationFactor: Unset, Assignment: []Assigned{{0, []int32{1, 1}}}}, InvalidReplicaAssignment},
		{CreateTopic{Name: "x", Partitions: Unset, ReplicationFactor: Unset, Assignment: []Assigned{{1, []int32{1}}}}, InvalidReplicaAssignment},
		{CreateTopic{Name: "x", Partitions: Unset, ReplicationFactor: Unset, Assignment: []Assigned{{0, []int32{1}}, {1, []int32{1, 2}}}}, InvalidReplicaAssignment},
		{CreateTopic{Name: "x", Partitions: Unset, ReplicationFactor: Unset, Assignment: []Assigned{{0, nil}}}, InvalidReplicaAssignment},
		{CreateTopic{Name: "x", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigValue{{"retention.ms", text("bad")}}}, InvalidConfig},
	} {
		if out := x.create(minute, c.req)[0]; kindOf(out.Err) != c.want || out.ID != (metadata.TopicID{}) {
			t.Errorf("%+v: %v, want %v", c.req, out.Err, c.want)
		}
	}
	for _, c := range []struct {
		req  CreatePartitions
		want Kind
	}{
		{CreatePartitions{"none", 2, nil}, UnknownTopic},
		{CreatePartitions{"a/b", 2, nil}, UnknownTopic},
		{CreatePartitions{"a.b", 1, nil}, InvalidPartitions},
		{CreatePartitions{"a.b", 0, nil}, InvalidPartitions},
		{CreatePartitions{"a.b", 2, [][]int32{{7}}}, InvalidReplicaAssignment},
		{CreatePartitions{"a.b", 2, [][]int32{{1}, {1}}}, InvalidReplicaAssignment},
		{CreatePartitions{"a.b", 2, [][]int32{{}}}, InvalidReplicaAssignment},
		{CreatePartitions{"a.b", 2, [][]int32{{1, 1}}}, InvalidReplicaAssignment},
	} {
		if err := x.grow(minute, c.req)[0]; kindOf(err) != c.want {
			t.Errorf("%+v: %v, want %v", c.req, err, c.want)
		}
	}
	call := Call{Timeout: time.Minute, ValidateOnly: true}
	if out := x.create(call, topicNamed("v", 3))[0]; out.Err != nil || out.Partitions != 3 || !out.ID.IsZero() {
		t.Errorf("validated only: %+v", out)
	}
	if err := x.grow(call, CreatePartitions{"a.b", 5, nil})[0]; err != nil {
		t.Errorf("validated only: %v", err)
	}
	if after := x.tree(); !slices.Equal(before, after) {
		t.Errorf("refused requests have left traces:\n%s", strings.Join(after, "\n"))
	}
	x.stop()
}

// TestCollisionWithinRequest: topics of one request must not collide with each other either.
func TestCollisionWithinRequest(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	out := x.create(minute, topicNamed("a.b", 1), topicNamed("a_b", 1), topicNamed("ab", 1))
	if out[0].Err != nil || kindOf(out[1].Err) != InvalidTopicName || out[2].Err != nil {
		t.Errorf("%+v", out)
	}
	x.stop()
}

// TestWaits: a creation is answered when the picture shows leaders, which waits for the broker to lead; or at its time-out.
func TestWaits(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	if out := x.create(Call{}, topicNamed("zero", 1))[0]; kindOf(out.Err) != TimedOut || out.ID.IsZero() {
		t.Errorf("without time: %+v", out)
	}
	x.until("the topic", func() bool { return x.image.Topic("zero") != nil })
	x.hold = []func(){}
	var slow, patient error = errors.New("no answer"), errors.New("no answer")
	x.m.Do(x.loop, func() {
		x.c.CreateTopics([]CreateTopic{topicNamed("slow", 1)}, Call{Timeout: time.Second}, func(r []CreatedTopic) { slow = r[0].Err })
		x.c.CreateTopics([]CreateTopic{topicNamed("patient", 1)}, minute, func(r []CreatedTopic) { patient = r[0].Err })
	})
	x.until("the time-out", func() bool { return kindOf(slow) == TimedOut })
	if patient == nil {
		t.Error("answered before the broker leads")
	}
	held := x.hold
	x.hold = nil
	x.m.Do(x.loop, func() {
		for _, fn := range held {
			fn()
		}
	})
	x.until("both topics", func() bool { return patient == nil && x.image.Topic("slow") != nil })
	x.settle()
	if len(x.c.waits.order)+len(x.c.waits.byTopic) != 0 {
		t.Error("waits are left")
	}
	x.stop()
}

func TestPartitionsAdded(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	x.mustCreate(topicNamed("t", 1))
	x.settle()
	x.told = nil
	before := len(x.store.notes)
	if errs := x.grow(minute, CreatePartitions{"t", 3, nil}, CreatePartitions{"none", 3, nil}); errs[0] != nil || kindOf(errs[1]) != UnknownTopic {
		t.Fatal(errs)
	}
	if m := x.image.Topic("t"); len(m.Partitions) != 3 || m.Partitions[2].Leader != 1 {
		t.Errorf("shown: %+v", m)
	}
	if len(x.told) != 2 || x.told[0] != "lead t-1 epoch 0.0 new true []" {
		t.Errorf("told %v", x.told)
	}
	if got := x.store.notes[before:]; len(got) != 5 || got[0] != "setData /brokers/topics/t" {
		t.Errorf("written: %v", got)
	}
	x.stop()
}

// TestRestart: a lone broker that comes back leads what it led, in the same epochs, and writes nothing but its office.
func TestRestart(t *testing.T) {
	for _, kill := range []bool{false, true} {
		x := newCluster(t, 1)
		x.start()
		id := x.mustCreate(topicNamed("t", 2))[0].ID
		x.settle()
		cluster := x.image.ClusterID
		epoch := x.epoch
		if kill {
			x.m.Crash()
		} else {
			x.stop()
		}
		x.start()
		m := x.image.Topic("t")
		if m == nil || m.ID != id || m.Partitions[1].Leader != 1 || m.Partitions[1].LeaderEpoch != 0 || m.Partitions[1].ControllerEpoch != 1 {
			t.Errorf("shown: %+v", m)
		}
		if x.image.ControllerEpoch != 2 || x.image.ControllerID != 1 || x.image.ClusterID != cluster || x.image.FeatureEpoch != 0 {
			t.Errorf("picture: %+v", x.image)
		}
		if b := x.image.Broker(1); b == nil || b.Epoch != x.epoch || x.epoch <= epoch || b.Endpoints[0].Port != 9092 {
			t.Errorf("broker: %+v", b)
		}
		if want := []string{"lead t-0 epoch 0.0 new false []", "lead t-1 epoch 0.0 new false []"}; !slices.Equal(x.told, want) {
			t.Errorf("told %v", x.told)
		}
		want := []string{"create /brokers/ids/1 + setData /brokers/ids/1", "create /controller + setData /controller_epoch"}
		if !slices.Equal(x.store.notes, want) {
			t.Errorf("written %v", x.store.notes)
		}
		x.stop()
	}
}

func TestAutoCreate(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	create := func(name string) (err error) {
		x.do(func(done func()) { x.c.AutoCreate(name, 2, 1, nil, func(e error) { err = e; done() }) })
		return err
	}
	if err := create("t"); err != nil {
		t.Fatal(err)
	}
	x.until("the topic", func() bool { return x.image.Topic("t") != nil })
	if err := create("t"); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if err := create("a b"); kindOf(err) != InvalidTopicName {
		t.Errorf("bad name: %v", err)
	}
	x.stop()
}

// TestHaltedDeletion: a replica that cannot be deleted halts the deletion; the next start ends it.
func TestHaltedDeletion(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	x.mustCreate(topicNamed("t", 1))
	x.failing["t"] = errors.New("log dir is offline")
	if out := x.delete(minute, DeleteTopic{Name: "t"}); out[0].Err != nil {
		t.Errorf("answered %v", out[0].Err)
	}
	x.settle()
	if x.node("/admin/delete_topics/t") == "" || x.node("/brokers/topics/t/partitions/0/state") == "" {
		t.Error("a halted deletion has removed nodes")
	}
	if errs := x.grow(minute, CreatePartitions{"t", 2, nil}); kindOf(errs[0]) != InvalidTopicName {
		t.Errorf("partitions of a topic in deletion: %v", errs[0])
	}
	x.stop()
	x.failing = map[string]error{}
	x.start()
	x.settle()
	if x.node("/admin/delete_topics/t") != "" || x.node("/brokers/topics/t") != "" || x.node("/config/topics/t") != "" || x.image.Topic("t") != nil {
		t.Errorf("the deletion was not ended:\n%s", strings.Join(x.tree(), "\n"))
	}
	x.stop()
}

func TestDeletionDisabled(t *testing.T) {
	x := newCluster(t, 1)
	x.set = func(o *Options) { o.DeleteTopics = false }
	x.start()
	x.mustCreate(topicNamed("t", 1))
	if out := x.delete(minute, DeleteTopic{Name: "t"}); kindOf(out[0].Err) != TopicDeletionDisabled {
		t.Error(out[0].Err)
	}
	// A marker that a tool made is removed, the topic stays.
	x.task(func(task *ring.Task) {
		if _, err := (client{x.store}).do(task, metadata.Create("/admin/delete_topics/t", nil)); err != nil {
			t.Error(err)
		}
	})
	x.settle()
	if x.node("/admin/delete_topics/t") != "" || x.image.Topic("t") == nil {
		t.Error("the marker was obeyed, or left")
	}
	x.stop()
}

// TestManyTopics: ten thousand topics in one request.
func TestManyTopics(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	req := make([]CreateTopic, 10000)
	for i := range req {
		req[i] = topicNamed(fmt.Sprintf("many_%05d", i), 1)
	}
	x.mustCreate(req...)
	if x.image.NumTopics() != 10000 {
		t.Errorf("%d topics", x.image.NumTopics())
	}
	x.mustCreate(topicNamed("one.more", 3))
	gone := make([]DeleteTopic, 5000)
	for i := range gone {
		gone[i].Name = req[2*i].Name
	}
	for _, d := range x.delete(minute, gone...) {
		if d.Err != nil {
			t.Fatal(d.Err)
		}
	}
	x.settle()
	x.stop()
	x.start()
	if x.image.NumPartitions() != 5003 || len(x.told) != 5003 {
		t.Errorf("%d partitions, %d told", x.image.NumPartitions(), len(x.told))
	}
	x.stop()
}
