package api

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/config"
	"kring/wire"
)

// grouped is a real broker that serves groups, whose journals are the partitions of topic a; a connection to each loop, and a
// group that lives on loop 0 with a member.
type grouped struct {
	*real
	conns      []net.Conn
	group      string
	member     string
	generation int32
}

func newGrouped(b testing.TB, loops int) *grouped {
	b.Helper()
	x := &grouped{real: newReal(b, loops, loops)}
	conf, _, err := config.Load("", []string{"group.initial.rebalance.delay.ms=0"})
	if err != nil {
		b.Fatal(err)
	}
	x.node.SetConfig(conf)
	done := make(chan bool, loops)
	for i, c := range x.node.Contexts {
		post(c.Loop, func() {
			for k := range x.node.OffsetsPartitions() {
				if int((offsetsHash+uint32(k))%uint32(loops)) == i {
					for _, p := range c.topics["a"].Partitions {
						if p != nil {
							g := c.GroupShard(k)
							g.Lead(p)
							g.Loaded(p.LeaderEpoch(), c.now())
						}
					}
				}
			}
			done <- true
		})
	}
	for range loops {
		<-done
	}
	for i := 0; x.group == ""; i++ {
		g := fmt.Sprint("group", i)
		if k := coordinator.PartitionOf(g, x.node.OffsetsPartitions()); int((offsetsHash+uint32(k))%uint32(loops)) == 0 {
			x.group = g
		}
	}
	for range loops { // they are handed to the loops in turn
		c, err := net.Dial("tcp", x.addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		x.conns = append(x.conns, c)
	}
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 3, x.group, "consumer", 60_000, 60_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	j := kmsg.NewPtrJoinGroupResponse()
	j.Version = 3
	buf := make([]byte, 1<<20)
	if err := j.ReadFrom(ask(b, x.conns[0], frame(join), buf)[4:]); err != nil || j.ErrorCode != 0 {
		b.Fatal(err, j)
	}
	x.member, x.generation = j.MemberID, j.Generation
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 3, x.group, x.member, x.generation
	ask(b, x.conns[0], frame(sync), buf)
	return x
}

func (x *grouped) heartbeat() []byte {
	m := kmsg.NewPtrHeartbeatRequest()
	m.Version, m.Group, m.MemberID, m.Generation = 4, x.group, x.member, x.generation
	return frame(m)
}

func (x *grouped) commit(partitions int) []byte {
	m := kmsg.NewPtrOffsetCommitRequest()
	m.Version, m.Group, m.MemberID, m.Generation = 8, x.group, x.member, x.generation
	t := kmsg.OffsetCommitRequestTopic{Topic: "a"}
	for range partitions {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset = 1_000_000
		t.Partitions = append(t.Partitions, p)
	}
	m.Topics = append(m.Topics, t)
	return frame(m)
}

// BenchmarkHeartbeat and BenchmarkOffsetCommit count the client's socket too; the second loop is one that the group does not live on.
func BenchmarkHeartbeat(b *testing.B) {
	for loops := 1; loops <= 2; loops++ {
		b.Run(fmt.Sprintf("%d loops", loops), func(b *testing.B) {
			x := newGrouped(b, loops)
			x.repeat(b, x.conns[loops-1], x.heartbeat())
		})
	}
}

func BenchmarkOffsetCommit(b *testing.B) {
	for loops := 1; loops <= 2; loops++ {
		for _, partitions := range []int{1, 100} {
			b.Run(fmt.Sprintf("%d loops, %d partitions", loops, partitions), func(b *testing.B) {
				x := newGrouped(b, loops)
				x.repeat(b, x.conns[loops-1], x.commit(partitions))
			})
		}
	}
}

func (x *grouped) repeat(b *testing.B, c net.Conn, f []byte) {
	buf := make([]byte, 1<<20)
	first := ask(b, c, f, buf)
	if code := first[len(first)-3:]; code[0] != 0 || code[1] != 0 {
		b.Fatalf("answered %x", first)
	}
	for range 200 {
		ask(b, c, f, buf)
	}
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		ask(b, c, f, buf)
	}
}

// TestHeartbeatAllocatesItsNames: the group's and the member's, whichever loop it comes in on.
func TestHeartbeatAllocatesItsNames(t *testing.T) {
	for loops := 1; loops <= 2; loops++ {
		x := newGrouped(t, loops)
		f, buf := x.heartbeat(), make([]byte, 1024)
		var before, after runtime.MemStats
		const rounds = 500
		for i := range rounds + 100 {
			if i == 100 {
				runtime.ReadMemStats(&before)
			}
			answer := ask(t, x.conns[loops-1], f, buf)
			if code := wire.Code(answer[len(answer)-2]); code != wire.None {
				t.Fatalf("%d loops: %v", loops, code)
			}
		}
		runtime.ReadMemStats(&after)
		if n := float64(after.Mallocs-before.Mallocs) / rounds; n > 2.5 {
			t.Errorf("%d loops: a heartbeat allocates %.1f times", loops, n)
		}
	}
}
