package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/config"
	"kring/metadata/embedded"
	"kring/ring"
	"kring/ring/simring"
	"kring/wire"
	"kring/wire/batch"
)

// place is where a broker runs in a test: on a simulated machine or on this one.
type place interface {
	start(overrides ...string)
	stop()
	dial() link
	// on runs a task on loop 0.
	on(fn func(t *ring.Task, b *Broker))
}

// link is a client's connection.
type link interface {
	send(b []byte)
	// read gives n bytes, or what ended the connection.
	read(n int) ([]byte, error)
	close()
}

// everywhere runs a test on the simulated and the real ring, with 1, 2 and 4 loops.
func everywhere(t *testing.T, fn func(t *testing.T, p place)) {
	for _, loops := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("simring-%d", loops), func(t *testing.T) {
			s := newSim(t, loops, 1)
			fn(t, s)
			s.stop()
		})
		t.Run(fmt.Sprintf("ring-%d", loops), func(t *testing.T) {
			r := &real{t: t, loops: loops, dir: t.TempDir()}
			fn(t, r)
			r.stop()
		})
	}
}

// seeds is how many seeds a simulation is run with: KRING_SEEDS for a longer search.
func seeds(usual uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("KRING_SEEDS"), 10, 64); err == nil {
		return n
	}
	return usual
}

func open(t *ring.Task, dir string, clean bool) (Store, error) {
	s, err := embedded.Open(t, dir, embedded.Options{Clean: clean})
	if err != nil {
		return Store{}, err
	}
	return Store{Store: s, Close: s.Close}, nil
}

