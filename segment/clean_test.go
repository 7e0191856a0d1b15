package segment

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kring/ring"
	"kring/wire/batch"
)

// planted is one record as it was appended.
type planted struct {
	key, value []byte
	ms         int64
	offset     Offset
	aborted    bool
}

// garden is a log with keys, and all that was ever planted in it.
type garden struct {
	*rig
	o       Options
	l       *Log
	rnd     *rand.Rand
	keys    int
	codecs  int
	records []planted
	seqs    map[int64]int32
	open    map[int64][]int // transactions: numbers of their records
	clock   int64
}

func newGarden(tb testing.TB, seed uint64) *garden {
	g := &garden{rig: newRig(tb, seed), keys: 20, codecs: 5, seqs: map[int64]int32{}, open: map[int64][]int{}, clock: epoch}
	g.rnd = g.w.Rand()
	g.m.WriteFile("/data/.lock", nil)
	g.o = g.options("/data/t-0")
	g.o.Config.Compact, g.o.Config.DeleteRetained = true, false
	g.o.Config.SegmentBytes, g.o.Config.IndexIntervalBytes = 6000, 300
	g.l = g.rig.open(g.o)
	return g
}

// grow appends a batch of up to n records: plain, of a producer, or in a transaction.
func (g *garden) grow(n int) {
	g.tb.Helper()
	b := batch.NewBuilder(batch.Codec(g.rnd.IntN(g.codecs)))
	id := int64(g.rnd.IntN(8))
	if id < 5 {
		b.ProducerID, b.ProducerEpoch, b.BaseSequence = id, 0, g.seqs[id]
		b.Transactional = id < 3
	}
	first := len(g.records)
	for range 1 + g.rnd.IntN(n) {
		p := planted{key: fmt.Appendf(nil, "key %d", g.rnd.IntN(g.keys)), ms: g.clock, offset: g.l.End() + Offset(len(g.records)-first)}
		g.clock += int64(g.rnd.IntN(1000))
		if g.rnd.IntN(5) > 0 {
			p.value = fmt.Appendf(nil, "value %d of %s%s", g.rnd.Uint32(), p.key, strings.Repeat(".", g.rnd.IntN(60)))
		}
		b.Add(p.ms, p.key, p.value, batch.RecordHeader{Key: "h", Value: []byte("x")})
		g.records = append(g.records, p)
	}
	a := g.append(g.l, b.AppendTo(nil))
	if a.Err != nil {
		g.tb.Fatal(a.Err)
	}
	if id < 5 {
		g.seqs[id] += int32(len(g.records) - first)
		if id < 3 {
			for i := first; i < len(g.records); i++ {
				g.open[id] = append(g.open[id], i)
			}
			if g.rnd.IntN(3) == 0 {
				g.end(id, g.rnd.IntN(2) == 0)
			}
		}
	}
}

// end ends a transaction.
func (g *garden) end(id int64, commit bool) {
	g.tb.Helper()
	if a := g.appendAs(g.l, &Append{Data: marker(id, 0, commit, 0, g.clock), Origin: FromCoordinator}); a.Err != nil {
		g.tb.Fatal(a.Err)
	}
	for _, i := range g.open[id] {
		g.records[i].aborted = !commit
	}
	delete(g.open, id)
}

func (g *garden) stable() Offset {
	g.l.HighWatermark(g.l.Written())
	if o, ok := g.l.FirstUnstable(); ok {
		return o
	}
	return g.l.Written()
}

func (g *garden) how() CleanOptions {
	return CleanOptions{Now: g.clock, MapBytes: 1 << 20, MapLoad: 0.9, BufferBytes: 4 << 10}
}

// clean cleans once.
func (g *garden) clean(o CleanOptions) (CleanStats, error) {
	g.tb.Helper()
	var s CleanStats
	var err error
	g.do("flush", func(t *ring.Task) {
		g.l.Flush(t)
		g.l.until(t, func() bool { return g.l.unfinished() == nil && !g.l.finishing })
	})
	g.do("clean", func(t *ring.Task) {
		o.Stable = g.stable()
		s, err = g.l.Clean(t, o)
	})
	return s, err
}

// found reads the log as a consumer does: all records with their offsets, in order, no two at one offset.
func (g *garden) found(maxBytes int) map[Offset]planted {
	g.tb.Helper()
	all := map[Offset]planted{}
	last := Offset(-1)
	for _, b := range g.readAll(g.l, maxBytes) {
		if batch.Header(b).Control() {
			continue
		}
		if err := batch.Verify(b); err != nil {
			g.tb.Fatal(err)
		}
		r, err := batch.Open(b, 1<<20)
		if err != nil {
			g.tb.Fatal(err)
		}
		for r.Next() {
			o := Offset(r.Offset)
			if o <= last || o < header(b).base() || o > header(b).last() {
				g.tb.Fatalf("offset %d after %d in a batch from %d to %d", o, last, header(b).base(), header(b).last())
			}
			last = o
			all[o] = planted{key: r.Key, value: r.Value, ms: r.Timestamp, offset: o}
		}
		if r.Err != nil {
			g.tb.Fatal(r.Err)
		}
	}
	return all
}

