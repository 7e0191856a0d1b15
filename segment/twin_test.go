package segment

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"kring/ring"
	"kring/wire/batch"
)

// The same appends as Kafka's give the same files, byte for byte.
func TestFilesAreKafkas(t *testing.T) {
	for _, c := range []struct {
		topic                  string
		segmentBytes, interval int64
		segmentMs              int64
		upTo                   Offset // where Kafka's dir was stopped cleanly
		skip                   string
	}{
		{topic: "rolls-0", segmentBytes: 4096, interval: 100, upTo: 90},
		{topic: "idem-0", segmentBytes: 4096, interval: 4096, upTo: 51},
		{topic: "codecs-0", segmentBytes: 1 << 30, interval: 4096, upTo: 30},
		{topic: "codecs-4", segmentBytes: 1 << 30, interval: 4096, upTo: 30},
		{topic: "nulls-0", segmentBytes: 1 << 30, interval: 4096, segmentMs: 1000, upTo: 10},
		{topic: "ts-middle-0", segmentBytes: 1 << 30, interval: 4096, upTo: 15},
		{topic: "append-time-0", segmentBytes: 1 << 30, interval: 4096, upTo: 10},
		// Kafka was stopped in between: its final time entries and old snapshots are there, too.
		{topic: "txn-0", segmentBytes: 1 << 30, interval: 4096, upTo: 13, skip: timeSuffix},
		{topic: "txn-1", segmentBytes: 1 << 30, interval: 4096, upTo: 14, skip: timeSuffix + " 00000000000000000012.snapshot"},
	} {
		t.Run(c.topic, func(t *testing.T) {
			r := newRig(t, 3)
			files := unpack(t, "logdir-clean.tar.gz")
			o := r.options("/data/" + c.topic)
			o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Config.ProducerExpireMs = c.segmentBytes, c.interval, 1<<62
			if c.segmentMs != 0 {
				o.Config.SegmentMs = c.segmentMs
			}
			l := r.open(o)
			for _, b := range expectations(t)["logdir-clean"].Partitions[c.topic].Batches {
				if b.LastOffset >= c.upTo {
					break
				}
				file := files["logdir-clean/"+c.topic+"/"+fileName(b.Segment, logSuffix)]
				data := bytes.Clone(file[b.Position : b.Position+b.Size])
				if a := r.appendAs(l, &Append{Data: data, Origin: FromLeader}); a.Err != nil {
					t.Fatal(a.Err)
				}
			}
			r.close(l)
			compareDirs(t, r, files, "logdir-clean/"+c.topic+"/", o.Dir+"/", c.skip)
		})
	}
}

