package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"kring/ring"
	"kring/wire/batch"
)

// cutOrFlip damages a copy of b: everything from at on is gone, or one bit is another.
func cutOrFlip(b []byte, at int, flip bool) []byte {
	b = bytes.Clone(b)
	if flip {
		b[at] ^= 1 << (at % 8)
		return b
	}
	return b[:at]
}

// Whatever happens to the tail of a log, recovery finds the whole batches before it and nothing else.
func TestRecoveryFindsThePrefix(t *testing.T) {
	var log []byte
	var ends []int
	for i := range 12 {
		b := records(1+i%3, epoch+int64(i), strings.Repeat("v", i*20))
		batch.Stamp(b, int64(len(ends))*10, 3)
		log = append(log, b...)
		ends = append(ends, len(log))
	}
	for at := 0; at < len(log); at += 7 {
		for _, flip := range []bool{false, true} {
			whole, _ := slices.BinarySearch(ends, at+1) // batches before the damage
			if start := at - append([]int{0}, ends...)[whole]; flip && start < 16 {
				continue // offset and leader epoch, which no checksum covers, and the length: see below
			}
			got := recovered(t, cutOrFlip(log, at, flip))
			want := log[:append([]int{0}, ends...)[whole]]
			if !bytes.Equal(got, want) {
				t.Fatalf("damage at %d (bit %v): %d bytes, want %d", at, flip, len(got), len(want))
			}
		}
	}
}

// recovered opens a log whose only segment has these bytes and gives what it serves.
func recovered(t *testing.T, log []byte) []byte {
	r := newRig(t, 1)
	r.m.WriteFile("/data/t-0/"+fileName(0, logSuffix), log)
	r.m.WriteFile("/data/t-0/"+fileName(0, indexSuffix), []byte("not an index at all"))
	l := r.open(r.options("/data/t-0"))
	got := bytes.Join(r.readAll(l, 1<<20), nil)
	r.close(l)
	return got
}

func FuzzRecover(f *testing.F) {
	golden := unpack(f, "logdir-killed.tar.gz")
	for name, b := range golden {
		if strings.HasSuffix(name, logSuffix) && len(b) > 0 && len(b) < 3000 {
			f.Add(b, []byte(nil), uint16(0), false)
			f.Add(b, b[len(b)/2:], uint16(len(b)/3), true)
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte, damage uint16, clean bool) {
		r := newRig(t, 1)
		first, second = bytes.Clone(first), bytes.Clone(second)
		if len(first) > 0 {
			first[int(damage)%len(first)] ^= byte(damage >> 8)
		}
		dir := "/data/t-0/"
		r.m.WriteFile(dir+fileName(0, logSuffix), first)
		r.m.WriteFile(dir+fileName(0, indexSuffix), nil)
		r.m.WriteFile(dir+fileName(0, timeSuffix), nil)
		if len(second) > 0 {
			r.m.WriteFile(dir+fileName(30, logSuffix), second)
			r.m.WriteFile(dir+fileName(30, indexSuffix), nil)
		}
		o := r.options("/data/t-0")
		o.Clean = clean
		o.Config.SegmentBytes = 1 << 20
		var l *Log
		var err error
		r.do("open", func(task *ring.Task) { l, err = Open(task, o) })
		if err != nil {
			if !strings.Contains(err.Error(), dir[:len(dir)-1]) || !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v", err)
			}
			return
		}
		for at := l.Start(); at < l.Written(); {
			b, err := r.read(l, at, l.Written(), 1<<20, true)
			if err != nil || len(b) == 0 {
				break
			}
			if !clean && !bytes.Contains(first, b) && !bytes.Contains(second, b) {
				t.Fatal("bytes were served that nobody wrote")
			}
			next := at
			for n := 0; ; n++ {
				one, rest, err := batch.Whole(b)
				if err != nil {
					break
				}
				if !clean && batch.Verify(one) != nil {
					t.Fatal("a batch was served that recovery must not believe")
				}
				next, b = max(next, header(one).last()+1), rest
			}
			if next == at {
				break
			}
			at = next
		}
		before := l.End()
		if before < 1<<60 {
			if a := r.append(l, records(2, epoch, "after")); a.Err == nil && a.Base != before {
				t.Fatalf("appended at %d after %d", a.Base, before)
			}
		}
		r.close(l)
	})
}

