package api

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/replication"
	"kring/ring"
	"kring/ring/simring"
	"kring/segment"
	"kring/wire"
	"kring/wire/batch"
)

// world is a broker without its controller: loops, servers, partitions on real logs, all on a simulated machine.
type world struct {
	t           testing.TB
	w           *simring.World
	m           *simring.Machine
	loops       []ring.Loop
	node        *Node
	image       *metadata.Image
	topics      map[string]*metadata.Topic
	correlation int32
}

// topic is what a test wants to have.
type topic struct {
	name       string
	partitions int
	log        func(*segment.Config)
	conf       func(*replication.Config)
}

const self = 1

func newWorld(t testing.TB, loops int, topics ...topic) *world {
	t.Helper()
	return newWorldOf(t, 7, loops, topics...)
}

func newWorldOf(t testing.TB, seed uint64, loops int, topics ...topic) *world {
	t.Helper()
	w := simring.New(seed, simring.Options{})
	x := &world{t: t, w: w, m: w.Machine("broker"), image: metadata.NewImage(), topics: map[string]*metadata.Topic{}}
	conf, _, err := config.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	x.node = &Node{ID: self, ClusterID: "test", Log: slog.New(slog.DiscardHandler)}
	x.node.SetConfig(conf)
	started := false
	x.loops = x.m.Start(loops, func(l []ring.Loop) {
		x.listen(l)
		started = true
	})
	x.w.Run(func() bool { return started })
	e := x.image.Edit()
	here := metadata.Endpoint{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "broker", Port: 9092}
	e.SetBroker(&metadata.Broker{ID: self, Endpoints: []metadata.Endpoint{here}})
	x.image = e.Image()
	x.node.SetImage(x.image)
	for i, topic := range topics {
		x.create(topic, [16]byte{1, byte(i + 1)})
	}
	return x
}

// listen serves on port 9092+i with connections on loop i, so that a test chooses its loop.
func (x *world) listen(loops []ring.Loop) {
	for _, l := range loops {
		c := NewContext(x.node, l)
		x.node.Contexts = append(x.node.Contexts, c)
		c.Server = server.New(l, server.Options{}, c.Dispatch)
	}
	for i, l := range loops {
		c := x.node.Contexts[i]
		on, err := loops[0].Listen(fmt.Sprintf("10.0.0.1:%d", 9092+i))
		if err != nil {
			x.t.Fatal(err)
		}
		loops[0].Accept(on, func(s ring.Socket, peer netip.AddrPort) {
			post(l, func() { c.Server.Attach(s, peer, "PLAINTEXT", nil) })
		})
	}
}

func post(l ring.Loop, fn func()) {
	l.Post(&ring.Message{Run: func(*ring.Message) { fn() }})
}

// turn lets what was asked for happen.
func (x *world) turn() {
	done := 0
	for _, l := range x.loops {
		x.m.Do(l, func() { done++ })
	}
	x.w.Run(func() bool { return done == len(x.loops) })
}

// on runs a task on a loop to its end.
func (x *world) on(loop int, fn func(t *ring.Task, c *Context)) {
	x.t.Helper()
	done := false
	x.m.Do(x.loops[loop], func() {
		ring.Go(x.loops[loop], func(t *ring.Task) {
			fn(t, x.node.Contexts[loop])
			done = true
		})
	})
	if !x.w.Run(func() bool { return done }) {
		x.t.Fatal("the task does not end")
	}
}

// create makes a topic whose partitions lead.
func (x *world) create(want topic, id [16]byte) {
	x.t.Helper()
	mt := &metadata.Topic{Name: want.name, ID: id}
	for range want.partitions {
		mt.Partitions = append(mt.Partitions, metadata.Partition{Leader: self, LeaderEpoch: 3, ISR: []int32{self}, Replicas: []int32{self}})
	}
	for i := range x.loops {
		x.on(i, func(*ring.Task, *Context) { x.node.Contexts[i].AddTopic(want.name, id, want.partitions) })
	}
	conf := x.node.Config().Topic(nil)
	for i := range want.partitions {
		c := x.node.Contexts[0]
		home := c.LoopOf(c.topics[want.name], int32(i))
		x.on(home, func(t *ring.Task, c *Context) {
			o := segment.Options{Dir: fmt.Sprintf("/data/%s-%d", want.name, i), Config: segment.DefaultConfig(), TopicID: id}
			if want.log != nil {
				want.log(&o.Config)
			}
			l, err := segment.Open(t, o)
			if err != nil {
				x.t.Fatal(err)
			}
			rc := replication.Config{MinISR: 1, MaxMessageBytes: int(conf.MaxMessageBytes), TimestampBeforeMaxMs: conf.TimestampBeforeMaxMs,
				TimestampAfterMaxMs: conf.TimestampAfterMaxMs}
			if want.conf != nil {
				want.conf(&rc)
			}
			p := replication.New(replication.Options{Host: c.Host, Self: self, Topic: want.name, TopicID: id, Index: int32(i), Log: l, Config: rc})
			p.Lead(replication.State{Leader: self, LeaderEpoch: 3, ISR: []int32{self}, Replicas: []int32{self}}, 0)
			c.topics[want.name].Partitions[i] = p
		})
	}
	x.topics[want.name] = mt
	e := x.image.Edit()
	e.SetTopic(mt)
	x.image = e.Image()
	x.node.SetImage(x.image)
}

