package coordinator

import (
	"fmt"
	"strings"
	"time"
)

// clientActs are what a client can do, by the word after its name.
var clientActs map[string]func(st *stage, c *client, words []string) error

// acts are what else can happen, by their first words.
var acts map[string]func(st *stage, words []string) error

func init() {
	clientActs = map[string]func(*stage, *client, []string) error{
		"joins": (*stage).joins, "syncs": (*stage).syncs, "heartbeats": (*stage).heartbeats, "leaves": (*stage).leaves,
		"commits": (*stage).commits,
	}
	acts = map[string]func(*stage, []string) error{
		"set": (*stage).set, "wait": (*stage).wait, "fetch": (*stage).fetch, "describe": (*stage).describe, "list": (*stage).list,
		"remove": (*stage).removeStatic, "delete group": (*stage).deleteGroup, "delete offsets": (*stage).deleteOffsets,
		"clock":  func(st *stage, words []string) error { st.skew += duration(words[0]); return nil },
		"expire": (*stage).expire, "topic deleted": (*stage).topicDeleted, "marker": (*stage).marker,
		"journal holds": func(st *stage, _ []string) error { st.held = true; return nil },
		"journal answers once": func(st *stage, _ []string) error {
			st.journal.answerOne(st.now())
			return nil
		},
		"journal answers": func(st *stage, _ []string) error { st.held = false; return nil },
		"journal fails":   (*stage).journalFails,
		"restart":         (*stage).restart, "unload": (*stage).unload, "load": (*stage).load, "loaded": (*stage).loaded,
	}
}

// options takes "key value" pairs and lone flags out of words.
type options struct {
	words []string
}

func (o *options) flag(name string) bool {
	for i, w := range o.words {
		if w == name {
			o.words = append(o.words[:i:i], o.words[i+1:]...)
			return true
		}
	}
	return false
}

func (o *options) value(name, or string) string {
	for i, w := range o.words {
		if w == name && i+1 < len(o.words) {
			v := o.words[i+1]
			o.words = append(o.words[:i:i], o.words[i+2:]...)
			return v
		}
	}
	return or
}

func (o *options) rest() error {
	if len(o.words) > 0 {
		return fmt.Errorf("%q %w", strings.Join(o.words, " "), errNotUnderstood)
	}
	return nil
}

func (o *options) group(c *client) { c.group = o.value("group", c.group) }

func (st *stage) member(c *client, o *options) (id string, instance *string, generation int32) {
	id, instance, generation = c.id, c.instance, c.generation
	if as := o.value("as", ""); as != "" {
		id = ""
		for known, name := range st.names {
			if name == as {
				id = known
			}
		}
		if id == "" {
			id = as
		}
	}
	if n := o.value("generation", ""); n != "" {
		generation = int32(number(n))
	}
	if o.flag("dynamic") {
		instance = nil
	}
	return id, instance, generation
}

func (st *stage) joins(c *client, words []string) error {
	o := &options{words}
	o.group(c)
	version := number(strings.TrimPrefix(o.value("version", "9"), "v"))
	if i := o.value("static", ""); i != "" {
		c.instance = &i
	}
	if o.flag("anew") {
		c.id = ""
	}
	id, instance, _ := st.member(c, o)
	j := &Join{Group: c.group, Member: id, Instance: instance, RequireMemberID: version >= 4 && instance == nil, SkipAssignment: version >= 9,
		ClientID: c.name, ClientHost: "/127.0.0.1", SessionMs: int32(duration(o.value("session", "10s")).Milliseconds()),
		RebalanceMs: int32(duration(o.value("rebalance", "60s")).Milliseconds()), ProtocolType: o.value("type", "consumer")}
	topics := strings.Split(o.value("topics", "t"), ",")
	for _, p := range strings.Split(o.value("protocols", "range"), ",") {
		j.Protocols = append(j.Protocols, Protocol{p, subscription(topics...)})
	}
	if err := o.rest(); err != nil {
		return err
	}
	c.waiting++
	j.Done = func(j *Join) {
		c.waiting--
		st.joined(c, &j.Answer)
	}
	st.shard.Join(j, st.now())
	return nil
}

func (st *stage) joined(c *client, a *JoinAnswer) {
	if a.Err != nil {
		if a.Err == ErrMemberIDRequired {
			c.id = a.Member
		}
		st.say("%s join: %s, id %s", c.name, code(a.Err), st.name(a.Member))
		return
	}
	c.id, c.generation = a.Member, a.Generation
	text := fmt.Sprintf("%s joined: generation %d, %s, id %s, leader %s", c.name, a.Generation, *a.Protocol, st.name(a.Member), st.name(a.Leader))
	if len(a.Members) > 0 {
		text += ", members"
		for _, m := range a.Members {
			text += " " + st.name(m.Member)
		}
	}
	if a.SkipAssignment {
		text += ", skip assignment"
	}
	st.say("%s", text)
}

