package broker

import (
	"encoding/binary"
	"fmt"
	"time"

	"kring/coordinator"
	"kring/daemon/api"
	"kring/replication"
	"kring/ring"
	"kring/segment"
	"kring/wire/batch"
)

// groupLoads are the partitions of the offsets' topic that wait to be loaded on a loop. One is read at a time, so that all of them
// take one buffer.
type groupLoads struct {
	queue []groupLoad
	busy  bool
}

// groupLoad is the groups of a partition to be loaded in an epoch.
type groupLoad struct {
	g     *api.GroupShard
	part  *replication.Partition
	epoch int32
}

const (
	// loadPiece bounds what is read at once, whatever offsets.load.buffer.size says: it is memory of the loop.
	loadPiece = 1 << 20
	// loadTurn is how many bytes of records are replayed before others have their turn: about a millisecond.
	loadTurn = 64 << 10
	// loadOpened bounds what one compressed batch may hold.
	loadOpened = 64 << 20
)

// coordinate makes the groups of a partition of the offsets' topic follow its leadership.
func (s *shard) coordinate(part *replication.Partition) {
	g := s.ctx.GroupShard(part.Index)
	if !part.Leads() {
		g.Resign(part.LeaderEpoch())
		return
	}
	if !g.Lead(part) {
		return
	}
	s.loads.queue = append(s.loads.queue, groupLoad{g, part, part.LeaderEpoch()})
	if !s.loads.busy {
		s.loads.busy = true
		ring.Go(s.loop, s.loadGroups)
	}
}

// loadGroups loads what waits.
func (s *shard) loadGroups(t *ring.Task) {
	var sum struct{ partitions, records, groups, offsets int }
	since := s.loop.Now()
	l := loader{t: t, size: min(max(s.b.node.Config().Groups.LoadBuffer, batch.HeaderSize), loadPiece)}
	l.buf = s.loop.Alloc(l.size)
	for len(s.loads.queue) > 0 {
		l.groupLoad = s.loads.queue[0]
		s.loads.queue = s.loads.queue[1:]
		began := s.loop.Now()
		l.records, l.skipped = 0, 0
		if err := l.load(); err != nil && l.wanted() {
			l.g.Fail(l.epoch)
			s.b.log.Error("groups cannot be loaded: their partition is not served", "partition", l.part.Index, "error", err)
			continue
		}
		if l.skipped > 0 {
			s.b.log.Warn("records of groups were not understood and are passed over", "partition", l.part.Index, "records", l.skipped,
				"last", l.why)
		}
		if l.records > 0 {
			sum.partitions++
			sum.records, sum.groups, sum.offsets = sum.records+l.records, sum.groups+l.g.Groups(), sum.offsets+l.g.Offsets()
			s.b.log.Debug("groups of a partition loaded", "partition", l.part.Index, "records", l.records, "groups", l.g.Groups(),
				"offsets", l.g.Offsets(), "took", (s.loop.Now() - began).Round(time.Millisecond))
		}
	}
	l.buf.Release()
	s.loads.queue, s.loads.busy = nil, false
	if sum.partitions > 0 {
		s.b.log.Info("groups loaded", "partitions", sum.partitions, "records", sum.records, "groups", sum.groups, "offsets", sum.offsets,
			"took", (s.loop.Now() - since).Round(time.Millisecond))
	}
	post(s.b.loop, s.b.cleaner.loaded)
}

// loader reads the log of one partition after the other.
type loader struct {
	groupLoad
	t    *ring.Task
	buf  *ring.Buf
	size int

	records, skipped int
	why              error
	turn             int // bytes replayed since others had their turn
}

// wanted says whether the load has not been overtaken.
func (l *loader) wanted() bool { return l.g.Loading(l.epoch) }

// load replays the log from its start to where it ends by then.
func (l *loader) load() error {
	for from := l.part.LogStart(); l.wanted(); {
		next, err := l.piece(from)
		if err != nil {
			return err
		}
		if next == from {
			loop := l.t.Loop()
			l.g.Loaded(l.epoch, coordinator.Now{Mono: loop.Now(), UnixMilli: loop.UnixMilli()})
			l.g.Settle()
			return nil
		}
		from = next
	}
	return nil
}

