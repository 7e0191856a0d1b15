package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

func groups(group string) {
	step("group of two, range", func() (any, error) { return groupOfTwo(group+"range", sarama.NewBalanceStrategyRange()) })
	step("group of two, round robin", func() (any, error) { return groupOfTwo(group+"roundrobin", sarama.NewBalanceStrategyRoundRobin()) })
	step("group of two, sticky", func() (any, error) { return groupOfTwo(group+"sticky", sarama.NewBalanceStrategySticky()) })
	step("group of two, cooperative", func() (any, error) {
		return groupOfTwo(group+"cooperative", sarama.NewBalanceStrategyCooperativeSticky())
	})
	step("commit and resume", func() (any, error) { return resume(group + "resume") })
	step("alter and delete offsets", func() (any, error) { return alter(group + "resume") })
	step("static member", func() (any, error) { return static(group + "static") })
	step("list groups", func() (any, error) { return list(group) })
	step("delete group", func() (any, error) { return remove(group + "resume") })
}

// consumer is a member: it owns a partition as long as ConsumeClaim runs for it, and commits what it read before that ends.
type consumer struct {
	name   string
	ledger *ledger
	group  sarama.ConsumerGroup
	leave  context.CancelFunc
	done   chan struct{}

	mu         sync.Mutex
	err        error
	generation int32
}

func join(group, name string, l *ledger, change func(*sarama.Config)) (*consumer, error) {
	cfg := config()
	cfg.ClientID = name
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Enable = false
	cfg.Consumer.Return.Errors = true
	cfg.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	change(cfg)
	g, err := sarama.NewConsumerGroup([]string{bootstrap}, group, cfg)
	if err != nil {
		return nil, err
	}
	c := &consumer{name: name, ledger: l, group: g, done: make(chan struct{})}
	var ctx context.Context
	ctx, c.leave = context.WithCancel(context.Background())
	go func() {
		for err := range g.Errors() {
			c.fail(err)
		}
	}()
	go func() {
		defer close(c.done)
		for ctx.Err() == nil && c.failed() == nil {
			if err := g.Consume(ctx, []string{group}, c); err != nil && !errors.Is(err, context.Canceled) {
				c.fail(err)
			}
		}
	}()
	return c, nil
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

func (c *consumer) Setup(s sarama.ConsumerGroupSession) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation = s.GenerationID()
	return nil
}

func (c *consumer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c *consumer) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	owned := []int32{claim.Partition()}
	c.ledger.assigned(c.name, owned)
	defer c.ledger.revoked(c.name, owned)
	defer s.Commit()
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			c.ledger.read(c.name, m.Partition, m.Value)
			s.MarkMessage(m, "")
		case <-s.Context().Done():
			return nil
		}
	}
}

func describe(group string) (*sarama.GroupDescription, error) {
	d, err := admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return nil, err
	}
	if d[0].Err != sarama.ErrNoError {
		return nil, d[0].Err
	}
	return d[0], nil
}

// committed is the group's offsets.
func committed(group string) (map[int32]*sarama.OffsetFetchResponseBlock, error) {
	r, err := admin.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		return nil, err
	}
	return r.Blocks[group], nil // each topic here is named as its group
}

func groupOfTwo(group string, s sarama.BalanceStrategy) (any, error) {
	if err := create(group, partitions); err != nil {
		return nil, err
	}
	p, err := sarama.NewSyncProducer([]string{bootstrap}, config())
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out := map[string]any{}
	between := func() error {
		var d *sarama.GroupDescription
		if err := until("the group is stable", func() (ok bool, err error) {
			d, err = describe(group)
			return err == nil && d.State == "Stable", err
		}); err != nil {
			return err
		}
		var members []string
		for _, m := range d.Members {
			a, err := m.GetMemberAssignment()
			if err != nil {
				return err
			}
			members = append(members, fmt.Sprint(m.ClientId, " ", m.ClientHost, " ", len(a.Topics[group])))
		}
		sort.Strings(members)
		out["described"] = append([]string{d.ProtocolType, d.Protocol}, members...)
		out["delete while in use"] = code(admin.DeleteConsumerGroup(group))
		return nil
	}
	sent, l, err := ofTwo(
		func(name string, l *ledger) (member, error) {
			return join(group, name, l, func(c *sarama.Config) { c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{s} })
		},
		func(partition int32, val []byte) error {
			_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: group, Partition: partition, Value: sarama.ByteEncoder(val)})
			return err
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
	for _, b := range at {
		sum += int(b.Offset)
	}
	if err := same("sum of committed offsets", sum, sent); err != nil {
		return nil, err
	}
	d, err := describe(group)
	if err != nil {
		return nil, err
	}
	out["state at the end"] = d.State
	return out, nil
}

// first is a member that wants the first record of both partitions, and may commit offset 7 of one.
type first struct {
	mu     sync.Mutex
	got    map[int32]string
	commit bool
	leave  context.CancelFunc
}

func (f *first) Setup(sarama.ConsumerGroupSession) error { return nil }

func (f *first) Cleanup(s sarama.ConsumerGroupSession) error {
	if f.commit {
		s.MarkOffset(topicOf(s), 0, 7, "seven")
		s.Commit()
	}
	return nil
}

