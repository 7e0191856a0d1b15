package conformance

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestGroupReadsGoSourceTreeOnce has a group of three read the Go source tree, of each codec. The third member comes when a third has been
// read, the first leaves when two thirds have; each commits what it has read before it gives a partition away. So every key comes once.
func TestGroupReadsGoSourceTreeOnce(t *testing.T) {
	root, files := sourceTree(t)
	for i, codec := range codecNames {
		n := loops[i%len(loops)]
		t.Run(codec+"/loops="+strconv.Itoa(n), func(t *testing.T) {
			b := start(t, n, "socket.request.max.bytes=104857600", "group.initial.rebalance.delay.ms=100")
			b.create("tree", 6, "max.message.bytes="+strconv.Itoa(recordMax))
			franzProduce(t, b, "tree", codecs[codec], root, files)
			g := &readers{t: t, b: b, all: got{}, some: make(chan struct{}, 1)}
			first := g.join()
			g.join()
			g.await(len(files) / 3)
			g.join()
			g.await(2 * len(files) / 3)
			first.leave()
			g.join()
			g.await(len(files))
			for _, r := range g.members {
				r.leave()
			}
			checkTree(t, g.all, files, nil)
			if o := settledOffsets(t, b, "readers"); len(o) != 6 {
				t.Errorf("%d partitions have a committed offset, want 6", len(o))
			}
			for p := range int32(6) {
				if at, end := committedOffset(t, b, "readers", "tree", p), listOffset(t, b, "tree", p, -1); at != end {
					t.Errorf("partition %d ends at %d, committed is %d", p, end, at)
				}
			}
			if n := g.working(); n < 3 {
				t.Errorf("%d members have read, want at least 3: %v", n, g.counts())
			}
		})
	}
}

// committedOffset is what a group has committed for a partition.
func committedOffset(t *testing.T, b *broker, group, topic string, partition int32) int64 {
	t.Helper()
	c := b.dial()
	defer c.Close()
	g, err := fetchOffsets(c, group, topic, int(partition)+1)
	if err != nil {
		t.Fatal(err)
	}
	return g.Topics[0].Partitions[partition].Offset
}

// readers is a group in this process.
type readers struct {
	t       *testing.T
	b       *broker
	mu      sync.Mutex
	all     got
	n       int
	members []*treeReader
	some    chan struct{}
}

type treeReader struct {
	g    *readers
	cl   *kgo.Client
	n    int
	stop context.CancelFunc
	done chan struct{}
}

func (g *readers) join() *treeReader {
	g.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &treeReader{g: g, stop: stop, done: make(chan struct{})}
	r.cl = g.b.client(kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("tree"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.HeartbeatInterval(100*time.Millisecond),
		kgo.FetchMaxPartitionBytes(1<<20), kgo.FetchMaxBytes(4<<20), kgo.BrokerMaxReadBytes(256<<20))
	g.members = append(g.members, r)
	go r.run(ctx)
	return r
}

// run reads a few records and commits them before another member may have the partition.
func (r *treeReader) run(ctx context.Context) {
	defer close(r.done)
	for ctx.Err() == nil {
		fs := r.cl.PollRecords(ctx, 100)
		if fs.NumRecords() > 0 {
			if err := r.cl.CommitRecords(context.Background(), fs.Records()...); err != nil {
				r.g.t.Errorf("a commit between rebalances is refused: %v", err)
			}
			r.g.take(r, fs)
		}
		r.cl.AllowRebalance()
	}
	r.cl.CloseAllowingRebalance()
}

func (g *readers) take(r *treeReader, fs kgo.Fetches) {
	g.mu.Lock()
	fs.EachRecord(func(rec *kgo.Record) { g.all.add(rec.Key, rec.Value); g.n++; r.n++ })
	g.mu.Unlock()
	select {
	case g.some <- struct{}{}:
	default:
	}
}

func (r *treeReader) leave() { r.stop(); <-r.done }

// await waits until so many records were read.
func (g *readers) await(n int) {
	g.t.Helper()
	late := time.After(2 * time.Minute)
	for {
		g.mu.Lock()
		have := g.n
		g.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-g.some:
		case <-late:
			g.t.Fatalf("%d of %d records were read", have, n)
		}
	}
}

func (g *readers) counts() map[int]int {
	out := map[int]int{}
	for i, r := range g.members {
		out[i] = r.n
	}
	return out
}

// working is how many members have read something.
func (g *readers) working() int {
	c := g.counts()
	maps.DeleteFunc(c, func(_, n int) bool { return n == 0 })
	return len(c)
}
