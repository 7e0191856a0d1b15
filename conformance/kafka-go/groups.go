package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

func groups(group string) {
	step("group of two, range", func() (any, error) { return groupOfTwo(group+"range", kafka.RangeGroupBalancer{}) })
	step("group of two, round robin", func() (any, error) { return groupOfTwo(group+"roundrobin", kafka.RoundRobinGroupBalancer{}) })
	step("group of two, cooperative", func() (any, error) { return nil, unsupported("kafka-go has no cooperative balancer") })
	step("commit and resume", func() (any, error) { return resume(group + "resume") })
	step("alter and delete offsets", func() (any, error) { return alter(group + "resume") })
	step("static member", func() (any, error) { return nil, unsupported("kafka-go's groups send no group.instance.id") })
	step("list groups", func() (any, error) { return listGroups(group) })
	step("delete group", func() (any, error) { return remove(group + "resume") })
}

// consumer is a member of a kafka.ConsumerGroup: in each generation it reads its partitions until the generation ends, and commits.
type consumer struct {
	group *kafka.ConsumerGroup
	leave context.CancelFunc
	done  chan struct{}
	mu    sync.Mutex
	err   error
}

func join(group, name string, l *ledger, b kafka.GroupBalancer) (*consumer, error) {
	g, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: group, Brokers: []string{bootstrap}, Topics: []string{group}, GroupBalancers: []kafka.GroupBalancer{b},
		HeartbeatInterval: 300 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond,
		Dialer: &kafka.Dialer{ClientID: name, Timeout: 10 * time.Second},
	})
	if err != nil {
		return nil, err
	}
	c := &consumer{group: g, done: make(chan struct{})}
	var member context.Context
	member, c.leave = context.WithCancel(ctx)
	go func() {
		defer close(c.done)
		for {
			gen, err := g.Next(member)
			if err != nil {
				if member.Err() == nil {
					c.fail(err)
				}
				return
			}
			for _, a := range gen.Assignments[group] {
				l.assigned(name, []int32{int32(a.ID)})
				gen.Start(func(ctx context.Context) {
					next, err := follow(ctx, group, a, func(m kafka.Message) { l.read(name, int32(a.ID), m.Value) })
					if err == nil && next > a.Offset {
						err = gen.CommitOffsets(map[string]map[int]int64{group: {a.ID: next}})
					}
					if err != nil {
						c.fail(fmt.Errorf("%s, partition %d: %w", name, a.ID, err))
					}
					l.revoked(name, []int32{int32(a.ID)})
				})
			}
		}
	}()
	return c, nil
}

// follow reads a partition from where the group is until the generation ends.
func follow(ctx context.Context, topic string, a kafka.PartitionAssignment, each func(kafka.Message)) (next int64, err error) {
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, Partition: a.ID, MinBytes: 1, MaxBytes: 1e6,
		MaxWait: 100 * time.Millisecond})
	defer r.Close()
	next = max(a.Offset, 0)
	if err := r.SetOffset(a.Offset); err != nil {
		return next, err
	}
	for {
		m, err := r.ReadMessage(ctx)
		if ctx.Err() != nil {
			return next, nil
		}
		if err != nil {
			return next, err
		}
		each(m)
		next = m.Offset + 1
	}
}

func (c *consumer) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *consumer) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *consumer) end() error {
	c.leave()
	<-c.done
	if err := c.group.Close(); err != nil {
		c.fail(err)
	}
	return c.failed()
}

func describe(group string) (g kafka.DescribeGroupsResponseGroup, err error) {
	r, err := admin.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return g, err
	}
	return r.Groups[0], r.Groups[0].Error
}

// committed is the group's offsets; each topic here is named as its group.
func committed(group string) ([]kafka.OffsetFetchPartition, error) {
	r, err := admin.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group})
	if err == nil {
		err = r.Error
	}
	if err != nil {
		return nil, err
	}
	return r.Topics[group], nil
}

