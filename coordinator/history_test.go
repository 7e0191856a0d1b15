package coordinator

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// history is a world in which clients do whatever comes to their mind, and what they were promised.
type history struct {
	*world
	t       *rapid.T
	clients []*wanderer

	waiting  int // requests that were not answered
	answers  map[any]int
	assigned map[string]string // by group and generation: whose assignment was given out
	highest  map[string]int64  // by group and client: the offset its commit was answered for
	joinedAt map[string]int32  // by group: the last generation that began
	sent     int64

	// shown is what the shard showed when so many batches of its journal had been answered, if remembering.
	remembering bool
	shown       map[int]string
}

// wanderer is a client that forgets, repeats and lies.
type wanderer struct {
	name       string
	group      string
	id         string
	instance   *string
	generation int32
	leads      []JoinMember
	place      CommitOffset
}

func newHistory(t *rapid.T) *history {
	h := &history{world: &world{t: nil, config: defaults(), journal: &list{}}, t: t, answers: map[any]int{}, assigned: map[string]string{},
		highest: map[string]int64{}, joinedAt: map[string]int32{}, shown: map[int]string{}}
	h.config.MaxSize = rapid.SampledFrom([]int{2, 3, 100}).Draw(t, "group.max.size")
	h.config.InitialDelay = time.Duration(rapid.SampledFrom([]int{0, 3}).Draw(t, "delay")) * time.Second
	h.config.Retention = time.Minute
	h.shard = h.newShard()
	h.shard.BeginLoad(0)
	h.shard.Loaded(0, h.now())
	for i := range 5 {
		c := &wanderer{name: string(rune('A' + i)), group: []string{"g", "h"}[i%2], generation: -1}
		if i >= 3 {
			instance := "i"
			c.instance = &instance
		}
		c.place = CommitOffset{Topic: []string{"t", "u"}[i%2], Partition: int32(i), LeaderEpoch: -1, CommitMs: -1}
		h.clients = append(h.clients, c)
	}
	return h
}

func (h *history) client() *wanderer { return rapid.SampledFrom(h.clients).Draw(h.t, "client") }

func (h *history) expect(request any) {
	h.waiting++
	h.answers[request] = 0
}

func (h *history) answered(request any) {
	if n, known := h.answers[request]; !known || n > 0 {
		h.t.Fatalf("%T %+v is answered twice", request, request)
	}
	h.answers[request]++
	h.waiting--
}

func (h *history) join() {
	c := h.client()
	if rapid.IntRange(0, 3).Draw(h.t, "anew") == 0 {
		c.id = ""
	}
	version := rapid.SampledFrom([]int{3, 5, 9}).Draw(h.t, "version")
	j := &Join{Group: c.group, Member: c.id, Instance: c.instance, RequireMemberID: version >= 4 && c.instance == nil, SkipAssignment: version >= 9,
		ClientID: c.name, ClientHost: "/::1", SessionMs: 6000 * rapid.Int32Range(1, 3).Draw(h.t, "session"),
		RebalanceMs: 1000 * rapid.Int32Range(0, 30).Draw(h.t, "rebalance"), ProtocolType: "consumer"}
	names := rapid.SampledFrom([]string{"range", "range,sticky", "sticky,range", "sticky"}).Draw(h.t, "protocols")
	for name := range strings.SplitSeq(names, ",") {
		j.Protocols = append(j.Protocols, Protocol{name, subscription(rapid.SampledFrom([]string{"t", "u"}).Draw(h.t, "topic"))})
	}
	j.Done = func(j *Join) { h.joined(c, j) }
	h.expect(j)
	h.shard.Join(j, h.now())
}

