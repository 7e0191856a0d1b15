package conformance

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

// The times these tests print are the figures; what they fail at is far beyond, where a machine that is busy with other things does not
// get to.
const scaleMax = time.Minute

// benched is the report of a load of kring bench.
type benched struct {
	Seconds  float64
	Offsets  int64
	TopicMB  float64 `json:"offsets_topic_mb"`
	Requests int64
}

func measure(t *testing.T, b *broker, load string, args ...string) (r benched) {
	t.Helper()
	args = append([]string{"bench", load, "-b", b.addr, "--json"}, args...)
	if err := json.Unmarshal([]byte(output(t, stage.Kring(t), args...)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestThousandConsumersSettle: 1,000 consumers of 100 groups come at once, and all get their assignments.
func TestThousandConsumersSettle(t *testing.T) {
	b := start(t, 2, "group.initial.rebalance.delay.ms=0")
	for round := range 2 {
		before := b.processor()
		r := measure(t, b, "settle", "--groups", "100", "--members", "10", "--topic", fmt.Sprint("round-", round))
		t.Logf("1,000 consumers of 100 groups settle in %.2f s, %v of the broker's CPU", r.Seconds, b.processor()-before)
		if r.Seconds <= 0 || r.Seconds > scaleMax.Seconds() {
			t.Errorf("round %d: %.1f s", round, r.Seconds)
		}
	}
}

// TestMillionOffsetsReplay: with a million offsets in the log, in many partitions or in one, a broker that was stopped or killed answers
// for all of them soon after its start.
func TestMillionOffsetsReplay(t *testing.T) {
	const groups, partitions = 10_000, 100
	for _, parts := range []int{50, 1} {
		t.Run(fmt.Sprint("partitions=", parts), func(t *testing.T) {
			b := start(t, 2, fmt.Sprint("offsets.topic.num.partitions=", parts), "log.cleaner.backoff.ms=500")
			// One connection commits for every group once.
			r := measure(t, b, "commits", "--topic", "held", "--groups", strconv.Itoa(groups), "--connections", "1", "--records",
				strconv.Itoa(partitions), "--partitions", strconv.Itoa(partitions), "--count", strconv.Itoa(groups*partitions))
			if r.Offsets < groups*partitions {
				t.Fatalf("%d offsets were committed", r.Offsets)
			}
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
				b.stop(sig)
				begin := time.Now()
				b.run()
				awaitHeld(t, b, groups, partitions-1)
				took := time.Since(begin)
				t.Logf("a million offsets are there %v after a start that follows %v, %v of CPU, %d MB resident", took.Round(time.Millisecond),
					sig, b.processor(), b.status("VmRSS")>>10)
				if took > scaleMax {
					t.Error("that is too long")
				}
			}
		})
	}
}

// awaitHeld asks every group for its offset of a partition, as kring bench commits them, until all have answered; none may be missing.
func awaitHeld(t *testing.T, b *broker, groups, partition int) {
	t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	until := time.Now().Add(scaleMax)
	for at := 0; at < groups; {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version = 8
		for g := at; g < min(at+500, groups); g++ {
			tp := kmsg.NewOffsetFetchRequestGroupTopic()
			tp.Topic, tp.Partitions = "held", []int32{int32(partition)}
			rg := kmsg.NewOffsetFetchRequestGroup()
			rg.Group, rg.Topics = fmt.Sprintf("held-%05d", g), append(rg.Topics, tp)
			req.Groups = append(req.Groups, rg)
		}
		loading := false
		for i, g := range must[*kmsg.OffsetFetchResponse](t, c, req).Groups {
			switch {
			case g.ErrorCode == codeLoading || g.ErrorCode == codeUnavailable || g.ErrorCode == codeNotCoordinator:
				loading = true
			case g.ErrorCode != 0:
				t.Fatalf("OffsetFetch of %s: %s", g.Group, code(g.ErrorCode))
			case g.Topics[0].Partitions[0].Offset != int64(at+i):
				t.Fatalf("group %s has offset %d, not %d", g.Group, g.Topics[0].Partitions[0].Offset, at+i)
			}
		}
		if !loading {
			at += len(req.Groups)
		} else if time.Now().After(until) {
			t.Fatalf("%d of %d groups answer", at, groups)
		}
	}
}

// TestManyCommitsStaySmall: commits without end leave an offsets topic whose size depends on what is committed, not on how often.
func TestManyCommitsStaySmall(t *testing.T) {
	b := start(t, 2, "log.cleaner.backoff.ms=500", "log.segment.delete.delay.ms=500")
	r := measure(t, b, "commits", "--groups", "200", "--connections", "8", "--records", "10", "--partitions", "10", "--count", "3000000",
		"--clean", "5s")
	t.Logf("%d offsets were committed in %.1f s, their topic takes %.1f MB", r.Offsets, r.Seconds, r.TopicMB)
	if r.TopicMB <= 0 || r.TopicMB > 60 { // of some 180 MB written
		t.Errorf("%d commits leave %.1f MB", r.Offsets, r.TopicMB)
	}
}
