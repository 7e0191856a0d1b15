package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// quick are settings under which members may have short sessions.
var quick = []string{"group.min.session.timeout.ms=500", "group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=7"}

// TestLeavingEndsTheJoinPhase: a rebalance is under way, all but one member have joined again. Whatever becomes of that one, the
// others have their answer as soon as nobody is missing any more, and it is well-formed: a new generation, one leader with the list.
func TestLeavingEndsTheJoinPhase(t *testing.T) {
	everyLoops(t, func(t *testing.T, loops int) {
		t.Parallel()
		b := start(t, loops, quick...)
		const session = 2 * time.Second
		trio := func(t *testing.T, group string, rebalance time.Duration) (a, lost, c *rawMember) {
			a, lost, c = newMember(b, group, "x").on(t), newMember(b, group, "x").on(t), newMember(b, group, "x").on(t)
			for _, m := range []*rawMember{a, lost, c} {
				m.session, m.rebalance = session, rebalance
			}
			stable(a, lost)
			return a, lost, c
		}
		// joining has C join and A join again, so that only the lost one is missing.
		joining := func(t *testing.T, a, c *rawMember) (pa, pc *coming[*kmsg.JoinGroupResponse]) {
			pc = c.join()
			awaitState(t, b.dial(), c.group, "PreparingRebalance")
			pa = a.join()
			return pa, pc
		}
		// complete takes both answers in; they must come between least and most after since.
		complete := func(t *testing.T, before int32, since time.Time, least, most time.Duration, pa, pc *coming[*kmsg.JoinGroupResponse], a, c *rawMember) {
			t.Helper()
			ra, rc := a.joined(pa, most+startMax), c.joined(pc, most+startMax)
			for _, at := range []time.Time{pa.at, pc.at} {
				if d := at.Sub(since); d < least || d > most {
					t.Errorf("answered %v after the event, want between %v and %v", d, least, most)
				}
			}
			if ra.Generation != before+1 || rc.Generation != before+1 {
				t.Errorf("generations %d and %d follow %d", ra.Generation, rc.Generation, before)
			}
			if ra.LeaderID != rc.LeaderID || a.leader == c.leader {
				t.Errorf("leaders %s and %s of members %s and %s", ra.LeaderID, rc.LeaderID, a.id, c.id)
			}
			list := append(slices.Clone(ra.Members), rc.Members...)
			if len(list) != 2 || list[0].MemberID == list[1].MemberID {
				t.Errorf("the leader is told of %+v", list)
			}
			if a.leader {
				synced(a, c)
			} else {
				synced(c, a)
			}
		}
		const soon = 5 * time.Second // on a busy machine; what is forgotten takes 300 s
		t.Run("it leaves", func(t *testing.T) {
			t.Parallel()
			a, lost, c := trio(t, "leaves", 300*time.Second)
			before := a.generation
			pa, pc := joining(t, a, c)
			if code := lost.heartbeat(); code != codeRebalancing {
				t.Errorf("a heartbeat during the rebalance: %d", code)
			}
			pa.pending(t, "before the third has left")
			since := time.Now()
			wantCode(t, "the leaving member", lost.leave(), 0)
			complete(t, before, since, 0, soon, pa, pc, a, c)
		})
		t.Run("its connection ends", func(t *testing.T) {
			t.Parallel()
			a, lost, c := trio(t, "vanishes", 300*time.Second)
			before := a.generation
			pa, pc := joining(t, a, c)
			since := time.Now()
			lost.heartbeat()
			lost.c.Close()
			complete(t, before, since, session-100*time.Millisecond, session+soon, pa, pc, a, c)
		})
		t.Run("it has an id and does not come", func(t *testing.T) {
			t.Parallel()
			a, other, c := trio(t, "pends", 300*time.Second)
			before := a.generation
			since := time.Now()
			pending := newMember(b, "pends", "x").on(t)
			pending.session = session
			pending.askID()
			pa, pc := joining(t, a, c)
			wantCode(t, "the other member", other.leave(), 0)
			complete(t, before, since, session-100*time.Millisecond, session+soon, pa, pc, a, c)
		})
		t.Run("it has an id and gives it up", func(t *testing.T) {
			t.Parallel()
			a, other, c := trio(t, "gives-up", 300*time.Second)
			before := a.generation
			pending := newMember(b, "gives-up", "x").on(t)
			pending.session = 300 * time.Second
			pending.askID()
			pa, pc := joining(t, a, c)
			wantCode(t, "the other member", other.leave(), 0)
			pa.pending(t, "while a member pends")
			since := time.Now()
			wantCode(t, "the pending member", pending.leave(), 0)
			complete(t, before, since, 0, soon, pa, pc, a, c)
		})
		t.Run("it lives and does not join", func(t *testing.T) {
			t.Parallel()
			const rebalance = 3500 * time.Millisecond
			a, lost, c := trio(t, "lives-on", rebalance)
			before := a.generation
			since := time.Now()
			pa, pc := joining(t, a, c)
			for alive := true; alive; {
				select {
				case <-pa.done:
					alive = false
				case <-time.After(session / 8):
					wantAny(t, lost.heartbeat(), codeRebalancing, codeUnknownMember)
				}
			}
			complete(t, before, since, rebalance-100*time.Millisecond, rebalance+soon, pa, pc, a, c)
			wantCode(t, "a heartbeat of the one left behind", lost.heartbeat(), codeUnknownMember)
		})
	})
}

