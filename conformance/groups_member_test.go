package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// memberOrder makes this program a member of a group instead of a test.
type memberOrder struct {
	Addr, Group, Topic, Name string
	Cooperative              bool
	Session                  time.Duration
}

// memberEvent is a line of a member's log. Times are the machine's, in nanoseconds: all processes share it.
type memberEvent struct {
	What       string // assigned, revoked, lost, read, commit
	At, Sent   int64
	Name       string
	ID         string
	Generation int32
	Partitions []int32 `json:",omitempty"`
	Partition  int32
	From, To   int64 // read: the offsets from and up to; commit: To is what was committed
	Code       int16
}

const memberEnv = "CONFORMANCE_MEMBER"

// A test starts members by running its own binary again.
func init() {
	text := os.Getenv(memberEnv)
	if text == "" {
		return
	}
	var o memberOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	if err := o.run(); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(0)
}

// run reads, notes what was read, commits, and notes what became of that, until SIGTERM.
func (o memberOrder) run() error {
	var mu sync.Mutex
	say := func(e memberEvent) {
		e.At, e.Name = time.Now().UnixNano(), o.Name
		line, _ := json.Marshal(e)
		mu.Lock()
		os.Stdout.Write(append(line, '\n'))
		mu.Unlock()
	}
	changed := func(what string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, cl *kgo.Client, m map[string][]int32) {
			id, generation := cl.GroupMetadata()
			say(memberEvent{What: what, ID: id, Generation: generation, Partitions: slices.Sorted(slices.Values(m[o.Topic]))})
		}
	}
	balancer := kgo.RangeBalancer()
	if o.Cooperative {
		balancer = kgo.CooperativeStickyBalancer()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.Addr), kgo.ConsumerGroup(o.Group), kgo.ConsumeTopics(o.Topic), kgo.Balancers(balancer),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(o.Session), kgo.HeartbeatInterval(o.Session/5), kgo.RebalanceTimeout(5*o.Session), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.OnPartitionsAssigned(changed("assigned")), kgo.OnPartitionsRevoked(changed("revoked")), kgo.OnPartitionsLost(changed("lost")),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ctx.Err() == nil {
		fs := cl.PollRecords(ctx, 200)
		fs.EachPartition(func(p kgo.FetchTopicPartition) {
			if n := len(p.Records); n > 0 {
				_, generation := cl.GroupMetadata()
				say(memberEvent{What: "read", Generation: generation, Partition: p.Partition, From: p.Records[0].Offset, To: p.Records[n-1].Offset + 1})
			}
		})
		if fs.NumRecords() > 0 {
			o.commit(cl, fs.Records(), say)
		}
		cl.AllowRebalance()
	}
	cl.CloseAllowingRebalance()
	return nil
}

// commit commits what was read, and notes for each partition under whose name and generation, and the answer.
func (o memberOrder) commit(cl *kgo.Client, records []*kgo.Record, say func(memberEvent)) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*o.Session)
	defer cancel()
	offsets := map[int32]kgo.EpochOffset{}
	for _, r := range records {
		offsets[r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
	}
	sent := time.Now().UnixNano()
	cl.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{o.Topic: offsets},
		func(_ *kgo.Client, req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			for p, at := range offsets {
				e := memberEvent{What: "commit", Sent: sent, Partition: p, To: at.Offset, Code: -1}
				if req != nil {
					e.ID, e.Generation = req.MemberID, req.Generation
				}
				var refused *kerr.Error
				if errors.As(err, &refused) {
					e.Code = refused.Code
				}
				if err == nil && resp != nil {
					for _, tp := range resp.Topics {
						for _, rp := range tp.Partitions {
							if rp.Partition == p {
								e.Code = rp.ErrorCode
							}
						}
					}
				}
				say(e)
			}
		})
}

// memberProcess is a member under the test's hands.
type memberProcess struct {
	name   string
	cmd    *exec.Cmd
	asleep time.Time // until then it is frozen, or has just been
	ended  chan struct{}
}

// startMember runs one; its log goes to record.
func startMember(t *testing.T, o memberOrder, record func(memberEvent)) *memberProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	order, _ := json.Marshal(o)
	m := &memberProcess{name: o.Name, cmd: exec.Command(self), ended: make(chan struct{})}
	m.cmd.Env = append(os.Environ(), memberEnv+"="+string(order), "GOMAXPROCS=2")
	m.cmd.Stderr = os.Stderr
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(m.ended)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil { // half a line of a killed member says nothing
				break
			}
			var e memberEvent
			if err := json.Unmarshal(line, &e); err != nil {
				t.Errorf("member %s: %v: %q", o.Name, err, line)
				continue
			}
			record(e)
		}
		_ = m.cmd.Wait()
	}()
	t.Cleanup(func() {
		m.signal(syscall.SIGKILL)
		<-m.ended
	})
	return m
}

func (m *memberProcess) signal(s syscall.Signal) { _ = m.cmd.Process.Signal(s) }
