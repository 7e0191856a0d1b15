package broker

import (
	"errors"

	"kring/daemon/api"
	"kring/metadata"
	"kring/replication"
	"kring/replication/controller"
	"kring/ring"
	"kring/segment"
)

// order is one partition of a LeaderAndIsr on its way to its shard and back.
type order struct {
	controller.LeaderState
	opening
	settings settings
	mark     segment.Offset
	missing  bool // it lies, or may lie, in a log dir that is offline
	ahead    bool // its log knows a later epoch than the store
	err      error
}

// becomeLeader is the broker's part of LeaderAndIsr: logs are opened or made, partitions led, on the loops they live on.
func (b *Broker) becomeLeader(parts []controller.LeaderState, done func([]error)) {
	orders := make([]order, len(parts))
	work := make([][]*order, len(b.shards))
	topics := map[string]*controller.LeaderState{}
	counts := map[string]int{}
	var topicNames []string
	var anew names
	settings := b.settingsByTopic()
	for i := range parts {
		o := &orders[i]
		o.LeaderState = parts[i]
		p := segment.Partition{Topic: o.Topic, Index: o.Partition}
		absent := b.placed[p] == nil
		o.fresh = absent || b.unmade.fresh(p)
		if absent && !o.New && b.offline() > 0 {
			o.missing = true // it may lie there
			absent = false
		} else {
			anew.addIf(absent && !o.New, p)
			o.dir = b.place(p)
			o.options = o.dir.Options(p)
			o.missing = o.dir.failed != nil
		}
		o.at, o.settings, o.mark = p, *settings(o.Topic, o.Config), b.marks[p]
		if o.fresh { // what the last stop noted was of another topic of this name
			o.options.RecoveryPoint, o.options.LogStart, o.options.Cleaned = 0, 0, 0
		}
		o.options.Config, o.options.TopicID = o.settings.log, segment.TopicID(o.ID)
		b.configs[o.Topic] = o.Config
		s := b.shardOf(p)
		work[s.id] = append(work[s.id], o)
		if topics[o.Topic] == nil {
			topics[o.Topic] = &parts[i]
			topicNames = append(topicNames, o.Topic)
		}
		counts[o.Topic] = max(counts[o.Topic], int(o.Partition)+1)
	}
	b.tellEmpty(&anew)
	b.spread(func(s *shard, done func()) {
		for _, name := range topicNames {
			s.ctx.AddTopic(name, topics[name].ID, counts[name])
		}
		mine := work[s.id]
		s.tasks(len(mine), func(t *ring.Task, i int) { mine[i].err = s.lead(t, mine[i]) }, done)
	}, func() {
		errs := make([]error, len(orders))
		late := false
		for i := range orders {
			o := &orders[i]
			if errs[i] = o.err; errs[i] != nil && o.dir != nil && !o.missing {
				b.openFailed(&o.opening, o.err)
			} else if errs[i] == nil && o.dir.failed != nil { // while its log was opened
				errs[i] = segment.ErrOffline
				late = true
			} else if errs[i] == nil {
				b.unmade.drop(o.at)
			}
		}
		b.unmade.tell(b)
		b.tellAhead(orders)
		if late {
			ring.Go(b.loop, func(t *ring.Task) {
				b.failLate(t)
				done(errs)
			})
			return
		}
		done(errs)
	})
}

// tellEmpty warns of partitions that should have a log and have none.
func (b *Broker) tellEmpty(anew *names) {
	if anew.count > 0 {
		b.log.Warn("partitions that were made before have no log: they begin empty. If a log dir is missing or a disk is not mounted, stop and "+
			"bring it back before producers go on", "partitions", anew.count, "names", anew.String())
	}
}

// tellAhead warns of logs that were led in a later epoch than the store has written: it is an older copy of itself.
func (b *Broker) tellAhead(orders []order) {
	var ahead names
	for i := range orders {
		ahead.addIf(orders[i].ahead, orders[i].at)
	}
	if ahead.count > 0 {
		b.log.Warn("logs know a later leader epoch than the cluster's state: the state is older than they are. If kring-store-* are an old "+
			"copy, stop and bring the newest back before producers go on", "partitions", ahead.count, "names", ahead.String())
	}
}

// tellOutside warns of logs of partitions that their topics, as the store knows them, do not have.
func (b *Broker) tellOutside() {
	var outside names
	for _, d := range b.dirs {
		for _, p := range d.Partitions() {
			x := b.node.Image().Topic(p.Topic)
			outside.addIf(b.placed[p] == d && x != nil && int(p.Index) >= len(x.Partitions), p)
		}
	}
	if outside.count > 0 {
		b.log.Warn("log dirs hold partitions that their topics do not have in the cluster's state: they are kept, and not served. If "+
			"kring-store-* are an old copy, stop and bring the newest back before producers go on",
			"partitions", outside.count, "names", outside.String())
	}
}

