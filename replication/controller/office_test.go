package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/metadata"
	"kring/ring"
)

// write changes the store behind the controller's back.
func (x *cluster) write(ops ...metadata.Op) {
	x.t.Helper()
	x.task(func(task *ring.Task) {
		if _, err := (client{x.store}).do(task, ops...); err != nil {
			x.t.Error(err)
		}
	})
}

func TestBrokerIDs(t *testing.T) {
	x := newCluster(t, 1)
	x.id = -1
	x.start()
	if x.c.self != 1001 || x.image.Broker(1001) == nil {
		t.Errorf("broker %d", x.c.self)
	}
	if got := x.node("/brokers/seqid"); got != "1 0 " {
		t.Errorf("seqid: %q", got)
	}
	x.stop()
	x.start()
	if x.c.self != 1002 {
		t.Errorf("second broker %d", x.c.self)
	}
	x.stop()
}

// TestMoved: once another controller is elected nothing of ours is written any more.
func TestMoved(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	x.mustCreate(topicNamed("t", 1))
	x.settle()
	other := metadata.ControllerNode{Broker: 2, KRaftEpoch: -1}.Encode()
	x.write(metadata.Delete("/controller", -1), metadata.Create("/controller", other), metadata.SetData("/controller_epoch", []byte("2"), -1))
	x.settle()
	if x.c.Active() || x.image.ControllerID != 2 {
		t.Errorf("active %v, controller %d", x.c.Active(), x.image.ControllerID)
	}
	if out := x.create(minute, topicNamed("u", 1)); kindOf(out[0].Err) != NotController {
		t.Error(out[0].Err)
	}
	if out := x.delete(minute, DeleteTopic{Name: "t"}); kindOf(out[0].Err) != NotController {
		t.Error(out[0].Err)
	}
	// The other one goes: we are elected again and find what happened meanwhile.
	x.write(metadata.Create("/brokers/topics/w", metadata.TopicNode{Partitions: []metadata.Assignment{{Partition: 0, Replicas: []int32{1}}}}.Encode()))
	x.write(metadata.Delete("/controller", -1))
	x.settle()
	if !x.c.Active() || x.image.ControllerEpoch != 3 || x.image.Topic("w") == nil || x.image.Topic("w").Partitions[0].Leader != 1 {
		t.Errorf("active %v, epoch %d, w %+v", x.c.Active(), x.image.ControllerEpoch, x.image.Topic("w"))
	}
	if !strings.Contains(x.node("/brokers/topics/w"), "topic_id") {
		t.Error("a topic without an id got none")
	}
	x.stop()
}

// TestMovedUnheard: the epoch rises before we hear of it; the check of the next write finds out.
func TestMovedUnheard(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	x.write(metadata.SetData("/controller_epoch", []byte("7"), -1))
	out := x.create(Call{Timeout: time.Second}, topicNamed("t", 1))
	if kindOf(out[0].Err) != TimedOut {
		t.Errorf("%v", out[0].Err)
	}
	x.settle()
	if x.c.Active() || x.node("/brokers/topics/t/partitions") != "" {
		t.Error("wrote under a stale epoch")
	}
	x.stop()
}

// TestToolsWrite: topics, partitions and deletions written by others' tools are carried out.
func TestToolsWrite(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	node := metadata.TopicNode{ID: metadata.TopicID{5}, Partitions: []metadata.Assignment{{Partition: 1, Replicas: []int32{1}}, {Partition: 0, Replicas: []int32{1}}}}
	x.write(metadata.Create("/brokers/topics/t", node.Encode()))
	x.settle()
	if m := x.image.Topic("t"); m == nil || len(m.Partitions) != 2 || !led(m) || m.ID != node.ID {
		t.Fatalf("shown: %+v", m)
	}
	node.Partitions = append(node.Partitions, metadata.Assignment{Partition: 2, Replicas: []int32{1}})
	x.write(metadata.SetData("/brokers/topics/t", node.Encode(), -1))
	x.settle()
	if m := x.image.Topic("t"); len(m.Partitions) != 3 || !led(m) {
		t.Errorf("shown: %+v", m)
	}
	x.write(metadata.SetData("/brokers/topics/t", metadata.TopicNode{ID: node.ID}.Encode(), -1))
	x.settle()
	if m := x.image.Topic("t"); len(m.Partitions) != 3 {
		t.Errorf("a topic lost partitions: %+v", m)
	}
	x.write(metadata.Create("/admin/delete_topics/t", nil), metadata.Create("/admin/delete_topics/unknown", nil))
	x.settle()
	if x.image.Topic("t") != nil || x.node("/brokers/topics/t") != "" || x.node("/admin/delete_topics/unknown") != "" {
		t.Error("the deletion was not carried out")
	}
	x.stop()
}