func (h *history) joined(c *wanderer, j *Join) {
	h.answered(j)
	a := &j.Answer
	if a.Err != nil {
		if errors.Is(a.Err, ErrMemberIDRequired) {
			c.id = a.Member
		}
		return
	}
	if a.Generation < h.joinedAt[c.group] {
		h.t.Fatalf("group %s goes from generation %d to %d", c.group, h.joinedAt[c.group], a.Generation)
	}
	h.joinedAt[c.group] = a.Generation
	c.id, c.generation, c.leads = a.Member, a.Generation, nil
	if a.Leader == a.Member && !a.SkipAssignment {
		if len(a.Members) == 0 {
			h.t.Fatalf("leader %s does not learn the members", a.Member)
		}
		c.leads = a.Members
	}
}

func (h *history) sync() {
	c := h.client()
	y := &Sync{Group: c.group, Member: c.id, Instance: c.instance, Generation: c.generation}
	h.sent++
	for _, m := range c.leads {
		y.Assignments = append(y.Assignments, Assignment{m.Member, fmt.Appendf(nil, "%d by %s", h.sent, c.id)})
	}
	y.Done = func(y *Sync) {
		h.answered(y)
		if y.Answer.Err != nil || len(y.Answer.Assignment) == 0 {
			return
		}
		key := fmt.Sprintf("%s %d", y.Group, y.Generation)
		if by, known := h.assigned[key]; known && by != string(y.Answer.Assignment) {
			h.t.Fatalf("generation %s was assigned as %q, and now as %q", key, by, y.Answer.Assignment)
		}
		h.assigned[key] = string(y.Answer.Assignment)
	}
	h.expect(y)
	h.shard.Sync(y, h.now())
}

func (h *history) heartbeat() {
	c := h.client()
	h.shard.Heartbeat(&Heartbeat{Group: c.group, Member: c.id, Instance: c.instance, Generation: c.generation}, h.now())
}

func (h *history) leave() {
	c := h.client()
	l := &Leave{Group: c.group, Members: []LeaveMember{{Member: c.id, Instance: c.instance}}}
	l.Done = func(l *Leave) { h.answered(l) }
	h.expect(l)
	h.shard.Leave(l, h.now())
}

// commit commits an offset that is higher than all before, as a member, as nobody or in a transaction.
func (h *history) commit() {
	c := h.client()
	h.sent++
	k := &Commit{Group: c.group, Member: c.id, Instance: c.instance, Generation: c.generation, RetentionMs: -1}
	switch rapid.SampledFrom([]string{"member", "nobody", "producer"}).Draw(h.t, "committer") {
	case "nobody":
		k.Group, k.Member, k.Instance, k.Generation = "solo", "", nil, -1
	case "producer":
		if h.remembering {
			k.Transactional, k.ProducerID, k.Member, k.Instance, k.Generation = true, h.producer(), "", nil, -1
		}
	}
	o := c.place
	o.Offset = h.sent
	o.Metadata = rapid.SampledFrom([]string{"", "", "note"}).Draw(h.t, "metadata")
	k.Offsets = []CommitOffset{o}
	k.Done = func(k *Commit) {
		h.answered(k)
		key := fmt.Sprintf("%s %s-%d", k.Group, o.Topic, o.Partition)
		if k.Offsets[0].Err == nil && !k.Transactional {
			h.highest[key] = max(h.highest[key], o.Offset)
		}
	}
	h.expect(k)
	h.shard.Commit(k, h.now())
}

func (h *history) journalAnswers() {
	for n := rapid.IntRange(1, 4).Draw(h.t, "answers"); n > 0 && h.journal.answerOne(h.now()); n-- {
		h.verify()
		h.remember()
	}
}

func (h *history) time() {
	h.pass(time.Duration(rapid.IntRange(0, 8000).Draw(h.t, "ms")) * time.Millisecond)
}

func (h *history) pass(d time.Duration) {
	for until := h.mono + d; ; {
		next, ok := h.shard.Next()
		if !ok || next > until {
			h.mono = until
			return
		}
		h.mono = max(h.mono, next)
		h.shard.Tick(h.now())
		h.verify()
	}
}