// name is what a member id is called: as the client it was made for, with a number from its second id on.
func (st *stage) name(id string) string {
	if name, ok := st.names[id]; ok {
		return name
	}
	for _, c := range st.clients {
		prefix := c.name
		if c.instance != nil {
			prefix = *c.instance
		}
		if strings.HasPrefix(id, prefix+"-") && len(id) == len(prefix)+37 {
			c.ids++
			st.names[id] = c.name
			if c.ids > 1 {
				st.names[id] = fmt.Sprintf("%s(%d)", c.name, c.ids)
			}
			return st.names[id]
		}
	}
	return id
}

func (st *stage) syncs(c *client, words []string) error {
	o := &options{words}
	y := &Sync{}
	y.Member, y.Instance, y.Generation = st.member(c, o)
	y.Group = c.group
	if p := o.value("protocol", ""); p != "" {
		y.Protocol = &p
	}
	if p := o.value("type", ""); p != "" {
		y.ProtocolType = &p
	}
	if o.flag("giving") {
		for _, w := range o.words {
			name, data, _ := strings.Cut(w, "=")
			for id, n := range st.names {
				if n == name {
					y.Assignments = append(y.Assignments, Assignment{id, []byte(data)})
				}
			}
		}
		o.words = nil
	}
	if err := o.rest(); err != nil {
		return err
	}
	y.Done = func(y *Sync) {
		if y.Answer.Err != nil {
			st.say("%s sync: %s", c.name, code(y.Answer.Err))
			return
		}
		given := string(y.Answer.Assignment)
		if given == "" {
			given = "nothing"
		}
		st.say("%s synced: %s", c.name, given)
	}
	st.shard.Sync(y, st.now())
	return nil
}

func (st *stage) heartbeats(c *client, words []string) error {
	o := &options{words}
	h := &Heartbeat{}
	h.Member, h.Instance, h.Generation = st.member(c, o)
	h.Group = c.group
	st.say("%s heartbeat: %s", c.name, code(st.shard.Heartbeat(h, st.now())))
	return o.rest()
}

func (st *stage) leaves(c *client, words []string) error {
	o := &options{words}
	id, instance, _ := st.member(c, o)
	l := &Leave{Group: c.group, Members: []LeaveMember{{Member: id, Instance: instance}}, Done: st.left}
	st.shard.Leave(l, st.now())
	return o.rest()
}

func (st *stage) removeStatic(words []string) error {
	o := &options{words}
	l := &Leave{Group: o.value("group", "g"), Done: st.left}
	for _, w := range o.words {
		l.Members = append(l.Members, LeaveMember{Instance: &w})
	}
	st.shard.Leave(l, st.now())
	return nil
}

func (st *stage) left(l *Leave) {
	if l.Err != nil {
		st.say("leave: %s", code(l.Err))
		return
	}
	for _, m := range l.Members {
		who := st.name(m.Member)
		if m.Member == "" {
			who = *m.Instance
		}
		st.say("%s left: %s", who, code(m.Err))
	}
}

func (st *stage) commits(c *client, words []string) error {
	o := &options{words}
	o.group(c)
	k := &Commit{Group: c.group, RetentionMs: -1}
	k.Member, k.Instance, k.Generation = st.member(c, o)
	if r := o.value("retention", ""); r != "" {
		k.RetentionMs = duration(r).Milliseconds()
	}
	if p := o.value("producer", ""); p != "" {
		k.Transactional, k.ProducerID = true, number(p)
	}
	metadata, long := o.value("metadata", ""), o.value("long", "")
	for _, w := range o.words {
		tp, offset, _ := strings.Cut(w, "=")
		topic, p := partition(tp)
		offset, epoch, ok := strings.Cut(offset, "@")
		e := int32(-1)
		if ok {
			e = int32(number(epoch))
		}
		k.Offsets = append(k.Offsets, CommitOffset{Topic: topic, Partition: p, Offset: number(offset), LeaderEpoch: e, Metadata: metadata, CommitMs: -1})
	}
	if long != "" {
		k.Offsets[len(k.Offsets)-1].Metadata = strings.Repeat("m", int(number(long)))
	}
	k.Done = func(k *Commit) {
		for _, o := range k.Offsets {
			st.say("%s committed %s-%d: %s", c.name, o.Topic, o.Partition, code(o.Err))
		}
	}
	st.shard.Commit(k, st.now())
	return nil
}

func (st *stage) set(words []string) error {
	if len(words) != 3 || words[1] != "=" {
		return errNotUnderstood
	}
	c := *st.config
	switch words[0] {
	case "group.min.session.timeout.ms":
		c.MinSession = time.Duration(number(words[2])) * time.Millisecond
	case "group.max.session.timeout.ms":
		c.MaxSession = time.Duration(number(words[2])) * time.Millisecond
	case "group.initial.rebalance.delay.ms":
		c.InitialDelay = time.Duration(number(words[2])) * time.Millisecond
	case "group.max.size":
		c.MaxSize = int(number(words[2]))
	case "offset.metadata.max.bytes":
		c.MetadataMax = int(number(words[2]))
	case "offsets.retention.minutes":
		c.Retention = time.Duration(number(words[2])) * time.Minute
	default:
		return errNotUnderstood
	}
	st.config = &c
	st.shard.Configure(&c)
	return nil
}

