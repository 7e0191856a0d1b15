package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/ring"
	"kring/wire"
)

// inDir are the partitions of a topic that lie in a log dir.
func (s *sim) inDir(dir, topic string, count int32) (there []int32) {
	for i := range count {
		prefix := fmt.Sprintf("%s/%s-%d/", dir, topic, i)
		if slices.ContainsFunc(s.m.Files(dir), func(name string) bool { return strings.HasPrefix(name, prefix) }) {
			there = append(there, i)
		}
	}
	return there
}

func (s *sim) has(name string) bool {
	_, err := s.m.ReadFile(name)
	return err == nil
}

func listEnd(c *client, topic string, partition int32) wire.Code {
	m := kmsg.NewPtrListOffsetsRequest()
	m.ReplicaID = -1
	rt, rp := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	rt.Topic, rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = topic, partition, -1, -1
	rt.Partitions = append(rt.Partitions, rp)
	m.Topics = append(m.Topics, rt)
	return wire.Code(ask[*kmsg.ListOffsetsResponse](c, m, 7).Topics[0].Partitions[0].ErrorCode)
}

// offlineEverywhere says that every API answers KAFKA_STORAGE_ERROR for a partition.
func offlineEverywhere(t *testing.T, c *client, topic string, i int32) {
	t.Helper()
	if _, code := c.produce(topic, i, 1, words("refused")); code != wire.KafkaStorageError {
		t.Errorf("produce to %s-%d: %v", topic, i, code)
	}
	if code := wire.Code(c.fetch(topic, i, 0, 0).ErrorCode); code != wire.KafkaStorageError {
		t.Errorf("fetch from %s-%d: %v", topic, i, code)
	}
	if code := listEnd(c, topic, i); code != wire.KafkaStorageError {
		t.Errorf("offsets of %s-%d: %v", topic, i, code)
	}
}

func describeDirs(c *client) map[string]*kmsg.DescribeLogDirsResponseDir {
	dirs := map[string]*kmsg.DescribeLogDirsResponseDir{}
	for _, d := range ask[*kmsg.DescribeLogDirsResponse](c, kmsg.NewPtrDescribeLogDirsRequest(), 4).Dirs {
		dirs[d.Dir] = &d
	}
	return dirs
}

// leader is what Metadata says of a partition's leader; -1 if there is none.
func leader(c *client, topic string, i int32) int32 {
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	for _, p := range ask[*kmsg.MetadataResponse](c, m, 12).Topics[0].Partitions {
		if p.Partition == i {
			return p.Leader
		}
	}
	return -1
}

func TestFailedLogDirIsOfflineAndTheOthersServe(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		for _, what := range []string{"write", "sync"} {
			t.Run(fmt.Sprint(loops, what), func(t *testing.T) { failedDir(t, loops, what) })
		}
	}
}

