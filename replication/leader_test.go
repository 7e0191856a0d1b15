package replication

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// twin is the high watermark as one would define it: remember every end, and take the least of the in-sync ones.
type twin struct {
	ends   map[int32]Offset
	isr    []int32
	all    []int32
	minISR int
	hw     Offset
}

func (w *twin) advance() {
	if len(w.isr) < min(w.minISR, len(w.all)) {
		return
	}
	ends := []Offset{}
	for _, id := range w.isr {
		ends = append(ends, w.ends[id])
	}
	w.hw = max(w.hw, slices.Min(ends))
}

func TestHighWatermarkIsTheLeastEndOfTheInSyncReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 4).Draw(t, "replicas")
		all := []int32{}
		for i := range count {
			all = append(all, int32(i))
		}
		subset := func() []int32 {
			isr := []int32{0}
			for _, id := range all[1:] {
				if rapid.Bool().Draw(t, "in sync") {
					isr = append(isr, id)
				}
			}
			return isr
		}
		w := &twin{ends: map[int32]Offset{0: 5}, isr: subset(), all: all, minISR: rapid.IntRange(1, 4).Draw(t, "min isr"), hw: 3}
		for _, id := range all[1:] {
			w.ends[id] = -1
		}
		l := &leader{minISR: w.minISR}
		l.lead(State{LeaderEpoch: 1, Replicas: all, ISR: w.isr}, 0, 5, 3)
		before := l.hw
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				w.ends[0] += Offset(rapid.IntRange(0, 3).Draw(t, "appended"))
				l.wrote(w.ends[0])
			case 1:
				id := rapid.SampledFrom(all).Draw(t, "who")
				if end := Offset(rapid.IntRange(0, int(w.ends[0])).Draw(t, "fetched")); id != 0 {
					w.ends[id] = end
					if !l.fetched(id, end) {
						t.Fatalf("replica %d is not known", id)
					}
				}
			case 2:
				w.isr = subset()
				l.amend(State{LeaderEpoch: 1, Replicas: all, ISR: w.isr}, 0)
			case 3:
				w.minISR = rapid.IntRange(1, 4).Draw(t, "new min isr")
				l.minISR = w.minISR
			}
			w.advance()
			moved := l.advance()
			if l.hw != w.hw {
				t.Fatalf("high watermark %d, want %d (isr %v, ends %v, min isr %d)", l.hw, w.hw, w.isr, w.ends, w.minISR)
			}
			if moved != (l.hw > before) || l.hw < before {
				t.Fatalf("moved %v from %d to %d", moved, before, l.hw)
			}
			before = l.hw
			if l.enough() != (len(w.isr) >= min(w.minISR, count)) {
				t.Fatalf("enough %v with isr %v of %d, min isr %d", l.enough(), w.isr, count, w.minISR)
			}
		}
	})
}

func TestLeaderForgetsFollowersOfTheEpochBefore(t *testing.T) {
	l := &leader{minISR: 1}
	l.lead(State{LeaderEpoch: 1, Replicas: []int32{0, 1}, ISR: []int32{0, 1}}, 0, 10, 0)
	l.fetched(1, 10)
	if !l.advance() || l.hw != 10 {
		t.Fatalf("high watermark %d, want 10", l.hw)
	}
	l.lead(State{LeaderEpoch: 2, Replicas: []int32{0, 1}, ISR: []int32{0, 1}}, 0, 12, 10)
	if l.advance() {
		t.Fatalf("high watermark moved to %d by what a follower said in the epoch before", l.hw)
	}
	if l.fetched(7, 1) {
		t.Fatal("a broker that is no replica was taken for one")
	}
}

func TestOneReplicaWithMinISRTwoCanBeWritten(t *testing.T) {
	l := &leader{minISR: 2}
	l.lead(State{LeaderEpoch: 0, Replicas: []int32{4}, ISR: []int32{4}}, 4, 0, 0)
	l.wrote(3)
	if !l.enough() || !l.advance() || l.hw != 3 {
		t.Fatalf("enough %v, high watermark %d", l.enough(), l.hw)
	}
}

func TestAcksWithTooFewInSync(t *testing.T) {
	l := &leader{minISR: 2}
	l.lead(State{LeaderEpoch: 0, Replicas: []int32{4, 5}, ISR: []int32{4}}, 4, 0, 0)
	l.wrote(3)
	if l.enough() || l.advance() || l.hw != 0 {
		t.Fatalf("enough %v, high watermark %d: one of two replicas alone must not commit", l.enough(), l.hw)
	}
}
