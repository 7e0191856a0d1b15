package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kring/metadata"
)

// TestCrashes: topics are made and deleted at random while the broker loses power. What was answered holds after the next start,
// ids do not change, epochs do not fall, and nothing half made is left.
func TestCrashes(t *testing.T) {
	for seed := range uint64(15) {
		crashes(t, seed)
	}
}

type fate struct {
	id      metadata.TopicID
	made    bool // its creation was answered
	gone    bool // its deletion was asked for
	removed bool // and answered
	epochs  map[int]metadata.LeaderEpoch
}

func crashes(t *testing.T, seed uint64) {
	x := newCluster(t, seed)
	fates := map[string]*fate{}
	n := 0
	for life := range 8 {
		x.start()
		x.settle()
		inspect(t, x, fates, seed, life)
		r := x.w.Rand()
		for range 1 + r.IntN(6) {
			var old string
			for name, f := range fates {
				if f.made && !f.gone && (old == "" || name < old) {
					old = name
				}
			}
			x.m.Do(x.loop, func() {
				if old != "" && r.IntN(3) == 0 {
					f := fates[old]
					f.gone = true
					x.c.DeleteTopics([]DeleteTopic{{Name: old}}, minute, func(d []DeletedTopic) { f.removed = d[0].Err == nil })
					return
				}
				name := fmt.Sprint("t", n)
				n++
				f := &fate{epochs: map[int]metadata.LeaderEpoch{}}
				fates[name] = f
				x.c.CreateTopics([]CreateTopic{topicNamed(name, int32(1+r.IntN(3)))}, minute, func(c []CreatedTopic) {
					f.made, f.id = c[0].Err == nil, c[0].ID
				})
			})
			x.w.RunFor(time.Duration(r.IntN(6000)) * time.Microsecond)
		}
		if r.IntN(3) == 0 {
			x.m.Kill()
		} else {
			x.m.Crash()
		}
	}
}

func inspect(t *testing.T, x *cluster, fates map[string]*fate, seed uint64, life int) {
	t.Helper()
	tree := strings.Join(x.tree(), "\n")
	for name, f := range fates {
		m := x.image.Topic(name)
		switch {
		case f.made && !f.gone && m == nil:
			t.Errorf("seed %d, life %d: topic %s was made and is not there", seed, life, name)
		case f.removed && m != nil:
			t.Errorf("seed %d, life %d: topic %s was deleted and is there", seed, life, name)
		case m != nil && f.made && m.ID != f.id:
			t.Errorf("seed %d, life %d: topic %s has another id", seed, life, name)
		}
		if m == nil {
			if strings.Contains(tree, "/"+name+" ") && !strings.Contains(tree, "/config/topics/"+name+" ") || strings.Contains(tree, "/brokers/topics/"+name+" ") {
				t.Errorf("seed %d, life %d: remains of topic %s:\n%s", seed, life, name, tree)
			}
			continue
		}
		if !led(m) {
			t.Errorf("seed %d, life %d: topic %s has no leader: %+v", seed, life, name, m)
		}
		for i, p := range m.Partitions {
			if p.LeaderEpoch < f.epochs[i] {
				t.Errorf("seed %d, life %d: the epoch of %s-%d fell", seed, life, name, i)
			}
			f.epochs[i] = p.LeaderEpoch
		}
	}
}

// TestReplay: the same seed gives the same run, step by step.
func TestReplay(t *testing.T) {
	run := func() string {
		x := newCluster(t, 99)
		x.start()
		x.mustCreate(topicNamed("a", 3), topicNamed("b", 2))
		x.delete(minute, DeleteTopic{Name: "a"})
		x.settle()
		tree := strings.Join(x.tree(), "\n")
		x.stop()
		return fmt.Sprint(x.w.Steps(), x.w.Now(), tree)
	}
	if a, b := run(), run(); a != b {
		t.Errorf("two runs of one seed differ:\n%s\n%s", a, b)
	}
}
