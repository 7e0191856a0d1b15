package segment

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"kring/ring"
	"kring/wire/batch"
)

// produced makes a batch of n records by a producer.
func produced(id int64, epoch int16, seq int32, n int, ms int64, txn bool) []byte {
	b := batch.NewBuilder(batch.None)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = id, epoch, seq, txn
	for i := range n {
		b.Add(ms+int64(i), nil, []byte("v"))
	}
	return b.AppendTo(nil)
}

// marker makes an end-of-transaction marker.
func marker(id int64, epoch int16, commit bool, coordinatorEpoch int32, ms int64) []byte {
	b := batch.NewBuilder(batch.None)
	b.ProducerID, b.ProducerEpoch, b.Transactional, b.Control = id, epoch, true, true
	key := []byte{0, 0, 0, 0}
	if commit {
		key[3] = 1
	}
	b.Add(ms, key, binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(coordinatorEpoch)))
	return b.AppendTo(nil)
}

const last31 = 1<<31 - 1

func TestSequences(t *testing.T) {
	type step struct {
		seq   int32
		n     int
		epoch int16
		err   error
		dup   Offset // base of the original, -1: no duplicate
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"following on", []step{{0, 2, 0, nil, -1}, {2, 3, 0, nil, -1}, {5, 1, 0, nil, -1}}},
		{"an unknown producer may begin anywhere", []step{{77, 1, 3, nil, -1}, {78, 1, 3, nil, -1}}},
		{"a gap", []step{{0, 2, 0, nil, -1}, {3, 1, 0, ErrOutOfOrder, -1}, {2, 1, 0, nil, -1}}},
		{"a duplicate gets the original's offset", []step{{0, 2, 0, nil, -1}, {2, 1, 0, nil, -1}, {0, 2, 0, nil, 0}, {2, 1, 0, nil, 2}}},
		{"an overlap is no duplicate", []step{{0, 3, 0, nil, -1}, {1, 2, 0, ErrOutOfOrder, -1}, {0, 4, 0, ErrOutOfOrder, -1}}},
		{"the sixth last is not known any more", []step{
			{0, 1, 0, nil, -1}, {1, 1, 0, nil, -1}, {2, 1, 0, nil, -1}, {3, 1, 0, nil, -1}, {4, 1, 0, nil, -1}, {0, 1, 0, nil, 0},
			{5, 1, 0, nil, -1}, {0, 1, 0, ErrOutOfOrder, -1}, {1, 1, 0, nil, 1},
		}},
		{"a new epoch begins with 0", []step{{0, 2, 0, nil, -1}, {2, 1, 1, ErrOutOfOrder, -1}, {0, 1, 1, nil, -1}, {1, 1, 1, nil, -1}}},
		{"an old epoch is fenced", []step{{0, 2, 5, nil, -1}, {2, 1, 4, ErrProducerFenced, -1}}},
		{"sequences wrap within a batch", []step{{last31 - 1, 4, 0, nil, -1}, {last31 - 1, 4, 0, nil, 0}, {2, 1, 0, nil, -1}}},
		{"sequences wrap between batches", []step{{last31, 1, 0, nil, -1}, {1, 1, 0, ErrOutOfOrder, -1}, {0, 1, 0, nil, -1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 5)
			l := r.open(r.options("/data/t-0"))
			for i, s := range c.steps {
				before := l.End()
				a := r.append(l, produced(9, s.epoch, s.seq, s.n, int64(1000+100*i), false))
				if !errors.Is(a.Err, s.err) || (s.err == nil) != (a.Err == nil) {
					t.Fatalf("step %d: %v, want %v", i, a.Err, s.err)
				}
				switch {
				case s.err != nil && l.End() != before:
					t.Fatalf("step %d was refused and the log grew", i)
				case s.err == nil && a.Duplicate != (s.dup >= 0):
					t.Fatalf("step %d: duplicate %v", i, a.Duplicate)
				case a.Duplicate && (a.Base != s.dup || a.Last != s.dup+Offset(s.n)-1 || l.End() != before || a.Timestamp == 0):
					t.Fatalf("step %d: %d to %d at %d, log to %d", i, a.Base, a.Last, a.Timestamp, l.End())
				}
			}
		})
	}
}

