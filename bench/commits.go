package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// inFlight is how many commits a connection has under way: more than a client has, to find what the broker takes.
const inFlight = 32

// offsetsTopic is where a broker keeps what is committed.
const offsetsTopic = "__consumer_offsets"

// Commits commits offsets of Records partitions of the topic with each request, for Groups groups in turn, as fast as answers come on Conns
// connections, until Count offsets are committed or Duration is over. Then it waits for the broker's cleaner.
func Commits(ctx context.Context, o Options) (*Report, error) {
	o.Members, o.Size = max(o.Members, 1), max(o.Size, 8)
	o.Partitions = max(o.Partitions, o.Records)
	if err := o.checkGroups(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := o.prepare(); err != nil {
		return nil, err
	}
	if err := o.coordinated(); err != nil {
		return nil, err
	}
	r := newRun(&o)
	m, err := o.meter()
	if err != nil {
		return nil, err
	}
	r.measuring.Store(true)
	for i := range o.Conns {
		if err := r.worker(func(c *conn) error { return (&committer{run: r, conn: c, index: i}).loop() }); err != nil {
			return nil, r.end(err)
		}
	}
	for start := time.Now(); ctx.Err() == nil && !r.stop.Load() && !o.enough(r, time.Since(start)); time.Sleep(5 * time.Millisecond) {
		o.tell(o.part(r, time.Since(start)), "commits")
	}
	requests := r.requests.Load()
	rep, err := m.report("commits")
	if err = r.end(err); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	rep.count(requests, 0)
	rep.Ack = latency(r.ack)
	rep.Offsets = requests * int64(o.Records)
	rep.OffsetsPerSec = float64(rep.Offsets) / rep.Seconds
	rep.OffsetsMB, err = o.cleaned(ctx)
	return rep, err
}

func (o *Options) part(r *run, gone time.Duration) float64 {
	if o.Count > 0 {
		return float64(r.requests.Load()*int64(o.Records)) / float64(o.Count)
	}
	return gone.Seconds() / o.Duration.Seconds()
}

func (o *Options) enough(r *run, gone time.Duration) bool { return o.part(r, gone) >= 1 }

// committer is one connection's part.
type committer struct {
	*run
	conn  *conn
	index int
	mine  []time.Duration
}

func (k *committer) loop() error {
	defer func() { k.merge(k.ack, k.mine) }()
	var frames [][]byte
	for g := k.index % k.o.Groups; g < k.o.Groups; g += k.o.Conns {
		frames = append(frames, k.o.commitFrame(g))
	}
	var sent [inFlight]time.Time
	first, last := 0, 0
	var out []byte
	for {
		now := time.Now()
		for out = out[:0]; last-first < inFlight && !k.stop.Load(); last++ {
			out = append(out, frames[last%len(frames)]...)
			sent[last%inFlight] = now
		}
		if first == last {
			return nil
		}
		if len(out) > 0 {
			if _, err := k.conn.Write(out); err != nil {
				return err
			}
		}
		// All that has come, but one at least.
		for once := true; once || first < last && k.conn.r.Buffered() > 0; once = false {
			b, err := k.conn.answer()
			if err == nil {
				err = commitCode(b)
			}
			if err != nil {
				return err
			}
			k.mine = append(k.mine, time.Since(sent[first%inFlight]))
			k.requests.Add(1)
			first++
		}
	}
}

// commitFrame is a commit of nobody's for the first Records partitions, as an admin or a consumer without a group makes it.
func (o *Options) commitFrame(group int) []byte {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = commitVersion, o.group(group), -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = o.Topic
	for p := range o.Records {
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset = int32(p), int64(group)
		t.Partitions = append(t.Partitions, part)
	}
	req.Topics = append(req.Topics, t)
	return encode(req, 1)
}

func commitCode(answer []byte) error {
	resp := kmsg.NewPtrOffsetCommitResponse()
	resp.Version = commitVersion
	b, err := body(answer, resp)
	if err == nil {
		err = resp.ReadFrom(b)
	}
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return &codeError{fmt.Sprintf("commit %s-%d", t.Topic, p.Partition), p.ErrorCode}
			}
		}
	}
	return nil
}

// cleanedMax bounds the wait for the cleaner.
const cleanedMax = 3 * time.Minute

// cleaned waits until the offsets topic has kept its size for some time, and returns it in MB (10^6).
func (o *Options) cleaned(ctx context.Context) (float64, error) {
	last, since, begin := int64(-1), time.Now(), time.Now()
	for {
		size, err := o.stored(offsetsTopic)
		if err != nil {
			return 0, err
		}
		if size != last {
			last, since = size, time.Now()
		}
		if time.Since(since) >= o.Clean || time.Since(begin) > cleanedMax {
			return float64(last) / 1e6, nil
		}
		o.tell(time.Since(since).Seconds()/o.Clean.Seconds(), "cleaning")
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(min(o.Clean, 500*time.Millisecond)):
		}
	}
}

// stored is what a topic takes on the broker's disk, as the broker says.
func (o *Options) stored(topic string) (size int64, err error) {
	c, err := dial(o.Addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.Version, req.Topics = 2, nil
	resp, err := c.do(req)
	if err != nil {
		return 0, err
	}
	for _, d := range resp.(*kmsg.DescribeLogDirsResponse).Dirs {
		if d.ErrorCode != 0 {
			return 0, &codeError{"describe log dir " + d.Dir, d.ErrorCode}
		}
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				if t.Topic == topic {
					size += p.Size
				}
			}
		}
	}
	return size, nil
}

// FirstOffsets waits until the broker answers for the offsets of every group that Commits has used; it returns the time since it was
// called. Start it together with the broker.
func FirstOffsets(ctx context.Context, o Options) (time.Duration, error) {
	start := time.Now()
	var groups []string
	for g := range o.Groups {
		groups = append(groups, o.group(g))
	}
	for {
		missing, err := o.haveOffsets(&groups)
		if err == nil && !missing {
			return time.Since(start), nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if time.Since(start) > readyMax {
			return 0, fmt.Errorf("bench: the offsets of %d groups do not come: %v", len(groups), err)
		}
		time.Sleep(time.Millisecond)
	}
}

// haveOffsets asks for one partition of some of the groups that have not been answered for, and crosses out those that are.
func (o *Options) haveOffsets(groups *[]string) (missing bool, err error) {
	c, err := dial(o.Addr)
	if err != nil {
		return true, err
	}
	defer c.Close()
	for len(*groups) > 0 {
		some := (*groups)[:min(len(*groups), 500)]
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version = fetchOffsetVersion
		for _, g := range some {
			rg := kmsg.NewOffsetFetchRequestGroup()
			t := kmsg.NewOffsetFetchRequestGroupTopic()
			t.Topic, t.Partitions = o.Topic, []int32{int32(o.Records - 1)}
			rg.Group, rg.Topics = g, append(rg.Topics, t)
			req.Groups = append(req.Groups, rg)
		}
		resp, err := c.do(req)
		if err != nil {
			return true, err
		}
		for _, g := range resp.(*kmsg.OffsetFetchResponse).Groups {
			if g.ErrorCode == 0 && (len(g.Topics) != 1 || g.Topics[0].Partitions[0].Offset < 0) {
				return true, fmt.Errorf("bench: group %s has lost its offset", g.Group)
			}
			if g.ErrorCode != 0 {
				return true, &codeError{"fetch the offsets of " + g.Group, g.ErrorCode}
			}
		}
		*groups = (*groups)[len(some):]
	}
	return false, nil
}
