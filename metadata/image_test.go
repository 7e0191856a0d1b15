package metadata

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func topicNamed(name string, partitions int, r *rand.Rand) *Topic {
	t := &Topic{Name: name, ID: NewTopicID(r)}
	for range partitions {
		t.Partitions = append(t.Partitions, Partition{Leader: 1, Replicas: []int32{1}, ISR: []int32{1}})
	}
	return t
}

func TestImageIsImmutable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	images := []*Image{NewImage()}
	want := []map[string]*Topic{{}}
	for i := range 3000 {
		last, model := images[len(images)-1], map[string]*Topic{}
		for k, v := range want[len(want)-1] {
			model[k] = v
		}
		e := last.Edit()
		for range 1 + r.IntN(3) {
			name := fmt.Sprint("t", r.IntN(60))
			if r.IntN(3) == 0 {
				e.RemoveTopic(name)
				delete(model, name)
				continue
			}
			x := topicNamed(name, r.IntN(4), r)
			if old := model[name]; old != nil && r.IntN(2) == 0 {
				x.ID = old.ID
			}
			e.SetTopic(x)
			model[name] = x
		}
		e.SetBroker(&Broker{ID: int32(i % 5)})
		if i%7 == 0 {
			e.RemoveBroker(int32(r.IntN(5)))
		}
		images, want = append(images, e.Image()), append(want, model)
	}
	for i, m := range images[1:] {
		changed := map[string]bool{}
		for was, is := range m.Changes(images[i]) {
			x := is
			if x == nil {
				x = was
			}
			if changed[x.Name] || was != want[i][x.Name] || is != want[i+1][x.Name] || was == is {
				t.Fatalf("change %d of topic %s is told wrongly", i, x.Name)
			}
			changed[x.Name] = true
		}
		for name, x := range want[i+1] {
			if want[i][name] != x && !changed[name] {
				t.Fatalf("change %d of topic %s is not told", i, name)
			}
		}
		for name := range want[i] {
			if want[i+1][name] == nil && !changed[name] {
				t.Fatalf("loss %d of topic %s is not told", i, name)
			}
		}
	}
	for i, m := range images {
		partitions := 0
		for name, x := range want[i] {
			partitions += len(x.Partitions)
			if m.Topic(name) != x || m.TopicBytes([]byte(name)) != x || m.TopicByID(x.ID) != x {
				t.Fatalf("image %d: topic %s is not found as it was set", i, name)
			}
		}
		var names []string
		for x := range m.Topics() {
			names = append(names, x.Name)
			if want[i][x.Name] != x {
				t.Fatalf("image %d: topic %s should not be there", i, x.Name)
			}
		}
		if len(names) != len(want[i]) || m.NumTopics() != len(names) || m.NumPartitions() != partitions {
			t.Fatalf("image %d: %d topics listed, %d counted, %d wanted", i, len(names), m.NumTopics(), len(want[i]))
		}
		if !slices.IsSortedFunc(m.Brokers(), func(a, b *Broker) int { return int(a.ID - b.ID) }) {
			t.Fatalf("image %d: brokers are not sorted", i)
		}
	}
}

func TestTopicOrderDependsOnNamesOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	order := func(perm []int) (names []string) {
		e := NewImage().Edit()
		for _, i := range perm {
			e.SetTopic(topicNamed(fmt.Sprint("topic-", i), 1, r))
		}
		for x := range e.Image().Topics() {
			names = append(names, x.Name)
		}
		return names
	}
	if a, b := order(r.Perm(500)), order(r.Perm(500)); !slices.Equal(a, b) {
		t.Fatal("the order of topics depends on the order of setting them")
	}
}

func TestBrokerConfigs(t *testing.T) {
	e := NewImage().Edit()
	e.SetBrokerConfig(1, Config{{"a", "1"}})
	e.SetBrokerConfig(NoBroker, Config{{"b", "2"}})
	a := e.Image()
	e = a.Edit()
	e.SetBrokerConfig(1, Config{{"a", "3"}})
	b := e.Image()
	if v, _ := a.BrokerConfig(1).Get("a"); v != "1" {
		t.Error("an older image changed")
	}
	if v, _ := b.BrokerConfig(1).Get("a"); v != "3" {
		t.Error("the new value is not there")
	}
	if v, _ := b.BrokerConfig(NoBroker).Get("b"); v != "2" || b.BrokerConfig(7) != nil {
		t.Error("defaults of all brokers")
	}
}

