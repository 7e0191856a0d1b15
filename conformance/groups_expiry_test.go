package conformance

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestOffsetsExpireWhenTheyShould: with a retention of a minute, what a living group needs stays; what nobody needs goes, counted from
// when the group became empty, the last commit, or as an old client asked; a restart in the middle changes nothing. It takes 100 s, all
// of it waiting for the broker's clock.
func TestOffsetsExpireWhenTheyShould(t *testing.T) {
	t.Parallel()
	sideBySide(t, func(t *testing.T, loops int) {
		b := start(t, loops, "offsets.retention.minutes=1", "offsets.retention.check.interval.ms=1000", "group.initial.rebalance.delay.ms=0",
			"offsets.topic.num.partitions=5")
		for _, topic := range []string{"x", "y"} {
			b.create(topic, 1)
		}
		e := &expiry{t: t, b: b, begin: time.Now()}
		// A living group of two topics; of one topic it lets go at 5 s.
		alive := newMember(b, "alive", "x", "y")
		alive.session = 20 * time.Second
		stable(alive)
		e.commit(alive, "x", "y")
		closed := newMember(b, "closed", "x")
		closed.session = 20 * time.Second
		stable(closed)
		e.commit(closed, "x")
		nobody := newMember(b, "nobody", "x")
		nobody.generation = -1
		findCoordinator(t, nobody.c, "nobody")
		e.commit(nobody, "x")
		for group, retention := range map[string]time.Duration{"short": 10 * time.Second, "long": time.Hour, "usual": -time.Millisecond} {
			e.commitOld(group, retention)
		}
		dropping := newMember(b, "dropping", "x", "y")
		dropping.session = 20 * time.Second
		stable(dropping)
		e.commit(dropping, "x", "y")
		dropping.topics = []string{"x"}
		dropping.joined(dropping.join(), startMax)
		synced(dropping)

		e.living = []*rawMember{alive, closed, dropping}
		e.until(5 * time.Second)
		e.wantAll("before anything is due")
		e.gone("short/x", 10*time.Second)
		e.until(25 * time.Second)
		wantCode(t, "LeaveGroup", closed.leave(), 0)
		e.living = []*rawMember{alive, dropping}
		e.commit(nobody, "x") // the last commit counts
		last := time.Since(e.begin)
		e.until(30 * time.Second)
		e.again(syscall.SIGTERM)
		e.until(40 * time.Second)
		e.again(syscall.SIGKILL)
		e.until(58 * time.Second)
		e.wantAll("before a minute", "short/x")
		e.gone("usual/x", time.Minute)
		e.gone("dropping/y", time.Minute)
		e.gone("closed/x", 25*time.Second+time.Minute)
		e.gone("nobody/x", last+time.Minute)
		e.wantAll("at the end", "short/x", "usual/x", "dropping/y", "closed/x", "nobody/x")
		l := listed(t, b.dial())
		if want := map[string]string{"alive": "Stable", "dropping": "Stable", "long": "Empty"}; !maps.Equal(l, want) {
			t.Errorf("ListGroups: %v, want %v", l, want)
		}
		for _, m := range e.living {
			wantCode(t, "Heartbeat of "+m.group, m.heartbeat(), 0)
		}
	})
}

// expiry is a timeline: what was committed, who must be kept alive, what has gone.
type expiry struct {
	t      *testing.T
	b      *broker
	begin  time.Time
	all    []string // group/topic
	living []*rawMember
	beat   time.Time
}

func (e *expiry) commit(m *rawMember, topics ...string) {
	e.t.Helper()
	for _, topic := range topics {
		wantCode(e.t, "OffsetCommit of "+m.group, m.commit(topic, 0, 7), 0)
		if name := m.group + "/" + topic; !slices.Contains(e.all, name) {
			e.all = append(e.all, name)
		}
	}
}

// commitOld commits as clients before 2.1 do, which say how long the offset is to be kept.
func (e *expiry) commitOld(group string, retention time.Duration) {
	e.t.Helper()
	c := e.b.dial()
	findCoordinator(e.t, c, group)
	req := commitRequest(group, "x", 0, 7)
	req.Version, req.RetentionTimeMillis = 3, retention.Milliseconds()
	wantCode(e.t, "OffsetCommit v3 of "+group, commitCode(e.t, must[*kmsg.OffsetCommitResponse](e.t, c, req)), 0)
	e.all = append(e.all, group+"/x")
}

// there is what the groups have now.
func (e *expiry) there() (names []string) {
	e.t.Helper()
	groups := map[string]bool{}
	for _, name := range e.all {
		groups[name[:len(name)-2]] = true
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		for tp := range settledOffsets(e.t, e.b, g) {
			names = append(names, fmt.Sprint(g, "/", tp[:len(tp)-2]))
		}
	}
	slices.Sort(names)
	return names
}

// wantAll wants everything to be there but what has gone.
func (e *expiry) wantAll(when string, gone ...string) {
	e.t.Helper()
	want := slices.DeleteFunc(slices.Clone(e.all), func(n string) bool { return slices.Contains(gone, n) })
	slices.Sort(want)
	if got := e.there(); !slices.Equal(got, want) {
		e.t.Errorf("%s, %v after the commits: %v are there, want %v", when, time.Since(e.begin).Round(time.Millisecond), got, want)
	}
}

// alive lets the living members beat their hearts every second.
func (e *expiry) alive() {
	e.t.Helper()
	if time.Since(e.beat) < time.Second {
		return
	}
	e.beat = time.Now()
	for _, m := range e.living {
		if code := m.heartbeat(); code != 0 {
			e.t.Errorf("Heartbeat of %s: %d", m.group, code)
		}
	}
}

// until lets time pass: the broker's clock is what is tested.
func (e *expiry) until(at time.Duration) {
	e.t.Helper()
	for time.Since(e.begin) < at {
		e.alive()
		time.Sleep(min(100*time.Millisecond, max(0, at-time.Since(e.begin))))
	}
}

// gone waits for an offset to expire: not before due, and within some checks after it.
func (e *expiry) gone(name string, due time.Duration) {
	e.t.Helper()
	const late = 6 * time.Second // the check's interval, on a busy machine
	for {
		e.alive()
		at := time.Since(e.begin)
		there := slices.Contains(e.there(), name)
		switch {
		case !there && at < due-500*time.Millisecond:
			e.t.Errorf("%s is gone after %v, it is due after %v", name, at, due)
			return
		case !there:
			return
		case at > due+late:
			e.t.Errorf("%s is still there after %v, it was due after %v", name, at, due)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// again stops the broker, or kills it, and starts it; members come back on new connections.
func (e *expiry) again(sig syscall.Signal) {
	e.t.Helper()
	e.b.again(sig)
	for _, m := range e.living {
		m.c = e.b.dial()
		settledOffsets(e.t, e.b, m.group)
	}
}