// verify holds the log against what was planted: below cleaned nothing is obsolete, from whole on everything is there. Tombstones may
// be missing if gone says so.
func (g *garden) verify(cleaned, whole Offset, gone bool) {
	g.tb.Helper()
	found := g.found(1000 + g.rnd.IntN(10_000))
	newest, newestClean := map[string]Offset{}, map[string]Offset{}
	byOffset := map[Offset]planted{}
	for _, p := range g.records {
		byOffset[p.offset] = p
		if !p.aborted {
			newest[string(p.key)] = p.offset
			if p.offset < cleaned {
				newestClean[string(p.key)] = p.offset
			}
		}
	}
	for o, f := range found {
		p, ok := byOffset[o]
		if !ok || !bytes.Equal(p.key, f.key) || !bytes.Equal(p.value, f.value) || (p.value == nil) != (f.value == nil) || p.ms != f.ms {
			g.tb.Fatalf("seed %d: at %d is %q=%q (%d), was %q=%q (%d)", g.w.Seed(), o, f.key, f.value, f.ms, p.key, p.value, p.ms)
		}
		if o < cleaned && (p.aborted || newestClean[string(p.key)] != o) {
			g.tb.Fatalf("seed %d: %q at %d is still there, aborted %v, newer at %d, cleaned up to %d", g.w.Seed(), p.key, o, p.aborted, newestClean[string(p.key)], cleaned)
		}
	}
	for _, p := range g.records {
		_, ok := found[p.offset]
		must := p.offset >= whole || newest[string(p.key)] == p.offset && (p.value != nil || !gone)
		if must && !p.aborted && !ok && p.offset >= g.l.Start() {
			g.tb.Fatalf("seed %d: %q=%q at %d is gone; cleaned up to %d of %d", g.w.Seed(), p.key, p.value, p.offset, cleaned, g.l.End())
		}
	}
}

// Of each key the last record stays, nothing obsolete does, through many cleanings, with small maps and buffers, over restarts.
func TestCleanAgainstGarden(t *testing.T) {
	for seed := range seedsOr(8) {
		g := newGarden(t, seed)
		g.keys = 1 + g.rnd.IntN(200)
		cleaned := Offset(0)
		for round := range 8 {
			for range 10 + g.rnd.IntN(40) {
				g.grow(1 + g.rnd.IntN(40))
			}
			if g.rnd.IntN(3) == 0 {
				for id := range int64(3) {
					if len(g.open[id]) > 0 {
						g.end(id, g.rnd.IntN(2) == 0)
					}
				}
			}
			o := g.how()
			o.MapBytes, o.BufferBytes = int64(1)<<(11+g.rnd.IntN(8)), 1<<(10+g.rnd.IntN(6))
			s, err := g.clean(o)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if s.To < cleaned {
				t.Fatalf("seed %d: clean up to %d after %d", seed, s.To, cleaned)
			}
			cleaned = s.To
			if got, ok := g.l.Cleaned(); ok && got != cleaned {
				t.Fatalf("seed %d: cleaned %d, want %d", seed, got, cleaned)
			}
			g.verify(cleaned, cleaned, false)
			if round%3 == 2 {
				g.restart(cleaned)
				g.verify(cleaned, cleaned, false)
			}
		}
		if g.l.Segments() > 100 || cleaned == 0 {
			t.Errorf("seed %d: %d segments, clean up to %d of %d", seed, g.l.Segments(), cleaned, g.l.End())
		}
	}
}

// restart stops cleanly or not, and opens the log again.
func (g *garden) restart(cleaned Offset) {
	g.tb.Helper()
	clean := g.rnd.IntN(2) == 0
	point, end := g.l.RecoveryPoint(), g.l.End()
	if clean {
		g.close(g.l)
		g.m.Kill() // files wait to be removed
	} else {
		g.do("flush", func(t *ring.Task) { _ = g.l.Flush(t) })
		g.m.Crash()
	}
	g.boot()
	g.o.Files, g.o.Clean, g.o.RecoveryPoint, g.o.Cleaned = g.files, clean, point, cleaned
	g.l = g.rig.open(g.o)
	if g.l.End() != end {
		g.tb.Fatalf("seed %d: ends at %d after a restart, was %d", g.w.Seed(), g.l.End(), end)
	}
}