func failedDir(t *testing.T, loops int, what string) {
	const dirs = "log.dirs=/data,/more"
	s := newSim(t, loops, 1)
	s.start(dirs)
	c := connect(t, s)
	c.createTopic("k", 6, "flush.messages=1")
	for i := range int32(6) {
		c.produce("k", i, 1, words("before"))
	}
	gone, kept := s.inDir("/more", "k", 6), s.inDir("/data", "k", 6)
	if len(gone) != 3 || len(kept) != 3 {
		t.Fatalf("%v in one log dir, %v in the other", gone, kept)
	}
	s.m.FailNext(what, fmt.Sprintf("/k-%d/", gone[1]), 0, 1, syscall.EIO)
	if _, code := c.produce("k", gone[1], 1, words("lost")); code != wire.KafkaStorageError {
		t.Errorf("the failed %s: %v", what, code)
	}
	if !eventually(func() bool {
		_, code := c.produce("k", gone[0], 1, words("refused"))
		return code == wire.KafkaStorageError
	}) {
		t.Fatal("another partition of the log dir goes on")
	}
	if !eventually(func() bool { return leader(c, "k", gone[2]) == -1 }) {
		t.Error("metadata names a leader of a partition whose log dir is offline")
	}
	for _, i := range gone {
		offlineEverywhere(t, c, "k", i)
	}
	for _, i := range kept {
		if _, code := c.produce("k", i, 1, words("after")); code != wire.None {
			t.Errorf("partition %d of the other log dir: %v", i, code)
		}
		if got := c.all("k", i); !slices.Equal(got, []string{"before", "after"}) {
			t.Errorf("partition %d of the other log dir: %v", i, got)
		}
	}
	d := describeDirs(c)
	if wire.Code(d["/more"].ErrorCode) != wire.KafkaStorageError || d["/more"].Topics != nil || d["/data"].ErrorCode != 0 {
		t.Errorf("log dirs: %+v", d)
	}
	var f *Figures
	s.on(func(t *ring.Task, b *Broker) { f = figures(t, b)[0] })
	if f.LogDirs != 2 || f.LogDirsOffline != 1 {
		t.Errorf("%d log dirs, %d offline", f.LogDirs, f.LogDirsOffline)
	}
	if code := c.createTopic("late", 2); code != wire.None || len(s.inDir("/data", "late", 2)) != 2 {
		t.Errorf("a new topic: %v, in the log dir that is well: %v", code, s.inDir("/data", "late", 2))
	}
	s.on0stop()
	if s.has("/more/.kafka_cleanshutdown") || !s.has("/data/.kafka_cleanshutdown") {
		t.Error("the wrong log dirs were marked clean")
	}
	if !s.has("/more/kring-log-dir-failed") {
		t.Error("the next start is not told")
	}
	s.start(dirs)
	c = connect(t, s)
	for _, i := range gone {
		if got := c.all("k", i); len(got) == 0 || got[0] != "before" {
			t.Errorf("partition %d after a restart: %v", i, got)
		}
		if _, code := c.produce("k", i, 1, words("again")); code != wire.None {
			t.Errorf("partition %d after a restart: %v", i, code)
		}
	}
	if s.has("/more/kring-log-dir-failed") {
		t.Error("the mark stays though all was read")
	}
	s.stop()
	if !s.has("/more/.kafka_cleanshutdown") {
		t.Error("a log dir that is well again is not marked clean")
	}
}

// TestBrokerStopsWithoutItsLogDirs: the log dir of the store, or all of them.
func TestBrokerStopsWithoutItsLogDirs(t *testing.T) {
	for _, dirs := range []string{"/data", "/data,/more"} {
		s := newSim(t, 2, 1)
		s.start("log.dirs=" + dirs)
		c := connect(t, s)
		c.createTopic("k", 2)
		for i := range int32(2) {
			c.produce("k", i, 1, words("before"))
		}
		first := s.inDir("/data", "k", 2)[0]
		s.m.FailNext("write", fmt.Sprintf("/data/k-%d/", first), 0, 1, syscall.EIO)
		if _, code := c.produce("k", first, 1, words("lost")); code != wire.KafkaStorageError {
			t.Errorf("the failed write: %v", code)
		}
		if err := s.w.RunUntil("the broker to give up", time.Minute, func() bool { return s.err != nil }); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(s.err, ErrLogDirs) || !errors.Is(s.err, syscall.EIO) || !strings.Contains(s.err.Error(), "/data") {
			t.Errorf("the broker stops for: %v", s.err)
		}
		s.on0stop()
		if s.has("/data/.kafka_cleanshutdown") {
			t.Error("a failed log dir was marked clean")
		}
		s.start("log.dirs=" + dirs)
		c = connect(t, s)
		if got := c.all("k", first); len(got) == 0 || got[0] != "before" {
			t.Errorf("after a restart: %v", got)
		}
		s.stop()
	}
}