// TestOtherReplicas: partitions assigned to brokers that are not there wait; those led by others are shown, not led.
func TestOtherReplicas(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	node := metadata.TopicNode{ID: metadata.TopicID{5}, Partitions: []metadata.Assignment{{Partition: 0, Replicas: []int32{7}}, {Partition: 1, Replicas: []int32{7, 1}}}}
	x.write(metadata.Create("/brokers/topics/t", node.Encode()))
	x.settle()
	m := x.image.Topic("t")
	if m.Partitions[0].Leader != metadata.NoLeader || !slices.Equal(m.Partitions[0].Offline, []int32{7}) {
		t.Errorf("shown: %+v", m.Partitions[0])
	}
	if p := m.Partitions[1]; p.Leader != 1 || !slices.Equal(p.ISR, []int32{1}) || !slices.Equal(p.Offline, []int32{7}) {
		t.Errorf("shown: %+v", p)
	}
	if len(x.told) != 1 {
		t.Errorf("told %v", x.told)
	}
	// Its deletion halts: a replica is away.
	x.write(metadata.Create("/admin/delete_topics/t", nil))
	x.settle()
	if x.node("/brokers/topics/t") == "" {
		t.Error("deleted though a replica is away")
	}
	x.stop()
}

// TestMalformedNodes: what cannot be read is left alone, the rest is served.
func TestMalformedNodes(t *testing.T) {
	x := newCluster(t, 1)
	x.set = func(o *Options) { o.Log = nil }
	x.start()
	x.mustCreate(topicNamed("good", 1), topicNamed("config", 1), topicNamed("state", 1))
	x.write(metadata.Create("/brokers/topics/junk", []byte("\x00{")), metadata.Create("/brokers/topics/gap", []byte(`{"version":1,"partitions":{"1":[1]}}`)),
		metadata.Create("/brokers/topics/null", nil))
	x.write(metadata.SetData("/config/topics/config", []byte("[]"), -1), metadata.SetData("/brokers/topics/state/partitions/0/state", []byte("x"), -1),
		metadata.CreateSequential("/config/changes/config_change_", []byte("y")), metadata.Create("/config/changes/odd", nil))
	x.settle()
	for range 2 {
		for name, want := range map[string]bool{"good": true, "config": true, "junk": false, "gap": false, "null": false} {
			if (x.image.Topic(name) != nil) != want {
				t.Errorf("topic %s shown: %v", name, !want)
			}
		}
		x.stop()
		x.start()
		x.settle()
	}
	if m := x.image.Topic("state"); m == nil || m.Partitions[0].Leader != metadata.NoLeader {
		t.Errorf("a partition with a state nobody can read: %+v", m)
	}
	x.mustCreate(topicNamed("later", 1))
	x.stop()
}

// TestStoreFails: when the store is fenced the broker is told once, and every request is refused.
func TestStoreFails(t *testing.T) {
	x := newCluster(t, 1)
	x.set = func(o *Options) { o.Log = nil }
	x.start()
	x.m.FailNext("sync", "kring-store", 0, 1, syscall.EIO)
	if out := x.create(minute, topicNamed("t", 1)); out[0].Err == nil {
		t.Error("created on a store that is fenced")
	}
	if !errors.Is(x.fenced, metadata.ErrSessionExpired) && !errors.Is(x.fenced, metadata.ErrFenced) {
		t.Errorf("told %v", x.fenced)
	}
	if out := x.create(minute, topicNamed("u", 1)); kindOf(out[0].Err) != NotController {
		t.Error(out[0].Err)
	}
	if errs := x.alter(false, AlterConfig{Resource: BrokerResource, Broker: 1}); kindOf(errs[0]) != NotController {
		t.Error(errs[0])
	}
	x.m.Kill()
	x.start()
	x.mustCreate(topicNamed("u", 1))
	x.stop()
}