func (h *history) verify() {
	if err := h.shard.Verify(); err != nil {
		h.t.Fatal(err)
	}
	for _, group := range []string{"g", "h"} {
		if v, err := h.shard.Describe(group); err == nil && v.Generation == 0 { // it has gone, and comes to be anew
			delete(h.joinedAt, group)
			maps.DeleteFunc(h.assigned, func(key, _ string) bool { return strings.HasPrefix(key, group+" ") })
		}
	}
}

// crash is the end of the process: nobody is answered any more, and what is in the journal is read by the next.
func (h *history) crash() {
	h.journal.waiting = nil
	h.answers, h.waiting = map[any]int{}, 0
	h.epoch++
	h.shard = h.newShard()
	h.shard.BeginLoad(h.epoch)
	replay(h.t, h.shard, h.journal.batches)
	h.shard.Loaded(h.epoch, h.now())
	clear(h.joinedAt) // a generation that was not written is forgotten with those who joined it
	h.remember()
}

// moves unloads the shard and loads it again while appends may be under way.
func (h *history) moves() {
	h.epoch++
	h.shard.Unload(h.epoch)
	h.verify()
	h.epoch++
	if !h.shard.BeginLoad(h.epoch) {
		h.t.Fatal("does not load")
	}
	h.journal.answer(h.now())
	replay(h.t, h.shard, h.journal.batches)
	h.shard.Loaded(h.epoch, h.now())
	if h.waiting > 0 {
		h.t.Fatalf("%d requests wait in a shard that was unloaded", h.waiting)
	}
	clear(h.joinedAt)
}

// offsetsGoUp holds what clients were told against what is shown.
func (h *history) offsetsGoUp() {
	for _, group := range []string{"g", "h", "solo"} {
		shown := map[string]int64{}
		h.shard.Fetch(group, nil, false, func(c Committed) { shown[fmt.Sprintf("%s %s-%d", group, c.Topic, c.Partition)] = c.Offset })
		for _, key := range slices.Sorted(maps.Keys(h.highest)) {
			if strings.HasPrefix(key, group+" ") && shown[key] < h.highest[key] {
				h.t.Fatalf("%s is at %d, and was committed at %d", key, shown[key], h.highest[key])
			}
		}
		for key, offset := range shown {
			h.highest[key] = max(h.highest[key], offset)
		}
	}
}

func (h *history) producer() int64 { return rapid.Int64Range(7, 8).Draw(h.t, "producer") }

func (h *history) marker() {
	producer, committed := h.producer(), rapid.Bool().Draw(h.t, "committed")
	h.journal.marker(producer, committed, func() { h.shard.CompleteTransaction(producer, committed) })
}

func (h *history) deleteGroup() {
	d := &DeleteGroup{Group: h.anyGroup(), Done: func(d *DeleteGroup) { h.answered(d) }}
	h.expect(d)
	h.shard.DeleteGroup(d, h.now())
}

func (h *history) deleteOffsets() {
	d := &DeleteOffsets{Group: h.anyGroup(), Done: func(d *DeleteOffsets) { h.answered(d) }}
	for range rapid.IntRange(0, 3).Draw(h.t, "partitions") {
		c := h.client()
		d.Partitions = append(d.Partitions, DeletePartition{Topic: c.place.Topic, Partition: c.place.Partition})
	}
	h.expect(d)
	h.shard.DeleteOffsets(d, h.now())
}

func (h *history) anyGroup() string {
	return rapid.SampledFrom([]string{"g", "h", "solo"}).Draw(h.t, "group")
}

