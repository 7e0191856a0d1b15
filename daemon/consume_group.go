package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// membership is how a consumer takes part in a group.
type membership struct {
	name      string
	instance  string
	assignors []string
	interval  time.Duration
	session   time.Duration
	verbose   bool
}

// assignorsByName are the ways to divide partitions; the names are the protocol's.
var assignorsByName = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// groupFlags mean nothing without --group.
var groupFlags = []string{"instance-id", "assignor", "commit-interval", "session-timeout", "verbose"}

func (m *membership) flags(cmd *cobra.Command, c *client) {
	f := cmd.Flags()
	f.StringVarP(&m.name, "group", "g", "",
		"read as a member of this `group`: its partitions are divided, what was printed is committed, --offset counts where nothing is committed")
	f.StringVar(&m.instance, "instance-id", "", "be this static member of the group (group.instance.id)")
	f.StringSliceVar(&m.assignors, "assignor", []string{"range", "cooperative-sticky"},
		"how the group may divide partitions, the best first: range, roundrobin, sticky, cooperative-sticky")
	f.DurationVar(&m.interval, "commit-interval", 5*time.Second, "how often what was printed is committed")
	f.DurationVar(&m.session, "session-timeout", 45*time.Second, "how long the group waits for a member that is silent")
	f.BoolVarP(&m.verbose, "verbose", "v", false, "say on standard error which partitions the group gives and takes")
	completeFlag(cmd, "assignor", "range", "roundrobin", "sticky", "cooperative-sticky")
	if err := cmd.RegisterFlagCompletionFunc("group", c.completeGroups); err != nil {
		panic("daemon: " + err.Error())
	}
}

// unused refuses flags that only a group gives a meaning.
func (m *membership) unused(cmd *cobra.Command) error {
	for _, name := range groupFlags {
		if cmd.Flags().Changed(name) {
			return wrong("--%s needs --group", name)
		}
	}
	return nil
}

// member is a consumer in a group.
type member struct {
	*consuming
	topic string
	says  io.Writer
	cl    *kgo.Client
	adm   *kadm.Client
	p     *printer

	trying string // what was said last of an error that may pass

	mu     sync.Mutex // the callbacks of the group come on goroutines of the client's
	goals  map[int32]*goal
	mine   map[int32]bool
	joined bool
}

// sessionLeast is what a member can keep up with; what the broker allows is group.min.session.timeout.ms.
const sessionLeast = time.Second

// join reads the topic as a member of the group until it is told to stop, has read enough, or is at the end.
func (c *consuming) join(cmd *cobra.Command, topic string, begin offsetSpec, p *printer) error {
	if len(c.partitions) > 0 {
		return wrong("--partition and --group exclude each other: the group divides the partitions")
	}
	balancers := make([]kgo.GroupBalancer, 0, len(c.group.assignors))
	for _, name := range c.group.assignors {
		b := assignorsByName[name]
		if b == nil {
			return wrong("--assignor %s is not valid; allowed: range, roundrobin, sticky, cooperative-sticky", name)
		}
		balancers = append(balancers, b)
	}
	if c.group.session < sessionLeast {
		return wrong("--session-timeout %s is not valid; allowed: at least %s", c.group.session, sessionLeast)
	}
	m := &member{consuming: c, topic: topic, says: cmd.ErrOrStderr(), p: p, mine: map[int32]bool{}}
	adm, err := c.admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	m.adm = adm
	if m.goals, err = c.goals(cmd.Context(), adm, topic, begin); err != nil {
		return err
	}
	opts := append(c.fetching(), kgo.ConsumerGroup(c.group.name), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(begin.start()),
		kgo.Balancers(balancers...), kgo.BlockRebalanceOnPoll(), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(c.group.interval),
		kgo.SessionTimeout(c.group.session), kgo.HeartbeatInterval(min(3*time.Second, c.group.session/3)),
		kgo.OnPartitionsAssigned(m.assigned), kgo.OnPartitionsRevoked(m.revoked), kgo.OnPartitionsLost(m.lost))
	if c.group.instance != "" {
		opts = append(opts, kgo.InstanceID(c.group.instance))
	}
	lenient.Store(true) // the group would miss us until the session ends
	if m.cl, err = c.open(opts...); err != nil {
		return err
	}
	err = m.loop(cmd.Context())
	return errors.Join(err, m.leave(cmd.Context()))
}

// start is where a member begins that finds nothing committed.
func (o offsetSpec) start() kgo.Offset {
	switch {
	case o.time >= 0:
		return kgo.NewOffset().AfterMilli(o.time)
	case o.back >= 0:
		return kgo.NewOffset().AtEnd().Relative(-o.back)
	case o.at > 0:
		return kgo.NewOffset().At(o.at)
	}
	return kgo.NewOffset().AtStart()
}

// endCheck is how often a member that is to stop at the end looks whether it is there, when nothing comes.
const endCheck = 100 * time.Millisecond

