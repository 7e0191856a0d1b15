package api

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/replication"
	"kring/ring"
	"kring/segment"
	"kring/wire"
)

// real is a broker without its controller on the machine's own kernel, for benchmarks.
type real struct {
	node *Node
	addr string
}

func newReal(b testing.TB, loops, partitions int) *real {
	b.Helper()
	dir := b.TempDir()
	procs := runtime.GOMAXPROCS(0) // the kernel raises it
	b.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	k, err := ring.New(ring.Options{Loops: loops, Dirs: []string{dir}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Skip(err)
	}
	conf, _, err := config.Load("", nil)
	if err != nil {
		b.Fatal(err)
	}
	id := [16]byte{1}
	x := &real{node: &Node{ID: self, Log: slog.New(slog.DiscardHandler)}}
	x.node.SetConfig(conf)
	e := metadata.NewImage().Edit()
	mt := &metadata.Topic{Name: "a", ID: id}
	for range partitions {
		mt.Partitions = append(mt.Partitions, metadata.Partition{Leader: self})
	}
	e.SetTopic(mt)
	x.node.SetImage(e.Image())
	ready, stopped := make(chan error, partitions+loops), make(chan error, 1)
	go func() {
		stopped <- k.Run(func() { x.start(k.Loops(), dir, partitions, ready) })
	}()
	for range partitions {
		if err := <-ready; err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		k.Stop()
		if err := <-stopped; err != nil {
			b.Error(err)
		}
	})
	return x
}

func (x *real) start(loops []ring.Loop, dir string, partitions int, ready chan error) {
	for _, l := range loops {
		c := NewContext(x.node, l)
		c.AddTopic("a", [16]byte{1}, partitions)
		c.Server = server.New(l, server.Options{}, c.Dispatch)
		x.node.Contexts = append(x.node.Contexts, c)
	}
	on, err := loops[0].Listen("127.0.0.1:0")
	if err != nil {
		ready <- err
		return
	}
	x.addr = on.Addr().String()
	turn := 0
	loops[0].Accept(on, func(s ring.Socket, peer netip.AddrPort) {
		c := x.node.Contexts[turn%len(loops)]
		turn++
		post(c.Loop, func() { c.Server.Attach(s, peer, "PLAINTEXT", nil) })
	})
	for i := range partitions {
		c := x.node.Contexts[0]
		c = x.node.Contexts[c.LoopOf(c.topics["a"], int32(i))]
		post(c.Loop, func() {
			ring.Go(c.Loop, func(t *ring.Task) {
				l, err := segment.Open(t, segment.Options{Dir: fmt.Sprintf("%s/a-%d", dir, i), Config: segment.DefaultConfig()})
				if err == nil {
					p := replication.New(replication.Options{Host: c.Host, Self: self, Topic: "a", TopicID: [16]byte{1}, Index: int32(i), Log: l,
						Config: replication.Config{MinISR: 1, MaxMessageBytes: 1 << 20, TimestampBeforeMaxMs: 1<<63 - 1, TimestampAfterMaxMs: 1<<63 - 1}})
					p.Lead(replication.State{Leader: self, ISR: []int32{self}, Replicas: []int32{self}}, 0)
					c.topics["a"].Partitions[i] = p
				}
				ready <- err
			})
		})
	}
}

// frame encodes a request once.
func frame(req kmsg.Request) []byte {
	b := wire.AppendRequestHeader(make([]byte, 4), &wire.RequestHeader{Key: req.Key(), Version: req.GetVersion(), ClientID: []byte("bench")})
	b = req.AppendTo(b)
	wire.PutFrameSize(b, 0)
	return b
}

// ask sends a frame and reads the answer into buf.
func ask(b testing.TB, c net.Conn, frame, buf []byte) []byte {
	if _, err := c.Write(frame); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(c, buf[:4]); err != nil {
		b.Fatal(err)
	}
	n := binary.BigEndian.Uint32(buf)
	if _, err := io.ReadFull(c, buf[:n]); err != nil {
		b.Fatal(err)
	}
	return buf[:n]
}

