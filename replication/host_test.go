package replication

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"kring/ring"
)

// turns stands for a loop of which only the end of a turn matters.
type turns struct {
	ring.Loop
	ops []*ring.Op
}

func (l *turns) AtTurnEnd(op *ring.Op) { l.ops = append(l.ops, op) }

func (l *turns) end() {
	ops := l.ops
	l.ops = nil
	for _, op := range ops {
		op.Done(op)
	}
}

// TestWaitsFireOnceWithEnoughBytes holds waits in many partitions against a twin that only adds up.
func TestWaitsFireOnceWithEnoughBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loop := &turns{}
		h := NewHost(loop)
		parts := make([]*Partition, 3)
		for i := range parts {
			parts[i] = &Partition{host: h, Index: int32(i)}
		}
		type want struct {
			w      Wait
			places []Place
			need   int64
			got    int64
			parked bool
			fired  int
		}
		waits := make([]*want, 4)
		for i := range waits {
			x := &want{}
			x.w.Fire = func(*Wait) { x.fired++; x.parked = false }
			waits[i] = x
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x := rapid.SampledFrom(waits).Draw(t, "wait")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				if x.parked {
					continue
				}
				x.need, x.got, x.fired, x.parked = int64(rapid.IntRange(0, 5).Draw(t, "need")), 0, 0, true
				x.w.Need = x.need
				x.places = nil
				for range rapid.IntRange(1, 4).Draw(t, "places") {
					x.places = append(x.places, Place{Partition: rapid.SampledFrom(parts).Draw(t, "where")})
				}
				h.Park(&x.w, x.places)
			case 1:
				h.Cancel(&x.w)
				x.parked = false
			case 2:
				p := rapid.SampledFrom(parts).Draw(t, "partition")
				n := int64(rapid.IntRange(1, 3).Draw(t, "bytes"))
				for r := p.readers.first; r != nil; r = r.next {
					r.wait.more(n)
				}
				for _, y := range waits {
					for i := range y.places {
						if y.parked && y.places[i].Partition == p {
							y.got += n
						}
					}
				}
			case 3:
				due := map[*want]bool{}
				for _, y := range waits {
					due[y] = y.parked && y.got >= max(y.need, 1)
				}
				before := map[*want]int{}
				for _, y := range waits {
					before[y] = y.fired
				}
				loop.end()
				for i, y := range waits {
					want := before[y]
					if due[y] {
						want++
					}
					if y.fired != want {
						t.Fatalf("wait %d fired %d times, want %d (need %d, got %d)", i, y.fired, want, y.need, y.got)
					}
				}
			}
			for i, y := range waits {
				if y.w.Parked() != y.parked {
					t.Fatalf("wait %d parked: %v, want %v", i, y.w.Parked(), y.parked)
				}
			}
			if err := seats(parts); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// seats checks the lists of places: linked both ways, nobody left behind.
func seats(parts []*Partition) error {
	for _, p := range parts {
		var before *Place
		for r := p.readers.first; r != nil; r = r.next {
			if r.prev != before || !r.seated || r.Partition != p || !r.wait.parked {
				return fmt.Errorf("partition %d: broken list of places", p.Index)
			}
			before = r
		}
		if p.readers.last != before {
			return fmt.Errorf("partition %d: the last place is not the last", p.Index)
		}
	}
	return nil
}

func TestWaitParkedWhileFiringWaitsForTheNextTurn(t *testing.T) {
	loop := &turns{}
	h := NewHost(loop)
	p := &Partition{host: h}
	fired := 0
	var w Wait
	places := []Place{{Partition: p}}
	w.Fire = func(*Wait) {
		fired++
		h.Park(&w, places)
		w.now()
	}
	h.Park(&w, places)
	w.now()
	loop.end()
	if fired != 1 {
		t.Fatalf("fired %d times in one turn", fired)
	}
	loop.end()
	if fired != 2 {
		t.Fatalf("fired %d times in two turns", fired)
	}
}