// TestStartWithoutALogDir: what lies in a log dir that cannot be opened is offline, is not made anew elsewhere, and is not taken for
// deleted; when the log dir is back all is there.
func TestStartWithoutALogDir(t *testing.T) {
	const dirs, atOnce = "log.dirs=/data,/more", "log.segment.delete.delay.ms=0"
	s := newSim(t, 2, 1)
	s.start(dirs, atOnce)
	c := connect(t, s)
	c.createTopic("k", 4)
	c.createTopic("doomed", 2)
	for i := range int32(4) {
		c.produce("k", i, 1, words("before"))
	}
	gone, kept := s.inDir("/more", "k", 4), s.inDir("/data", "k", 4)
	s.stop()
	s.m.FailNext("list", "/more", 0, 1000, syscall.EIO)
	s.start(dirs, atOnce)
	c = connect(t, s)
	for _, i := range gone {
		offlineEverywhere(t, c, "k", i)
	}
	for _, i := range kept {
		if got := c.all("k", i); !slices.Equal(got, []string{"before"}) {
			t.Errorf("partition %d: %v", i, got)
		}
	}
	if d := describeDirs(c); wire.Code(d["/more"].ErrorCode) != wire.KafkaStorageError {
		t.Errorf("log dirs: %+v", d)
	}
	m := kmsg.NewPtrDeleteTopicsRequest()
	m.TimeoutMillis = 1000
	name := "doomed"
	m.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
	ask[*kmsg.DeleteTopicsResponse](c, m, 6) // it is marked, and deleted later
	if code := c.createTopic("doomed", 1); code != wire.TopicAlreadyExists {
		t.Errorf("a topic that is half deleted can be made again: %v", code)
	}
	s.stop()
	s.m.CalmDown()
	s.start(dirs, atOnce)
	c = connect(t, s)
	for i := range int32(4) {
		if got := c.all("k", i); !slices.Equal(got, []string{"before"}) {
			t.Errorf("partition %d when the log dir is back: %v", i, got)
		}
	}
	if !eventually(func() bool { return c.createTopic("doomed", 1) == wire.None }) {
		t.Error("the deletion does not go on when the log dir is back")
	}
	s.stop()
}

// TestTopicMadeBesideAFullDisk: its partitions come to life by themselves when there is room, and one that was given up leaves nothing.
func TestTopicMadeBesideAFullDisk(t *testing.T) {
	for seed := range seeds(6) {
		s := newSim(t, 2, seed)
		s.start()
		c := connect(t, s)
		c.createTopic("k", 1)
		c.produce("k", 0, 1, words("before"))
		for _, what := range []string{"open", "write", "sync"} {
			s.m.FailNext(what, "late-", int(seed)%3, 1000, syscall.ENOSPC)
			s.m.FailNext(what, "never-", int(seed)%3, 1000, syscall.ENOSPC)
		}
		for _, name := range []string{"late", "never"} {
			m := kmsg.NewPtrCreateTopicsRequest()
			m.TimeoutMillis = 500
			m.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: name, NumPartitions: 3, ReplicationFactor: 1}}
			ask[*kmsg.CreateTopicsResponse](c, m, 7)
		}
		if code := c.deleteTopic("never"); code != wire.None {
			t.Errorf("seed %d: a topic that was never whole cannot be deleted: %v", seed, code)
		}
		s.w.RunFor(5 * time.Second)
		s.m.CalmDown()
		for i := range int32(3) {
			if !eventually(func() bool { s.w.RunFor(time.Second); return leader(c, "late", i) >= 0 }) {
				t.Fatalf("seed %d: there is room and nobody leads partition %d", seed, i)
			}
			if _, code := c.produce("late", i, 1, words("x")); code != wire.None {
				t.Errorf("seed %d, partition %d: %v", seed, i, code)
			}
		}
		if !eventually(func() bool { return c.createTopic("never", 3) == wire.None }) {
			t.Errorf("seed %d: the name cannot be used again", seed)
		}
		for i := range int32(3) {
			if _, code := c.produce("never", i, 1, words("x")); code != wire.None {
				t.Errorf("seed %d, partition %d of the topic made again: %v", seed, i, code)
			}
		}
		s.stop()
		if !s.has("/data/.kafka_cleanshutdown") {
			t.Logf("seed %d: not marked clean", seed)
		}
	}
}