func TestConfig(t *testing.T) {
	c := Config{{"a", "1"}, {"b", "2"}}
	d := c.With("a", "9").With("c", "3").Without("b")
	if !d.Equal(Config{{"c", "3"}, {"a", "9"}}) || !c.Equal(Config{{"a", "1"}, {"b", "2"}}) || d.Equal(c) {
		t.Errorf("%v %v", c, d)
	}
}

func TestTopicIDs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	dashes := 0
	for range 20000 {
		id := NewTopicID(r)
		if id.IsZero() || id.String()[0] == '-' || id[6]>>4 != 4 || id[8]>>6 != 2 {
			t.Fatalf("id %s (%x)", id, id)
		}
		back, err := ParseTopicID(id.String())
		if err != nil || back != id {
			t.Fatalf("%s reads as %s, %v", id, back, err)
		}
		if NewClusterID(r)[0] == '-' {
			dashes++
		}
	}
	if dashes == 0 {
		t.Error("cluster ids are not drawn freely")
	}
	for _, s := range []string{"", "abc", strings.Repeat("A", 21), strings.Repeat("A", 23), strings.Repeat("!", 22), strings.Repeat("A", 21) + "B"} {
		if _, err := ParseTopicID(s); err == nil && s != strings.Repeat("A", 21)+"B" {
			t.Errorf("%q was read as an id", s)
		}
	}
	// Reserved ids are drawn again.
	if id := NewTopicID(&fixed{}); id.IsZero() {
		t.Error("zero id")
	}
}

type fixed struct{ n uint64 }

func (f *fixed) Uint64() uint64 { f.n++; return f.n * 0x9e3779b97f4a7c15 }

func TestTopicNames(t *testing.T) {
	for _, name := range []string{"a", "A.b_c-9", strings.Repeat("x", 249), "...", "__consumer_offsets"} {
		if err := CheckTopicName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", strings.Repeat("x", 250), "a b", "ä", "a/b", "a\x00", "a:b", "<default>"} {
		if CheckTopicName(name) == nil {
			t.Errorf("%q was allowed", name)
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{"a.b", "a_b", true}, {"a_b", "a.b", true}, {"a.b", "a.b", false}, {"a.b", "a-b", false}, {"a.b_c", "a_b.c", true}, {"ab", "a.b", false}} {
		if Collides(c.a, c.b) != c.want || (CollisionKey(c.a) == CollisionKey(c.b) && c.a != c.b) != c.want {
			t.Errorf("%s, %s", c.a, c.b)
		}
	}
}

func TestSanitize(t *testing.T) {
	if got := Sanitize("b+ *öb"); got != "b%2B%20%2A%C3%B6b" {
		t.Error(got)
	}
	if got := Sanitize("127.0.0.9"); got != "127.0.0.9" {
		t.Error(got)
	}
	for _, s := range []string{"", "a b", "User:x~", "%", "ä+*"} {
		if back, err := Desanitize(Sanitize(s)); err != nil || back != s {
			t.Errorf("%q became %q, %v", s, back, err)
		}
	}
	for _, s := range []string{"%", "%1", "%zz"} {
		if _, err := Desanitize(s); err == nil {
			t.Errorf("%q was read", s)
		}
	}
}

func TestOutcomes(t *testing.T) {
	for _, err := range refusals {
		if OutcomeOf(&OpError{"create", "/x", err}) != Refused {
			t.Error(err)
		}
	}
	for _, err := range []error{ErrConnectionLoss, ErrFenced, errors.New("other")} {
		if OutcomeOf(&OpError{"create", "/x", err}) != Unknown {
			t.Error(err)
		}
	}
	if OutcomeOf(nil) != Applied {
		t.Error("nil")
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	m := bigImage(1000)
	name, id := []byte("topic-000500"), m.Topic("topic-000500").ID
	if n := testing.AllocsPerRun(100, func() {
		if m.TopicBytes(name) == nil || m.TopicByID(id) == nil {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func bigImage(n int) *Image {
	r := rand.New(rand.NewPCG(1, 1))
	e := NewImage().Edit()
	for i := range n {
		e.SetTopic(topicNamed(fmt.Sprintf("topic-%06d", i), 1, r))
	}
	return e.Image()
}

func BenchmarkTopicBytes(b *testing.B) {
	m, name := bigImage(10000), []byte("topic-004711")
	b.ReportAllocs()
	for b.Loop() {
		m.TopicBytes(name)
	}
}

func BenchmarkSetTopicAmong10000(b *testing.B) {
	m := bigImage(10000)
	x := m.Topic("topic-004711")
	b.ReportAllocs()
	for b.Loop() {
		e := m.Edit()
		e.SetTopic(x)
		m = e.Image()
	}
}