func topicOf(s sarama.ConsumerGroupSession) string {
	for t := range s.Claims() {
		return t
	}
	return ""
}

func (f *first) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	m, ok := <-claim.Messages()
	if !ok {
		return nil
	}
	f.mu.Lock()
	f.got[m.Partition] = fmt.Sprintf("%d %s", m.Offset, m.Value)
	if len(f.got) == 2 {
		f.leave()
	}
	f.mu.Unlock()
	for range claim.Messages() {
	}
	return nil
}

// resume reads, commits in the middle, leaves, and finds the next record first.
func resume(group string) (any, error) {
	if err := create(group, 2); err != nil {
		return nil, err
	}
	var messages []*sarama.ProducerMessage
	for i := range 40 {
		messages = append(messages, &sarama.ProducerMessage{Topic: group, Partition: int32(i % 2), Value: sarama.StringEncoder(fmt.Sprint("record ", i/2))})
	}
	if err := send(config(), messages); err != nil {
		return nil, err
	}
	look := func(commit bool) (map[int32]string, error) {
		cfg := config()
		cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
		cfg.Consumer.Offsets.AutoCommit.Enable = false
		g, err := sarama.NewConsumerGroup([]string{bootstrap}, group, cfg)
		if err != nil {
			return nil, err
		}
		defer g.Close()
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		f := &first{got: map[int32]string{}, commit: commit, leave: cancel}
		if err := g.Consume(ctx, []string{group}, f); err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
		return f.got, same("partitions", len(f.got), 2)
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
	for p, b := range at {
		list = append(list, fmt.Sprintf("%d: %d epoch %d %q", p, b.Offset, b.LeaderEpoch, b.Metadata))
	}
	sort.Strings(list)
	return list, err
}

func alter(group string) (any, error) {
	out := map[string]any{}
	r, err := admin.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{group: {
		0: {Offset: 3, LeaderEpoch: -1}, 1: {Offset: 5, LeaderEpoch: 0, Metadata: "five"}}}, nil)
	if err != nil {
		return nil, err
	}
	for p, k := range r.Errors[group] {
		if k != sarama.ErrNoError {
			return nil, fmt.Errorf("partition %d: %w", p, k)
		}
	}
	if out["altered"], err = words(group); err != nil {
		return nil, err
	}
	if err := admin.DeleteConsumerGroupOffset(group, group, 0); err != nil {
		return nil, err
	}
	out["deleted"], err = words(group)
	return out, err
}

// static: a member with an instance id that comes back has its partitions again, without a rebalance; its twin puts it out.
func static(group string) (any, error) {
	if err := create(group, partitions); err != nil {
		return nil, err
	}
	l := newLedger()
	member := func(name, instance string, l *ledger) (*consumer, error) {
		return join(group, name, l, func(c *sarama.Config) { c.Consumer.Group.InstanceId = instance })
	}
	other, err := member("other", "other", l)
	if err != nil {
		return nil, err
	}
	one, err := member("first", "one", l)
	if err != nil {
		return nil, err
	}
	owned := func(name string, n int) error {
		return until(fmt.Sprint(name, " owns ", n), func() (bool, error) { return l.owned(name) == n, errors.Join(other.failed(), one.failed()) })
	}
	if err := errors.Join(owned("first", 2), owned("other", 2)); err != nil {
		return nil, err
	}
	if err := one.end(); err != nil {
		return nil, err
	}
	again, err := member("again", "one", l)
	if err != nil {
		return nil, err
	}
	if err := owned("again", 2); err != nil {
		return nil, err
	}
	if err := same("generation after the return", again.generation, other.generation); err != nil {
		return nil, err
	}
	twin, err := member("twin", "one", newLedger())
	if err != nil {
		return nil, err
	}
	<-again.done
	out := map[string]any{"put out by": code(again.failed())}
	_ = again.group.Close()
	if err := errors.Join(twin.end(), other.end()); err != nil {
		return nil, err
	}
	d, err := describe(group)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, m := range d.Members {
		left = append(left, *m.GroupInstanceId)
	}
	sort.Strings(left)
	out["members left"] = left
	r, err := admin.RemoveMemberFromConsumerGroup(group, []string{"one", "other"})
	if err == nil && r.Err != sarama.ErrNoError {
		err = r.Err
	}
	if err != nil {
		return nil, err
	}
	d, err = describe(group)
	if err != nil {
		return nil, err
	}
	out["state at the end"] = d.State
	return out, nil
}

func list(prefix string) (any, error) {
	r, err := admin.ListConsumerGroups()
	words := []string{}
	for g, kind := range r {
		if name, ok := strings.CutPrefix(g, prefix); ok {
			words = append(words, name+" "+kind)
		}
	}
	sort.Strings(words)
	return words, err
}

func remove(group string) (any, error) {
	if err := admin.DeleteConsumerGroup(group); err != nil {
		return nil, err
	}
	d, err := describe(group)
	if err != nil {
		return nil, err
	}
	return map[string]string{"state": d.State, "again": code(admin.DeleteConsumerGroup(group))}, nil
}
