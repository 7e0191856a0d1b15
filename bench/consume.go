package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire/batch"
)

// Consume reads the topic from its start, again and again, on Readers connections (reader i takes the partitions p with
// p mod Readers = i, one fetch under way for all of them). The topic must hold records.
func Consume(ctx context.Context, o Options) (*Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Readers < 1 || o.Readers > o.Partitions {
		return nil, fmt.Errorf("bench: %d readers for %d partitions", o.Readers, o.Partitions)
	}
	r := newRun(&o)
	for i := range o.Readers {
		var parts []int
		for p := i; p < o.Partitions; p += o.Readers {
			parts = append(parts, p)
		}
		if err := r.worker(func(c *conn) error { return r.reread(c, parts) }); err != nil {
			return nil, r.end(err)
		}
	}
	return r.measure(ctx, "consume")
}

// cursor is a reader's place in a partition.
type cursor struct {
	partition  int
	offset     int64
	start, end int64
}

func (r *run) cursors(c *conn, parts []int) ([]cursor, error) {
	out := make([]cursor, len(parts))
	for i, p := range parts {
		start, err := r.o.offset(c, p, -2)
		if err != nil {
			return nil, err
		}
		end, err := r.o.offset(c, p, -1)
		if err != nil {
			return nil, err
		}
		out[i] = cursor{p, start, start, end}
	}
	return out, nil
}

func (r *run) reread(c *conn, parts []int) error {
	at, err := r.cursors(c, parts)
	if err != nil {
		return err
	}
	for _, cur := range at {
		if cur.start == cur.end {
			return fmt.Errorf("bench: %s-%d holds no records: run `kring bench produce` on the topic first", r.o.Topic, cur.partition)
		}
	}
	var mine []time.Duration
	defer func() { r.merge(r.ack, mine) }()
	for !r.stop.Load() {
		sent := time.Now()
		n, err := r.fetch(c, at, 0, nil)
		if err != nil {
			return err
		}
		if r.measuring.Load() {
			mine = append(mine, time.Since(sent))
			r.requests.Add(1)
			r.bytes.Add(n)
		}
		for i := range at {
			if at[i].offset >= at[i].end {
				at[i].offset = at[i].start
			}
		}
	}
	return nil
}

// tailers start one reader per partition at its end.
func (r *run) tailers() error {
	for p := range r.o.Partitions {
		ready := make(chan error, 1)
		err := r.worker(func(c *conn) error {
			at, err := r.cursors(c, []int{p})
			ready <- err
			if err != nil {
				return err
			}
			at[0].offset = at[0].end
			return r.follow(c, at)
		})
		if err == nil {
			err = <-ready
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) follow(c *conn, at []cursor) error {
	var mine []time.Duration
	defer func() { r.merge(r.e2e, mine) }()
	for !r.stop.Load() {
		_, err := r.fetch(c, at, 500*time.Millisecond, func(now time.Duration, value []byte) {
			if len(value) >= 8 && r.measuring.Load() {
				mine = append(mine, now-time.Duration(binary.BigEndian.Uint64(value)))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fetch asks for the cursors' partitions, moves the cursors and returns the bytes of the batches. each, if set, gets
// every record's value.
func (r *run) fetch(c *conn, at []cursor, wait time.Duration, each func(now time.Duration, value []byte)) (int64, error) {
	req := kmsg.NewPtrFetchRequest()
	req.Version = fetchVersion
	req.ReplicaID = -1
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = int32(wait.Milliseconds()), 1, 50<<20
	req.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = r.o.Topic
	for _, cur := range at {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = int32(cur.partition), cur.offset, 1<<20
		p.CurrentLeaderEpoch, p.LogStartOffset = -1, -1
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	resp, err := c.do(req)
	if err != nil {
		return 0, err
	}
	now := time.Since(r.base)
	var total int64
	for _, t := range resp.(*kmsg.FetchResponse).Topics {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			if p.ErrorCode != 0 {
				return total, &codeError{fmt.Sprintf("fetch from %s-%d", t.Topic, p.Partition), p.ErrorCode}
			}
			for j := range at {
				if at[j].partition == int(p.Partition) {
					total += int64(len(p.RecordBatches))
					if err := at[j].advance(p.RecordBatches, now, each); err != nil {
						return total, err
					}
				}
			}
		}
	}
	return total, nil
}

// advance moves the cursor past the whole batches of b; the last may be cut off, as Kafka's protocol allows.
func (cur *cursor) advance(b []byte, now time.Duration, each func(time.Duration, []byte)) error {
	for {
		first, rest, err := batch.Whole(b)
		if errors.Is(err, batch.ErrShort) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("bench: partition %d: the broker sent a damaged batch: %w", cur.partition, err)
		}
		cur.offset = batch.Header(first).NextOffset()
		if each != nil {
			r, err := batch.Open(first, frameMax)
			if err != nil {
				return err
			}
			for r.Next() {
				each(now, r.Value)
			}
			if r.Err != nil {
				return r.Err
			}
		}
		b = rest
	}
}