// show is all a shard says of its offsets.
func show(s *Shard) string {
	var lines []string
	s.VisitOffsets(func(group, topic string, partition int32, _ int64) {
		s.Fetch(group, []TopicPartitions{{topic, []int32{partition}}}, false, func(c Committed) {
			lines = append(lines, fmt.Sprintf("%s %+v", group, c))
		})
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// remember keeps what the shard shows, to hold it against a shard that reads the same part of the journal.
func (h *history) remember() {
	if !h.remembering {
		return
	}
	h.shown[h.journal.answered] = show(h.shard)
	if len(h.journal.waiting) > 0 {
		return
	}
	fresh := h.reads(len(h.journal.batches))
	for _, group := range []string{"g", "h", "solo"} {
		living, _ := h.shard.Describe(group)
		again, _ := fresh.Describe(group)
		if living.State == Dead && again.State != Dead {
			h.t.Fatalf("group %s has come back: %+v", group, again)
		}
		written := living.State == Stable || living.State == Empty && living.Generation > 0
		if written && !reflect.DeepEqual(living, again) {
			h.t.Fatalf("group %s is %+v, and was written as %+v", group, living, again)
		}
	}
}

// reads is a shard that has read so many batches.
func (h *history) reads(batches int) *Shard {
	s := h.newShard()
	s.BeginLoad(1)
	replay(h.t, s, h.journal.batches[:batches])
	s.Loaded(1, h.now())
	if err := s.Verify(); err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *history) end() {
	h.journal.answer(h.now())
	h.epoch++
	h.shard.Unload(h.epoch)
	h.verify()
	if h.waiting > 0 {
		h.t.Fatalf("%d requests were never answered", h.waiting)
	}
	if _, waits := h.shard.Next(); waits {
		h.t.Fatal("an unloaded shard has timers")
	}
}

// TestPromises lets clients do what they like, the journal fail and processes die: every request is answered once, a generation has
// one assignment, generations go up, and committed offsets do not go back.
func TestPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		steps := map[string]func(){"join": h.join, "sync": h.sync, "heartbeat": h.heartbeat, "leave": h.leave, "commit": h.commit,
			"journal": h.journalAnswers, "time": h.time, "crash": h.crash, "moves": h.moves,
			"fail": func() {
				h.journal.fail = append(h.journal.fail, rapid.SampledFrom([]error{ErrJournalUnavailable, ErrJournalTimedOut}).Draw(h.t, "failure"))
			}}
		names := []string{"join", "join", "join", "join", "sync", "sync", "sync", "heartbeat", "leave", "commit", "commit", "journal", "journal",
			"journal", "time", "time", "crash", "moves", "fail"}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			steps[rapid.SampledFrom(names).Draw(t, "step")]()
			h.verify()
			h.offsetsGoUp()
		}
		h.end()
	})
}

// TestEveryPrefix reads every prefix of a random journal: each time the shard shows exactly what the one that wrote it showed when
// that much had been answered.
func TestEveryPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		h.remembering = true
		steps := map[string]func(){"join": h.join, "sync": h.sync, "heartbeat": h.heartbeat, "leave": h.leave, "commit": h.commit,
			"journal": h.journalAnswers, "time": h.time, "marker": h.marker, "delete group": h.deleteGroup, "delete offsets": h.deleteOffsets,
			"topic": func() { h.shard.TopicDeleted(h.client().place.Topic, h.now()) },
			"expire": func() {
				h.mono += time.Duration(rapid.IntRange(0, 70).Draw(h.t, "seconds")) * time.Second
				h.shard.Tick(h.now())
				h.shard.Expire(h.now())
			}}
		names := []string{"join", "join", "join", "sync", "sync", "leave", "heartbeat", "commit", "commit", "commit", "commit", "journal", "journal",
			"journal", "time", "marker", "delete group", "delete offsets", "topic", "expire"}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			steps[rapid.SampledFrom(names).Draw(t, "step")]()
			h.verify()
			h.remember()
		}
		for h.journal.answerOne(h.now()) {
			h.remember()
		}
		for n := 0; n <= len(h.journal.batches); n++ {
			want, known := h.shown[n]
			if got := show(h.reads(n)); known && got != want {
				t.Fatalf("with %d batches read it shows\n%s\nwhen they were answered it showed\n%s", n, got, want)
			}
		}
		h.end()
	})
}