func groupOfTwo(group string, b kafka.GroupBalancer) (any, error) {
	if err := create(group, partitions); err != nil {
		return nil, err
	}
	w := writer(group)
	w.BatchSize = 1
	defer w.Close()
	out := map[string]any{}
	between := func() error {
		var d kafka.DescribeGroupsResponseGroup
		if err := until("the group is stable", func() (ok bool, err error) {
			d, err = describe(group)
			return d.GroupState == "Stable", err
		}); err != nil {
			return err
		}
		var members []string
		for _, m := range d.Members {
			name, _, _ := strings.Cut(m.ClientID, "@")
			members = append(members, fmt.Sprint(name, " ", m.ClientHost, " ", len(m.MemberAssignments.Topics[0].Partitions)))
		}
		sort.Strings(members)
		out["described"] = members
		out["delete while in use"] = code(deleteGroup(group))
		return nil
	}
	sent, l, err := ofTwo(
		func(name string, l *ledger) (member, error) { return join(group, name, l, b) },
		func(partition int32, val []byte) error {
			return w.WriteMessages(ctx, kafka.Message{WriterData: int(partition), Value: val})
		}, between)
	if err != nil {
		return nil, err
	}
	_, out["read twice"] = l.missing(sent)
	at, err := committed(group)
	if err != nil {
		return nil, err
	}
	sum := 0
	for _, p := range at {
		sum += int(p.CommittedOffset)
	}
	if err := same("sum of committed offsets", sum, sent); err != nil {
		return nil, err
	}
	d, err := describe(group)
	out["state at the end"] = d.GroupState
	return out, err
}

// resume reads with a group's Reader, commits in the middle, leaves, and finds the next record first.
func resume(group string) (any, error) {
	if err := create(group, 2); err != nil {
		return nil, err
	}
	var messages []kafka.Message
	for i := range 40 {
		messages = append(messages, kafka.Message{WriterData: i % 2, Value: fmt.Append(nil, "record ", i/2)})
	}
	if err := send(group, 0, kafka.RequireAll, messages...); err != nil {
		return nil, err
	}
	look := func(commit bool) (map[int]string, error) {
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, GroupID: group, Topic: group, MinBytes: 1, MaxBytes: 1e6,
			MaxWait: 100 * time.Millisecond, StartOffset: kafka.FirstOffset})
		defer r.Close()
		got := map[int]string{}
		for done := !commit; len(got) < 2 || !done; {
			m, err := r.FetchMessage(ctx)
			if err != nil {
				return nil, err
			}
			if got[m.Partition] == "" {
				got[m.Partition] = fmt.Sprintf("%d %s", m.Offset, m.Value)
			}
			if commit && m.Partition == 0 && m.Offset == 6 {
				done = true
				if err := r.CommitMessages(ctx, m); err != nil {
					return nil, err
				}
			}
		}
		return got, nil
	}
	before, err := look(true)
	if err != nil {
		return nil, err
	}
	at, err := words(group)
	if err != nil {
		return nil, err
	}
	after, err := look(false)
	return map[string]any{"first": before, "committed": at, "first then": after}, err
}

// words are the group's offsets with what stands beside them.
func words(group string) ([]string, error) {
	at, err := committed(group)
	list := []string{}
	for _, p := range at {
		list = append(list, fmt.Sprintf("%d: %d %q", p.Partition, p.CommittedOffset, p.Metadata))
	}
	sort.Strings(list)
	return list, err
}

func alter(group string) (any, error) {
	out := map[string]any{}
	r, err := admin.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{
		group: {{Partition: 0, Offset: 3}, {Partition: 1, Offset: 5, Metadata: "five"}}}})
	if err != nil {
		return nil, err
	}
	for _, p := range r.Topics[group] {
		if p.Error != nil {
			return nil, p.Error
		}
	}
	if out["altered"], err = words(group); err != nil {
		return nil, err
	}
	d, err := admin.OffsetDelete(ctx, &kafka.OffsetDeleteRequest{GroupID: group, Topics: map[string][]int{group: {0}}})
	if err == nil {
		err = errors.Join(d.Error, d.Topics[group][0].Error)
	}
	if err != nil {
		return nil, err
	}
	out["deleted"], err = words(group)
	return out, err
}

func listGroups(prefix string) (any, error) {
	r, err := admin.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err == nil {
		err = r.Error
	}
	if err != nil {
		return nil, err
	}
	words := []string{}
	for _, g := range r.Groups {
		if name, ok := strings.CutPrefix(g.GroupID, prefix); ok {
			words = append(words, name+" "+g.ProtocolType)
		}
	}
	sort.Strings(words)
	return words, nil
}

func deleteGroup(group string) error {
	r, err := admin.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err == nil {
		err = r.Errors[group]
	}
	return err
}

func remove(group string) (any, error) {
	if err := deleteGroup(group); err != nil {
		return nil, err
	}
	d, err := describe(group)
	return map[string]string{"state": d.GroupState, "again": code(deleteGroup(group))}, err
}
