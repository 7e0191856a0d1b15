package broker

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kring/ring"
)

// TestStartThatIsGivenUp asks for the end of a start after some of the logs have been loaded, cleanly stopped before or not: the rest is
// left unopened, no log dir is marked clean, no checkpoint is written, and the next start finds everything.
func TestStartThatIsGivenUp(t *testing.T) {
	const partitions = 60
	for _, loops := range []int{1, 2, 4} {
		for _, crash := range []bool{true, false} {
			t.Run(fmt.Sprint(loops, crash), func(t *testing.T) {
				s := newSim(t, loops, 3)
				s.said = &strings.Builder{}
				s.start("log.segment.bytes=2000")
				c := connect(t, s)
				c.createTopic("a", 30)
				c.createTopic("b", 30)
				for _, topic := range []string{"a", "b"} {
					for i := range int32(partitions / 2) {
						c.produce(topic, i, 1, words("one", "two"))
						c.produce(topic, i, 1, words("three"))
					}
				}
				if crash {
					s.w.RunFor(2 * time.Minute) // checkpoints are written
					s.m.Kill()
				} else {
					s.stop()
				}
				before := s.checkpointFiles()
				asked, loaded := false, 0
				err := s.giveUp(func(stage Stage) {
					if stage.Total == partitions {
						loaded = stage.Done
						asked = asked || stage.Done > 2
					}
				}, func() bool { return asked })
				if !errors.Is(err, ErrGivenUp) || loaded < 3 {
					t.Fatalf("%v after %d logs", err, loaded)
				}
				if s.has("/data/.kafka_cleanshutdown") {
					t.Error("the log dir is marked clean")
				}
				for name, b := range before {
					if now, _ := s.m.ReadFile(name); !bytes.Equal(now, b) {
						t.Errorf("%s was %q and is %q", name, b, now)
					}
				}
				if said := s.said.String(); strings.Contains(said, "cannot be opened") || strings.Contains(said, "ERROR") {
					t.Errorf("%s", said)
				}
				s.start()
				c = connect(t, s)
				for _, topic := range []string{"a", "b"} {
					for i := range int32(partitions / 2) {
						if got := c.all(topic, i); fmt.Sprint(got) != "[one two three]" {
							t.Errorf("%s-%d: %v", topic, i, got)
						}
					}
				}
				s.stop()
			})
		}
	}
}

func (s *sim) checkpointFiles() map[string][]byte {
	all := map[string][]byte{}
	for _, name := range []string{"recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"} {
		if b, err := s.m.ReadFile("/data/" + name); err == nil {
			all["/data/"+name] = b
		}
	}
	return all
}

// giveUp begins a start and gives what it ends with.
func (s *sim) giveUp(told func(Stage), asked func() bool) (err error) {
	s.t.Helper()
	c := load(s.t, "log.dirs=/data", "listeners=PLAINTEXT://"+simAddr)
	done := false
	s.all = s.m.Start(s.loops, func(loops []ring.Loop) {
		ring.Go(loops[0], func(t *ring.Task) {
			_, err = Start(t, Options{Loops: loops, Config: c, Open: open, Log: s.logger(), Levels: &levels{"INFO"}, Told: told, GiveUp: asked})
			done = true
		})
	})
	if e := s.w.RunUntil("the end of the start", time.Hour, func() bool { return done }); e != nil {
		s.t.Fatal(e)
	}
	s.w.RunFor(time.Second)
	if e := s.m.Exit(); e != nil {
		s.t.Error(e)
	}
	return err
}
