package segment

import (
	"bytes"
	"slices"
	"testing"

	"kring/ring"
)

// Every partition of a Kafka log dir opens with the offsets, epochs, producers and records Kafka itself had.
func TestOpenKafkaLogDir(t *testing.T) {
	for _, c := range []struct {
		name, archive string
		clean         bool // what the log is told
	}{
		{"clean stop, trusted", "clean", true},
		{"clean stop, recovered all the same", "clean", false},
		{"kill -9, recovered", "killed", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 1)
			r.put("logdir-" + c.archive + ".tar.gz")
			e := expectations(t)["logdir-"+c.archive]
			var d *Dir
			r.do("open the dir", func(task *ring.Task) {
				var err error
				if d, err = OpenDir(task, "/logdir-"+c.archive, DirOptions{BrokerID: 4, ClusterID: "uQtXc7wQQ-SEYe54tbNBOA", Log: quiet(t)}); err != nil {
					t.Fatal(err)
				}
			})
			if d.Clean() != (c.archive == "clean") {
				t.Errorf("clean: %v", d.Clean())
			}
			n := 0
			for _, p := range d.Partitions() {
				n++
				o := d.Options(p)
				o.Files, o.Clean = r.files, c.clean
				o.Config.IndexMaxBytes = 4096
				l := r.open(o)
				checkPartition(t, r, l, p.String(), e)
				r.close(l)
			}
			if want := len(e.Partitions); n+len(d.leftovers) != want {
				t.Errorf("%d partitions and %d leftovers, want %d", n, len(d.leftovers), want)
			}
			r.do("close", func(task *ring.Task) {
				if err := d.Close(task, true); err != nil {
					t.Fatal(err)
				}
			})
			if err := r.m.Exit(); err != nil {
				t.Error(err)
			}
		})
	}
}

func checkPartition(t *testing.T, r *rig, l *Log, name string, e expected) {
	want := e.Partitions[name]
	s := want.Summary
	if l.Start() != s.LogStartOffset || l.End() != s.LogEndOffset {
		t.Errorf("%s: from %d to %d, want from %d to %d", name, l.Start(), l.End(), s.LogStartOffset, s.LogEndOffset)
	}
	if l.TopicID().String() != s.TopicID {
		t.Errorf("%s: topic id %v, want %s", name, l.TopicID(), s.TopicID)
	}
	var epochs epochs
	for _, x := range s.LeaderEpochs {
		if Offset(x[1]) < l.End() { // an epoch without records is not kept over a start; its leader assigns another
			epochs = append(epochs, epochStart{int32(x[0]), Offset(x[1])})
		}
	}
	if !slices.Equal(l.epochs, epochs) {
		t.Errorf("%s: epochs %v, want %v", name, l.epochs, epochs)
	}
	r.on(func() { l.HighWatermark(s.HighWatermark) })
	stable := s.HighWatermark
	if o, ok := l.FirstUnstable(); ok {
		stable = min(stable, o)
	}
	if stable != s.LastStable {
		t.Errorf("%s: last stable offset %d, want %d", name, stable, s.LastStable)
	}
	r.do("max timestamp", func(task *ring.Task) {
		found, err := l.MaxTimestamp(task)
		if err != nil || found.Timestamp != s.MaxTimestamp || found.Offset != s.MaxTimestampAt {
			t.Errorf("%s: largest time %+v, %v; want %d at %d", name, found, err, s.MaxTimestamp, s.MaxTimestampAt)
		}
	})
	for _, size := range []int{1, 1000, 1 << 20} {
		got := r.readAll(l, size)
		var all []byte
		for _, b := range got {
			all = append(all, b...)
		}
		wanted := filesOf(t, r, l, e, name)
		if !bytes.Equal(all, wanted) {
			t.Errorf("%s: reading %d bytes at a time gave %d bytes, want %d", name, size, len(all), len(wanted))
		}
	}
}

// filesOf joins the whole batches of a partition that reach above its start.
func filesOf(t *testing.T, r *rig, l *Log, e expected, name string) []byte {
	var all []byte
	for _, b := range e.Partitions[name].Batches {
		if b.LastOffset < l.Start() {
			continue
		}
		file, err := r.m.ReadFile(l.Dir() + "/" + fileName(b.Segment, logSuffix))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file[b.Position:b.Position+b.Size]...)
	}
	return all
}