// piece replays what one read gives and says where to go on; at the end that is from.
func (l *loader) piece(from replication.Offset) (next replication.Offset, err error) {
	if from >= l.part.Limit(replication.ReadReplica) {
		return from, nil
	}
	var r segment.Range
	l.t.Suspend(func(wake func()) {
		r.Done = func(*segment.Range) { wake() }
		if l.part.Read(from, replication.ReadReplica, l.size, true, &r) {
			post(l.t.Loop(), wake)
		}
	})
	defer r.Unpin()
	if r.Err != nil || r.Len == 0 {
		return from, r.Err
	}
	if int64(len(l.buf.B)) < r.Len {
		l.buf.Release()
		l.buf = l.t.Loop().Alloc(int(r.Len))
	}
	n, err := l.t.Read(r.File, l.buf.B[:r.Len], r.From)
	if err != nil {
		return from, err
	}
	next = from
	for rest := l.buf.B[:n]; l.wanted(); {
		one, more, err := batch.Whole(rest)
		if err == batch.ErrShort {
			break
		}
		if err == nil {
			err = batch.Verify(one)
		}
		if err != nil {
			return from, fmt.Errorf("batch after offset %d: %w", next, err)
		}
		if rest = more; batch.Header(one).NextOffset() <= int64(next) {
			continue
		}
		if err := l.batch(one); err != nil {
			return from, fmt.Errorf("batch at offset %d: %w", batch.Header(one).BaseOffset(), err)
		}
		next = replication.Offset(batch.Header(one).NextOffset())
	}
	return next, nil
}

// batch replays one batch.
func (l *loader) batch(b []byte) error {
	h := batch.Header(b)
	if h.Magic() >= 2 && h.Control() {
		return l.marker(b)
	}
	rs, err := l.open(b)
	if err != nil {
		return err
	}
	e := coordinator.Entry{ProducerID: batch.NoProducer, ProducerEpoch: -1}
	if h.Magic() >= 2 {
		e.ProducerID, e.ProducerEpoch, e.Transactional = h.ProducerID(), h.ProducerEpoch(), h.Transactional()
	}
	for rs.Next() {
		e.Offset, e.Key, e.Value = rs.Offset, rs.Key, rs.Value
		if err := l.g.Replay(e); err != nil {
			l.skipped++
			l.why = err
		}
		l.records++
		if l.turn += rs.Size; l.turn >= loadTurn {
			l.turn = 0
			l.t.Suspend(func(wake func()) { post(l.t.Loop(), wake) })
			if !l.wanted() {
				return nil
			}
		}
	}
	return rs.Err
}

// open begins the records of a batch; a compressed one is opened off the loop.
func (l *loader) open(b []byte) (rs batch.Records, err error) {
	h := batch.Header(b)
	if h.Magic() >= 2 && h.Codec() == batch.None {
		return batch.Open(b, loadOpened)
	}
	l.t.Wait(func(op *ring.Op) {
		l.t.Loop().Offload(func() { rs, err = batch.Open(b, loadOpened) }, op)
	})
	return rs, err
}

// marker replays the end of a transaction: the type stands in the key.
func (l *loader) marker(b []byte) error {
	rs, err := batch.Open(b, loadOpened)
	if err != nil {
		return err
	}
	for rs.Next() {
		if len(rs.Key) >= 4 {
			l.g.ReplayMarker(batch.Header(b).ProducerID(), binary.BigEndian.Uint16(rs.Key[2:]) == 1, rs.Offset)
		}
	}
	return rs.Err
}

// expirePiece is how many offsets are looked at before others have their turn: less than a millisecond.
const expirePiece = 20_000

// expireGroups forgets what groups have not used for long.
func (b *Broker) expireGroups(t *ring.Task) {
	b.each(t, func(s *shard, done func()) {
		ring.Go(s.loop, func(t *ring.Task) {
			for g := range s.ctx.GroupShards() {
				for left := g.Groups(); left > 0; {
					left = g.ExpireSome(left, expirePiece, coordinator.Now{Mono: s.loop.Now(), UnixMilli: s.loop.UnixMilli()})
					g.Settle()
					t.Suspend(func(wake func()) { post(s.loop, wake) })
				}
			}
			done()
		})
	})
}

// topicDeleted forgets the offsets of a topic that is gone.
func (b *Broker) topicDeleted(name string) {
	for _, s := range b.shards {
		post(s.loop, func() {
			for g := range s.ctx.GroupShards() {
				g.TopicDeleted(name, coordinator.Now{Mono: s.loop.Now(), UnixMilli: s.loop.UnixMilli()})
				g.Settle()
			}
		})
	}
}