func wantAny(t *testing.T, got int16, want ...int16) {
	t.Helper()
	if !slices.Contains(want, got) {
		t.Fatalf("%s is none of %v", code(got), want)
	}
}

// TestOneOwnerOfAnInstanceID: a second client with the instance id of a first takes its place in whatever phase the group is; the
// first is told everywhere that it is fenced, and the second gets a real assignment.
func TestOneOwnerOfAnInstanceID(t *testing.T) {
	everyLoops(t, func(t *testing.T, loops int) {
		t.Parallel()
		b := start(t, loops, append(quick, "group.initial.rebalance.delay.ms=1000")...)
		b.create("x", 1)
		// fenced asks everything with the first's member id, on a connection of its own.
		fenced := func(t *testing.T, m *rawMember) {
			t.Helper()
			old := *m
			old.c = b.dial()
			wantCode(t, "Heartbeat of the first", old.heartbeat(), codeFencedInstance)
			wantCode(t, "OffsetCommit of the first", old.commit("x", 0, 1), codeFencedInstance)
			wantCode(t, "LeaveGroup of the first", old.leave(), codeFencedInstance)
			wantCode(t, "SyncGroup of the first", old.sync(nil).get(t, startMax).ErrorCode, codeFencedInstance)
			wantCode(t, "JoinGroup of the first", begin[*kmsg.JoinGroupResponse](old.c, old.joinRequest()).get(t, startMax).ErrorCode, codeFencedInstance)
		}
		t.Run("Empty", func(t *testing.T) {
			t.Parallel()
			first, second := newMember(b, "empty", "x").on(t).static("i"), newMember(b, "empty", "x").on(t).static("i")
			stable(first)
			wantCode(t, "LeaveGroup", first.leave(), 0)
			awaitState(t, b.dial(), "empty", "Empty")
			wantCode(t, "Heartbeat after leaving", first.heartbeat(), codeUnknownMember)
			stable(second)
			if second.id == first.id {
				t.Error("the second has the first's member id")
			}
			fenced(t, first)
			wantCode(t, "Heartbeat of the second", second.heartbeat(), 0)
		})
		t.Run("PreparingRebalance", func(t *testing.T) {
			t.Parallel()
			first, second := newMember(b, "preparing", "x").on(t).static("i"), newMember(b, "preparing", "x").on(t).static("i")
			findCoordinator(t, first.c, "preparing")
			p := first.join()
			awaitState(t, b.dial(), "preparing", "PreparingRebalance")
			q := second.join()
			wantCode(t, "the first's JoinGroup", p.get(t, startMax).ErrorCode, codeFencedInstance)
			second.joined(q, startMax)
			synced(second)
			wantCode(t, "Heartbeat of the second", second.heartbeat(), 0)
			first.id = p.resp.MemberID
			first.generation = second.generation
			if first.id == second.id {
				t.Error("both have one member id")
			}
			first.id = "i-of-the-first"
			fenced(t, first)
		})
		t.Run("PreparingRebalance of a Stable group", func(t *testing.T) {
			t.Parallel()
			first, other := newMember(b, "preparing-again", "x").on(t).static("i"), newMember(b, "preparing-again", "x").on(t)
			stable(first, other)
			third, second := newMember(b, "preparing-again", "x").on(t), newMember(b, "preparing-again", "x").on(t).static("i")
			p3 := third.join()
			awaitState(t, b.dial(), "preparing-again", "PreparingRebalance")
			p1 := first.join()
			p2 := second.join()
			wantCode(t, "the first's JoinGroup", p1.get(t, startMax).ErrorCode, codeFencedInstance)
			po := other.join()
			for m, p := range map[*rawMember]*coming[*kmsg.JoinGroupResponse]{second: p2, third: p3, other: po} {
				m.joined(p, startMax)
			}
			synced(second, third, other)
			fenced(t, first)
		})
		t.Run("CompletingRebalance", func(t *testing.T) {
			t.Parallel()
			other, first := newMember(b, "completing", "x").on(t), newMember(b, "completing", "x").on(t).static("i")
			stable(other, first)
			po := other.join() // the leader's JoinGroup begins a rebalance
			awaitState(t, b.dial(), "completing", "PreparingRebalance")
			pf := first.join()
			first.joined(pf, startMax)
			other.joined(po, startMax)
			if !other.leader {
				t.Fatal("the leader has changed")
			}
			waiting := first.sync(nil)
			awaitState(t, b.dial(), "completing", "CompletingRebalance")
			second := newMember(b, "completing", "x").on(t).static("i")
			q := second.join()
			wantCode(t, "the first's SyncGroup", waiting.get(t, startMax).ErrorCode, codeFencedInstance)
			awaitState(t, b.dial(), "completing", "PreparingRebalance")
			late := other.sync(plan(other.id, first.id)) // an assignment made for the first does not count
			wantCode(t, "SyncGroup of the other", late.get(t, startMax).ErrorCode, codeRebalancing)
			po = other.join()
			second.joined(q, startMax)
			other.joined(po, startMax)
			synced(second, other)
			fenced(t, first)
		})
		t.Run("Stable", func(t *testing.T) {
			t.Parallel()
			for _, leads := range []bool{true, false} {
				group := map[bool]string{true: "stable-leader", false: "stable-follower"}[leads]
				first, other := newMember(b, group, "x").on(t).static("i"), newMember(b, group, "x").on(t)
				if leads {
					stable(first, other)
				} else {
					stable(other, first)
				}
				before := first.generation
				second := newMember(b, group, "x").on(t).static("i")
				r := second.join().get(t, startMax)
				wantCode(t, "JoinGroup of the second", r.ErrorCode, 0)
				if r.Generation != before || r.MemberID == first.id || r.MemberID == "" {
					t.Errorf("in %s generation %d became %d, member %s became %s", group, before, r.Generation, first.id, r.MemberID)
				}
				second.id, second.generation = r.MemberID, r.Generation
				got := second.sync(nil).get(t, startMax)
				wantCode(t, "SyncGroup of the second", got.ErrorCode, 0)
				if string(got.MemberAssignment) != "to "+first.id {
					t.Errorf("the second is assigned %q, the first was assigned %q", got.MemberAssignment, "to "+first.id)
				}
				fenced(t, first)
				wantCode(t, "Heartbeat of the second", second.heartbeat(), 0)
				wantCode(t, "Heartbeat of the other", other.heartbeat(), 0)
				wantCode(t, "OffsetCommit of the second", second.commit("x", 0, 5), 0)
				if g := describe(t, b.dial(), group); g.State != "Stable" || len(g.Members) != 2 {
					t.Errorf("%s is %s with %d members", group, g.State, len(g.Members))
				}
			}
		})
		t.Run("stopped and started inside the session", func(t *testing.T) {
			t.Parallel()
			m, other := newMember(b, "again", "x").on(t).static("i"), newMember(b, "again", "x").on(t)
			stable(m, other)
			before, was := m.generation, m.id
			m.c.Close() // without leaving, as static members stop
			again := newMember(b, "again", "x").on(t).static("i")
			r := again.join().get(t, startMax)
			wantCode(t, "JoinGroup after the start", r.ErrorCode, 0)
			again.id, again.generation = r.MemberID, r.Generation
			got := again.sync(nil).get(t, startMax)
			wantCode(t, "SyncGroup after the start", got.ErrorCode, 0)
			if r.Generation != before || string(got.MemberAssignment) != "to "+was {
				t.Errorf("generation %d became %d, assignment %q", before, r.Generation, got.MemberAssignment)
			}
			wantCode(t, "Heartbeat of the other", other.heartbeat(), 0)
		})
	})
}