// run asks one thing again and again, and reports the allocations of the whole process, the client's socket included.
func (x *real) run(b *testing.B, request func(i int) []byte, check func(answer []byte)) {
	b.Helper()
	c, err := net.Dial("tcp", x.addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 8<<20)
	for i := range 200 {
		check(ask(b, c, request(i), buf))
	}
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		ask(b, c, request(i), buf)
	}
	b.StopTimer()
}

func BenchmarkProduce(b *testing.B) {
	for _, bb := range []struct {
		name                       string
		loops, partitions, records int
		bytes                      int
	}{
		{"1 record of 1 KiB", 1, 1, 1, 1024},
		{"1000 records of 100 B", 1, 1, 1000, 100},
		{"6 partitions", 1, 6, 1, 1024},
		{"6 partitions on 2 loops", 2, 6, 1, 1024},
	} {
		b.Run(bb.name, func(b *testing.B) {
			x := newReal(b, bb.loops, bb.partitions)
			req := produceRequest(9, -1)
			rt := kmsg.NewProduceRequestTopic()
			rt.Topic = "a"
			for i := range bb.partitions {
				rp := kmsg.NewProduceRequestTopicPartition()
				rp.Partition, rp.Records = int32(i), records(bb.records, bb.bytes)
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
			f := frame(req)
			x.run(b, func(int) []byte { return f }, func(answer []byte) {
				resp := kmsg.NewPtrProduceResponse()
				resp.Version = 9
				if resp.ReadFrom(answer[5:]) != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
					b.Fatalf("%+v", resp)
				}
			})
		})
	}
}

func BenchmarkFetch(b *testing.B) {
	for _, bb := range []struct {
		name              string
		loops, partitions int
		bytes             int
	}{
		{"1 KiB", 1, 1, 1 << 10},
		{"1 MiB", 1, 1, 1 << 20},
		{"2 partitions of 1 KiB", 1, 2, 1 << 10},
		{"3 partitions of 1 KiB", 1, 3, 1 << 10},
		{"6 partitions of 1 KiB", 1, 6, 1 << 10},
		{"6 partitions of 1 KiB on 2 loops", 2, 6, 1 << 10},
	} {
		b.Run(bb.name, func(b *testing.B) {
			x := newReal(b, bb.loops, bb.partitions)
			c, err := net.Dial("tcp", x.addr)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			req := kmsg.NewPtrFetchRequest()
			req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.ReplicaID, req.SessionEpoch = 12, 500, 1, 50<<20, -1, -1
			rt := kmsg.NewFetchRequestTopic()
			rt.Topic = "a"
			buf := make([]byte, 1<<20)
			for i := range bb.partitions {
				for range max(bb.bytes/(16<<10), 1) {
					ask(b, c, frame(produceRequest(9, -1, piece{"a", int32(i), records(1, min(bb.bytes, 16<<10))})), buf)
				}
				rp := kmsg.NewFetchRequestTopicPartition()
				rp.Partition, rp.PartitionMaxBytes = int32(i), 1<<20
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
			f := frame(req)
			x.run(b, func(int) []byte { return f }, func(answer []byte) {
				resp := kmsg.NewPtrFetchResponse()
				resp.Version = 12
				if resp.ReadFrom(answer[5:]) != nil || len(resp.Topics[0].Partitions[0].RecordBatches) < bb.bytes*9/10 {
					b.Fatalf("%+v", resp)
				}
			})
		})
	}
}

// BenchmarkTail is a record's way from a producer to a consumer that waits for it in a session of many partitions.
func BenchmarkTail(b *testing.B) {
	for _, bb := range []struct{ loops, partitions int }{{1, 6}, {2, 6}, {1, 1000}} {
		b.Run(fmt.Sprintf("%d loops, %d partitions", bb.loops, bb.partitions), func(b *testing.B) {
			x := newReal(b, bb.loops, bb.partitions)
			dial := func() net.Conn {
				c, err := net.Dial("tcp", x.addr)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { c.Close() })
				return c
			}
			producer, consumer := dial(), dial()
			put := frame(produceRequest(9, -1, piece{"a", 3, records(1, 1024)}))
			first := kmsg.NewPtrFetchRequest()
			first.Version, first.MaxWaitMillis, first.MinBytes, first.MaxBytes, first.ReplicaID, first.SessionEpoch = 12, 0, 1, 50<<20, -1, 0
			rt := kmsg.NewFetchRequestTopic()
			rt.Topic = "a"
			for i := range bb.partitions {
				rp := kmsg.NewFetchRequestTopicPartition()
				rp.Partition, rp.PartitionMaxBytes = int32(i), 1<<20
				rt.Partitions = append(rt.Partitions, rp)
			}
			first.Topics = append(first.Topics, rt)
			buf := make([]byte, 1<<20)
			resp := kmsg.NewPtrFetchResponse()
			resp.Version = 12
			if err := resp.ReadFrom(ask(b, consumer, frame(first), buf)[5:]); err != nil || resp.SessionID == 0 {
				b.Fatal(err, resp)
			}
			first.SessionID, first.MaxWaitMillis, first.SessionEpoch = resp.SessionID, 10_000, 1
			first.Topics[0].Partitions = first.Topics[0].Partitions[3:4]
			next := frame(first)
			epoch, offset := sessionEpoch(next), len(next)-21 // behind the fetch offset come 21 bytes
			for i := 0; i < b.N+200; i++ {
				if i == 200 {
					runtime.GC()
					b.ReportAllocs()
					b.ResetTimer()
				}
				binary.BigEndian.PutUint32(next[epoch:], uint32(i+1))
				binary.BigEndian.PutUint64(next[offset-8:], uint64(i))
				if _, err := consumer.Write(next); err != nil {
					b.Fatal(err)
				}
				ask(b, producer, put, buf)
				if _, err := io.ReadFull(consumer, buf[:4]); err != nil {
					b.Fatal(err)
				}
				n := binary.BigEndian.Uint32(buf)
				if _, err := io.ReadFull(consumer, buf[:n]); err != nil {
					b.Fatal(err)
				}
				if n < 1024 {
					resp.ReadFrom(buf[5:n])
					b.Fatalf("round %d: %d bytes: %+v", i, n, resp)
				}
			}
		})
	}
}