// Only the newest batch of a producer is remembered over a restart, and it is, however the log was stopped.
func TestProducersSurvive(t *testing.T) {
	for _, stop := range []string{"clean", "kill", "no snapshot"} {
		t.Run(stop, func(t *testing.T) {
			r := newRig(t, 6)
			o := r.options("/data/t-0")
			l := r.open(o)
			ms := r.loop.UnixMilli()
			r.append(l, produced(1, 0, 0, 3, ms, false))
			r.append(l, produced(2, 4, 10, 1, ms, false))
			r.on(l.Roll)
			r.append(l, produced(1, 0, 3, 2, ms, false))
			if stop == "kill" {
				r.m.Kill()
			} else {
				r.close(l)
				if err := r.m.Exit(); err != nil {
					t.Fatal(err)
				}
				o.Clean = true
			}
			r.boot()
			if stop == "no snapshot" {
				for _, f := range []string{"4", "6"} {
					if err := r.m.Damage(o.Dir+"/0000000000000000000"+f+".snapshot", func(b []byte) []byte { b[7] ^= 1; return b }); err != nil {
						t.Fatal(err)
					}
				}
			}
			o.Files = r.files
			l = r.open(o)
			if a := r.append(l, produced(1, 0, 3, 2, ms, false)); a.Err != nil || !a.Duplicate || a.Base != 4 {
				t.Errorf("duplicate: %+v", a)
			}
			if a := r.append(l, produced(1, 0, 7, 1, ms, false)); !errors.Is(a.Err, ErrOutOfOrder) {
				t.Errorf("gap: %v", a.Err)
			}
			if a := r.append(l, produced(2, 3, 11, 1, ms, false)); !errors.Is(a.Err, ErrProducerFenced) {
				t.Errorf("old epoch: %v", a.Err)
			}
			if a := r.append(l, produced(2, 4, 11, 1, ms, false)); a.Err != nil || a.Base != 6 {
				t.Errorf("following on: %+v", a)
			}
		})
	}
}

func TestTransactions(t *testing.T) {
	r := newRig(t, 7)
	o := r.options("/data/t-0")
	l := r.open(o)
	unstable := func(want Offset) {
		t.Helper()
		o, ok := l.FirstUnstable()
		if !ok {
			o = -1
		}
		if o != want {
			t.Fatalf("first unstable is %d, want %d", o, want)
		}
	}
	mark := func(data []byte) *Append { return r.appendAs(l, &Append{Data: data, Origin: FromCoordinator}) }
	ms := r.loop.UnixMilli()
	unstable(-1)
	r.append(l, produced(1, 0, 0, 2, ms, true)) // 0, 1
	r.append(l, produced(2, 0, 0, 1, ms, true)) // 2
	unstable(0)
	if a := r.append(l, produced(1, 0, 2, 1, ms, false)); !errors.Is(a.Err, ErrTxnState) {
		t.Fatalf("a batch outside the open transaction: %v", a.Err)
	}
	mark(marker(1, 0, false, 7, ms)) // 3
	unstable(0)                      // its marker is not below the high watermark
	r.on(func() { l.HighWatermark(3) })
	unstable(0)
	r.on(func() { l.HighWatermark(4) })
	unstable(2)
	if got := l.Aborted(nil, 0, 4); len(got) != 1 || got[0] != (AbortedTxn{1, 0, 3, 2}) {
		t.Fatalf("aborted: %v", got)
	}
	if a := mark(marker(1, 0, true, 6, ms)); !errors.Is(a.Err, ErrCoordinatorFenced) {
		t.Fatalf("an old coordinator: %v", a.Err)
	}
	mark(marker(2, 1, true, 7, ms)) // 4, with a newer epoch: the old producer is fenced
	if a := r.append(l, produced(2, 0, 1, 1, ms, true)); !errors.Is(a.Err, ErrProducerFenced) {
		t.Fatalf("fenced by a marker: %v", a.Err)
	}
	r.on(func() { l.HighWatermark(5) })
	unstable(-1)
	r.on(l.Roll)
	r.append(l, produced(3, 0, 0, 1, ms, true)) // 5
	mark(marker(3, 0, false, 1, ms))            // 6
	if got := l.Aborted(nil, 4, 7); len(got) != 1 || got[0] != (AbortedTxn{3, 5, 6, 7}) {
		t.Fatalf("aborted in the second segment: %v", got)
	}
	if got := l.Aborted(nil, 0, 7); len(got) != 2 {
		t.Fatalf("aborted in all: %v", got)
	}
	r.append(l, produced(4, 0, 0, 1, ms, true)) // 7
	r.m.Kill()
	r.boot()
	o.Files = r.files
	l = r.open(o)
	if got := l.Aborted(nil, 0, 7); len(got) != 2 {
		t.Fatalf("aborted after a kill: %v", got)
	}
	r.on(func() { l.HighWatermark(8) })
	unstable(7)
}

