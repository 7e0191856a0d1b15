package conformance

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	chaosPartitions = 6
	chaosSession    = 1500 * time.Millisecond
	chaosSettle     = 40 * time.Second
)

// chaosTime is how long members and broker are tormented, in all: CONFORMANCE_CHAOS=10m for longer. CONFORMANCE_SEED repeats a choice
// of torments, though not their timing.
func chaosTime(t *testing.T) (each time.Duration, seed int64) {
	all, seed := 36*time.Second, time.Now().UnixNano()
	if text := os.Getenv("CONFORMANCE_CHAOS"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		all = d
	}
	if text := os.Getenv("CONFORMANCE_SEED"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	return all / time.Duration(len(loops)), seed
}

// TestGroupsUnderTorment kills, freezes and adds members of an eager and of a cooperative group under load, and kills the broker. No
// partition ever has two owners in one generation, what is committed never goes back, who was left behind commits nothing, and in the
// end every record was processed and the groups are stable.
func TestGroupsUnderTorment(t *testing.T) {
	each, seed := chaosTime(t)
	everyLoops(t, func(t *testing.T, loops int) {
		t.Logf("CONFORMANCE_SEED=%d", seed)
		b := start(t, loops, "group.min.session.timeout.ms=1000", "group.initial.rebalance.delay.ms=200", "offsets.topic.num.partitions=4")
		b.create("load", chaosPartitions)
		random := rand.New(rand.NewSource(seed + int64(loops)))
		stop := produceSteadily(t, b, "load")
		groups := []*tormented{newTormented(t, b, "eager", false), newTormented(t, b, "cooperative", true)}
		poll := pollOffsets(t, b, groups)
		for _, g := range groups {
			for range 3 {
				g.add()
			}
			g.awaitCommits(50)
		}
		torment(t, b, random, groups, each)
		end := stop()
		for _, g := range groups {
			g.calm()
			g.settle(end)
		}
		poll.stop()
		for _, g := range groups {
			g.check(end, poll.seen[g.name])
		}
	})
}

// torment does one thing after the other to the groups and the broker until the time is over, each kind at least once.
func torment(t *testing.T, b *broker, random *rand.Rand, groups []*tormented, each time.Duration) {
	deadline := time.Now().Add(each)
	for round := 0; round == 0 || time.Now().Before(deadline); round++ {
		kinds := []string{"kill", "freeze", "broker", "add", "leave", "freeze", "kill", "add"}
		random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, kind := range kinds {
			if round > 0 && time.Now().After(deadline) {
				return
			}
			if kind == "broker" {
				b.stop(syscall.SIGKILL)
				b.run()
			} else {
				for _, g := range groups {
					g.do(kind, random)
				}
			}
			time.Sleep(time.Duration(200+random.Intn(800)) * time.Millisecond) // torments meet whatever phase the groups are in
		}
	}
}

// produceSteadily produces some 400 records a second until stop, which says where each partition ends.
func produceSteadily(t *testing.T, b *broker, topic string) (stop func() map[int32]int64) {
	t.Helper()
	cl := b.client(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.UnknownTopicRetries(-1),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.MetadataMinAge(20*time.Millisecond))
	var mu sync.Mutex
	ends := map[int32]int64{}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			for range 2 {
				cl.Produce(context.Background(), &kgo.Record{Partition: int32(n % chaosPartitions), Value: fmt.Append(nil, n)}, func(r *kgo.Record, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						ends[r.Partition] = max(ends[r.Partition], r.Offset+1)
					}
				})
			}
		}
	}()
	return func() map[int32]int64 {
		close(quit)
		<-done
		ctx, cancel := context.WithTimeout(context.Background(), chaosSettle)
		defer cancel()
		if err := cl.Flush(ctx); err != nil {
			t.Fatalf("the producer cannot finish: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		return ends
	}
}

// tormented is a group, its members, and what they have logged.
type tormented struct {
	t           *testing.T
	b           *broker
	name        string
	cooperative bool
	mu          sync.Mutex
	events      []memberEvent
	some        chan struct{}
	members     []*memberProcess
	n           int
	done        map[string]int
}

func newTormented(t *testing.T, b *broker, name string, cooperative bool) *tormented {
	return &tormented{t: t, b: b, name: name, cooperative: cooperative, some: make(chan struct{}, 1), done: map[string]int{}}
}

func (g *tormented) record(e memberEvent) {
	g.mu.Lock()
	g.events = append(g.events, e)
	g.mu.Unlock()
	select {
	case g.some <- struct{}{}:
	default:
	}
}

func (g *tormented) add() {
	g.n++
	o := memberOrder{Addr: g.b.addr, Group: g.name, Topic: "load", Name: fmt.Sprintf("%s-%d", g.name, g.n), Cooperative: g.cooperative, Session: chaosSession}
	g.members = append(g.members, startMember(g.t, o, g.record))
}

// awaitCommits waits until so many commits were taken.
func (g *tormented) awaitCommits(n int) {
	g.t.Helper()
	late := time.After(chaosSettle)
	for {
		g.mu.Lock()
		taken := 0
		for _, e := range g.events {
			if e.What == "commit" && e.Code == 0 {
				taken++
			}
		}
		g.mu.Unlock()
		if taken >= n {
			return
		}
		select {
		case <-g.some:
		case <-late:
			g.t.Fatalf("group %s: %d commits, %d wanted", g.name, taken, n)
		}
	}
}

// do does it to a member that is awake; two to five are left, one of them at least awake.
func (g *tormented) do(kind string, random *rand.Rand) {
	g.t.Helper()
	awake := slices.DeleteFunc(slices.Clone(g.members), func(m *memberProcess) bool { return time.Now().Before(m.asleep) })
	if kind == "add" || len(awake) < 2 || kind != "freeze" && len(g.members) < 3 {
		if len(g.members) < 5 {
			g.add()
			g.done["add"]++
		}
		return
	}
	m := awake[random.Intn(len(awake))]
	g.done[kind]++
	switch kind {
	case "kill":
		m.signal(syscall.SIGKILL)
		g.remove(m)
	case "leave":
		m.signal(syscall.SIGTERM)
		g.remove(m)
	case "freeze": // until its session has ended
		d := chaosSession + time.Duration(random.Intn(1500))*time.Millisecond
		m.signal(syscall.SIGSTOP)
		time.AfterFunc(d, func() { m.signal(syscall.SIGCONT) })
		m.asleep = time.Now().Add(d + chaosSession)
	}
}

func (g *tormented) remove(m *memberProcess) {
	g.members = slices.DeleteFunc(g.members, func(o *memberProcess) bool { return o == m })
}

// calm wakes everybody.
func (g *tormented) calm() {
	for _, m := range g.members {
		m.signal(syscall.SIGCONT)
	}
}

// settle waits until the group is stable with just the members that live, and has committed everything.
func (g *tormented) settle(end map[int32]int64) {
	g.t.Helper()
	c := g.b.dial()
	defer c.Close()
	begin := time.Now()
	for until := begin.Add(chaosSettle); ; time.Sleep(20 * time.Millisecond) {
		d := describe(g.t, c, g.name)
		got := map[int32]int64{}
		if o, err := fetchOffsets(c, g.name, "load", chaosPartitions); err == nil && o.ErrorCode == 0 {
			for _, p := range o.Topics[0].Partitions {
				got[p.Partition] = p.Offset
			}
		}
		if d.State == "Stable" && len(d.Members) == len(g.members) && maps.Equal(got, end) {
			g.t.Logf("group %s: %v; settled in %v with %d members", g.name, g.done, time.Since(begin).Round(time.Millisecond), len(g.members))
			return
		}
		if time.Now().After(until) {
			g.t.Fatalf("group %s does not settle: %s, %d members of %d, committed %v of %v", g.name, d.State, len(d.Members), len(g.members), got, end)
		}
	}
}

// polled are the offsets one OffsetFetch told of, and when it was sent.
type polled struct {
	sent    int64
	offsets map[int32]int64
}

type poller struct {
	seen map[string][]polled
	quit chan struct{}
	all  sync.WaitGroup
}

// pollOffsets asks for the groups' offsets all the time, whatever happens to the broker.
func pollOffsets(t *testing.T, b *broker, groups []*tormented) *poller {
	p := &poller{seen: map[string][]polled{}, quit: make(chan struct{})}
	var mu sync.Mutex
	for _, g := range groups {
		p.all.Go(func() {
			var c net.Conn
			var last map[int32]int64
			for {
				select {
				case <-p.quit:
					return
				case <-time.After(5 * time.Millisecond):
				}
				var err error
				if c == nil {
					if c, err = net.DialTimeout("tcp", b.addr, time.Second); err != nil {
						continue
					}
				}
				sent := time.Now().UnixNano()
				o, err := fetchOffsets(c, g.name, "load", chaosPartitions)
				if err != nil {
					c.Close()
					c = nil
					continue
				}
				if o.ErrorCode != 0 {
					if !slices.Contains([]int16{codeLoading, codeUnavailable, codeNotCoordinator}, o.ErrorCode) {
						t.Errorf("OffsetFetch of %s: %s", g.name, code(o.ErrorCode))
					}
					continue
				}
				now := map[int32]int64{}
				for _, part := range o.Topics[0].Partitions {
					now[part.Partition] = part.Offset
				}
				if !maps.Equal(now, last) {
					mu.Lock()
					p.seen[g.name] = append(p.seen[g.name], polled{sent, now})
					mu.Unlock()
				}
				last = now
			}
		})
	}
	return p
}

func (p *poller) stop() { close(p.quit); p.all.Wait() }

// check holds what the members logged, and what was polled, against what a group promises.
func (g *tormented) check(end map[int32]int64, seen []polled) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortStableFunc(g.events, func(a, b memberEvent) int { return int(a.At - b.At) })
	g.checkOwners()
	g.checkCommits(seen)
	for p := range int32(chaosPartitions) {
		g.checkRead(p, end[p])
	}
}

