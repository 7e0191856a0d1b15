package broker

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/api"
	"kring/daemon/server"
	"kring/ring"
	"kring/wire"
)

// figures gathers what all loops have counted; t is on loop 0.
func figures(t *ring.Task, b *Broker) []*Figures {
	var all []*Figures
	for i := range b.o.Loops {
		f := &Figures{}
		t.Suspend(func(wake func()) { b.Figures(i, 100, f, func() { post(b.loop, wake) }) })
		all = append(all, f)
	}
	return all
}

func apiOf(all []*Figures, key int16) (sum server.API) {
	for _, f := range all {
		for i := range f.APIs {
			a := &f.APIs[i]
			if a.Key == key {
				sum.Add(a)
			}
		}
	}
	return sum
}

func TestFiguresTellWhatWasDone(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		s := newSim(t, loops, uint64(loops))
		s.start()
		c := connect(t, s)
		c.createTopic("a", 3)
		for i := range int32(3) {
			c.produce("a", i, -1, words("one", "two"))
			c.post(produceRequest("a", i, 0, words("three")))
		}
		c.produce("a", 9, -1, words("nowhere"))
		c.all("a", 0)
		if code := c.createTopic("a", 3); code != wire.TopicAlreadyExists {
			t.Fatal(code)
		}
		var all []*Figures
		s.on(func(t *ring.Task, b *Broker) { all = figures(t, b) })
		var bytes api.TopicFigures
		var logs LogFigures
		for _, f := range all {
			bytes.BytesIn += f.Bytes.BytesIn
			bytes.BytesOut += f.Bytes.BytesOut
			bytes.MessagesIn += f.Bytes.MessagesIn
			logs.Add(&f.Logs)
		}
		if bytes.MessagesIn != 9 || bytes.BytesIn != uint64(logs.Bytes) || bytes.BytesOut == 0 || bytes.BytesOut >= bytes.BytesIn {
			t.Errorf("%d loops: traffic %+v, logs of %d bytes", loops, bytes, logs.Bytes)
		}
		if logs.Partitions != 3 || logs.Leaders != 3 || logs.Segments != 3 || logs.Offline+logs.UnderMinISR != 0 {
			t.Errorf("%d loops: %+v", loops, logs)
		}
		produce, create, fetch := apiOf(all, wire.Produce), apiOf(all, wire.CreateTopics), apiOf(all, wire.Fetch)
		if produce.Requests != 7 || produce.Latency.Count != 7 || produce.Error(wire.UnknownTopicOrPartition) != 1 {
			t.Errorf("%d loops: Produce %d requests, %d done, errors %v", loops, produce.Requests, produce.Latency.Count, produce.Errors)
		}
		if create.Requests != 2 || create.Error(wire.TopicAlreadyExists) != 1 || create.ResponseBytes == 0 {
			t.Errorf("%d loops: CreateTopics %+v", loops, create)
		}
		if fetch.Requests == 0 || fetch.ResponseBytes < bytes.BytesOut || fetch.RequestBytes == 0 {
			t.Errorf("%d loops: Fetch %+v", loops, fetch)
		}
		topics, parts := Merge(all, 100)
		if len(topics) != 1 || topics[0].TopicFigures != bytes || len(parts) != 3 {
			t.Fatalf("%d loops: %+v %+v", loops, topics, parts)
		}
		for i, p := range parts {
			if p.Partition != int32(i) || p.End != 3 || p.HighWatermark != 3 || p.Start != 0 || !p.Leads || p.Segments != 1 {
				t.Errorf("%d loops: %+v", loops, p)
			}
		}
		if _, few := Merge(all, 2); len(few) != 2 || few[1].Partition != 1 {
			t.Errorf("%d loops: cut down to 2: %+v", loops, few)
		}
		s.stop()
	}
}

// TestLatencyOfAFetchHoldsItsWait asks for what does not come.
func TestLatencyOfAFetchHoldsItsWait(t *testing.T) {
	s := newSim(t, 1, 3)
	s.start()
	c := connect(t, s)
	c.createTopic("a", 1)
	m := kmsg.NewPtrFetchRequest()
	m.MaxWaitMillis, m.MinBytes, m.MaxBytes = 300, 1, 1000
	rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	rt.Topic, rp.PartitionMaxBytes = "a", 1000
	rt.Partitions = append(rt.Partitions, rp)
	m.Topics = append(m.Topics, rt)
	ask[*kmsg.FetchResponse](c, m, 11)
	var fetch server.API
	s.on(func(t *ring.Task, b *Broker) { fetch = apiOf(figures(t, b), wire.Fetch) })
	if l := fetch.Latency; l.Count != 1 || l.Sum < 300*time.Millisecond || l.Sum > 600*time.Millisecond {
		t.Errorf("%+v", l)
	}
	s.stop()
}
