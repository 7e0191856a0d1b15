package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// load is idempotent producers that do not give up, and what was acknowledged to them.
type load struct {
	mu    sync.Mutex
	acked map[place]string
	bad   []string
	some  chan struct{} // a token when something was acknowledged
	stop  chan struct{}
	all   sync.WaitGroup
}

// produce runs one producer of topic until stop; each value is unique and numbered.
func (l *load) produce(b *broker, topic, name string, partitions int, seed int64) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(20_000),
		kgo.MaxBufferedRecords(100), kgo.MetadataMinAge(20*time.Millisecond), kgo.UnknownTopicRetries(-1),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }))
	if err != nil {
		b.t.Error(err)
		return
	}
	first := &kgo.Record{Topic: topic, Value: []byte(name + " 00000000 ")}
	l.acknowledged(cl.ProduceSync(context.Background(), first).First()) // the client does not insist on its producer id
	l.all.Add(1)
	go func() {
		defer l.all.Done()
		defer cl.Close()
		random := rand.New(rand.NewSource(seed))
		for i := 1; ; i++ {
			select {
			case <-l.stop:
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				if err := cl.Flush(ctx); err != nil {
					b.t.Errorf("%s cannot finish: %v", name, err)
				}
				return
			default:
			}
			v := fmt.Sprintf("%s %08d %s", name, i, strings.Repeat("x", random.Intn(1500)))
			cl.Produce(context.Background(), &kgo.Record{Topic: topic, Partition: int32(random.Intn(partitions)), Value: []byte(v)}, l.acknowledged)
		}
	}()
}

func (l *load) acknowledged(r *kgo.Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := place{r.Partition, r.Offset}
	switch {
	case err != nil && !errors.As(err, new(*kerr.Error)):
		return // the client does not try again where a connection ends before its first answer: nobody promised anything
	case err != nil:
		l.bad = append(l.bad, fmt.Sprintf("%.20s: %v", r.Value, err))
	case l.acked[at] != "":
		l.bad = append(l.bad, fmt.Sprintf("%.20s and %.20s are both acknowledged at %v", r.Value, l.acked[at], at))
	default:
		l.acked[at] = string(r.Value)
	}
	select {
	case l.some <- struct{}{}:
	default:
	}
}

// check reads the topic: dense offsets, every acknowledged record where it was said to be, each once, each producer's in order.
func (l *load) check(b *broker, topic string) {
	b.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	got := b.values(topic)
	for at, v := range l.acked {
		if p := got[at.partition]; at.offset >= int64(len(p)) || p[at.offset] != v {
			b.t.Fatalf("%.20s, acknowledged at %v, is not there (of %d)", v, at, len(p))
		}
	}
	seen := map[string]bool{}
	for partition, p := range got {
		last := map[string]string{}
		for offset, v := range p {
			name, _, _ := strings.Cut(v, " ")
			id := v[:len(name)+9]
			if seen[id] {
				b.t.Fatalf("%s is there twice, again at %d of partition %d", id, offset, partition)
			}
			if last[name] > id {
				b.t.Fatalf("%s follows %s in partition %d", id, last[name], partition)
			}
			seen[id], last[name] = true, id
		}
	}
	if len(l.bad) > 0 {
		b.t.Fatalf("%d records were refused or acknowledged wrongly, such as %s", len(l.bad), l.bad[0])
	}
}

// churn creates and deletes topics until stop.
func (l *load) churn(b *broker) {
	l.all.Add(1)
	cl := b.client()
	go func() {
		defer l.all.Done()
		admin := kadm.NewClient(cl)
		for i := 0; ; i++ {
			select {
			case <-l.stop:
				return
			default:
			}
			// whatever comes of it while the broker dies
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			name := fmt.Sprint("churn", i%3)
			_, _ = admin.CreateTopic(ctx, 3, 1, nil, name)
			_, _ = admin.DeleteTopic(ctx, name)
			cancel()
		}
	}()
}

// TestAcknowledgedSurviveCrash kills the broker in the midst of idempotent load, with segments that roll all the time and topics
// that come and go, and starts it again, over and over; one of the ends is a stop. What was acknowledged is there once and in order.
func TestAcknowledgedSurviveCrash(t *testing.T) {
	for _, path := range []string{"ring", "pwrite"} {
		t.Run("write.path="+path, func(t *testing.T) {
			everyLoops(t, func(t *testing.T, loops int) { crashes(t, loops, path) })
		})
	}
}

func crashes(t *testing.T, loops int, path string) {
	b := start(t, loops, "kring.write.path="+path, "log.segment.bytes=100000",
		"log.segment.delete.delay.ms=100", "log.retention.check.interval.ms=50", "log.flush.offset.checkpoint.interval.ms=100")
	b.create("t", 3)
	l := &load{acked: map[place]string{}, some: make(chan struct{}, 1), stop: make(chan struct{})}
	for i := range 2 {
		l.produce(b, "t", fmt.Sprint("p", i), 3, int64(i))
	}
	l.churn(b)
	random := rand.New(rand.NewSource(int64(loops)))
	for round := range 6 {
		for range 5 + random.Intn(20) { // acknowledgements since the start, at least
			select {
			case <-l.some:
			case <-time.After(startMax):
				t.Fatal("nothing is acknowledged any more")
			}
		}
		if round == 3 {
			b.stop(syscall.SIGTERM)
		} else {
			b.stop(syscall.SIGKILL)
		}
		b.run()
		if round == 3 && strings.Contains(b.log.String(), " WARN  ") {
			t.Errorf("after a stop in order there was something to recover:\n%s", b.log)
		}
	}
	close(l.stop)
	l.all.Wait()
	l.check(b, "t")
}