// partition gives a partition to fn, on its loop.
func (x *world) partition(name string, index int32, fn func(p *replication.Partition)) {
	x.t.Helper()
	c := x.node.Contexts[0]
	x.on(c.LoopOf(c.topics[name], index), func(_ *ring.Task, c *Context) { fn(c.topics[name].Partitions[index]) })
}

// peer is a client's connection.
type peer struct {
	x  *world
	c  *simring.Client
	id string
}

// dial connects to a loop.
func (x *world) dial(loop int) *peer {
	return &peer{x: x, c: x.w.Dial(fmt.Sprintf("broker:%d", 9092+loop)), id: "test"}
}

// send sends a request.
func (p *peer) send(req kmsg.Request) int32 {
	p.x.correlation++
	h := wire.RequestHeader{Key: req.Key(), Version: req.GetVersion(), CorrelationID: p.x.correlation, ClientID: []byte(p.id)}
	frame := wire.AppendRequestHeader(make([]byte, 4), &h)
	frame = req.AppendTo(frame)
	wire.PutFrameSize(frame, 0)
	p.c.Send(frame)
	return p.x.correlation
}

// receive reads the next answer into resp.
func (p *peer) receive(resp kmsg.Response, correlation int32) {
	p.x.t.Helper()
	body := p.answer(correlation, wire.Flexible(resp.Key(), resp.GetVersion()))
	if err := resp.ReadFrom(body); err != nil {
		p.x.t.Fatal(err)
	}
}

func (p *peer) answer(correlation int32, flexible bool) []byte {
	p.x.t.Helper()
	head, err := p.c.Read(4, time.Minute)
	if err != nil {
		p.x.t.Fatal(err)
	}
	body, err := p.c.Read(int(binary.BigEndian.Uint32(head)), time.Minute)
	if err != nil {
		p.x.t.Fatal(err)
	}
	if got := int32(binary.BigEndian.Uint32(body)); got != correlation {
		p.x.t.Fatalf("answer to %d, want %d", got, correlation)
	}
	if flexible {
		return body[5:]
	}
	return body[4:]
}

// call sends a request and gives its answer.
func call[R kmsg.Response](p *peer, req kmsg.Request) R {
	p.x.t.Helper()
	id := p.send(req)
	resp := req.ResponseKind().(R)
	p.receive(resp, id)
	return resp
}

// records builds a batch of n records; each has a key and a value of so many bytes.
func records(n, bytes int) []byte {
	b := batch.NewBuilder(batch.None)
	for i := range n {
		b.Add(1_700_000_000_000+int64(i), []byte(fmt.Sprintf("k%d", i)), make([]byte, bytes))
	}
	return b.AppendTo(nil)
}

// piece is what one partition of a produce gets.
type piece struct {
	topic string
	index int32
	data  []byte
}

func produceRequest(version, acks int16, pieces ...piece) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, acks, 30_000
	for _, p := range pieces {
		rt := kmsg.NewProduceRequestTopic()
		rt.Topic = p.topic
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p.index, p.data
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// put produces one batch and wants it to be taken.
func (p *peer) put(topic string, index int32, data []byte) int64 {
	p.x.t.Helper()
	resp := call[*kmsg.ProduceResponse](p, produceRequest(9, -1, piece{topic, index, data}))
	rp := resp.Topics[0].Partitions[0]
	if rp.ErrorCode != 0 {
		p.x.t.Fatalf("produce to %s-%d: %v", topic, index, wire.Code(rp.ErrorCode))
	}
	return rp.BaseOffset
}

// from is where a fetch begins in one partition.
type from struct {
	topic  string
	index  int32
	offset int64
}

// fetchRequest asks for partitions, of at most a MiB each, without a session.
func (x *world) fetchRequest(version int16, wait, minBytes int32, parts ...from) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = version, wait, minBytes, 50<<20
	req.ReplicaID, req.SessionEpoch = -1, -1
	for _, p := range parts {
		rt := kmsg.NewFetchRequestTopic()
		rt.Topic = p.topic
		if t := x.topics[p.topic]; t != nil && version >= 13 {
			rt.TopicID = t.ID
		}
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p.index, p.offset, 1<<20
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
	}
	return req
}

// got is the answer for one partition of a fetch, nil if it is not in it.
func (x *world) got(resp *kmsg.FetchResponse, topic string, index int32) *kmsg.FetchResponseTopicPartition {
	for i := range resp.Topics {
		rt := &resp.Topics[i]
		if t := x.topics[topic]; rt.Topic != topic && (t == nil || rt.TopicID != t.ID) {
			continue
		}
		for k := range rt.Partitions {
			if rt.Partitions[k].Partition == index {
				return &rt.Partitions[k]
			}
		}
	}
	return nil
}
