package segment

import (
	"bytes"
	"strings"
	"testing"

	"kring/ring"
	"kring/wire/batch"
)

// kafkasCleaning is when Kafka cleaned compacted-0 for the last time before the golden log dir was stopped: its delete horizon less
// delete.retention.ms.
const kafkasCleaning = 1796097099171 - 24*3600*1000

// The golden log dir holds what Kafka has cleaned beside what it has made of it, since the originals wait to be removed. Cleaned
// here, the originals give the same.
func TestCleaningGivesWhatKafkaMade(t *testing.T) {
	r := newRig(t, 41)
	files := unpack(t, "logdir-clean.tar.gz")
	const dir = "logdir-clean/compacted-0/"
	for name, content := range files {
		name, ok := strings.CutPrefix(name, dir)
		base, suffix, isFile := parseName(name)
		switch {
		case !ok:
		case strings.HasSuffix(name, deletedSuffix):
			r.m.WriteFile("/data/t-0/"+strings.TrimSuffix(name, deletedSuffix), content)
		case !isFile || base >= 166 || suffix == snapshotSuffix:
			r.m.WriteFile("/data/t-0/"+name, content)
		}
	}
	o := r.options("/data/t-0")
	o.Config.Compact, o.Config.DeleteRetained, o.Config.SegmentBytes, o.Config.IndexIntervalBytes = true, false, 2048, 256
	o.Config.ProducerExpireMs = 1 << 60
	o.Clean, o.Cleaned = true, 116
	l := r.open(o)
	r.do("clean", func(task *ring.Task) {
		s, err := l.Clean(task, CleanOptions{Now: kafkasCleaning, Stable: l.End(), MapBytes: 1 << 20, MapLoad: 0.9,
			BufferBytes: 4096})
		if err != nil || s.To != 166 || s.Groups != 3 || s.Segments != 7 {
			t.Fatalf("%+v %v", s, err)
		}
	})
	r.m.Kill()
	r.boot()
	o.Files, o.Clean, o.Cleaned = r.files, false, 166 // Kafka's indexes, too, are those of a recovery
	l = r.open(o)
	r.do("finish", func(task *ring.Task) { l.until(task, func() bool { return l.unfinished() == nil && !l.finishing }) })
	for name, want := range files {
		name, ok := strings.CutPrefix(name, dir)
		base, suffix, isFile := parseName(name)
		if !ok || !isFile || base >= 166 || strings.HasSuffix(suffix, deletedSuffix) || suffix == snapshotSuffix {
			continue
		}
		got, err := r.m.ReadFile("/data/t-0/" + name)
		switch {
		case err != nil:
			t.Error(err)
		case base == 116 && suffix == logSuffix:
			sameRecords(t, name, got, want)
		case base == 116: // positions follow from how well a codec compresses
		case !bytes.Equal(got, want):
			t.Errorf("%s:\n% x\nwant\n% x", name, got, want)
		}
	}
	for _, name := range r.m.Files("/data/t-0") {
		if _, ok := files[dir+strings.TrimPrefix(name, "/data/t-0/")]; !ok {
			t.Errorf("%s should not be there", name)
		}
	}
}

// sameRecords holds two files' batches against each other: all of their headers but size and checksum, and their records once they
// are unpacked; what is not compressed must be the same bytes.
func sameRecords(t *testing.T, name string, got, want []byte) {
	t.Helper()
	for n := 0; len(got) > 0 || len(want) > 0; n++ {
		a, restA, errA := batch.Whole(got)
		b, restB, errB := batch.Whole(want)
		if errA != nil || errB != nil {
			t.Fatalf("%s, batch %d: %v, %v", name, n, errA, errB)
		}
		got, want = restA, restB
		if err := batch.Verify(a); err != nil {
			t.Errorf("%s, batch %d: %v", name, n, err)
		}
		if bytes.Equal(a, b) {
			continue
		}
		ha, hb := bytes.Clone(a[:batch.HeaderSize]), bytes.Clone(b[:batch.HeaderSize])
		for _, h := range [][]byte{ha, hb} {
			clear(h[8:12])
			clear(h[17:21])
		}
		bodyA, errA := batch.Decompress(nil, batch.Header(a).Codec(), a[batch.HeaderSize:], 1<<20)
		bodyB, errB := batch.Decompress(nil, batch.Header(b).Codec(), b[batch.HeaderSize:], 1<<20)
		if errA != nil || errB != nil || !bytes.Equal(ha, hb) || !bytes.Equal(bodyA, bodyB) || batch.Header(a).Codec() == batch.None {
			t.Errorf("%s, batch %d: %v %v\n% x | % x\nwant\n% x | % x", name, n, errA, errB, ha, bodyA, hb, bodyB)
		}
	}
}