func compareDirs(t *testing.T, r *rig, want map[string][]byte, from, to, skip string) {
	t.Helper()
	seen := map[string]bool{}
	for name, content := range want {
		name, ok := strings.CutPrefix(name, from)
		if !ok || name == metadataFile || name == epochsFile || skip != "" && (strings.Contains(skip, name) || strings.HasSuffix(name, strings.Fields(skip)[0])) {
			continue
		}
		seen[name] = true
		got, err := r.m.ReadFile(to + name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(got, content) {
			t.Errorf("%s differs:\n%x\nwant\n%x", name, got, content)
		}
	}
	for _, name := range r.m.Files(strings.TrimSuffix(to, "/")) {
		name = strings.TrimPrefix(name, to)
		if !seen[name] && name != epochsFile && (skip == "" || !strings.HasSuffix(name, strings.Fields(skip)[0])) {
			t.Errorf("%s should not be there", name)
		}
	}
}

// twin is what a log should hold: every batch that was appended, as it was stamped.
type twin struct {
	batches [][]byte
	acked   Offset // the end of what was answered
}

func (w *twin) end() Offset {
	if len(w.batches) == 0 {
		return 0
	}
	return header(w.batches[len(w.batches)-1]).last() + 1
}

// isPrefix checks that got is what the twin holds, up to some batch.
func (w *twin) isPrefix(got [][]byte) error {
	if len(got) > len(w.batches) {
		return fmt.Errorf("%d batches of %d", len(got), len(w.batches))
	}
	for i, b := range got {
		if !bytes.Equal(b, w.batches[i]) {
			return fmt.Errorf("batch %d is %x, want %x", i, b[:min(80, len(b))], w.batches[i][:80])
		}
	}
	return nil
}

// A log that lives through crashes, kills and clean stops holds a prefix of what was appended and all that was durable, and
// reads, times and indexes agree with a list of batches.
func TestLogAgainstTwin(t *testing.T) {
	seeds := uint64(60)
	if n, err := strconv.ParseUint(os.Getenv("SEGMENT_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { liveAndDie(t, seed) })
	}
}

func liveAndDie(t *testing.T, seed uint64) { liveAndDieOn(t, newRig(t, seed)) }

func liveAndDieOn(t *testing.T, r *rig) {
	rnd := r.w.Rand()
	o := r.options("/data/t-0")
	o.Config.SegmentBytes = int64(8000 + rnd.IntN(20000))
	o.Config.IndexIntervalBytes = int64(rnd.IntN(3000))
	o.Config.Preallocate = rnd.IntN(4) == 0
	if rnd.IntN(3) == 0 {
		o.Config.FlushMessages = 1
	} else if rnd.IntN(3) == 0 {
		o.Config.FlushMessages = int64(1 + rnd.IntN(50))
	}
	every := o.Config.FlushMessages == 1
	w := &twin{}
	r.m.WriteFile("/data/.lock", nil)
	o.Clean = true
	for range 4 {
		o.Files = r.files
		l := r.open(o)
		got := r.readAll(l, 1+rnd.IntN(6000))
		if err := w.isPrefix(got); err != nil {
			t.Fatalf("after a start: %v", err)
		}
		w.batches = w.batches[:len(got)]
		if l.End() != w.end() {
			t.Fatalf("ends at %d, want %d", l.End(), w.end())
		}
		if l.End() < w.acked {
			t.Fatalf("ends at %d, but up to %d was durable", l.End(), w.acked)
		}
		w.acked = 0
		appendMany(t, r, l, w, 20+rnd.IntN(60), every)
		for range rnd.IntN(3) { // twice in a row without an append: the log comes to rest
			r.do("retain", func(task *ring.Task) {
				if n, err := l.Retain(task, epoch, 0); n != 0 || err != nil {
					t.Fatal(n, err)
				}
			})
		}
		if rnd.IntN(3) == 0 {
			appendMany(t, r, l, w, 10, every)
		}
		compareTimes(t, r, l, w)
		if err := w.isPrefix(r.readAll(l, 1+rnd.IntN(6000))); err != nil {
			t.Fatalf("while running: %v", err)
		}
		o.RecoveryPoint = l.RecoveryPoint()
		w.acked = max(w.acked, l.Durable())
		switch rnd.IntN(3) {
		case 0:
			r.close(l)
			o.Clean, w.acked = true, w.end()
			if err := r.m.Exit(); err != nil {
				t.Fatal(err)
			}
			o.RecoveryPoint = w.end()
		case 1:
			burst(r, l, w, rnd.IntN(20))
			r.m.Kill()
			o.Clean = false
		case 2:
			burst(r, l, w, rnd.IntN(20))
			r.m.Crash()
			o.Clean = false
		}
		r.boot()
	}
}

func (r *rig) batch(ms int64) []byte {
	rnd := r.w.Rand()
	return records(1+rnd.IntN(4), ms, strings.Repeat("v", rnd.IntN(1500)))
}

func appendMany(t *testing.T, r *rig, l *Log, w *twin, n int, every bool) {
	rnd := r.w.Rand()
	done := 0
	r.do("appends", func(task *ring.Task) {
		for range n {
			data := r.batch(1_700_000_000_000 + int64(rnd.IntN(1_000_000)))
			a := &Append{Data: data, LeaderEpoch: int32(len(w.batches) / 50)}
			a.Done = func(a *Append) {
				done++
				if every && l.Durable() <= a.Last {
					t.Errorf("answered %d, durable is %d", a.Last, l.Durable())
				}
			}
			l.Append(a)
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			w.batches = append(w.batches, data)
			if rnd.IntN(3) == 0 {
				task.Sleep(1 << rnd.IntN(20))
			}
			if rnd.IntN(60) == 0 {
				l.Roll()
			}
		}
		l.until(task, func() bool { return done == n })
	})
}

// burst starts appends and does not wait for them.
func burst(r *rig, l *Log, w *twin, n int) {
	r.on(func() {
		for range n {
			data := r.batch(1_700_000_000_000)
			l.Append(&Append{Data: data, LeaderEpoch: 9, Done: func(*Append) {}})
			w.batches = append(w.batches, data)
		}
	})
	for range r.w.Rand().IntN(40) {
		r.w.Step()
	}
}

func compareTimes(t *testing.T, r *rig, l *Log, w *twin) {
	rnd := r.w.Rand()
	for range 5 {
		ms := 1_700_000_000_000 + int64(rnd.IntN(1_000_010))
		want := TimeOffset{Timestamp: -1, Offset: -1, LeaderEpoch: -1}
	search:
		for _, b := range w.batches {
			rec, _ := batch.Open(b, 1<<20)
			for rec.Next() {
				if rec.Timestamp >= ms {
					want = TimeOffset{rec.Timestamp, Offset(rec.Offset), header(b).leaderEpoch()}
					break search
				}
			}
		}
		r.do("a look-up by time", func(task *ring.Task) {
			if got, err := l.OffsetForTime(task, ms); err != nil || got != want {
				t.Errorf("time %d is at %+v, %v; want %+v", ms, got, err, want)
			}
		})
	}
}
