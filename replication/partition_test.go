package replication

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kring/ring"
	"kring/ring/simring"
	"kring/segment"
	"kring/wire/batch"
)

// stage is a partition on a real log on a simulated machine.
type stage struct {
	t    tester
	w    *simring.World
	m    *simring.Machine
	loop ring.Loop
	host *Host
	p    *Partition
}

type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

func newStage(t tester, seed uint64, s State) *stage {
	t.Helper()
	w := simring.New(seed, simring.Options{})
	x := &stage{t: t, w: w, m: w.Machine("broker")}
	x.loop = x.m.Loops(1)[0]
	x.do(func(task *ring.Task) {
		x.host = NewHost(x.loop)
		l, err := segment.Open(task, segment.Options{Dir: "/data/t-0", Config: segment.DefaultConfig()})
		if err != nil {
			t.Fatal(err)
		}
		x.p = New(Options{Host: x.host, Self: 1, Topic: "t", Log: l, Config: Config{MinISR: 1}})
		x.p.Lead(s, 0)
	})
	return x
}

// alone is the state of a partition with one replica, ours.
func alone() State { return State{Leader: 1, LeaderEpoch: 2, ISR: []int32{1}, Replicas: []int32{1}} }

// both is that of a partition with a follower, 2, in sync.
func both() State {
	return State{Leader: 1, LeaderEpoch: 2, ISR: []int32{1, 2}, Replicas: []int32{1, 2}}
}

// do runs a task on the loop to its end.
func (x *stage) do(fn func(t *ring.Task)) {
	x.t.Helper()
	done := false
	x.m.Do(x.loop, func() {
		ring.Go(x.loop, func(t *ring.Task) {
			fn(t)
			done = true
		})
	})
	if !x.w.Run(func() bool { return done }) {
		x.t.Fatal("the task does not end")
	}
	if x.p != nil {
		if err := x.p.check(); err != nil {
			x.t.Fatal(err)
		}
	}
}

// sent is an append and whether it was answered.
type sent struct {
	Append
	answered int
	at       time.Duration
}

func oneRecord(n int) []byte {
	b := batch.NewBuilder(batch.None)
	for range n {
		b.Add(1, []byte("k"), []byte("v"))
	}
	return b.AppendTo(nil)
}

// append hands a batch of n records in.
func (x *stage) append(n int, acks int16, timeout time.Duration) *sent {
	x.t.Helper()
	s := &sent{}
	s.Data, s.Acks, s.Timeout = oneRecord(n), acks, timeout
	s.Done = func(*Append) { s.answered++; s.at = x.w.Now() }
	x.do(func(*ring.Task) {
		if err := x.p.Admit(acks); err != nil {
			x.t.Fatal(err)
		}
		x.p.Append(&s.Append)
	})
	return s
}

func (x *stage) answered(s *sent) {
	x.t.Helper()
	if !x.w.Run(func() bool { return s.answered > 0 }) {
		x.t.Fatal("never answered")
	}
}

func TestAcksAllWaitsForTheFollower(t *testing.T) {
	x := newStage(t, 1, both())
	one := x.append(2, 1, time.Minute)
	all := x.append(3, AcksAll, time.Minute)
	x.answered(one)
	x.w.RunFor(time.Second)
	if all.answered != 0 || x.p.HighWatermark() != 0 {
		t.Fatalf("answered %d, high watermark %d before the follower has it", all.answered, x.p.HighWatermark())
	}
	x.do(func(*ring.Task) {
		if err := x.p.Fetched(2, 4); err != nil {
			t.Fatal(err)
		}
	})
	if all.answered != 0 || x.p.HighWatermark() != 4 {
		t.Fatalf("answered %d, high watermark %d with a follower at 4", all.answered, x.p.HighWatermark())
	}
	x.do(func(*ring.Task) { x.p.Fetched(2, 5) })
	if all.answered != 1 || all.Err != nil || all.Base != 2 || all.Last != 4 {
		t.Fatalf("answered %d: %v, offsets %d to %d", all.answered, all.Err, all.Base, all.Last)
	}
	x.w.RunFor(2 * time.Minute)
	if all.answered != 1 {
		t.Fatal("answered twice")
	}
}