// A reader is told of the aborted transactions in what it reads, not of all that follow.
func TestAbortedOfWhatIsRead(t *testing.T) {
	r := newRig(t, 9)
	o := r.options("/data/t-0")
	o.Config.IndexIntervalBytes = 1
	l := r.open(o)
	ms := r.loop.UnixMilli()
	for i := range 50 { // at offsets 2i and 2i+1
		r.append(l, produced(1, 0, int32(i), 1, ms, true))
		r.appendAs(l, &Append{Data: marker(1, 0, false, 1, ms), Origin: FromCoordinator})
		if i == 24 {
			r.on(l.Roll)
		}
	}
	r.on(func() { l.HighWatermark(100) })
	for _, c := range []struct {
		from        Offset
		bytes       int
		least, most int
	}{{0, 300, 1, 4}, {20, 300, 1, 4}, {0, 1 << 20, 25, 25}, {60, 1 << 20, 20, 20}, {99, 1 << 20, 1, 1}} {
		var x Range
		done := false
		x.Done = func(*Range) { done = true }
		r.on(func() { done = l.Read(c.from, 100, c.bytes, true, &x) || done })
		if err := r.w.RunUntil("read", time.Hour, func() bool { return done }); err != nil {
			t.Fatal(err)
		}
		r.on(func() {
			got := l.AbortedIn(nil, c.from, 100, &x)
			if len(got) < c.least || len(got) > c.most || got[0].Last < c.from {
				t.Errorf("from %d, %d bytes: %d aborted: %v", c.from, c.bytes, len(got), got)
			}
			x.Unpin()
		})
	}
	if got := l.AbortedIn(nil, 0, 100, &Range{}); len(got) != 0 {
		t.Errorf("nothing read: %v", got)
	}
}

func TestProducersExpire(t *testing.T) {
	r := newRig(t, 8)
	l := r.open(r.options("/data/t-0"))
	ms := r.loop.UnixMilli()
	r.append(l, produced(1, 0, 5, 1, ms, false))
	r.append(l, produced(2, 0, 5, 1, ms, true))
	r.on(func() { l.prods.expire(ms+l.conf.ProducerExpireMs, l.conf.ProducerExpireMs) })
	if l.prods.get(1) != nil || l.prods.get(2) == nil {
		t.Errorf("a silent producer goes, one with an open transaction stays: %v", l.prods.sorted())
	}
}

func putSequence(b []byte, seq int32) { binary.BigEndian.PutUint32(b[53:], uint32(seq)) }

// A snapshot of no producers that stands for what was deleted is removed by a start, and not written again, as in Kafka; one with producers
// is kept, so that they go on in sequence.
func TestSnapshotOfAnEmptyLog(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		for _, emptied := range []bool{false, true} { // by segments, or within one
			r := newRig(t, 5)
			o := r.options("/data/t-0")
			l := r.open(o)
			b := records(1, epoch, "v")
			if idempotent {
				b = produced(7, 0, 0, 1, epoch, false)
			}
			if a := r.append(l, b); a.Err != nil {
				t.Fatal(a.Err)
			}
			for life := range 3 {
				if life == 0 {
					r.do("delete", func(task *ring.Task) {
						if err := l.DeleteTo(1); err != nil {
							t.Error(err)
						}
						if emptied {
							l.Roll()
							if _, err := l.Retain(task, r.loop.UnixMilli(), 1); err != nil {
								t.Error(err)
							}
						}
					})
				}
				r.close(l)
				_, err := r.m.ReadFile(o.Dir + "/" + fileName(1, snapshotSuffix))
				if want := idempotent || life == 0; (err == nil) != want {
					t.Errorf("producer %v, emptied %v, life %d: snapshot: %v", idempotent, emptied, life, err)
				}
				if err := r.m.Exit(); err != nil {
					t.Fatal(err)
				}
				r.boot()
				o.Files, o.Clean, o.RecoveryPoint, o.LogStart = r.files, true, 1, 1
				l = r.open(o)
			}
		}
	}
}
