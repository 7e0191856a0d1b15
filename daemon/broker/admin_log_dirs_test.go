package broker

import (
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

func TestLogDirsAreDescribedEachByItself(t *testing.T) {
	s := newSim(t, 2, 1)
	s.m.SetCapacity(1 << 30)
	s.start("log.dirs=/data,/more")
	c := connect(t, s)
	c.createTopic("k", 4)
	for i := range int32(4) {
		c.produce("k", i, -1, words("a", "b"))
	}
	dirs := func() *kmsg.DescribeLogDirsResponse {
		return ask[*kmsg.DescribeLogDirsResponse](c, kmsg.NewPtrDescribeLogDirsRequest(), 4)
	}
	seen := map[int32]int64{}
	for i, d := range dirs().Dirs {
		if want := []string{"/data", "/more"}[i]; d.Dir != want || d.ErrorCode != 0 {
			t.Errorf("log dir %d is %q, code %d", i, d.Dir, d.ErrorCode)
		}
		if d.TotalBytes != 1<<30 || d.UsableBytes <= 0 || d.UsableBytes >= d.TotalBytes {
			t.Errorf("%s: %d of %d bytes", d.Dir, d.UsableBytes, d.TotalBytes)
		}
		if len(d.Topics) != 1 || len(d.Topics[0].Partitions) != 2 {
			t.Fatalf("%s holds %+v", d.Dir, d.Topics)
		}
		for _, p := range d.Topics[0].Partitions {
			seen[p.Partition] = p.Size
		}
	}
	for i := range int32(4) {
		if size := int64(len(words("a", "b"))); seen[i] != size {
			t.Errorf("partition %d: %d bytes, not %d", i, seen[i], size)
		}
	}
	s.m.FailNext("space", "/more", 0, 1, syscall.EIO)
	got := dirs().Dirs
	if len(got[0].Topics) != 1 || wire.Code(got[1].ErrorCode) != wire.KafkaStorageError || got[1].Topics != nil || got[1].TotalBytes != -1 {
		t.Errorf("%+v", got)
	}
	s.stop()
}
