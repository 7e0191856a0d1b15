package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kring/metadata"
	"kring/ring"
)

func (x *cluster) elect(unclean bool, names ...PartitionName) (out []error) {
	x.t.Helper()
	x.do(func(done func()) { x.c.ElectLeaders(names, unclean, func(r []error) { out = r; done() }) })
	return out
}

func (x *cluster) reassign(topic string, partition int32, replicas ...int32) error {
	x.t.Helper()
	var out []error
	x.do(func(done func()) {
		x.c.Reassign([]Reassignment{{PartitionName{topic, partition}, replicas}}, func(r []error) { out = r; done() })
	})
	return out[0]
}

func TestElectionsAreAskedFor(t *testing.T) {
	x := newCluster(t, 1)
	x.set = func(o *Options) { o.Log = nil }
	x.start()
	x.mustCreate(topicNamed("a", 1), topicNamed("b", 1))
	x.failing["a"] = errors.New("offline")
	x.m.Do(x.loop, x.c.LogDirFailed)
	x.w.RunFor(100 * time.Millisecond)
	x.settle()
	names := []PartitionName{{"a", 0}, {"b", 0}, {"b", 1}, {"c", 0}}
	for i, want := range []Kind{PreferredLeaderNotAvailable, ElectionNotNeeded, UnknownPartition, UnknownPartition} {
		if got := kindOf(x.elect(false, names...)[i]); got != want {
			t.Errorf("%v: %v, want %v", names[i], got, want)
		}
	}
	for i, want := range []Kind{EligibleLeadersNotAvailable, ElectionNotNeeded, UnknownPartition, UnknownPartition} {
		if got := kindOf(x.elect(true, names...)[i]); got != want {
			t.Errorf("unclean, %v: %v, want %v", names[i], got, want)
		}
	}
	// A log dir that is back, which only a restart tells us, and an election before: the replica leads.
	x.failing = map[string]error{}
	x.task(func(*ring.Task) { x.c.ctx.topics["a"].partitions[0].failed = nil })
	if err := x.elect(false, PartitionName{"a", 0})[0]; err != nil {
		t.Error(err)
	}
	if a := x.image.Topic("a").Partitions[0]; a.Leader != 1 || a.LeaderEpoch != 2 {
		t.Errorf("%+v", a)
	}
	if last := x.told[len(x.told)-1]; !strings.HasPrefix(last, "lead a-0 epoch 2.") {
		t.Errorf("the broker was told %q", last)
	}
	x.settle()
	x.stop()
}

// TestReassignmentIsDoneAtOnce: the answer comes when the broker leads in the new epoch; a restart finds what was written.
func TestReassignmentIsDoneAtOnce(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	x.mustCreate(topicNamed("a", 2), CreateTopic{Name: "far", Partitions: Unset, ReplicationFactor: Unset,
		Assignment: []Assigned{{Partition: 0, Replicas: []int32{2, 1}}}})
	if err := x.reassign("a", 1, 1); err != nil {
		t.Error(err)
	}
	if a := x.image.Topic("a").Partitions; a[0].LeaderEpoch != 0 || a[1].LeaderEpoch != 1 || a[1].Leader != 1 {
		t.Errorf("%+v", a)
	}
	if err := x.reassign("far", 0, 1); err != nil {
		t.Error(err)
	}
	far := x.image.Topic("far").Partitions[0]
	if far.Leader != 1 || far.LeaderEpoch != 1 || !slices.Equal(far.Replicas, []int32{1}) || len(far.Offline) > 0 {
		t.Errorf("%+v", far)
	}
	for _, row := range []struct {
		topic    string
		replicas []int32
		want     Kind
	}{
		{"a", nil, NoReassignmentInProgress}, {"a", []int32{}, InvalidReplicaAssignment}, {"a", []int32{1, 1}, InvalidReplicaAssignment},
		{"a", []int32{-1}, InvalidReplicaAssignment}, {"a", []int32{1, 2}, InvalidReplicaAssignment}, {"none", []int32{1}, UnknownPartition},
		{"none", []int32{2}, InvalidReplicaAssignment}, {"none", nil, NoReassignmentInProgress},
	} {
		if got := kindOf(x.reassign(row.topic, 0, row.replicas...)); got != row.want {
			t.Errorf("%s to %v: %v, want %v", row.topic, row.replicas, got, row.want)
		}
	}
	x.settle()
	x.m.Crash()
	x.start()
	far = x.image.Topic("far").Partitions[0]
	if !slices.Equal(far.Replicas, []int32{1}) || far.Leader != 1 || far.LeaderEpoch < 1 {
		t.Errorf("after a crash: %+v", far)
	}
	x.settle()
	x.stop()
}

// TestRequestsAreAnsweredAtTheEnd: also those that come when the controller has stopped or lost its store.
func TestRequestsAreAnsweredAtTheEnd(t *testing.T) {
	x := newCluster(t, 1)
	x.set = func(o *Options) { o.Log = nil }
	x.start()
	x.mustCreate(topicNamed("a", 1))
	x.task(func(*ring.Task) { x.c.fence(metadata.ErrFenced) })
	if got := kindOf(x.reassign("a", 0, 1)); got != NotController {
		t.Errorf("fenced: %v", got)
	}
	y := newCluster(t, 1)
	y.start()
	y.mustCreate(topicNamed("a", 1))
	var got []Kind
	y.m.Do(y.loop, func() {
		y.c.ElectLeaders([]PartitionName{{"a", 0}}, false, func(r []error) { got = append(got, kindOf(r[0])) })
		ring.Go(y.loop, func(task *ring.Task) { y.c.Stop(task) })
		y.c.ElectLeaders([]PartitionName{{"a", 0}}, false, func(r []error) { got = append(got, kindOf(r[0])) })
	})
	y.until("both answers", func() bool { return len(got) == 2 })
	if !slices.Equal(got, []Kind{NotController, NotController}) {
		t.Errorf("%v", got)
	}
}