func TestWhatIsToBeFlushedIsNotSeenBefore(t *testing.T) {
	x := newStage(t, 1, alone())
	x.do(func(*ring.Task) {
		c := segment.DefaultConfig()
		c.FlushMessages = 1
		x.p.Log().SetConfig(c)
		x.p.SetConfig(Config{MinISR: 1})
	})
	woken := 0
	for i := range Offset(5) {
		w := Wait{Fire: func(*Wait) { woken++ }}
		x.do(func(*ring.Task) { x.host.Park(&w, []Place{{Partition: x.p}}) })
		a := x.append(1, AcksAll, time.Minute)
		ahead := false
		for a.answered == 0 && x.w.Step() {
			ahead = ahead || x.p.Log().Written() > x.p.Log().Durable()
			if hw := x.p.HighWatermark(); hw > x.p.Log().Durable() {
				t.Fatalf("high watermark %d, durable %d", hw, x.p.Log().Durable())
			}
		}
		x.w.RunFor(time.Second)
		if a.Err != nil || x.p.HighWatermark() != i+1 || woken != int(i+1) || !ahead {
			t.Fatalf("append %d: %v, high watermark %d, woken %d, ever written before durable: %v", i, a.Err, x.p.HighWatermark(), woken, ahead)
		}
	}
}

func TestAcksAllTimesOut(t *testing.T) {
	x := newStage(t, 1, both())
	all := x.append(1, AcksAll, 5*time.Second)
	start := x.w.Now()
	x.answered(all)
	if !errors.Is(all.Err, ErrTimedOut) || all.at-start < 4*time.Second || all.at-start > 6*time.Second {
		t.Fatalf("%v after %v", all.Err, all.at-start)
	}
	x.do(func(*ring.Task) { x.p.Fetched(2, 1) })
	if all.answered != 1 || x.p.HighWatermark() != 1 {
		t.Fatal("what timed out must stay in the log and be answered once")
	}
}

func TestAcksAllWhenTooFewAreLeft(t *testing.T) {
	x := newStage(t, 1, both())
	x.do(func(*ring.Task) { x.p.SetConfig(Config{MinISR: 2}) })
	all := x.append(1, AcksAll, time.Minute)
	x.w.RunFor(time.Second)
	x.do(func(*ring.Task) {
		s := both()
		s.PartitionEpoch, s.ISR = 1, []int32{1}
		x.p.Lead(s, 0)
		if err := x.p.Admit(AcksAll); !errors.Is(err, ErrNotEnoughReplicas) {
			t.Errorf("admitted: %v", err)
		}
		if err := x.p.Admit(1); err != nil {
			t.Errorf("acks 1 refused: %v", err)
		}
	})
	if x.w.RunFor(time.Second); all.answered != 0 {
		t.Fatalf("one of two alone has answered: %v", all.Err)
	}
}

func TestLosingTheLeadershipAnswersEverybody(t *testing.T) {
	x := newStage(t, 1, both())
	all := x.append(1, AcksAll, time.Minute)
	woken := 0
	w := Wait{Fire: func(*Wait) { woken++ }}
	x.w.RunFor(time.Second)
	x.do(func(*ring.Task) { x.host.Park(&w, []Place{{Partition: x.p}}) })
	x.do(func(*ring.Task) { x.p.Resign(State{Leader: 2, LeaderEpoch: 3}) })
	x.w.RunFor(time.Millisecond)
	if all.answered != 1 || !errors.Is(all.Err, ErrNotLeader) || woken != 1 {
		t.Fatalf("answered %d: %v, woken %d", all.answered, all.Err, woken)
	}
	x.do(func(*ring.Task) {
		for _, tt := range []struct {
			epoch int32
			want  error
		}{{NoEpoch, ErrNotLeader}, {2, ErrFencedEpoch}, {3, ErrNotLeader}, {4, ErrUnknownEpoch}} {
			if err := x.p.Check(tt.epoch); !errors.Is(err, tt.want) {
				t.Errorf("epoch %d: %v, want %v", tt.epoch, err, tt.want)
			}
		}
	})
}

