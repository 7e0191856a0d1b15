package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kring/ring"
	"kring/wire/batch"
)

// plantLarge appends a batch of one record with a value of so many bytes.
func (g *garden) plantLarge(key string, size int) {
	g.tb.Helper()
	b := batch.NewBuilder(batch.None)
	p := planted{key: []byte(key), value: bytes.Repeat([]byte{byte(len(g.records))}, size), ms: g.clock, offset: g.l.End()}
	b.Add(p.ms, p.key, p.value)
	if a := g.append(g.l, b.AppendTo(nil)); a.Err != nil {
		g.tb.Fatal(a.Err)
	}
	g.records = append(g.records, p)
}

// leftovers are the files a cleaning makes for itself.
func (g *garden) leftovers() (names []string) {
	for _, name := range g.m.Files(g.o.Dir) {
		if strings.HasSuffix(name, cleanedSuffix) || strings.HasSuffix(name, swapSuffix) {
			names = append(names, name)
		}
	}
	return names
}

// Batches larger than all buffers, alone and many in a row, are cleaned like others, with room for one of them more.
func TestCleanReadsLargeBatches(t *testing.T) {
	g := newGarden(t, 21)
	g.set(func(c *Config) { c.SegmentBytes = 200_000 })
	largest := 0
	for i := range 200 {
		size := []int{10, 500, 3000, 9000, 20_000}[g.rnd.IntN(5)]
		if i >= 50 && i < 100 {
			size = 30_000 + g.rnd.IntN(1000)
		}
		largest = max(largest, size)
		g.plantLarge(fmt.Sprint("key ", g.rnd.IntN(30)), size)
	}
	g.on(g.l.Roll)
	o := g.how()
	o.BufferBytes = 1 << 10
	s, err := g.clean(o)
	if err != nil || s.To != g.l.active().base || s.Keys != 30 {
		t.Fatalf("%+v %v", s, err)
	}
	if extra := s.BufferBytes - 6*int64(o.BufferBytes); extra < int64(largest) || extra > int64(largest)+8192 {
		t.Errorf("%d bytes more than the buffers for batches of up to %d", extra, largest)
	}
	g.verify(s.To, s.To, false)
}

// What is no batch ends a cleaning with an error that names the file and the place, and the log is as it was.
func TestCleanRefusesWhatIsDamaged(t *testing.T) {
	cut := func(n int64) func([]byte) []byte { return func(b []byte) []byte { return b[:int64(len(b))-n] } }
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   string
	}{
		"the last batch is longer than what is left": {func(b []byte) []byte {
			at := 0
			for n, _ := batch.Next(b[at:]); at+n < len(b); n, _ = batch.Next(b[at:]) {
				at += n
			}
			binary.BigEndian.PutUint32(b[at+8:], uint32(len(b)-at)+1000)
			return b
		}, "a batch is cut off"},
		"the file is short":           {cut(100), "the file has ended"},
		"the file is short by a few":  {cut(5), "the file has ended"},
		"a byte of a value is wrong":  {func(b []byte) []byte { b[len(b)-10] ^= 1; return b }, "crc"},
		"the first batch has no size": {func(b []byte) []byte { clear(b[8:12]); return b }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGarden(t, 22)
			for range 40 {
				g.plantLarge("key", 100+g.rnd.IntN(4000))
			}
			g.on(g.l.Roll)
			before, file := g.l.Segments(), g.l.segs[2].path(logSuffix)
			g.do("flush", func(t *ring.Task) { _ = g.l.Flush(t) })
			if err := g.m.Damage(file, c.change); err != nil {
				t.Fatal(err)
			}
			o := g.how()
			o.BufferBytes = 1 << 10
			s, err := g.clean(o)
			if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(strings.ToLower(err.Error()), c.want) {
				t.Errorf("%+v %v", s, err)
			}
			if g.l.Segments() != before || len(g.leftovers()) > 0 || g.l.Failed() != nil {
				t.Errorf("%d segments of %d, %v left over, %v", g.l.Segments(), before, g.leftovers(), g.l.Failed())
			}
		})
	}
}

// While one segment is made durable and put in place the next is being made; a loss of power then loses nothing.
func TestNextSegmentIsMadeWhileOneIsPlaced(t *testing.T) {
	g := crashGarden(t, 7)
	both := func() bool {
		names := g.leftovers()
		return slices.ContainsFunc(names, func(s string) bool { return strings.HasSuffix(s, swapSuffix) }) &&
			slices.ContainsFunc(names, func(s string) bool { return strings.HasSuffix(s, cleanedSuffix) }) && bases(names) == 2
	}
	done := false
	g.m.Do(g.loop, func() {
		ring.Go(g.loop, func(task *ring.Task) {
			o := g.how()
			o.Stable = g.stable()
			_, _ = g.l.Clean(task, o)
			done = true
		})
	})
	if err := g.w.RunUntil("both", 1<<40, func() bool { return done || both() }); err != nil {
		t.Fatal(err)
	}
	if done {
		t.Fatal("segments were made one after the other")
	}
	g.afterCrash(t, true, g.w.Steps())
}

// bases is how many segments files belong to.
func bases(names []string) int {
	all := map[Offset]bool{}
	for _, name := range names {
		base, _, _ := parseName(name[strings.LastIndexByte(name, '/')+1:])
		all[base] = true
	}
	return len(all)
}

// A disk that is full wherever a cleaning may meet it ends that cleaning; with room again the next one does it all.
func TestCleanOnAFullDisk(t *testing.T) {
	for _, what := range []string{"open", "write", "sync", "rename"} {
		met := 0
		for skip := 0; ; skip++ {
			g := crashGarden(t, 9)
			g.m.FailNext(what, cleanedSuffix, skip, 1, syscall.ENOSPC)
			s, err := g.clean(g.how())
			if err == nil {
				g.verify(s.To, s.To, false)
				break
			}
			met++
			if !ring.NoSpace(err) || g.l.Failed() != nil || len(g.leftovers()) > 0 {
				t.Fatalf("%s %d: %v, the log %v, left over %v", what, skip, err, g.l.Failed(), g.leftovers())
			}
			if s, err = g.clean(g.how()); err != nil {
				t.Fatalf("%s %d: with room again: %v", what, skip, err)
			}
			g.verify(s.To, s.To, false)
		}
		if met < 4 {
			t.Errorf("%s: met %d times only", what, met)
		}
	}
}
