package conformance

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand"
	"net"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// memoryMost is what a broker of two loops may grow to whatever is sent to it, in kB: 384 MiB that each loop lends, a fourth more
	// as favours, and what is being worked on.
	memoryMost = 1500 << 10
	// waiting is how many of a torment's thousands of connections may stay: a peer that left is not noticed while as many of its requests as
	// are taken wait for records, as with Kafka, which does not look at a connection while a request of it waits.
	waiting = 20
	// patience is what a client waits that does nothing wrong, on a machine that runs all tests at once.
	patience = 5 * time.Second
)

// served is what a broker says it serves.
func (b *broker) served() []kmsg.ApiVersionsResponseApiKey {
	b.t.Helper()
	body, err := roundTrip(b.dial(), encode(kmsg.NewPtrApiVersionsRequest()))
	resp := kmsg.NewPtrApiVersionsResponse()
	if err == nil {
		err = resp.ReadFrom(body[4:])
	}
	if err != nil || len(resp.ApiKeys) < 10 {
		b.t.Fatalf("%d keys, %v", len(resp.ApiKeys), err)
	}
	return resp.ApiKeys
}

// fillIn puts anything into the fields of a message.
func fillIn(v reflect.Value, r *rand.Rand) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" {
				fillIn(v.Field(i), r)
			}
		}
	case reflect.Slice:
		n := r.Intn(4)
		if v.Type().Elem().Kind() == reflect.Uint8 {
			n = r.Intn(200)
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fillIn(v.Index(i), r)
		}
	case reflect.Array:
		for i := range v.Len() {
			fillIn(v.Index(i), r)
		}
	case reflect.Pointer:
		if r.Intn(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fillIn(v.Elem(), r)
		}
	case reflect.String:
		v.SetString([]string{"t", "t", "", "x", "retention.ms", "1", "\xff/.."}[r.Intn(7)])
	case reflect.Bool:
		v.SetBool(r.Intn(2) == 0)
	case reflect.Uint8:
		v.SetUint(uint64(r.Intn(256)))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	default:
		v.SetInt([]int64{0, 1, 2, -1, 100, int64(r.Uint64()) >> (64 - v.Type().Bits())}[r.Intn(6)])
	}
}

// mutated is a request of one of the keys, damaged or not, in a frame of the right length.
func mutated(keys []kmsg.ApiVersionsResponseApiKey, r *rand.Rand) []byte {
	k := keys[r.Intn(len(keys))]
	req := kmsg.RequestForKey(k.ApiKey)
	fillIn(reflect.ValueOf(req).Elem(), r)
	req.SetVersion(k.MinVersion + int16(r.Intn(int(k.MaxVersion-k.MinVersion)+1)))
	if f, ok := req.(*kmsg.FetchRequest); ok {
		f.MaxWaitMillis = int32(r.Intn(10))
	}
	b := encode(req)
	const header = 8
	for range r.Intn(4) {
		at := header + r.Intn(len(b)-header)
		switch r.Intn(4) {
		case 0:
			b = b[:at+1]
		case 1:
			b[at] = byte(r.Intn(256))
		case 2:
			copy(b[at:], []byte{0x7f, 0xff, 0xff, 0xff})
		case 3:
			copy(b[at:], []byte{0xff, 0xff, 0xff, 0xff, 0x0f})
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// torments are what hostile and unlucky peers do, each until stop says so.
var torments = map[string]func(b *broker, r *rand.Rand, stop func() bool){
	"any bytes": func(b *broker, r *rand.Rand, stop func() bool) {
		for !stop() {
			junk := make([]byte, 8+r.Intn(4000))
			r.Read(junk)
			switch r.Intn(4) {
			case 0:
				binary.BigEndian.PutUint32(junk, uint32(len(junk)-4))
			case 1:
				binary.BigEndian.PutUint32(junk, []uint32{0, 1, 1 << 31, 1<<31 - 1, 1<<32 - 1, 100 << 20}[r.Intn(6)])
			case 2:
				junk = []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			}
			b.shove(junk, r)
		}
	},
	"lying requests": func(b *broker, r *rand.Rand, stop func() bool) {
		keys := b.served()
		for !stop() {
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				continue
			}
			for range 50 {
				c.SetDeadline(time.Now().Add(100 * time.Millisecond)) // acks 0 has no answer
				if _, err := c.Write(mutated(keys, r)); err != nil {
					break
				}
				if _, err := answer(c); err != nil {
					break
				}
			}
			c.Close()
		}
	},
	"cut requests": func(b *broker, r *rand.Rand, stop func() bool) {
		keys := b.served()
		for !stop() {
			f := mutated(keys, r)
			b.shove(f[:r.Intn(len(f))], r)
		}
	},
	"half frames": func(b *broker, r *rand.Rand, stop func() bool) {
		var all []net.Conn
		for i := 0; i < 1000 && !stop(); i++ {
			if c, err := net.Dial("tcp", b.addr); err == nil {
				c.Write([]byte{5, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 'x'}[:1+r.Intn(15)])
				all = append(all, c)
			}
		}
		for !stop() {
			all[r.Intn(len(all))].Write([]byte{0})
		}
		for _, c := range all {
			c.Close()
		}
	},
	"large half frames": func(b *broker, _ *rand.Rand, stop func() bool) {
		chunk := make([]byte, 1<<20)
		for !stop() {
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				continue
			}
			c.Write([]byte{5, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 'x'})
			for range 60 {
				c.SetDeadline(time.Now().Add(100 * time.Millisecond))
				if _, err := c.Write(chunk); err != nil || stop() {
					break
				}
			}
			defer c.Close() // half received until the end
		}
	},
	"answers not read": func(b *broker, r *rand.Rand, stop func() bool) {
		for !stop() {
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				continue
			}
			c.SetDeadline(time.Now().Add(50 * time.Millisecond))
			for range 100 {
				if _, err := c.Write(fetch("big", 50<<20)); err != nil {
					break
				}
			}
			if r.Intn(2) == 0 {
				io.CopyN(io.Discard, c, int64(r.Intn(3<<20)))
			}
			c.(*net.TCPConn).SetLinger(0)
			defer c.Close()
		}
	},
	"one thing a hundred thousand times": func(b *broker, _ *rand.Rand, stop func() bool) {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Version, req.IncludeSynonyms, req.IncludeDocumentation = 4, true, true
		for range 100_000 {
			req.Resources = append(req.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: 2, ResourceName: "t"})
		}
		f := encode(req)
		for !stop() {
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				continue
			}
			c.SetDeadline(time.Now().Add(patience))
			if _, err := c.Write(f); err == nil {
				answer(c)
			}
			c.Close()
		}
	},
}

