package swap

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	steady  = "steady"  // plain topic, a codec for each partition
	compact = "compact" // compacted topic
	keys    = 40        // different keys of a partition of the compacted topic
)

var codecs = []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}

// stream is the only producer of a partition: its record n must have offset n.
type stream struct {
	topic     string
	partition int32
	client    *kgo.Client

	mu      sync.Mutex
	some    *sync.Cond
	sums    []uint64 // of the records asked for, by n
	acked   []bool
	done    int // acknowledged
	wrong   []string
	stopped chan struct{}
}

func (s *stream) key(n int) []byte {
	if s.topic == compact {
		return fmt.Appendf(nil, "key-%d", n%keys)
	}
	return fmt.Appendf(nil, "key-%d", n)
}

// value begins with the record's number; the rest compresses about by half.
func value(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	b := fmt.Appendf(nil, "%d ", n)
	for size := 100 + r.IntN(900); len(b) < size; {
		b = append(b, strconv.Itoa(r.IntN(1000))...)
	}
	return b
}

func sum(key, value []byte) uint64 {
	h := fnv.New64a()
	h.Write(key)
	h.Write([]byte{0})
	h.Write(value)
	return h.Sum64()
}

// soon has clients try again soon: brokers come back.
var soon = kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond })

// pace is how often a stream has a few records.
const pace = 50 * time.Millisecond

func startStream(t *testing.T, ctx context.Context, addr, topic string, partition int32, codec kgo.CompressionCodec) *stream {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.UnknownTopicRetries(-1), kgo.RetryTimeout(patience), kgo.RequestTimeoutOverhead(5*time.Second), kgo.MaxBufferedRecords(100), kgo.ProducerBatchMaxBytes(30000),
		kgo.MetadataMinAge(50*time.Millisecond), soon)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{topic: topic, partition: partition, client: cl, stopped: make(chan struct{})}
	s.some = sync.NewCond(&s.mu)
	go s.run(ctx)
	t.Cleanup(cl.Close)
	return s
}

func (s *stream) run(ctx context.Context) {
	defer close(s.stopped)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for range 1 + n%3 {
			r := &kgo.Record{Topic: s.topic, Partition: s.partition, Key: s.key(n), Value: value(n)}
			s.mu.Lock()
			s.sums, s.acked = append(s.sums, sum(r.Key, r.Value)), append(s.acked, false)
			s.mu.Unlock()
			at := n
			s.client.Produce(context.Background(), r, func(r *kgo.Record, err error) { s.answered(at, r, err) })
			n++
		}
	}
}

func (s *stream) answered(n int, r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.complain("record %d: %v", n, err)
	case r.Offset != int64(n):
		s.complain("record %d was acknowledged at offset %d", n, r.Offset)
	case s.acked[n]:
		s.complain("record %d was acknowledged twice", n)
	}
	s.acked[n] = true
	s.done++
	s.some.Broadcast()
}

func (s *stream) complain(format string, args ...any) {
	if len(s.wrong) < 5 {
		s.wrong = append(s.wrong, fmt.Sprintf("%s-%d: ", s.topic, s.partition)+fmt.Sprintf(format, args...))
	}
}

// acknowledged is how many records are, which must be the first ones.
func (s *stream) acknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.done {
		if !s.acked[n] {
			s.complain("record %d is not acknowledged, later ones are", n)
			break
		}
	}
	return s.done
}

// reach waits until goal records are acknowledged.
func (s *stream) reach(t *testing.T, goal int) {
	t.Helper()
	late := time.AfterFunc(patience, func() { s.mu.Lock(); s.some.Broadcast(); s.mu.Unlock() })
	defer late.Stop()
	until := time.Now().Add(patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.done < goal && len(s.wrong) == 0 {
		if time.Now().After(until) {
			t.Fatalf("%s-%d: %d acknowledged, not %d", s.topic, s.partition, s.done, goal)
		}
		s.some.Wait()
	}
}

// fits tells whether a record that was read is the one that was sent for its offset.
func (s *stream) fits(r *kgo.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.Offset < int64(len(s.sums)) && s.sums[r.Offset] == sum(r.Key, r.Value)
}

// readers is a group of one consumer that commits what it has read.
type readers struct {
	client *kgo.Client
	byPart map[int32]*stream

	mu        sync.Mutex
	some      *sync.Cond
	committed map[int32]int64 // acknowledged commits
	commits   int
	wrong     []string
	stopped   chan struct{}
}

const group = "readers"

func startReaders(t *testing.T, ctx context.Context, addr string, streams []*stream) *readers {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(steady), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.RetryTimeout(5*time.Second), kgo.FetchMaxWait(200*time.Millisecond), kgo.MetadataMinAge(50*time.Millisecond), soon)
	if err != nil {
		t.Fatal(err)
	}
	g := &readers{client: cl, byPart: map[int32]*stream{}, committed: map[int32]int64{}, stopped: make(chan struct{})}
	g.some = sync.NewCond(&g.mu)
	for _, s := range streams {
		if s.topic == steady {
			g.byPart[s.partition] = s
		}
	}
	go g.run(ctx)
	t.Cleanup(cl.Close)
	return g
}

func (g *readers) run(ctx context.Context) {
	defer close(g.stopped)
	for {
		fetches := g.client.PollRecords(ctx, 500)
		if ctx.Err() != nil {
			return
		}
		var last []*kgo.Record
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for i, r := range p.Records {
				if !g.byPart[r.Partition].fits(r) || i > 0 && r.Offset != p.Records[i-1].Offset+1 {
					g.complain("read what was not sent at %s-%d offset %d", r.Topic, r.Partition, r.Offset)
				}
				if i == len(p.Records)-1 {
					last = append(last, r)
				}
			}
			var gone *kgo.ErrDataLoss
			if errors.As(p.Err, &gone) {
				g.complain("%v", p.Err)
			}
		})
		if len(last) == 0 {
			continue
		}
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := g.client.CommitRecords(try, last...)
		cancel()
		if err != nil {
			continue // the broker is away, or the group begins anew; a later commit says more
		}
		g.mu.Lock()
		for _, r := range last {
			g.committed[r.Partition] = max(g.committed[r.Partition], r.Offset+1)
		}
		g.commits++
		g.some.Broadcast()
		g.mu.Unlock()
	}
}

func (g *readers) complain(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) < 5 {
		g.wrong = append(g.wrong, fmt.Sprintf(format, args...))
	}
}

// more waits for n further commits.
func (g *readers) more(t *testing.T, n int) {
	t.Helper()
	until := time.Now().Add(patience)
	late := time.AfterFunc(patience, func() { g.mu.Lock(); g.some.Broadcast(); g.mu.Unlock() })
	defer late.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	for goal := g.commits + n; g.commits < goal && len(g.wrong) == 0; g.some.Wait() {
		if time.Now().After(until) {
			t.Fatalf("%d commits, not %d", g.commits, goal)
		}
	}
}

// acknowledged are the commits so far.
func (g *readers) acknowledged() map[int32]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[int32]int64{}
	for p, o := range g.committed {
		out[p] = o
	}
	return out
}

// complaints are what went wrong so far.
func complaints(streams []*stream, g *readers) string {
	var all []string
	for _, s := range streams {
		s.mu.Lock()
		all = append(all, s.wrong...)
		s.mu.Unlock()
	}
	g.mu.Lock()
	all = append(all, g.wrong...)
	g.mu.Unlock()
	return strings.Join(all, "\n")
}
