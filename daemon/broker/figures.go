package broker

import (
	"cmp"
	"slices"

	"kring/daemon/api"
	"kring/daemon/server"
	"kring/ring"
)

// Figures is a copy of what one loop has counted since the start and what it holds now.
type Figures struct {
	Ring   ring.Stats // of a loop of the kernel; zero in another world
	Server server.Counters
	APIs   []server.API // by key
	// Connections is the number of connections, Busy that of requests under way, Held their bytes.
	Connections, Busy int
	Held              int64
	// Refused is the number of connections turned away by max.connections and max.connections.per.ip; on loop 0 alone.
	Refused uint64
	// Bytes is the traffic of all topics, those that are gone included; Topics that of the ones there are, in no order.
	Bytes  api.TopicFigures
	Topics []TopicFigures
	// Logs is the sum over all partitions of the loop; Partitions are some of them, in no order.
	Logs       LogFigures
	Partitions []PartitionFigures
	Groups     GroupFigures
	// LogDirs is how many there are, LogDirsOffline how many of them are offline (Kafka's OfflineLogDirectoryCount); on loop 0 alone.
	LogDirs, LogDirsOffline int
	// NoRoom are the log dirs in which this loop found no room lately for a log or what was to be appended to one.
	NoRoom []string
	// PartitionsNoRoom are offline until there is room for their logs; on loop 0 alone.
	PartitionsNoRoom int
	// Cleaner is what the log cleaner has done; on loop 0 alone.
	Cleaner CleanerFigures
}

// TopicFigures is what one loop has counted of a topic since it came, or since the start.
type TopicFigures struct {
	Topic string
	api.TopicFigures
}

// LogFigures is the sum over partitions.
type LogFigures struct {
	Partitions, Leaders, Offline, UnderMinISR, Segments, OpenFiles int
	Bytes                                                          int64
}

// Add makes l the sum of both.
func (l *LogFigures) Add(m *LogFigures) {
	l.Partitions += m.Partitions
	l.Leaders += m.Leaders
	l.Offline += m.Offline
	l.UnderMinISR += m.UnderMinISR
	l.Segments += m.Segments
	l.OpenFiles += m.OpenFiles
	l.Bytes += m.Bytes
}

// PartitionFigures is what there is to know of one partition's log.
type PartitionFigures struct {
	Topic     string
	Partition int32
	// Offline: its log has failed. Leads: this broker leads it.
	Offline, Leads bool
	LeaderEpoch    int32
	// Start and End are the log's offsets; HighWatermark and LastStable what may be read; Durable what a power cut leaves.
	Start, End, HighWatermark, LastStable, Durable int64
	Bytes                                          int64
	Segments                                       int
}

// figuresPiece is how many partitions are copied before the loop does something else: half a millisecond or less.
const figuresPiece = 200

// Figures copies a loop's numbers into f, with at most most topics and partitions, and calls done on that loop. Any goroutine may
// call it once Start has returned and as long as the loop turns; f belongs to the loop until then. What f has room for is used anew.
func (b *Broker) Figures(loop, most int, f *Figures, done func()) {
	s := b.shards[loop]
	post(s.loop, func() {
		ring.Go(s.loop, func(t *ring.Task) {
			s.figures(t, most, f)
			done()
		})
	})
}

func (s *shard) figures(t *ring.Task, most int, f *Figures) {
	*f = Figures{APIs: f.APIs[:0], Topics: f.Topics[:0], Partitions: f.Partitions[:0], Groups: GroupFigures{Committed: f.Groups.Committed[:0]}}
	all := s.replicas()
	for i, r := range all {
		if i%figuresPiece == figuresPiece-1 {
			t.Sleep(0)
		}
		if !r.gone {
			f.add(r, most)
		}
	}
	s.groupFigures(t, most, &f.Groups)
	f.Logs.OpenFiles, f.NoRoom = s.files.Open(), s.files.Cramped()
	for topic := range s.ctx.Topics() {
		f.Logs.Offline += topic.Offline()
		if bytes := topic.Bytes(); bytes != (api.TopicFigures{}) && len(f.Topics) < most {
			f.Topics = append(f.Topics, TopicFigures{topic.Name, bytes})
		}
	}
	f.Ring, f.Server, f.APIs = ring.StatsOf(s.loop), s.server.Counters(), s.server.APIs(f.APIs)
	f.Connections, f.Busy, f.Held, f.Bytes = s.server.Count(), s.server.Busy(), s.server.Held(), s.ctx.Bytes()
	if s.id == 0 {
		f.Refused, f.Cleaner = s.b.gate.Refused, s.b.Cleaner()
		f.LogDirs, f.LogDirsOffline = len(s.b.node.LogDirs), s.b.offline()
		if n := s.b.node.NoRoom(); n != nil {
			f.NoRoom, f.PartitionsNoRoom = append(f.NoRoom, n.Dirs...), n.Partitions
		}
	}
}

// add counts one replica.
func (f *Figures) add(r *replica, most int) {
	p := PartitionFigures{Topic: r.Topic, Partition: r.Index, LeaderEpoch: -1, HighWatermark: -1, LastStable: -1,
		Start: int64(r.log.Start()), End: int64(r.log.End()), Durable: int64(r.log.Durable()),
		Bytes: r.log.Size(), Segments: r.log.Segments(), Offline: r.log.Failed() != nil}
	sum := &f.Logs
	if part := r.part; part != nil {
		p.Leads, p.LeaderEpoch = part.Leads(), part.LeaderEpoch()
		p.HighWatermark, p.LastStable = int64(part.HighWatermark()), int64(part.LastStable())
		if p.Leads {
			sum.Leaders++
			// More are not asked for than there are replicas.
			if st := part.State(); len(st.ISR) < min(part.Config().MinISR, len(st.Replicas)) {
				sum.UnderMinISR++
			}
		}
	}
	sum.Partitions++
	sum.Segments += p.Segments
	sum.Bytes += p.Bytes
	if p.Offline && r.part != nil { // others are counted with their topic
		sum.Offline++
	}
	if len(f.Partitions) < most {
		f.Partitions = append(f.Partitions, p)
	}
}

// Merge orders the topics and partitions of several loops by name and cuts them down to most of each.
func Merge(all []*Figures, most int) (topics []TopicFigures, partitions []PartitionFigures) {
	sums := map[string]int{}
	for _, f := range all {
		for _, t := range f.Topics {
			i, known := sums[t.Topic]
			if !known {
				i = len(topics)
				sums[t.Topic] = i
				topics = append(topics, TopicFigures{Topic: t.Topic})
			}
			topics[i].BytesIn += t.BytesIn
			topics[i].MessagesIn += t.MessagesIn
			topics[i].BytesOut += t.BytesOut
		}
		partitions = append(partitions, f.Partitions...)
	}
	slices.SortFunc(topics, func(a, b TopicFigures) int { return cmp.Compare(a.Topic, b.Topic) })
	slices.SortFunc(partitions, func(a, b PartitionFigures) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return topics[:min(len(topics), most)], partitions[:min(len(partitions), most)]
}