func (st *stage) wait(words []string) error {
	st.pass(duration(words[0]))
	return nil
}

func (st *stage) fetch(words []string) error {
	o := &options{words}
	group, stable := o.value("group", "g"), o.flag("stable")
	var topics []TopicPartitions
	for _, w := range o.words {
		topic, p := partition(w)
		topics = append(topics, TopicPartitions{topic, []int32{p}})
	}
	err := st.shard.Fetch(group, topics, stable, func(c Committed) {
		text := fmt.Sprintf("%s-%d = %d", c.Topic, c.Partition, c.Offset)
		if c.LeaderEpoch != -1 {
			text += fmt.Sprintf(" epoch %d", c.LeaderEpoch)
		}
		if c.Metadata != "" {
			text += fmt.Sprintf(" %q", c.Metadata)
		}
		if c.Err != nil {
			text += " " + code(c.Err)
		}
		st.say("%s", text)
	})
	if err != nil {
		st.say("fetch: %s", code(err))
	}
	return nil
}

func (st *stage) describe(words []string) error {
	o := &options{words}
	v, err := st.shard.Describe(o.value("group", "g"))
	if err != nil {
		st.say("describe: %s", code(err))
		return nil
	}
	text := v.State.String()
	if v.State != Dead {
		text += fmt.Sprintf(", type %q, protocol %q", v.ProtocolType, v.Protocol)
	}
	for _, m := range v.Members {
		text += fmt.Sprintf(" [%s: %s]", st.name(m.Member), m.Assignment)
	}
	st.say("%s", text)
	return nil
}

func (st *stage) list(words []string) error {
	o := &options{words}
	split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	err := st.shard.List(split(o.value("states", "")), split(o.value("types", "")), func(l Listed) {
		st.say("%s (%s, %s, %s)", l.Group, l.State, l.ProtocolType, l.Type)
	})
	if err != nil {
		st.say("list: %s", code(err))
	}
	return o.rest()
}

func (st *stage) deleteGroup(words []string) error {
	st.shard.DeleteGroup(&DeleteGroup{Group: words[0], Done: func(d *DeleteGroup) { st.say("%s deleted: %s", d.Group, code(d.Err)) }}, st.now())
	return nil
}

func (st *stage) deleteOffsets(words []string) error {
	o := &options{words}
	d := &DeleteOffsets{Group: o.value("group", "g")}
	for _, w := range o.words {
		topic, p := partition(w)
		d.Partitions = append(d.Partitions, DeletePartition{Topic: topic, Partition: p})
	}
	d.Done = func(d *DeleteOffsets) {
		if d.Err != nil {
			st.say("delete offsets: %s", code(d.Err))
			return
		}
		for _, p := range d.Partitions {
			st.say("offset %s-%d deleted: %s", p.Topic, p.Partition, code(p.Err))
		}
	}
	st.shard.DeleteOffsets(d, st.now())
	return nil
}

func (st *stage) expire([]string) error { st.shard.Expire(st.now()); return nil }

func (st *stage) topicDeleted(words []string) error {
	st.shard.TopicDeleted(words[0], st.now())
	return nil
}

func (st *stage) marker(words []string) error {
	st.shard.CompleteTransaction(number(words[0]), words[1] == "commit")
	return nil
}

func (st *stage) journalFails(words []string) error {
	failures := map[string]error{"unavailable": ErrJournalUnavailable, "not-leader": ErrJournalNotLeader, "timed-out": ErrJournalTimedOut,
		"too-large": ErrJournalTooLarge, "unknown": fmt.Errorf("unknown")}
	st.journal.fail = append(st.journal.fail, failures[words[0]])
	return nil
}

// restart is a new process: what was in memory is gone, and the journal is read again.
func (st *stage) restart([]string) error {
	st.epoch++
	st.shard = st.newShard()
	st.journal.waiting = nil
	if err := st.load(nil); err != nil {
		return err
	}
	return st.loaded(nil)
}

func (st *stage) unload([]string) error {
	st.epoch++
	st.shard.Unload(st.epoch)
	return nil
}

func (st *stage) load([]string) error {
	st.epoch++
	if !st.shard.BeginLoad(st.epoch) {
		return fmt.Errorf("is not loading")
	}
	replay(st.t.(interface{ Fatalf(string, ...any) }), st.shard, st.journal.batches)
	return nil
}

func (st *stage) loaded([]string) error {
	st.shard.Loaded(st.epoch, st.now())
	return nil
}