// shove sends bytes on a connection of their own and leaves in one of several ways.
func (b *broker) shove(junk []byte, r *rand.Rand) {
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		return
	}
	c.Write(junk)
	switch r.Intn(3) {
	case 0:
		c.(*net.TCPConn).SetLinger(0)
	case 1:
		c.(*net.TCPConn).CloseWrite()
		c.SetDeadline(time.Now().Add(20 * time.Millisecond))
		io.Copy(io.Discard, c)
	}
	c.Close()
}

// fetch is a request for partition 0 of a topic.
func fetch(topic string, most int32) []byte {
	f := kmsg.NewPtrFetchRequest()
	f.Version, f.MaxBytes, f.ReplicaID, f.SessionEpoch = 12, most, -1, -1
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes, p.CurrentLeaderEpoch = most, -1
	f.Topics = []kmsg.FetchRequestTopic{{Topic: topic, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	return encode(f)
}

// TestBadBytes has peers do all that is bad at a port, while a client that does nothing wrong is served in time, memory stays
// bounded, and when they have gone nothing is left of them.
func TestBadBytes(t *testing.T) {
	if os.Getenv("CONFORMANCE_ADDR") != "" {
		t.Fatal("this test must see the broker's process")
	}
	b := start(t, 2)
	b.create("mine", 2) // no name the torments make: they delete topics, too
	b.create("big", 1)
	w := newWriter(b, "big")
	for range 20 {
		if err := w.write(900_000); err != nil {
			t.Fatal(err)
		}
	}
	w.cl.Close()
	for name, torment := range torments {
		t.Run(name, func(t *testing.T) { b.suffer(t, torment) })
	}
	if left := newWriter(b, "mine").write(1); left != nil {
		t.Error(left)
	}
}

func (b *broker) suffer(t *testing.T, torment func(*broker, *rand.Rand, func() bool)) {
	good := b.dial()
	before := b.sockets()
	var over atomic.Bool
	done := make(chan struct{})
	for seed := range int64(2) {
		go func() {
			torment(b, rand.New(rand.NewSource(seed)), over.Load)
			done <- struct{}{}
		}()
	}
	slowest, memory := time.Duration(0), int64(0)
	for begin := time.Now(); time.Since(begin) < 1500*time.Millisecond; {
		at := time.Now()
		if _, err := roundTrip(good, fetch("mine", 1000)); err != nil {
			t.Errorf("a client that does nothing wrong: %v", err)
			break
		}
		slowest = max(slowest, time.Since(at))
		memory = max(memory, b.status("VmRSS"))
	}
	over.Store(true)
	<-done
	<-done
	if slowest > patience {
		t.Errorf("a client that does nothing wrong waited for %v", slowest)
	}
	if memory > memoryMost {
		t.Errorf("the broker grew to %d kB", memory)
	}
	for until := time.Now().Add(patience); b.sockets() > before+waiting; {
		if time.Now().After(until) {
			t.Errorf("%d sockets before, %d after", before, b.sockets())
			break
		}
		if _, err := roundTrip(good, fetch("mine", 1000)); errors.Is(err, io.EOF) {
			t.Fatal("the connection was closed")
		}
	}
	good.Close()
	t.Logf("slowest %v, memory %d kB, sockets %d to %d", slowest, memory, before, b.sockets())
}
