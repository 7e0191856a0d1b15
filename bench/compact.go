package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire/batch"
)

// compactMax bounds the wait for a cleaning.
const compactMax = 15 * time.Minute

// compactSegment is segment.bytes: the last segment is never cleaned.
const compactSegment = 128 << 20

// compactPoll is how exactly the end of a cleaning is seen, and compactBackoff how often the broker's cleaner looks meanwhile.
const (
	compactPoll    = 5 * time.Millisecond
	compactBackoff = "50"
)

// Compact fills one partition with Bytes of record values under Keys keys, chosen at random, which the broker must not clean; then it
// lets the broker clean them, and measures until its cleaner-offset-checkpoint (Checkpoint) says that it has. Bytes of the report are
// those of the topic before.
func Compact(ctx context.Context, o Options) (*Report, error) {
	o.Partitions = 1
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Keys < 1 || o.Bytes < 1 || o.Checkpoint == "" {
		return nil, errors.New("bench: keys, bytes and the broker's cleaner-offset-checkpoint must be named")
	}
	config := map[string]string{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0", "segment.bytes": strconv.Itoa(compactSegment)}
	for k, v := range o.Config {
		config[k] = v
	}
	o.Config = config
	if err := o.create(time.Now().Add(readyMax)); err != nil {
		return nil, err
	}
	if err := o.fill(ctx); err != nil {
		return nil, err
	}
	if err := o.alter(4, "", "log.cleaner.backoff.ms", compactBackoff); err != nil {
		return nil, err
	}
	syscall.Sync() // what was filled in is not to be written back on the cleaning's time
	size, err := o.stored(o.Topic)
	if err != nil {
		return nil, err
	}
	o.forgetPeak()
	m, err := o.meter()
	if err != nil {
		return nil, err
	}
	if err := o.alter(2, o.Topic, "min.cleanable.dirty.ratio", "0.0"); err != nil {
		return nil, err
	}
	upTo, err := o.whenClean(ctx)
	if err != nil {
		return nil, err
	}
	r, err := m.report("compact")
	if err != nil {
		return nil, err
	}
	r.count(1, size)
	r.CPUPerM = 0
	if err := o.cleanEnough(upTo, size); err != nil {
		return nil, err
	}
	left, err := o.stored(o.Topic)
	r.LeftMB = float64(left) / 1e6
	return r, err
}

// fill writes Bytes of values in batches of Records.
func (o *Options) fill(ctx context.Context) error {
	r := newRun(o)
	conns := min(o.Conns, 4)
	for i := range conns {
		err := r.worker(func(c *conn) error {
			f := filler{run: r, conn: c, rnd: rand.New(rand.NewPCG(1, uint64(i))), vals: values(o.Records+100, o.Size)}
			return f.loop()
		})
		if err != nil {
			return r.end(err)
		}
	}
	for ctx.Err() == nil && !r.stop.Load() && r.bytes.Load() < o.Bytes {
		o.tell(float64(r.bytes.Load())/float64(o.Bytes), "filling")
		time.Sleep(5 * time.Millisecond)
	}
	return errors.Join(r.end(nil), ctx.Err())
}

// filler is one connection's part.
type filler struct {
	*run
	conn *conn
	rnd  *rand.Rand
	vals [][]byte
}

func (f *filler) loop() error {
	codec, _ := batch.CodecByName(f.o.Codec)
	begin := time.Now()
	for f.bytes.Load() < f.o.Bytes && !f.stop.Load() {
		b, now, at := batch.NewBuilder(codec), time.Now().UnixMilli(), f.rnd.IntN(100)
		for i := range f.o.Records {
			v := f.vals[at+i]
			binary.BigEndian.PutUint64(v, f.rnd.Uint64())
			b.Add(now, fmt.Appendf(nil, "key-%016d", f.rnd.IntN(f.o.Keys)), v)
		}
		if _, err := f.conn.Write(f.o.produceFrame(0, b.AppendTo(nil))); err != nil {
			return err
		}
		answer, err := f.conn.answer()
		if err == nil {
			err = produceCode(answer)
		}
		if notYet(err) && time.Since(begin) < readyMax {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		f.bytes.Add(int64(f.o.Records) * int64(f.o.Size))
	}
	return nil
}

// alter sets one setting: of a topic (2), or of all brokers (4).
func (o *Options) alter(kind kmsg.ConfigResourceType, name, key, value string) error {
	c, err := dial(o.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kind, ResourceName: name,
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: key, Value: &value}}}}
	resp, err := c.do(req)
	if err != nil {
		return err
	}
	for _, r := range resp.(*kmsg.IncrementalAlterConfigsResponse).Resources {
		if r.ErrorCode != 0 {
			return &codeError{"set " + key, r.ErrorCode}
		}
	}
	return nil
}

// whenClean waits until the checkpoint names the partition, and returns up to where it is clean.
func (o *Options) whenClean(ctx context.Context) (int64, error) {
	for start := time.Now(); ; time.Sleep(compactPoll) {
		b, err := os.ReadFile(o.Checkpoint)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == o.Topic && f[1] == "0" {
				return strconv.ParseInt(f[2], 10, 64)
			}
		}
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case time.Since(start) > compactMax:
			return 0, fmt.Errorf("bench: %s was not cleaned in %v", o.Topic, compactMax)
		}
		o.tell(time.Since(start).Seconds()/compactMax.Seconds(), "cleaning")
	}
}

// cleanEnough refuses a cleaning that has left out more than the active segment.
func (o *Options) cleanEnough(upTo, size int64) error {
	c, err := dial(o.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	end, err := o.offset(c, 0, -1)
	if err == nil && float64(end-upTo)/float64(end)*float64(size) > 1.05*compactSegment {
		err = fmt.Errorf("bench: %s was cleaned up to %d of %d only", o.Topic, upTo, end)
	}
	return err
}

// forgetPeak lets the peak of memory begin anew (proc(5), clear_refs); where that may not be, it is that of the whole life.
func (o *Options) forgetPeak() {
	for _, pid := range o.PIDs {
		_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/clear_refs", []byte("5"), 0)
	}
}