func TestOldStatesAreIgnored(t *testing.T) {
	x := newStage(t, 1, alone())
	x.do(func(*ring.Task) {
		x.p.Resign(State{Leader: 2, LeaderEpoch: 1})
		if !x.p.Leads() || x.p.LeaderEpoch() != 2 {
			t.Error("resigned for an older epoch")
		}
		x.p.Lead(State{Leader: 1, LeaderEpoch: 1, ISR: []int32{1}, Replicas: []int32{1}}, 0)
		if x.p.LeaderEpoch() != 2 {
			t.Error("led in an older epoch")
		}
	})
}

func TestFailedLogAnswersEverybody(t *testing.T) {
	x := newStage(t, 1, alone())
	told := 0
	x.p.OnFail = func(error) { told++ }
	x.m.FailNext("write", "*", 0, 1, errors.New("input/output error"))
	woken := 0
	w := Wait{Fire: func(*Wait) { woken++ }}
	x.do(func(*ring.Task) { x.host.Park(&w, []Place{{Partition: x.p}}) })
	a := x.append(1, AcksAll, time.Minute)
	x.answered(a)
	x.w.RunFor(time.Second)
	if a.Err == nil || woken != 1 || told != 1 {
		t.Fatalf("answered %v, woken %d, owner told %d", a.Err, woken, told)
	}
	x.do(func(*ring.Task) {
		if err := x.p.Admit(1); !errors.Is(err, ErrOffline) {
			t.Errorf("admitted: %v", err)
		}
		if err := x.p.Check(NoEpoch); !errors.Is(err, ErrOffline) {
			t.Errorf("served: %v", err)
		}
	})
}

func TestReadersSeeUpToTheHighWatermark(t *testing.T) {
	x := newStage(t, 1, both())
	x.append(1, 1, 0)
	x.append(1, 1, 0)
	x.w.RunFor(time.Second)
	read := func(from Offset, i Isolation) (n int64, err error) {
		x.do(func(task *ring.Task) {
			var r segment.Range
			task.Suspend(func(wake func()) {
				r.Done = func(*segment.Range) { wake() }
				if x.p.Read(from, i, 1<<20, true, &r) {
					op := &ring.Op{Done: func(*ring.Op) { wake() }}
					x.loop.AtTurnEnd(op)
				}
			})
			n, err = r.Len, r.Err
			r.Unpin()
		})
		return
	}
	size := int64(len(oneRecord(1)))
	for _, tt := range []struct {
		fetched, from Offset
		isolation     Isolation
		bytes         int64
		err           error
	}{
		{0, 0, ReadUncommitted, 0, nil},
		{0, 0, ReadReplica, 2 * size, nil},
		{1, 0, ReadUncommitted, size, nil},
		{1, 0, ReadCommitted, size, nil},
		{1, 1, ReadUncommitted, 0, nil},
		{1, 2, ReadUncommitted, 0, nil},
		{1, 3, ReadUncommitted, 0, ErrOutOfRange},
		{2, 0, ReadUncommitted, 2 * size, nil},
		{2, -1, ReadUncommitted, 0, ErrOutOfRange},
	} {
		x.do(func(*ring.Task) { x.p.Fetched(2, tt.fetched) })
		if n, err := read(tt.from, tt.isolation); n != tt.bytes || !errors.Is(err, tt.err) {
			t.Errorf("follower at %d, read from %d (%d): %d bytes, %v; want %d, %v", tt.fetched, tt.from, tt.isolation, n, err, tt.bytes, tt.err)
		}
	}
}

func TestDeleteRecords(t *testing.T) {
	x := newStage(t, 1, both())
	x.append(5, 1, 0)
	x.w.RunFor(time.Second)
	x.do(func(*ring.Task) {
		x.p.Fetched(2, 4)
		for _, tt := range []struct {
			to, start Offset
			err       error
		}{{2, 2, nil}, {1, 2, nil}, {5, -1, ErrOutOfRange}, {-2, -1, ErrOutOfRange}, {-1, 4, nil}} {
			if start, err := x.p.DeleteTo(tt.to); start != tt.start || !errors.Is(err, tt.err) {
				t.Errorf("delete to %d: start %d, %v; want %d, %v", tt.to, start, err, tt.start, tt.err)
			}
		}
	})
}