// TestStopped: what is under way at the stop is answered.
func TestStopped(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	x.hold = []func(){}
	answers := 0
	x.m.Do(x.loop, func() {
		x.c.CreateTopics([]CreateTopic{topicNamed("t", 1)}, minute, func([]CreatedTopic) { answers++ })
	})
	x.until("the wait", func() bool { return len(x.hold) > 0 })
	x.m.Do(x.loop, func() {
		x.c.CreateTopics([]CreateTopic{topicNamed("u", 1)}, minute, func([]CreatedTopic) { answers++ })
		ring.Go(x.loop, func(task *ring.Task) { x.c.Stop(task); answers++ })
		x.c.CreateTopics([]CreateTopic{topicNamed("v", 1)}, minute, func(r []CreatedTopic) {
			if kindOf(r[0].Err) == NotController {
				answers++
			}
		})
	})
	x.w.RunFor(time.Second)
	held := x.hold
	x.hold = nil
	x.m.Do(x.loop, func() {
		for _, fn := range held {
			fn()
		}
	})
	x.until("all answers", func() bool { return answers == 4 })
}

func TestProducerIDs(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	next := func() (first int64, err error) {
		x.do(func(done func()) {
			x.c.AllocateProducerIDs(func(f int64, n int32, e error) {
				if e == nil && n != 1000 {
					t.Errorf("block of %d", n)
				}
				first, err = f, e
				done()
			})
		})
		return first, err
	}
	for i := range int64(3) {
		if first, err := next(); err != nil || first != i*1000 {
			t.Fatal(first, err)
		}
		if i == 1 {
			x.m.Crash()
			x.start()
		}
	}
	if got := x.node("/latest_producer_id_block"); got != `3 0 {"version":1,"broker":1,"block_start":"2000","block_end":"2999"}` {
		t.Error(got)
	}
	x.write(metadata.SetData("/latest_producer_id_block", metadata.ProducerIDBlock{Broker: 1, First: 1, Last: 1<<63 - 2}.Encode(), -1))
	if _, err := next(); kindOf(err) != UnknownServerError {
		t.Errorf("at the end of all ids: %v", err)
	}
	x.stop()
}

// TestLogDirFailed: replicas whose log dir has failed go offline; when it is back they are led again in a new epoch.
func TestLogDirFailed(t *testing.T) {
	x := newCluster(t, 1)
	x.set = func(o *Options) { o.Log = nil }
	x.start()
	x.mustCreate(topicNamed("a", 1), topicNamed("b", 1))
	x.failing["a"] = errors.New("offline")
	x.m.Do(x.loop, x.c.LogDirFailed)
	x.w.RunFor(100 * time.Millisecond)
	x.settle()
	a, b := x.image.Topic("a").Partitions[0], x.image.Topic("b").Partitions[0]
	if a.Leader != metadata.NoLeader || a.LeaderEpoch != 1 || !slices.Equal(a.ISR, []int32{1}) || !slices.Equal(a.Offline, []int32{1}) {
		t.Errorf("offline partition: %+v", a)
	}
	if b.Leader != 1 || b.LeaderEpoch != 0 {
		t.Errorf("the other partition: %+v", b)
	}
	if x.node("/log_dir_event_notification") != "0 2 null" {
		t.Error("the notification is still there: " + x.node("/log_dir_event_notification"))
	}
	x.stop()
	x.failing = map[string]error{}
	x.start()
	if a = x.image.Topic("a").Partitions[0]; a.Leader != 1 || a.LeaderEpoch != 2 || a.PartitionEpoch != 2 {
		t.Errorf("partition that is back: %+v", a)
	}
	x.stop()
}