func load(t testing.TB, overrides ...string) *config.Config {
	t.Helper()
	c, _, err := config.Load("", overrides)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sim is a simulated machine.
type sim struct {
	t     testing.TB
	w     *simring.World
	m     *simring.Machine
	loops int
	all   []ring.Loop
	b     *Broker
	err   error
	said  *strings.Builder // what is logged, if it is to be kept
}

const simAddr = "10.0.0.1:9092"

func newSim(t testing.TB, loops int, seed uint64) *sim {
	w := simring.New(seed, simring.Options{})
	return &sim{t: t, w: w, m: w.Machine("broker"), loops: loops}
}

func (s *sim) start(overrides ...string) {
	s.t.Helper()
	if s.begin(overrides...); s.err != nil {
		s.t.Fatal(s.err)
	}
}

func (s *sim) begin(overrides ...string) {
	s.t.Helper()
	c := load(s.t, append([]string{"log.dirs=/data", "listeners=PLAINTEXT://" + simAddr}, overrides...)...)
	s.b, s.err = nil, nil
	done := false
	s.all = s.m.Start(s.loops, func(loops []ring.Loop) {
		ring.Go(loops[0], func(t *ring.Task) {
			s.b, s.err = Start(t, Options{Loops: loops, Config: c, Open: open, Log: s.logger(), PartitionsMost: 50, Levels: &levels{"INFO"},
				Fatal: func(err error) { s.err = err }})
			done = true
		})
	})
	if err := s.w.RunUntil("the broker to start", time.Hour, func() bool { return done }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sim) logger() *slog.Logger {
	if s.said != nil {
		return slog.New(slog.NewTextHandler(s.said, nil))
	}
	return logger(s.t)
}

func logger(t testing.TB) *slog.Logger {
	if os.Getenv("KRING_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func (s *sim) on(fn func(t *ring.Task, b *Broker)) {
	s.t.Helper()
	done := false
	s.m.Do(s.all[0], func() {
		ring.Go(s.all[0], func(t *ring.Task) {
			fn(t, s.b)
			done = true
		})
	})
	if err := s.w.RunUntil("a task", time.Hour, func() bool { return done }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sim) stop() {
	s.t.Helper()
	if s.b == nil {
		return
	}
	s.on(func(t *ring.Task, b *Broker) {
		if err := b.Stop(t); err != nil {
			s.t.Error(err)
		}
	})
	s.w.RunFor(time.Second)
	s.b = nil
	if err := s.m.Exit(); err != nil {
		s.t.Error(err)
	}
}

func (s *sim) dial() link { return &simLink{s.t, s.w.Dial(simAddr)} }

type simLink struct {
	t testing.TB
	c *simring.Client
}

func (l *simLink) send(b []byte)              { l.c.Send(b) }
func (l *simLink) read(n int) ([]byte, error) { return l.c.Read(n, time.Minute) }
func (l *simLink) close()                     { l.c.Close() }

// real is this machine's kernel.
type real struct {
	t     testing.TB
	loops int
	dir   string
	k     *ring.Kernel
	b     *Broker
	ended chan error
}

func (r *real) start(overrides ...string) {
	r.t.Helper()
	c := load(r.t, append([]string{"log.dirs=" + r.dir, "listeners=PLAINTEXT://127.0.0.1:0"}, overrides...)...)
	k, err := ring.New(ring.Options{Loops: r.loops, Dirs: c.LogDirs, Log: logger(r.t)})
	var refused *ring.Refused
	if errors.As(err, &refused) && os.Getenv("CI") == "" {
		r.t.Skip(err)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	started := make(chan error, 1)
	r.k, r.ended = k, make(chan error, 1)
	go func() {
		r.ended <- k.Run(func() {
			ring.Go(k.Loops()[0], func(t *ring.Task) {
				b, err := Start(t, Options{Loops: k.Loops(), Config: c, Open: open, Log: logger(r.t)})
				r.b = b
				started <- err
			})
		})
	}()
	if err := <-started; err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) on(fn func(t *ring.Task, b *Broker)) {
	r.t.Helper()
	done := make(chan struct{})
	l := r.k.Loops()[0]
	l.Post(&ring.Message{Run: func(*ring.Message) {
		ring.Go(l, func(t *ring.Task) {
			fn(t, r.b)
			close(done)
		})
	}})
	<-done
}

func (r *real) stop() {
	r.t.Helper()
	if r.b == nil {
		return
	}
	r.on(func(t *ring.Task, b *Broker) {
		if err := b.Stop(t); err != nil {
			r.t.Error(err)
		}
	})
	r.b = nil
	r.k.Stop()
	if err := <-r.ended; err != nil {
		r.t.Error(err)
	}
}

func (r *real) dial() link {
	r.t.Helper()
	addr, _ := r.b.Listener("PLAINTEXT")
	c, err := net.Dial("tcp", addr)
	if err != nil {
		r.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	return &realLink{r.t, c}
}

type realLink struct {
	t testing.TB
	c net.Conn
}

func (l *realLink) send(b []byte) {
	if _, err := l.c.Write(b); err != nil {
		l.t.Error(err)
	}
}

func (l *realLink) read(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(l.c, b)
	return b, err
}

func (l *realLink) close() { l.c.Close() }

// client speaks Kafka over a link.
type client struct {
	link
	t    testing.TB
	next int32
}

func connect(t testing.TB, p place) *client { return &client{link: p.dial(), t: t} }

// post sends a request without waiting for its answer.
func (c *client) post(m kmsg.Request) {
	c.next++
	head := wire.RequestHeader{Key: m.Key(), Version: m.GetVersion(), CorrelationID: c.next, ClientID: []byte("test")}
	frame := m.AppendTo(wire.AppendRequestHeader(make([]byte, 4), &head))
	wire.PutFrameSize(frame, 0)
	c.send(frame)
}

// receive reads the answer to m.
func (c *client) receive(m kmsg.Request) kmsg.Response {
	c.t.Helper()
	resp, err := c.tryReceive(m)
	if err != nil {
		c.t.Fatalf("%s %d: %v", wire.Name(m.Key()), m.GetVersion(), err)
	}
	return resp
}

func (c *client) tryReceive(m kmsg.Request) (kmsg.Response, error) {
	head, err := c.read(4)
	if err != nil {
		return nil, err
	}
	body, err := c.read(int(binary.BigEndian.Uint32(head)))
	if err != nil {
		return nil, err
	}
	resp := m.ResponseKind()
	resp.SetVersion(m.GetVersion())
	return resp, resp.ReadFrom(body[wire.ResponseHeaderSize(m.Key(), m.GetVersion()):])
}

// ask sends a request in a version and reads the answer.
func ask[R kmsg.Response](c *client, m kmsg.Request, version int16) R {
	c.t.Helper()
	m.SetVersion(version)
	c.post(m)
	return c.receive(m).(R)
}

// produce sends one batch to one partition and gives the answer.
func (c *client) produce(topic string, partition int32, acks int16, records []byte) (base int64, code wire.Code) {
	c.t.Helper()
	m := produceRequest(topic, partition, acks, records)
	resp := ask[*kmsg.ProduceResponse](c, m, 9)
	p := resp.Topics[0].Partitions[0]
	return p.BaseOffset, wire.Code(p.ErrorCode)
}

func produceRequest(topic string, partition int32, acks int16, records []byte) *kmsg.ProduceRequest {
	m := kmsg.NewPtrProduceRequest()
	m.Acks, m.TimeoutMillis = acks, 5000
	rt, rp := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	rt.Topic, rp.Partition, rp.Records = topic, partition, records
	rt.Partitions = append(rt.Partitions, rp)
	m.Topics = append(m.Topics, rt)
	m.SetVersion(9)
	return m
}

// fetch reads a partition from an offset on, once.
func (c *client) fetch(topic string, partition int32, from int64, waitMs int32) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	m := kmsg.NewPtrFetchRequest()
	m.MaxWaitMillis, m.MinBytes, m.MaxBytes, m.SessionEpoch = waitMs, 1, 50<<20, -1
	rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	rt.Topic, rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = topic, partition, from, 10<<20, -1
	rt.Partitions = append(rt.Partitions, rp)
	m.Topics = append(m.Topics, rt)
	return ask[*kmsg.FetchResponse](c, m, 11).Topics[0].Partitions[0]
}

// all reads every record value of a partition.
func (c *client) all(topic string, partition int32) (values []string) {
	c.t.Helper()
	for at := int64(0); ; {
		p := c.fetch(topic, partition, at, 0)
		if p.ErrorCode != 0 {
			c.t.Fatalf("fetch of %s-%d from %d: %v", topic, partition, at, wire.Code(p.ErrorCode))
		}
		was := at
		for b := p.RecordBatches; ; {
			size, err := batch.Next(b)
			if err != nil || size > len(b) {
				break
			}
			rs, err := batch.Open(b[:size], 64<<20)
			if err != nil {
				c.t.Fatal(err)
			}
			for rs.Next() {
				r := &rs.Record
				if r.Offset >= at {
					values = append(values, string(r.Value))
					at = r.Offset + 1
				}
			}
			b = b[size:]
		}
		if at == was {
			return values
		}
	}
}

// words is a batch of one record per value.
func words(values ...string) []byte {
	b := batch.NewBuilder(batch.None)
	for _, v := range values {
		b.Add(1_700_000_000_000, []byte("k"), []byte(v))
	}
	return b.AppendTo(nil)
}

// createTopic creates a topic with settings "k=v".
func (c *client) createTopic(name string, partitions int32, settings ...string) wire.Code {
	c.t.Helper()
	m := kmsg.NewPtrCreateTopicsRequest()
	m.TimeoutMillis = 10_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, partitions, 1
	for _, s := range settings {
		var k, v string
		for i := range s {
			if s[i] == '=' {
				k, v = s[:i], s[i+1:]
				break
			}
		}
		rt.Configs = append(rt.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: k, Value: &v})
	}
	m.Topics = append(m.Topics, rt)
	resp := ask[*kmsg.CreateTopicsResponse](c, m, 7)
	return wire.Code(resp.Topics[0].ErrorCode)
}

func (c *client) deleteTopic(name string) wire.Code {
	c.t.Helper()
	m := kmsg.NewPtrDeleteTopicsRequest()
	m.TimeoutMillis = 10_000
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &name
	m.Topics = append(m.Topics, rt)
	return wire.Code(ask[*kmsg.DeleteTopicsResponse](c, m, 6).Topics[0].ErrorCode)
}

// stopIn stops a broker on its loop, whatever comes of it.
func stopIn(l ring.Loop, b *Broker, done func()) {
	ring.Go(l, func(t *ring.Task) {
		b.Stop(t)
		done()
	})
}