func TestAppendsDoNotOvertakeOneThatIsChecked(t *testing.T) {
	x := newStage(t, 1, alone())
	var order []int
	appends := make([]*sent, 4)
	for i := range appends {
		s := &sent{}
		s.Data, s.Acks = oneRecord(1), 1
		s.Done = func(*Append) { s.answered++ }
		s.Begin = func(a *Append) {
			order = append(order, i)
			if i%2 == 0 {
				x.p.Hold(a)
				return
			}
			x.p.Append(a)
		}
		appends[i] = s
	}
	x.do(func(*ring.Task) {
		for _, s := range appends {
			x.p.Enter(&s.Append)
		}
	})
	if fmt.Sprint(order) != "[0]" {
		t.Fatalf("began %v while the first was checked", order)
	}
	for _, i := range []int{0, 2} {
		x.do(func(*ring.Task) {
			x.p.Append(&appends[i].Append)
			x.p.Resume()
		})
	}
	x.w.RunFor(time.Second)
	for i, s := range appends {
		if s.answered != 1 || s.Base != Offset(i) {
			t.Fatalf("append %d: answered %d at %d", i, s.answered, s.Base)
		}
	}
}

// TestPartitionAgainstATwin appends, replicates, shrinks and grows the in-sync set, and elects, in any order: answers must be
// what the rules say, whatever the order of completions.
func TestPartitionAgainstATwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newStage(t, rapid.Uint64().Draw(t, "seed"), both())
		state, minISR := both(), 1
		var all []*sent
		fetched, hw := Offset(-1), Offset(0)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				acks := rapid.SampledFrom([]int16{1, AcksAll}).Draw(t, "acks")
				admitted := acks == 1 || len(state.ISR) >= minISR
				var err error
				x.do(func(*ring.Task) { err = x.p.Admit(acks) })
				if (err == nil) != admitted {
					t.Fatalf("admitted: %v, want %v", err, admitted)
				}
				if err == nil {
					all = append(all, x.append(rapid.IntRange(1, 3).Draw(t, "records"), acks, time.Minute))
				}
			case 2:
				end := x.p.Log().Written()
				fetched = Offset(rapid.Int64Range(0, int64(end)).Draw(t, "fetched"))
				x.do(func(*ring.Task) { x.p.Fetched(2, fetched) })
			case 3:
				state.PartitionEpoch++
				if state.ISR = []int32{1}; rapid.Bool().Draw(t, "in sync") {
					state.ISR = []int32{1, 2}
				}
				x.do(func(*ring.Task) { x.p.Lead(state, 0) })
			case 4:
				minISR = rapid.IntRange(1, 2).Draw(t, "min isr")
				x.do(func(*ring.Task) { x.p.SetConfig(Config{MinISR: minISR}) })
			case 5:
				x.w.RunFor(time.Duration(rapid.IntRange(0, 2000).Draw(t, "us")) * time.Microsecond)
			}
			x.w.RunFor(0)
			if now := x.p.HighWatermark(); now < hw {
				t.Fatalf("the high watermark fell from %d to %d", hw, now)
			} else {
				hw = now
			}
			for i, s := range all {
				if s.answered > 1 || s.answered == 1 && s.Err == nil && s.Acks == AcksAll && s.Last >= hw {
					t.Fatalf("append %d: answered %d, last %d, high watermark %d", i, s.answered, s.Last, hw)
				}
				if s.answered == 0 && s.Acks == AcksAll && s.Last < hw && x.p.Idle() {
					t.Fatalf("append %d to %d waits below the high watermark %d", i, s.Last, hw)
				}
			}
		}
		x.do(func(*ring.Task) { x.p.Resign(State{Leader: 2, LeaderEpoch: 9}) })
		x.w.RunFor(time.Second)
		for i, s := range all {
			if s.answered != 1 {
				t.Fatalf("append %d: answered %d times in the end", i, s.answered)
			}
		}
	})
}