// checkOwners: in one generation a partition is assigned to one member, and one member's commits are taken.
func (g *tormented) checkOwners() {
	g.t.Helper()
	type place struct{ generation, partition int32 }
	owner := map[place]memberEvent{}
	claims := 0
	claim := func(e memberEvent, p int32) {
		at := place{e.Generation, p}
		if was, there := owner[at]; there && was.ID != e.ID {
			g.t.Errorf("group %s: partition %d has two owners in generation %d: %s (%s) and %s (%s)", g.name, p, e.Generation, was.Name, was.What, e.Name, e.What)
		}
		owner[at] = e
		claims++
	}
	for _, e := range g.events {
		switch {
		case e.What == "assigned":
			for _, p := range e.Partitions {
				claim(e, p)
			}
		case e.What == "commit" && e.Code == 0:
			claim(e, e.Partition)
		}
	}
	if claims < 100 {
		g.t.Errorf("group %s: only %d assignments and commits: nothing was tried", g.name, claims)
	}
}

// checkCommits: commits that were taken go forward, and so does what OffsetFetch tells, never behind a commit that was answered before
// it was asked; a commit under a generation that is known to be over is refused.
func (g *tormented) checkCommits(seen []polled) {
	g.t.Helper()
	newest, taken, refused := int32(0), map[int32][]memberEvent{}, map[int16]int{}
	newestAt := map[int32]int64{} // generation: when it was first known to be there
	for _, e := range g.events {
		if e.What == "assigned" && e.Generation > newest {
			newest = e.Generation
			newestAt[newest] = e.At
		}
		if e.What != "commit" {
			continue
		}
		if e.Code != 0 {
			refused[e.Code]++
			continue
		}
		for generation, at := range newestAt {
			if generation > e.Generation && at < e.Sent {
				g.t.Errorf("group %s: a commit of %s under generation %d is taken when generation %d is there", g.name, e.Name, e.Generation, generation)
			}
		}
		taken[e.Partition] = append(taken[e.Partition], e)
	}
	for p, commits := range taken {
		slices.SortStableFunc(commits, func(a, b memberEvent) int {
			if a.Generation != b.Generation {
				return int(a.Generation - b.Generation)
			}
			return int(a.At - b.At)
		})
		for i := 1; i < len(commits); i++ {
			if a, b := commits[i-1], commits[i]; b.To < a.To {
				g.t.Errorf("group %s: partition %d: %d committed by %s in generation %d is followed by %d of %s in %d", g.name, p, a.To, a.Name, a.Generation,
					b.To, b.Name, b.Generation)
			}
		}
		slices.SortStableFunc(commits, func(a, b memberEvent) int { return int(a.At - b.At) })
		i, low, last := 0, int64(-1), int64(-1)
		for _, s := range seen {
			for ; i < len(commits) && commits[i].At < s.sent; i++ {
				low = max(low, commits[i].To)
			}
			if at := s.offsets[p]; at < low || at < last {
				g.t.Fatalf("group %s: OffsetFetch tells %d of partition %d, after it told %d and %d was committed", g.name, at, p, last, low)
			}
			last = s.offsets[p]
		}
	}
	g.t.Logf("group %s: %d generations, %d different polls, refused commits: %v", g.name, newest, len(seen), refused)
	if len(seen) < 20 {
		g.t.Errorf("group %s: OffsetFetch told only %d times of something new", g.name, len(seen))
	}
}

// checkRead: every offset of the partition was read.
func (g *tormented) checkRead(p int32, end int64) {
	g.t.Helper()
	var reads []memberEvent
	for _, e := range g.events {
		if e.What == "read" && e.Partition == p {
			reads = append(reads, e)
		}
	}
	slices.SortFunc(reads, func(a, b memberEvent) int { return int(a.From - b.From) })
	next := int64(0)
	for _, e := range reads {
		if e.From > next {
			break
		}
		next = max(next, e.To)
	}
	if next < end || end == 0 {
		g.t.Errorf("group %s: nobody has read offset %d of partition %d, which ends at %d", g.name, next, p, end)
	}
}