// TestRemovedPartitionDirectory: that log alone goes offline; when the whole log dir is removed it does.
func TestRemovedPartitionDirectory(t *testing.T) {
	const dirs = "log.dirs=/data,/more"
	s := newSim(t, 2, 1)
	s.start(dirs, "log.flush.offset.checkpoint.interval.ms=1000")
	c := connect(t, s)
	c.createTopic("k", 4)
	for i := range int32(4) {
		c.produce("k", i, 1, words("before"))
	}
	there := s.inDir("/more", "k", 4)
	if err := s.m.RemoveAll(fmt.Sprintf("/more/k-%d", there[0])); err != nil {
		t.Fatal(err)
	}
	s.w.RunFor(3 * time.Second)
	if !eventually(func() bool { return leader(c, "k", there[0]) == -1 }) {
		t.Error("nobody notices that a partition's directory is gone")
	}
	offlineEverywhere(t, c, "k", there[0])
	if _, code := c.produce("k", there[1], 1, words("after")); code != wire.None {
		t.Errorf("another partition of the log dir: %v", code)
	}
	if err := s.m.RemoveAll("/more"); err != nil {
		t.Fatal(err)
	}
	s.w.RunFor(3 * time.Second)
	offlineEverywhere(t, c, "k", there[1])
	for _, i := range s.inDir("/data", "k", 4) {
		if _, code := c.produce("k", i, 1, words("after")); code != wire.None {
			t.Errorf("partition %d of the other log dir: %v", i, code)
		}
	}
	s.on0stop()
	if !s.has("/data/.kafka_cleanshutdown") {
		t.Error("the log dir that is well was not marked clean")
	}
}

// TestStartWithAPartitionThatCannotBeOpened: who may not read a partition's directory loses that partition; a disk that fails to read it
// loses the log dir. Neither is marked clean, and both are well when the cause is gone.
func TestStartWithAPartitionThatCannotBeOpened(t *testing.T) {
	const dirs = "log.dirs=/data,/more"
	for cause, whole := range map[syscall.Errno]bool{syscall.EACCES: false, syscall.EIO: true} {
		s := newSim(t, 2, 1)
		s.start(dirs)
		c := connect(t, s)
		c.createTopic("k", 6)
		for i := range int32(6) {
			c.produce("k", i, 1, words("before"))
		}
		there := s.inDir("/more", "k", 6)
		s.stop()
		s.m.FailNext("list", fmt.Sprintf("/more/k-%d", there[1]), 0, 1000, cause)
		s.start(dirs)
		c = connect(t, s)
		offlineEverywhere(t, c, "k", there[1])
		for _, i := range []int32{there[0], there[2]} {
			if whole {
				offlineEverywhere(t, c, "k", i)
			} else if got := c.all("k", i); !slices.Equal(got, []string{"before"}) {
				t.Errorf("%v: partition %d: %v", cause, i, got)
			}
		}
		for _, i := range s.inDir("/data", "k", 6) {
			if got := c.all("k", i); !slices.Equal(got, []string{"before"}) {
				t.Errorf("%v: partition %d of the other log dir: %v", cause, i, got)
			}
		}
		if failed := wire.Code(describeDirs(c)["/more"].ErrorCode) == wire.KafkaStorageError; failed != whole {
			t.Errorf("%v: the log dir is offline: %v", cause, failed)
		}
		s.on0stop()
		if s.has("/more/.kafka_cleanshutdown") || !s.has("/data/.kafka_cleanshutdown") {
			t.Errorf("%v: the wrong log dirs were marked clean", cause)
		}
		s.m.CalmDown()
		s.start(dirs)
		c = connect(t, s)
		for i := range int32(6) {
			if got := c.all("k", i); !slices.Equal(got, []string{"before"}) {
				t.Errorf("%v: partition %d at last: %v", cause, i, got)
			}
		}
		s.stop()
	}
}