// FuzzIndex: with any bytes as indexes of a cleanly closed segment, reads and look-ups find what is in the log.
func FuzzIndex(f *testing.F) {
	golden := unpack(f, "logdir-clean.tar.gz")
	f.Add(golden["logdir-clean/rolls-0/"+fileName(15, indexSuffix)], golden["logdir-clean/rolls-0/"+fileName(15, timeSuffix)])
	f.Add(make([]byte, 4096), make([]byte, 4092))
	f.Add([]byte("odd"), []byte("odder"))
	f.Fuzz(func(t *testing.T, index, times []byte) {
		_ = offsetIndex(index[:len(index)/indexEntry*indexEntry]).find(7)
		_ = timeIndex(times[:len(times)/timeEntry*timeEntry]).find(7)
		r := newRig(t, 1)
		dir := "/logdir-clean/rolls-0"
		for name, b := range golden {
			if strings.HasPrefix("/"+name, dir+"/") {
				r.m.WriteFile("/"+name, b)
			}
		}
		r.m.WriteFile(dir+"/"+fileName(15, indexSuffix), bytes.Clone(index))
		r.m.WriteFile(dir+"/"+fileName(15, timeSuffix), bytes.Clone(times))
		o := r.options(dir)
		o.Clean = true
		l := r.open(o)
		e := expectations(t)["logdir-clean"]
		if got := bytes.Join(r.readAll(l, 500), nil); !bytes.Equal(got, filesOf(t, r, l, e, "rolls-0")) {
			if offsetIndex(index).check(3590) != nil {
				t.Errorf("reading with a wrong index gave %d bytes", len(got))
			}
		}
		r.do("a look-up", func(task *ring.Task) { _, _ = l.OffsetForTime(task, 1_700_000_060_001) })
		r.close(l)
	})
}

func FuzzSnapshot(f *testing.F) {
	for name, b := range unpack(f, "logdir-clean.tar.gz") {
		if strings.HasSuffix(name, snapshotSuffix) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ps producers
		if err := ps.load(b, 10, 0, 1<<62); err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			// With the right checksum only the count can be wrong.
			if len(b) > snapshotHeader {
				sealed := bytes.Clone(b)
				binary.BigEndian.PutUint16(sealed, 1)
				binary.BigEndian.PutUint32(sealed[2:], checksum(sealed[6:]))
				_ = ps.load(sealed, 10, 0, 1<<62)
			}
			return
		}
		var again producers
		if err := again.load(encodeSnapshot(&ps), 10, 0, 1<<62); err != nil || len(again.byID) != len(ps.byID) {
			t.Fatalf("encoded again: %v", err)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	for name, b := range unpack(f, "logdir-clean.tar.gz") {
		if strings.HasSuffix(name, "checkpoint") {
			f.Add(b)
		}
	}
	f.Add([]byte("0\n2\na 0 1\n"))
	f.Add([]byte("1\n0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decodeEpochs(b); err == nil {
			again, err := decodeEpochs(e.encode())
			if err != nil || !slices.Equal(again, e) {
				t.Fatalf("%v became %v, %v", e, again, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
		all, err := decodeCheckpoints(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		var list []Checkpoint
		for p, o := range all {
			list = append(list, Checkpoint{p, o})
		}
		again, err := decodeCheckpoints(encodeCheckpoints(list))
		if err != nil || len(again) != len(all) {
			t.Fatalf("%v became %v, %v", all, again, err)
		}
	})
}

func FuzzMetaProperties(f *testing.F) {
	f.Add(unpack(f, "logdir-clean.tar.gz")["logdir-clean/meta.properties"])
	f.Add([]byte("version=1\nnode.id=1\n"))
	f.Add([]byte("broker.id : 1\n version 0\ncluster.id=a\\=b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeProperties(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if strings.ContainsAny(m.ClusterID, "\\\r\n") || strings.TrimSpace(m.ClusterID) != m.ClusterID {
			return
		}
		if again, err := decodeProperties(encodeProperties(m, epoch)); err != nil || again != m {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte("version: 0\ntopic_id: O55YQuNiRaqbeiI5-_0n9w"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := decodeMetadata(b)
		if err != nil {
			return
		}
		if again, err := decodeMetadata(encodeMetadata(id)); err != nil || again != id {
			t.Fatalf("%v became %v, %v", id, again, err)
		}
	})
}
