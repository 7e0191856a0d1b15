package replication

import (
	"kring/ring"
	"kring/segment"
)

// Config is what a topic's configuration says to replication and to those who append and read.
type Config struct {
	// MinISR is min.insync.replicas.
	MinISR int
	// MaxMessageBytes is max.message.bytes, SegmentBytes segment.bytes: the largest batch taken.
	MaxMessageBytes, SegmentBytes int
	// LogAppendTime says whether message.timestamp.type is LogAppendTime.
	LogAppendTime bool
	// Compacted says whether cleanup.policy contains compact: every record needs a key.
	Compacted bool
	// TimestampBeforeMaxMs and TimestampAfterMaxMs are message.timestamp.before.max.ms and .after.max.ms.
	TimestampBeforeMaxMs, TimestampAfterMaxMs int64
}

// Options make a Partition.
type Options struct {
	Host    *Host
	Self    int32 // broker id
	Topic   string
	TopicID [16]byte
	Index   int32
	Log     *segment.Log
	Config  Config
}

// Partition is our replica of one partition. It neither leads nor follows until Lead is called.
type Partition struct {
	Topic   string
	TopicID [16]byte
	Index   int32

	// OnFail, if set, is told that the log has failed, after everybody who waited was answered.
	OnFail func(error)

	host   *Host
	self   int32
	log    *segment.Log
	config Config
	state  State
	leads  bool
	closed bool
	l      leader

	readers places
	durable bool       // flush.messages=1: nobody sees what could be lost
	stable  Offset     // the last stable offset that waits were told of
	moved   bool       // the high watermark has moved and nobody was told yet
	acking  appendList // acks=all, written, not yet below the high watermark; by last offset
	flying  appendList // appends the log has not answered yet
	held    *Append    // its batch is being checked elsewhere; those of line wait behind it
	line    appendList // in order of arrival
	bytes   int64      // appended here so far
	told    int64      // of them, counted to the waits
}

// New makes the replica of a log that is open.
func New(o Options) *Partition {
	p := &Partition{Topic: o.Topic, TopicID: o.TopicID, Index: o.Index, host: o.Host, self: o.Self, log: o.Log}
	p.state = State{Leader: -1, LeaderEpoch: NoEpoch}
	p.SetConfig(o.Config)
	p.log.OnWritten = p.wrote
	p.log.OnFail = p.failed
	return p
}

// Log is the partition's log.
func (p *Partition) Log() *segment.Log { return p.log }

// Loop is where the partition lives.
func (p *Partition) Loop() ring.Loop { return p.host.loop }

// Config is the configuration in force.
func (p *Partition) Config() *Config { return &p.config }

// SetConfig puts a new configuration in force; that of the log is set before.
func (p *Partition) SetConfig(c Config) {
	p.config, p.l.minISR, p.durable = c, c.MinISR, p.log.Config().FlushMessages == 1
	if p.leads {
		p.advance()
	}
}

// State is what the controller said last. Its slices must not be changed.
func (p *Partition) State() *State { return &p.state }

// Leads says whether this replica leads.
func (p *Partition) Leads() bool { return p.leads }

// LeaderEpoch is the epoch of the present or last leader, NoEpoch if there was none yet.
func (p *Partition) LeaderEpoch() int32 { return p.state.LeaderEpoch }

// HighWatermark is the offset below which every in-sync replica holds everything.
func (p *Partition) HighWatermark() Offset { return p.l.hw }

// LogStart is the first offset there is.
func (p *Partition) LogStart() Offset { return p.log.Start() }

// LastStable is the offset below which every transaction is decided: at most the high watermark.
func (p *Partition) LastStable() Offset {
	if o, ok := p.log.FirstUnstable(); ok {
		return min(o, p.l.hw)
	}
	return p.l.hw
}