func TestConfigs(t *testing.T) {
	x := newCluster(t, 1)
	x.set = func(o *Options) {
		o.Configs.TopicDefault = func(name string) (string, bool) { return "delete", name == "cleanup.policy" }
		o.Configs.CheckTopic = func(c metadata.Config) error {
			if v, _ := c.Get("segment.bytes"); v == "bad" {
				return errors.New("bad")
			}
			return nil
		}
		o.Configs.CheckBroker = func(id int32, c metadata.Config) error {
			if _, ok := c.Get("fixed"); ok {
				return errors.New("fixed")
			}
			return nil
		}
	}
	x.start()
	x.mustCreate(topicNamed("t", 1))
	topic := func(replace bool, ops ...ConfigOp) error {
		return x.alter(false, AlterConfig{Resource: TopicResource, Topic: "t", Ops: ops, Replace: replace})[0]
	}
	for i, c := range []struct {
		err  error
		want Kind
	}{
		{topic(false, ConfigOp{ConfigSet, "retention.ms", text("1")}, ConfigOp{ConfigAppend, "cleanup.policy", text("compact")}), 255},
		{topic(false, ConfigOp{ConfigAppend, "cleanup.policy", text("compact,delete")}), 255},
		{topic(false, ConfigOp{ConfigSubtract, "cleanup.policy", text("delete")}), 255},
		{topic(false, ConfigOp{ConfigSet, "a", text("1")}, ConfigOp{ConfigSet, "a", text("2")}), InvalidRequest},
		{topic(false, ConfigOp{ConfigSet, "a", nil}), InvalidRequest},
		{topic(true, ConfigOp{ConfigSet, "a", nil}), InvalidRequest},
		{topic(false, ConfigOp{ConfigAppend, "retention.ms", text("1")}), InvalidConfig},
		{topic(false, ConfigOp{ConfigOpKind(9), "retention.ms", text("1")}), InvalidRequest},
		{topic(false, ConfigOp{ConfigSet, "segment.bytes", text("bad")}), InvalidConfig},
		{x.alter(false, AlterConfig{Resource: TopicResource, Topic: "none"})[0], UnknownTopic},
		{x.alter(false, AlterConfig{Resource: TopicResource, Topic: "a/b"})[0], UnknownTopic},
		{x.alter(false, AlterConfig{Resource: BrokerResource, Broker: 9})[0], InvalidRequest},
		{x.alter(false, AlterConfig{Resource: BrokerResource, Broker: 1, Ops: []ConfigOp{{ConfigSet, "fixed", text("1")}}})[0], InvalidRequest},
		{x.alter(true, AlterConfig{Resource: BrokerResource, Broker: 1, Ops: []ConfigOp{{ConfigSet, "x", text("1")}}})[0], 255},
		{x.alter(false, AlterConfig{Resource: 9})[0], InvalidRequest},
	} {
		if kindOf(c.err) != c.want || (c.want == 255 && c.err != nil) {
			t.Errorf("case %d: %v, want %v", i, c.err, c.want)
		}
	}
	x.settle()
	if got := x.image.Topic("t").Config; !got.Equal(metadata.Config{{Name: "retention.ms", Value: "1"}, {Name: "cleanup.policy", Value: "compact"}}) {
		t.Errorf("shown: %v", got)
	}
	if len(x.configs) != 2 { // the second alteration changes nothing
		t.Errorf("told %v", x.configs)
	}
	if err := topic(true, ConfigOp{ConfigSet, "flush.ms", text("5")}); err != nil {
		t.Error(err)
	}
	for _, id := range []int32{1, metadata.NoBroker} {
		if err := x.alter(false, AlterConfig{Resource: BrokerResource, Broker: id, Ops: []ConfigOp{{ConfigSet, "k", text(fmt.Sprint(id))}}})[0]; err != nil {
			t.Error(err)
		}
	}
	x.settle()
	want := []string{"topic t [{flush.ms 5}]", "broker 1 [{k 1}]", "broker -1 [{k -1}]"}
	if !slices.Equal(x.configs[2:], want) {
		t.Errorf("told %v", x.configs[2:])
	}
	x.stop()
	x.start()
	x.settle()
	if v, _ := x.image.BrokerConfig(1).Get("k"); v != "1" || !x.image.Topic("t").Config.Equal(metadata.Config{{Name: "flush.ms", Value: "5"}}) {
		t.Errorf("after a restart: %v, %v", x.image.BrokerConfig(1), x.image.Topic("t").Config)
	}
	if len(x.configs) != 2 {
		t.Errorf("told at the start: %v", x.configs)
	}
	// Notifications older than a quarter of an hour are removed with the next change.
	if got := x.node("/config/changes"); got != "0 6 null" {
		t.Error(got)
	}
	x.w.RunFor(16 * time.Minute)
	if err := topic(false, ConfigOp{ConfigDelete, "flush.ms", nil}); err != nil {
		t.Error(err)
	}
	x.settle()
	if got := x.node("/config/changes"); got != "0 13 null" || x.node("/config/changes/config_change_0000000006") == "" {
		t.Error("old notifications are left: " + got)
	}
	x.stop()
}
