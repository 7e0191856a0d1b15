package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kring/metadata"
)

func brokers(racks ...string) (out []*metadata.Broker) {
	for i, r := range racks {
		out = append(out, &metadata.Broker{ID: int32(i), Rack: r})
	}
	return out
}

// TestPlacement: the table in the description of Kafka's algorithm, and the rack-aware one.
func TestPlacement(t *testing.T) {
	got, err := assignment(brokers("", "", "", "", ""), 10, 3, 0, -1, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]int32{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 0}, {4, 0, 1}, {0, 2, 3}, {1, 3, 4}, {2, 4, 0}, {3, 0, 1}, {4, 1, 2}}
	for i, a := range got {
		if a.Partition != int32(i) || !slices.Equal(a.Replicas, want[i]) {
			t.Errorf("partition %d on %v, want %v", i, a.Replicas, want[i])
		}
	}
	more, err := assignment(brokers("", "", "", "", ""), 2, 3, 0, 10, nil)
	if err != nil || more[0].Partition != 10 || more[0].Replicas[0] != 0 {
		t.Errorf("partitions added: %v, %v", more, err)
	}
	racks := brokers("a", "a", "b", "b", "c", "c")
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		got, err := assignment(racks, 12, 3, -1, -1, r)
		if err != nil {
			t.Fatal(err)
		}
		leads := map[int32]int{}
		for _, a := range got {
			on := map[string]bool{}
			for _, id := range a.Replicas {
				on[racks[id].Rack] = true
			}
			if len(on) != 3 {
				t.Fatalf("replicas %v are not on three racks", a.Replicas)
			}
			leads[a.Replicas[0]]++
		}
		for id, n := range leads {
			if n != 2 {
				t.Fatalf("broker %d leads %d of 12", id, n)
			}
		}
	}
	for _, c := range []struct {
		brokers    []*metadata.Broker
		partitions int32
		replicas   int16
		want       Kind
	}{
		{racks, 0, 1, InvalidPartitions}, {racks, 1, 0, InvalidReplicationFactor}, {racks, 1, 7, InvalidReplicationFactor},
		{nil, 1, 1, InvalidReplicationFactor}, {brokers("a", ""), 1, 1, UnknownServerError},
	} {
		if _, err := assignment(c.brokers, c.partitions, c.replicas, -1, -1, r); kindOf(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if got, err := assignment(brokers("a"), 3, 1, -1, -1, r); err != nil || len(got) != 3 || got[2].Replicas[0] != 0 {
		t.Errorf("one broker: %v, %v", got, err)
	}
}

func TestElections(t *testing.T) {
	live := func(ids ...int32) func(int32) bool { return func(id int32) bool { return slices.Contains(ids, id) } }
	old := metadata.StateNode{ControllerEpoch: 1, Leader: 2, LeaderEpoch: 5, ISR: []int32{2, 3}}
	for _, c := range []struct {
		live    []int32
		unclean bool
		leader  int32
		isr     string
		ok      bool
		risky   bool
	}{
		{[]int32{1, 3}, false, 3, "[3]", true, false},
		{[]int32{1, 2, 3}, false, 2, "[2 3]", true, false},
		{[]int32{1}, false, 2, "[2 3]", false, false},
		{[]int32{1}, true, 1, "[1]", true, true},
		{nil, true, 2, "[2 3]", false, false},
	} {
		next, ok := electOffline(old, []int32{1, 2, 3}, live(c.live...), c.unclean, 9)
		if ok != c.ok || next.Leader != c.leader || fmt.Sprint(next.ISR) != c.isr || next.Recovering != c.risky {
			t.Errorf("%+v: %+v, %v", c, next, ok)
		}
		if ok && (next.LeaderEpoch != 6 || next.ControllerEpoch != 9) {
			t.Errorf("epochs: %+v", next)
		}
	}
	if s, ok := firstState([]int32{3, 1, 2}, live(1, 2), 4); !ok || s.Leader != 1 || fmt.Sprint(s.ISR) != "[1 2]" || s.LeaderEpoch != 0 || s.ControllerEpoch != 4 {
		t.Errorf("%+v %v", s, ok)
	}
	if _, ok := firstState([]int32{3}, live(1), 4); ok {
		t.Error("a leader out of nobody")
	}
	next, ok := withoutReplica(old, 2, 9)
	if !ok || next.Leader != metadata.NoLeader || fmt.Sprint(next.ISR) != "[3]" || next.LeaderEpoch != 6 {
		t.Errorf("%+v", next)
	}
	last, ok := withoutReplica(next, 3, 9)
	if !ok || fmt.Sprint(last.ISR) != "[3]" || last.LeaderEpoch != 7 {
		t.Errorf("the last one stays in the ISR: %+v", last)
	}
	if _, ok := withoutReplica(next, 2, 9); ok {
		t.Error("a replica that is not in the ISR left it")
	}
}

func TestListValues(t *testing.T) {
	for _, c := range []struct {
		value, change string
		add           bool
		want          string
	}{
		{"a,b", "b,c", true, "a,b,c"}, {"a,b,a", "a", false, "b,a"}, {"a", "a", false, ""}, {"a", "x", false, "a"},
	} {
		if got := changeList(c.value, c.change, c.add); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
