package broker

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/ring/simring"
	"kring/wire"
)

// TestFullDiskIsALineForEachLogDir starts on two log dirs in which no file can be opened for want of room, and makes a topic there: who is
// told by the log hears of each log dir once, with a count and some names, and who created the topic that its logs are not there yet.
func TestFullDiskIsALineForEachLogDir(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			const dirs = "log.dirs=/data,/more"
			s := newSim(t, loops, 1)
			s.said = &strings.Builder{}
			s.start(dirs)
			connect(t, s).createTopic("k", 30)
			s.stop()
			s.said.Reset()
			full := func(topic string) {
				s.m.FailNext("open", "/"+topic+"-", 0, 1<<30, syscall.ENOSPC)
			}
			full("k")
			s.start(dirs)
			s.w.RunFor(5 * time.Second)
			once(t, s.said.String(), `msg="logs cannot be opened for want of room; they will be as soon as there is some" dir=/data partitions=15 names="k-`)
			once(t, s.said.String(), ` dir=/more partitions=15 names="k-`)
			once(t, s.said.String(), `msg="replicas cannot lead: their logs are offline" partitions=30 `)
			if n := strings.Count(s.said.String(), "k-29"); n > 3 {
				t.Errorf("%d lines name one partition:\n%s", n, s.said)
			}
			full("late")
			s.said.Reset()
			c := connect(t, s)
			if code := c.createTopic("late", 2); code != wire.KafkaStorageError {
				t.Errorf("creating a topic on a full disk: %v", code)
			}
			once(t, s.said.String(), " dir=/data partitions=1 names=late-")
			once(t, s.said.String(), " dir=/more partitions=1 names=late-")
			s.m.Faults = simring.Faults{}
			if !eventually(func() bool { _, code := c.produce("late", 1, 1, words("there is room")); return code == wire.None }) {
				t.Error("with room again the topic made meanwhile is not served")
			}
			s.stop()
		})
	}
}

// TestNoRoomIsToldOfOnce: logs that are there and lack their topic's id, for which there is no room after a crash, are not open. They
// are tried again in silence until there is room, and who watches hears how many there are.
func TestNoRoomIsToldOfOnce(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		s := newSim(t, loops, 1)
		s.said = &strings.Builder{}
		s.start()
		s.m.FailNext("write", "partition.metadata", 0, 1<<30, syscall.ENOSPC)
		if code := connect(t, s).createTopic("k", 12); code != wire.KafkaStorageError {
			t.Errorf("creating a topic on a full disk: %v", code)
		}
		told := func(when string) {
			s.w.RunFor(5 * time.Second)
			once(t, s.said.String(), `msg="logs cannot be opened for want of room; they will be as soon as there is some" dir=/data partitions=12 `)
			once(t, s.said.String(), `msg="replicas cannot lead: their logs are offline" partitions=12 `)
			if n := strings.Count(s.said.String(), "at last"); n != 0 {
				t.Errorf("%s: without room logs are said to be open %d times", when, n)
			}
			if n := s.b.Node().NoRoom(); n == nil || n.Partitions != 12 || len(n.Dirs) != 1 || n.Dirs[0] != "/data" ||
				!strings.Contains(n.Causes[0], "partition.metadata") {
				t.Errorf("%s: watchers are told of %+v", when, n)
			}
		}
		told("after the creation")
		s.m.Kill()
		s.said.Reset()
		s.start()
		told("after a crash")
		s.m.Faults = simring.Faults{}
		c := connect(t, s)
		if !eventually(func() bool { _, code := c.produce("k", 11, 1, words("there is room")); return code == wire.None }) {
			t.Error("with room again the topic is not served")
		}
		s.w.RunFor(5 * time.Second)
		once(t, s.said.String(), `msg="logs could be opened at last" partitions=12`)
		if n := s.b.Node().NoRoom(); n != nil {
			t.Errorf("with room again watchers are told of %+v", n)
		}
		s.stop()
	}
}

func once(t *testing.T, said, what string) {
	t.Helper()
	if n := strings.Count(said, what); n != 1 {
		t.Errorf("said %d times and not once: %s\n%s", n, what, said)
	}
}