// sessionEpoch is where a fetch of version 12 holds it.
func sessionEpoch(frame []byte) int {
	header := 4 + 2 + 2 + 4 + 2 + len("bench") + 1
	at := header + 4 + 4 + 4 + 4 + 1 + 4
	if frame[at+3] != 1 {
		panic("not a fetch of version 12 and epoch 1")
	}
	return at
}

// TestAllocations holds the whole process to the bar, over a real ring: 500 produces and fetches, the client's side included.
func TestAllocations(t *testing.T) {
	for _, loops := range []int{1, 2} {
		x := newReal(t, loops, 6)
		c, err := net.Dial("tcp", x.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		req := produceRequest(9, -1)
		rt := kmsg.NewProduceRequestTopic()
		rt.Topic = "a"
		for i := range 6 {
			rp := kmsg.NewProduceRequestTopicPartition()
			rp.Partition, rp.Records = int32(i), records(100, 10)
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
		put, get := frame(req), frame((&world{}).fetchRequest(12, 500, 1, from{"a", 3, 0}))
		offset := len(get) - 21 - 8
		buf := make([]byte, 8<<20)
		var before, after runtime.MemStats
		const rounds = 500
		for i := range rounds + 100 {
			if i == 100 {
				runtime.ReadMemStats(&before)
			}
			ask(t, c, put, buf)
			binary.BigEndian.PutUint64(get[offset:], uint64(i*100))
			if n := len(ask(t, c, get, buf)); n < 1000 {
				t.Fatalf("round %d: an answer of %d bytes", i, n)
			}
		}
		runtime.ReadMemStats(&after)
		if n := float64(after.Mallocs-before.Mallocs) / (2 * rounds); n > 2 {
			t.Errorf("%d loops: %.2f allocations per request", loops, n)
		}
	}
}