func (m *member) loop(ctx context.Context) error {
	for printed := int64(0); ; {
		most := 0
		if m.most > 0 {
			most = int(m.most - printed)
		}
		wait, cancel := ctx, context.CancelFunc(func() {})
		if m.exit {
			wait, cancel = context.WithTimeout(ctx, endCheck)
		}
		fetches := m.cl.PollRecords(wait, most)
		cancel()
		if ctx.Err() != nil {
			return m.p.out.Flush()
		}
		n, err := m.print(fetches)
		if err != nil {
			return err
		}
		if printed += n; m.most > 0 && printed >= m.most {
			return nil
		}
		if m.exit && m.done() {
			m.mu.Lock()
			defer m.mu.Unlock()
			sayOpen(m.says, m.topic, m.goals, func(p int32) bool { return m.mine[p] })
			return nil
		}
		if err := m.failed(ctx, fetches); err != nil {
			return err
		}
		m.cl.AllowRebalance()
	}
}

// print prints what was fetched and then marks it to be committed.
func (m *member) print(fetches kgo.Fetches) (printed int64, err error) {
	var last []*kgo.Record
	for _, f := range fetches {
		for _, t := range f.Topics {
			for _, p := range t.Partitions {
				for _, r := range p.Records {
					if r.Attrs.IsControl() {
						continue
					}
					if err := m.p.print(r); err != nil {
						return printed, err
					}
					printed++
				}
				if n := len(p.Records); n > 0 {
					last = append(last, p.Records[n-1])
				}
			}
		}
	}
	if err := m.p.out.Flush(); err != nil {
		return printed, err
	}
	m.mu.Lock()
	for _, r := range last {
		if g := m.goals[r.Partition]; g != nil {
			g.next = r.Offset + 1
		}
	}
	m.mu.Unlock()
	m.cl.MarkCommitRecords(last...)
	return printed, nil
}

// failed is what ends the reading; what passes by itself is said and tried again by the client.
func (m *member) failed(ctx context.Context, fetches kgo.Fetches) error {
	for _, e := range fetches.Errors() {
		var group *kgo.ErrGroupSession
		switch {
		case errors.Is(e.Err, context.DeadlineExceeded):
		case !errors.As(e.Err, &group):
			m.mu.Lock()
			at := int64(0)
			if g := m.goals[e.Partition]; g != nil {
				at = g.next
			}
			m.mu.Unlock()
			return m.stopped(ctx, m.cl, m.topic, e.Partition, at, e.Err)
		case kerr.IsRetriable(e.Err) || !isKafka(e.Err):
			m.sayTrying(group.Err)
		default:
			_ = m.p.out.Flush()
			return explain("group "+m.group.name, group.Err, "")
		}
	}
	return nil
}

// sayTrying says what is tried again, once while it stays the same.
func (m *member) sayTrying(err error) {
	text := said(err)
	var known *kerr.Error
	if errors.As(err, &known) {
		text = words(known, "")
	}
	if text != m.trying {
		m.trying = text
		fmt.Fprintf(m.says, "kring: group %s: %s; trying again\n", m.group.name, text)
	}
}

func isKafka(err error) bool {
	var k *kerr.Error
	return errors.As(err, &k)
}

// done says whether every partition that is ours is read up to where it ended at the start.
func (m *member) done() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.joined {
		return false
	}
	for p := range m.mine {
		if g := m.goals[p]; g != nil && g.next < g.end {
			return false
		}
	}
	return true
}

// leave commits what was printed and leaves the group, also after a signal.
func (m *member) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.timeout)
	defer cancel()
	err := m.cl.CommitMarkedOffsets(ctx)
	if err != nil {
		err = explain("group "+m.group.name+": committing", err, "")
	}
	m.cl.AllowRebalance()
	if m.group.instance == "" {
		err = errors.Join(err, m.cl.LeaveGroupContext(ctx))
	}
	m.cl.CloseAllowingRebalance()
	return err
}

// assigned hears of new partitions: where the group has committed an offset, they are read from there.
func (m *member) assigned(ctx context.Context, cl *kgo.Client, given map[string][]int32) {
	m.tell(cl, "assigned", given)
	committed, err := m.adm.FetchOffsetsForTopics(ctx, m.group.name, m.topic)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joined = true
	for _, p := range given[m.topic] {
		m.mine[p] = true
		if o, ok := committed.Lookup(m.topic, p); err == nil && ok && o.Err == nil && o.At >= 0 && m.goals[p] != nil {
			m.goals[p].next = o.At
		}
	}
}

// revoked hears of partitions that others are to get: what was printed of them is committed before.
func (m *member) revoked(ctx context.Context, cl *kgo.Client, taken map[string][]int32) {
	if err := cl.CommitMarkedOffsets(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(m.says, "kring: group %s: committing: %s\n", m.group.name, oneLine(err))
	}
	m.tell(cl, "revoked", taken)
	m.forget(taken)
}

// lost hears of partitions that others have already.
func (m *member) lost(_ context.Context, cl *kgo.Client, taken map[string][]int32) {
	m.tell(cl, "lost", taken)
	m.forget(taken)
}

func (m *member) forget(taken map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range taken[m.topic] {
		delete(m.mine, p)
	}
}

// tell says what the group did with partitions.
func (m *member) tell(cl *kgo.Client, what string, partitions map[string][]int32) {
	if !m.group.verbose || len(partitions[m.topic]) == 0 && what != "assigned" {
		return
	}
	id, generation := cl.GroupMetadata()
	list := slices.Clone(partitions[m.topic])
	slices.Sort(list)
	named := "nothing"
	if len(list) > 0 {
		named = m.topic + " " + brokers(list)
	}
	fmt.Fprintf(m.says, "%s %s, generation %d, member %s\n", what, named, generation, id)
}