// Lead makes this replica the leader, or tells the leader of a change that left the epoch alone. checkpoint is the high
// watermark of the last checkpoint; a leader without others in sync starts at its own end.
func (p *Partition) Lead(s State, checkpoint Offset) {
	same := s.LeaderEpoch == p.state.LeaderEpoch
	if p.closed || s.LeaderEpoch < p.state.LeaderEpoch || same && s.PartitionEpoch < p.state.PartitionEpoch {
		return
	}
	if p.leads && same {
		p.state = s
		p.l.amend(s, p.self)
		p.advance()
		return
	}
	if p.leads {
		p.drop(ErrNotLeader)
	}
	end := p.log.Written()
	p.state, p.leads = s, true
	p.log.AssignEpoch(s.LeaderEpoch)
	p.l.lead(s, p.self, end, min(max(checkpoint, p.l.hw, p.log.Start()), end))
	p.l.advance()
	p.log.HighWatermark(p.l.hw)
	p.moved, p.stable = false, p.LastStable()
	p.wake()
}

// Resign ends the leadership: another broker leads, or none. Everybody who waits is answered.
func (p *Partition) Resign(s State) {
	if s.LeaderEpoch < p.state.LeaderEpoch {
		return
	}
	p.state, p.leads = s, false
	p.drop(ErrNotLeader)
}

// Close ends the replica before its log is closed or removed: everybody who waits is answered, nothing is taken any more.
func (p *Partition) Close() {
	p.closed, p.leads = true, false
	p.drop(ErrNotLeader)
}

// Idle says whether the log has answered every append: it must not be closed before.
func (p *Partition) Idle() bool { return p.flying.first == nil }

// Offline says why the partition cannot be served, nil if it can.
func (p *Partition) Offline() error { return p.log.Failed() }

// serves says whether requests can be answered here.
func (p *Partition) serves() error {
	switch {
	case p.closed:
		return ErrNotLeader
	case p.log.Failed() != nil:
		return ErrOffline
	case !p.leads:
		return ErrNotLeader
	}
	return nil
}

// Check says whether a caller that believes in this leader epoch (NoEpoch: any) may be served here.
func (p *Partition) Check(epoch int32) error {
	if p.closed {
		return ErrNotLeader
	}
	if p.log.Failed() != nil {
		return ErrOffline
	}
	if epoch != NoEpoch && p.state.LeaderEpoch != NoEpoch {
		if epoch < p.state.LeaderEpoch {
			return ErrFencedEpoch
		}
		if epoch > p.state.LeaderEpoch {
			return ErrUnknownEpoch
		}
	}
	if !p.leads {
		return ErrNotLeader
	}
	return nil
}

// Fetched notes that a follower holds everything below end: its fetch offset is its acknowledgement.
func (p *Partition) Fetched(replica int32, end Offset) error {
	if err := p.serves(); err != nil {
		return err
	}
	if !p.l.fetched(replica, end) {
		return ErrUnknownEpoch
	}
	p.advance()
	return nil
}

// failed is the log's news that it is offline.
func (p *Partition) failed(err error) {
	p.drop(ErrOffline)
	if p.OnFail != nil {
		p.OnFail(err)
	}
}

// wrote is the log's news that it is written further.
func (p *Partition) wrote() {
	written := p.log.Written()
	for a := p.flying.first; a != nil && a.Last < written; a = a.next {
		p.count(a)
	}
	p.l.wrote(p.holds())
	if p.leads {
		p.advance()
	}
}

// holds is the offset below which this replica has everything for good, as far as the topic asks for that.
func (p *Partition) holds() Offset {
	if p.durable {
		return min(p.log.Durable(), p.log.Written())
	}
	return p.log.Written()
}

// advance raises the high watermark as far as it goes and answers those who waited for that.
func (p *Partition) advance() {
	if p.l.advance() || p.moved {
		p.moved = false
		p.bounds()
		p.log.HighWatermark(p.l.hw)
		p.tell()
	}
	p.acknowledge()
}

// drop answers everybody who waits with err and lets readers look again.
func (p *Partition) drop(err error) {
	for a := p.acking.first; a != nil; a = p.acking.first {
		p.acking.remove(a)
		p.host.loop.Cancel(&a.timer)
		a.finish(err)
	}
	p.wake()
}

// wake lets every reader look again.
func (p *Partition) wake() {
	for r := p.readers.first; r != nil; r = r.next {
		r.wait.now()
	}
}