// lead does as one partition of a LeaderAndIsr says.
func (s *shard) lead(t *ring.Task, o *order) (err error) {
	r := s.byName[o.at]
	defer func() {
		if topic := s.ctx.Topic([]byte(o.Topic)); topic != nil {
			topic.SetOffline(o.Partition, err != nil && topic.Partition(o.Partition) == nil)
		}
	}()
	if r == nil && o.missing {
		return segment.ErrOffline
	}
	if r == nil {
		if err := s.openLog(t, &o.opening); err != nil {
			return err
		}
		r = s.byName[o.at]
	}
	if err := r.log.Failed(); err != nil {
		return err
	}
	if r.part == nil {
		if err := r.log.SetTopicID(t, segment.TopicID(o.ID)); err != nil {
			return err
		}
		r.part = replication.New(replication.Options{Host: s.ctx.Host, Self: s.b.node.ID, Topic: o.Topic, TopicID: o.ID,
			Index: o.Partition, Log: r.log, Config: o.settings.repl})
		r.part.OnFail = func(err error) { s.failed(r, err) }
	}
	r.log.OnFinished = func() { s.finished(r) }
	s.set(r, o.settings)
	state := replication.State{Leader: o.State.Leader, LeaderEpoch: int32(o.State.LeaderEpoch),
		PartitionEpoch: int32(o.State.PartitionEpoch), ISR: o.State.ISR, Replicas: o.State.Replicas}
	o.ahead = r.log.LatestEpoch() > state.LeaderEpoch && state.LeaderEpoch >= 0
	if state.Leader == s.b.node.ID {
		r.part.Lead(state, replication.Offset(o.mark))
	} else {
		r.part.Resign(state)
	}
	if o.Topic == api.OffsetsTopic {
		s.coordinate(r.part)
	}
	s.ctx.AddTopic(o.Topic, o.ID, int(o.Partition)+1).Partitions[o.Partition] = r.part
	s.touch(r)
	return nil
}

// finished is told that a segment was rolled and is finished. One that ended early did so to be cleaned.
func (s *shard) finished(r *replica) {
	if r.log.Config().RollDirtyBytes > 0 {
		post(s.b.loop, s.b.cleaner.soon)
	}
}

// stopReplicas is the broker's part of StopReplica: the replicas are given up, and their logs removed if asked.
func (b *Broker) stopReplicas(parts []controller.StopReplica, done func([]error)) {
	errs := make([]error, len(parts))
	work := make([][]int, len(b.shards))
	where := make([]whereabouts, len(parts))
	for i := range parts {
		p := segment.Partition{Topic: parts[i].Topic, Index: parts[i].Partition}
		if o := b.unmade.waiting[p]; o != nil {
			where[i].unmade = o.options.Dir
		}
		d := b.placed[p]
		where[i].missing = d == nil && b.offline() > 0 || d != nil && d.failed != nil
		s := b.shardOf(p)
		work[s.id] = append(work[s.id], i)
	}
	b.spread(func(s *shard, done func()) {
		mine := work[s.id]
		s.tasks(len(mine), func(t *ring.Task, i int) { errs[mine[i]] = s.stop(t, &parts[mine[i]], where[mine[i]]) }, done)
	}, func() {
		b.forget(parts, errs)
		done(errs)
	})
}

// forget takes removed partitions off the books, and topics without any off the loops.
func (b *Broker) forget(parts []controller.StopReplica, errs []error) {
	for i := range parts {
		p := &parts[i]
		at := segment.Partition{Topic: p.Topic, Index: p.Partition}
		if errs[i] != nil || !p.Delete {
			continue
		}
		b.vacate(at)
		delete(b.marks, at)
		b.unmade.drop(at)
		b.cleaner.forgot(at)
		if p.LeaderEpoch == controller.EpochDuringDelete && p.Partition == 0 {
			name, id := p.Topic, p.ID
			for _, s := range b.shards {
				post(s.loop, func() { s.drop(name, id) })
			}
		}
	}
	b.unmade.publish(b)
}

// drop forgets a deleted topic, unless another one of its name has come.
func (s *shard) drop(name string, id metadata.TopicID) {
	if t := s.ctx.Topic([]byte(name)); t != nil && t.ID == id {
		s.ctx.RemoveTopic(name)
	}
}

// whereabouts is what loop 0 knows of a replica without a log: its directory, if none could be opened in it for want of room, and whether
// it lies, or may lie, in a log dir that is offline.
type whereabouts struct {
	unmade  string
	missing bool
}

// stop gives up one replica.
func (s *shard) stop(t *ring.Task, p *controller.StopReplica, at whereabouts) error {
	r := s.byName[segment.Partition{Topic: p.Topic, Index: p.Partition}]
	topic := s.ctx.Topic([]byte(p.Topic))
	if p.Delete && (r == nil && at.missing || r != nil && errors.Is(r.log.Failed(), segment.ErrOffline)) {
		return segment.ErrOffline // it is deleted when its log dir is back
	}
	if p.Delete && r == nil && at.unmade != "" {
		return segment.RemoveDir(t, at.unmade)
	}
	if r == nil || errors.Is(r.log.Failed(), segment.ErrOffline) {
		return nil
	}
	if p.LeaderEpoch != controller.EpochDuringDelete && r.part != nil && int32(p.LeaderEpoch) < r.part.LeaderEpoch() {
		return replication.ErrFencedEpoch
	}
	if topic != nil && r.part != nil && topic.Partition(p.Partition) == r.part {
		topic.Partitions[p.Partition] = nil
	}
	part := r.part
	if p.Topic == api.OffsetsTopic {
		s.ctx.GroupShard(p.Partition).Drop()
	}
	r.quiet(t)
	if s.byName[r.Partition] != r {
		return nil // the same order, given twice, was faster
	}
	if r.part == part {
		r.part = nil // the log stays open, until it is to be removed or led again
		s.touch(r)
	}
	if !p.Delete {
		return nil
	}
	s.remove(r)
	return r.log.Remove(t)
}
