package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func groups(group string) {
	step("group of two, range", func() (any, error) { return groupOfTwo(group+"range", kgo.RangeBalancer()) })
	step("group of two, round robin", func() (any, error) { return groupOfTwo(group+"roundrobin", kgo.RoundRobinBalancer()) })
	step("group of two, sticky", func() (any, error) { return groupOfTwo(group+"sticky", kgo.StickyBalancer()) })
	step("group of two, cooperative", func() (any, error) { return groupOfTwo(group+"cooperative", kgo.CooperativeStickyBalancer()) })
	step("group of a regular expression", func() (any, error) { return regex(group + "regex") })
	step("commit and resume", func() (any, error) { return resume(group + "resume") })
	step("alter and delete offsets", func() (any, error) { return alter(group + "resume") })
	step("static member", func() (any, error) { return static(group + "static") })
	step("list groups", func() (any, error) { return list(group) })
	step("delete group", func() (any, error) { return remove(group + "resume") })
}

// consumer is a member that reads on a goroutine of its own and commits what it read before it gives a partition up.
type consumer struct {
	name string
	cl   *kgo.Client
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func join(group, name string, l *ledger, opts ...kgo.Opt) (*consumer, error) {
	c := &consumer{name: name, done: make(chan struct{})}
	numbers := func(m map[string][]int32) []int32 { return m[group] }
	cl, err := client(append([]kgo.Opt{
		kgo.ClientID(name), kgo.ConsumerGroup(group), kgo.ConsumeTopics(group), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(10 * time.Second), kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { l.assigned(name, numbers(m)) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, cl *kgo.Client, m map[string][]int32) {
			if err := cl.CommitUncommittedOffsets(ctx); err != nil {
				c.err = fmt.Errorf("commit before partitions are given up: %w", err)
			}
			l.revoked(name, numbers(m))
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { l.revoked(name, numbers(m)) }),
	}, opts...)...)
	if err != nil {
		return nil, err
	}
	c.cl = cl
	var polling context.Context
	polling, c.stop = context.WithCancel(ctx)
	go func() {
		defer close(c.done)
		for polling.Err() == nil {
			f := cl.PollFetches(polling)
			for _, e := range f.Errors() {
				if !errors.Is(e.Err, context.Canceled) && c.err == nil {
					c.err = e.Err
				}
			}
			f.EachRecord(func(r *kgo.Record) { l.read(name, r.Partition, r.Value) })
			cl.AllowRebalance()
			if c.err != nil {
				return
			}
		}
	}()
	return c, nil
}

func (c *consumer) end() error {
	c.stop()
	<-c.done
	c.cl.CloseAllowingRebalance()
	return c.err
}

func (c *consumer) failed() error { return c.err }

func describe(group string) (kadm.DescribedGroup, error) {
	d, err := admin.DescribeGroups(ctx, group)
	if err == nil {
		err = d[group].Err
	}
	return d[group], err
}

func groupOfTwo(group string, b kgo.GroupBalancer) (any, error) {
	if err := create(group, partitions); err != nil {
		return nil, err
	}
	p, err := client(kgo.DefaultProduceTopic(group), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	defer p.Close()
	out := map[string]any{}
	between := func() error {
		var d kadm.DescribedGroup
		if err := until("the group is stable", func() (ok bool, err error) {
			d, err = describe(group)
			return d.State == "Stable", err
		}); err != nil {
			return err
		}
		var members []string
		for _, m := range d.Members {
			a, _ := m.Assigned.AsConsumer()
			members = append(members, fmt.Sprint(m.ClientID, " ", m.ClientHost, " ", len(a.Topics[0].Partitions)))
		}
		sort.Strings(members)
		out["described"] = append([]string{d.ProtocolType, d.Protocol}, members...)
		out["delete while in use"] = code(deleteGroup(group))
		return nil
	}
	sent, l, err := ofTwo(
		func(name string, l *ledger) (member, error) { return join(group, name, l, kgo.Balancers(b)) },
		func(partition int32, val []byte) error {
			return p.ProduceSync(ctx, &kgo.Record{Partition: partition, Value: val}).FirstErr()
		}, between)
	if err != nil {
		return nil, err
	}
	_, twice := l.missing(sent)
	out["read twice"] = twice
	at, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return nil, err
	}
	sum := 0
	at.Each(func(o kadm.OffsetResponse) { sum += int(o.At) })
	if err := same("sum of committed offsets", sum, sent); err != nil {
		return nil, err
	}
	lags, err := admin.Lag(ctx, group)
	if err != nil {
		return nil, err
	}
	out["lag"] = lags[group].Lag.Total()
	d, err := describe(group)
	out["state at the end"] = d.State
	return out, err
}

// regex subscribes to topics by a pattern: one that comes later is consumed too.
func regex(group string) (any, error) {
	for _, s := range []string{"-a", "-b"} {
		if err := create(group+s, 1); err != nil {
			return nil, err
		}
		if err := send(group+s, []*kgo.Record{{Value: []byte(s)}}); err != nil {
			return nil, err
		}
	}
	c, err := client(kgo.ConsumerGroup(group), kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+group+"-[a-c]$"), kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(100*time.Millisecond), kgo.HeartbeatInterval(300*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var got []string
	for len(got) < 3 {
		f := c.PollFetches(ctx)
		if err := f.Err(); err != nil {
			return nil, err
		}
		f.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
		if len(got) == 2 {
			if err := create(group+"-c", 1); err != nil {
				return nil, err
			}
			if err := send(group+"-c", []*kgo.Record{{Value: []byte("-c")}}); err != nil {
				return nil, err
			}
		}
	}
	sort.Strings(got)
	return got, nil
}

// committed is a group's offsets.
func committed(group string) ([]string, error) {
	r, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return nil, err
	}
	words := []string{}
	for _, o := range r.Sorted() {
		words = append(words, fmt.Sprintf("%d: %d epoch %d", o.Partition, o.At, o.LeaderEpoch))
	}
	return words, nil
}

// resume reads, commits in the middle, leaves, and finds the next record first.
func resume(group string) (any, error) {
	if err := create(group, 2); err != nil {
		return nil, err
	}
	var records []*kgo.Record
	for i := range 40 {
		records = append(records, &kgo.Record{Partition: int32(i % 2), Value: fmt.Append(nil, "record ", i/2)})
	}
	if err := send(group, records); err != nil {
		return nil, err
	}
	first := func(commit bool) (map[int32]string, error) {
		c, err := client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(group), kgo.DisableAutoCommit())
		if err != nil {
			return nil, err
		}
		defer c.Close()
		firsts := map[int32]string{}
		var seventh *kgo.Record
		for len(firsts) < 2 || commit && seventh == nil {
			f := c.PollFetches(ctx)
			if err := f.Err(); err != nil {
				return nil, err
			}
			f.EachRecord(func(r *kgo.Record) {
				if firsts[r.Partition] == "" {
					firsts[r.Partition] = fmt.Sprintf("%d %s", r.Offset, r.Value)
				}
				if r.Partition == 0 && r.Offset == 6 {
					seventh = r
				}
			})
		}
		if !commit {
			return firsts, nil
		}
		return firsts, c.CommitRecords(ctx, seventh)
	}
	before, err := first(true)
	if err != nil {
		return nil, err
	}
	at, err := committed(group)
	if err != nil {
		return nil, err
	}
	after, err := first(false)
	return map[string]any{"first": before, "committed": at, "first then": after}, err
}

func alter(group string) (any, error) {
	out := map[string]any{}
	var o kadm.Offsets
	o.Add(kadm.Offset{Topic: group, Partition: 0, At: 3, LeaderEpoch: -1})
	o.Add(kadm.Offset{Topic: group, Partition: 1, At: 5, LeaderEpoch: 0, Metadata: "five"})
	r, err := admin.CommitOffsets(ctx, group, o)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		return nil, err
	}
	if out["altered"], err = committed(group); err != nil {
		return nil, err
	}
	var s kadm.TopicsSet
	s.Add(group, 0)
	d, err := admin.DeleteOffsets(ctx, group, s)
	if err == nil {
		err = d.Error()
	}
	if err != nil {
		return nil, err
	}
	out["deleted"], err = committed(group)
	return out, err
}

// static: a member with an instance id that comes back has its partitions again, without a rebalance; its twin puts it out.
func static(group string) (any, error) {
	if err := create(group, partitions); err != nil {
		return nil, err
	}
	l := newLedger()
	member := func(name, instance string, l *ledger) (*consumer, error) {
		return join(group, name, l, kgo.InstanceID(instance), kgo.Balancers(kgo.RangeBalancer()))
	}
	other, err := member("other", "other", l)
	if err != nil {
		return nil, err
	}
	one, err := member("first", "one", l)
	if err != nil {
		return nil, err
	}
	owned := func(name string, l *ledger, n int) error {
		return until(fmt.Sprint(name, " owns ", n), func() (bool, error) { return l.owned(name) == n, errors.Join(other.failed(), one.failed()) })
	}
	if err := errors.Join(owned("first", l, 2), owned("other", l, 2)); err != nil {
		return nil, err
	}
	_, generation := other.cl.GroupMetadata()
	if err := one.end(); err != nil {
		return nil, err
	}
	again, err := member("again", "one", l)
	if err != nil {
		return nil, err
	}
	if err := owned("again", l, 2); err != nil {
		return nil, err
	}
	_, now := other.cl.GroupMetadata()
	if err := same("generation after the return", now, generation); err != nil {
		return nil, err
	}
	twin, err := member("twin", "one", newLedger())
	if err != nil {
		return nil, err
	}
	<-again.done
	var fenced *kerr.Error
	if !errors.As(again.failed(), &fenced) {
		return nil, fmt.Errorf("put out by %v", again.failed())
	}
	again.cl.CloseAllowingRebalance()
	out := map[string]any{"put out by": code(fenced)}
	if err := errors.Join(twin.end(), other.end()); err != nil {
		return nil, err
	}
	d, err := describe(group)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, m := range d.Members {
		left = append(left, *m.InstanceID)
	}
	sort.Strings(left)
	out["members left"] = left
	gone, err := admin.LeaveGroup(ctx, kadm.LeaveGroup(group).InstanceIDs("one", "other"))
	if err == nil {
		err = gone.Error()
	}
	if err != nil {
		return nil, err
	}
	d, err = describe(group)
	out["state at the end"] = d.State
	return out, err
}

func list(prefix string) (any, error) {
	r, err := admin.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	words := []string{}
	for _, g := range r.Sorted() {
		if len(g.Group) > len(prefix) && g.Group[:len(prefix)] == prefix {
			words = append(words, fmt.Sprint(g.Group[len(prefix):], " ", g.ProtocolType, " ", g.State))
		}
	}
	return words, nil
}

func remove(group string) (any, error) {
	if err := deleteGroup(group); err != nil {
		return nil, err
	}
	d, err := describe(group)
	return map[string]string{"state": d.State, "again": code(deleteGroup(group))}, err
}

func deleteGroup(group string) error {
	r, err := admin.DeleteGroup(ctx, group)
	if err == nil {
		err = r.Err
	}
	return err
}
